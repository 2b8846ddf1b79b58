/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning up behind a program that may be killed: a process of its own that waits for the end. */
#ifndef JD_CTL_JANITOR_H
#define JD_CTL_JANITOR_H
#include "../base/err.h"

struct janitor;

/* clean(arg) is called in another process when this one has ended without janitor_dismiss, however it
 * ended. That process sees the memory of now. */
int janitor_start(void (*clean)(void *arg), void *arg, struct janitor **ret, struct err *err);
void janitor_dismiss(struct janitor *j); /* everything is clean; NULL accepted */

#endif
