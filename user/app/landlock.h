/* SPDX-License-Identifier: Apache-2.0 */
/* Where files may be written once everything is open: landlock(7) by its system calls, there is no library. */
#ifndef JD_LANDLOCK_H
#define JD_LANDLOCK_H
#include <stdbool.h>
#include "../base/err.h"
#include "../model/config.h"

/* ABI of the running kernel, 0 = none. */
int landlock_abi(void);
/* From here on, for this thread and all that it starts: files are made, written and removed only below the
 * directories that c names, and programs started only if `programs`. Reading is not restricted. -ENOSYS where the
 * kernel has none; err says so. Before the first thread. */
int landlock_enter(const struct config *c, bool programs, struct err *err);
/* Of a configuration that is read later: whether what it writes lies in what landlock_enter was given. 0, or -EACCES
 * and err names the first that does not. */
int landlock_covers(const struct config *c, struct err *err);

#endif
