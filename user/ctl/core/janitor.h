/* SPDX-License-Identifier: Apache-2.0 */
/* The janitor: a process of its own that waits for the end of a program, which may be killed, and cleans up after it. */
#ifndef JD_CTL_JANITOR_H
#define JD_CTL_JANITOR_H
#include "base/err.h"

struct janitor;

/* Forks a process that calls clean(arg) when this one ends without janitor_dismiss, for whatever reason. That process
 * has a copy of the memory as it is now, and keep_fd as its only descriptor (-1 = none). */
int janitor_start(void (*clean)(void *arg), void *arg, int keep_fd, struct janitor **ret, struct err *err);
void janitor_dismiss(struct janitor *j); /* ends it without cleaning; NULL accepted */

#endif
