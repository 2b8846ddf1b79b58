/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts where files may be written once everything is open. Uses the system calls of landlock(7), which
 * have no library. */
#ifndef JD_LANDLOCK_H
#define JD_LANDLOCK_H
#include <stdbool.h>
#include "base/err.h"
#include "model/config/config.h"

/* The Landlock ABI of the running kernel, 0 = none. */
int landlock_abi(void);
/* Restricts this thread and all threads and programs it starts from now on. Files can be made, written and
 * removed only below the directories that c names. Programs can be started only if `programs`. Reading is not
 * restricted. -ENOSYS with err when the kernel has no Landlock. Call before the first thread. */
int landlock_enter(const struct config *c, bool programs, struct err *err);
/* Checks that a later configuration writes only below the directories given to landlock_enter. 0, or -EACCES and err
 * names the first path that does not. */
int landlock_covers(const struct config *c, struct err *err);

#endif
