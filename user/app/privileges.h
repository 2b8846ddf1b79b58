/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_PRIVILEGES_H
#define JD_PRIVILEGES_H
#include "../base/err.h"
#include "machine.h"

/* Gives up every capability that measuring does not need any more. Before the first thread: what
 * a thread inherits is what its creator has. */
int privileges_drop(const struct machine *m, struct err *err);

#endif
