/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel may be asked for once everything is open: a list of system calls, and an answer for all others. */
#ifndef JD_SECCOMP_H
#define JD_SECCOMP_H
#include <stdbool.h>
#include "../base/err.h"
#include "../model/config.h"

/* From here on, for this thread and all that it starts, calls that are not listed fail with ENOSYS (on) or are only
 * told about (log); each is said by name. programs: may others be started? Where the kernel has no filters, -ENOSYS
 * and err says so. Before the first thread; it starts one. */
int filter_enter(enum filter_mode mode, bool programs, struct err *err);
/* Whether this kernel has what filter_enter needs; ret_reason is static text. */
bool filter_available(const char **ret_reason);

/* The list, user/app/seccomp_list.c. */
struct filter_call {
	const char *name;
	int number; /* where libseccomp is too old to know the name: the same on every machine since 5.1; else 0 */
};

extern const struct filter_call filter_calls[]; /* up to a NULL name */
extern const struct filter_call filter_programs[]; /* more, for starting programs */

#endif
