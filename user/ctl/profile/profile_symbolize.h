/* SPDX-License-Identifier: Apache-2.0 */
/* Names the code of a profile that was taken without names. */
#ifndef JD_PROFILE_SYMBOLIZE_H
#define JD_PROFILE_SYMBOLIZE_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

/* Reads a .pb.gz file and writes it with the names that this machine has, packed again or as folded stacks. A file of
 * code that lacks names is told in a line of the log. 0, or negative errno with err. */
int profile_symbolize(const char *path, const char *debug_dirs, bool folded, struct buf *out, struct err *err);

#endif
