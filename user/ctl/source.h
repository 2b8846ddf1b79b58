/* SPDX-License-Identifier: Apache-2.0 */
/* Where a verb's bytes come from: "-" (standard input), a file, tcp://HOST:PORT, unix:///PATH. */
#ifndef JD_CTL_SOURCE_H
#define JD_CTL_SOURCE_H
#include "../base/err.h"

/* A descriptor, or negative errno with the message in err. */
int source_open(const char *where, struct err *err);

#endif
