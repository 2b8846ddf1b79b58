/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts system calls once everything is open: a list of calls, and an answer for all others. */
#ifndef JD_SECCOMP_H
#define JD_SECCOMP_H
#include <stdbool.h>
#include "base/err.h"
#include "model/config/config.h"

/* Restricts this thread and all it starts from now on. Calls that are not listed fail with ENOSYS (on) or are
 * only reported (log); each is logged by name. programs: allows starting other programs. -ENOSYS with err when
 * the kernel has no filters. Call before the first thread; it starts one. */
int filter_enter(enum filter_mode mode, bool programs, struct err *err);
/* True when this kernel has the filters that filter_enter needs. ret_reason is static text. */
bool filter_available(const char **ret_reason);

/* An entry of the lists in seccomp.c. */
struct filter_call {
	const char *name;
	int number; /* used when libseccomp does not know the name; the same on every machine since 5.1; else 0 */
};

extern const struct filter_call filter_calls[]; /* up to a NULL name */
extern const struct filter_call filter_programs[]; /* additional calls, for starting programs */

#endif
