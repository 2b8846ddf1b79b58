/* SPDX-License-Identifier: Apache-2.0 */
/* Freezes cgroups for a moment (cgroup.freeze, kernel's Documentation/admin-guide/cgroup-v2.rst). A second process does
 * it: it thaws when it is told, when the time is over, and when this process ends for whatever reason. When the second
 * process ends, this one thaws. */
#ifndef JD_CTL_AUDIT_FREEZER_H
#define JD_CTL_AUDIT_FREEZER_H
#include <stdint.h>
#include "base/err.h"

#define FREEZER_MAX 16 /* cgroups */

struct freezer;

/* dirs: descriptors of n directories of cgroups; they stay the caller's. most_ns: the longest time that a cgroup stays
 * frozen. 0 or negative errno with err. */
int freezer_start(const int *dirs, unsigned n, uint64_t most_ns, struct freezer **ret, struct err *err);
/* Returns when the cgroup is frozen. -EBUSY: it did not freeze within a tenth of a second and was thawed; -EPIPE: the second
 * process has ended, and everything is thawed; or another errno. */
int freezer_freeze(struct freezer *f, unsigned cgroup, struct err *err);
/* Waits, and watches the second process. 0, or -EPIPE: it has ended, and everything is thawed. */
int freezer_wait(struct freezer *f, uint64_t ns);
/* Thaws. *ret_ns: how long it was frozen. -ETIMEDOUT: the time was over before, and it was thawed then; or as above. */
int freezer_thaw(struct freezer *f, uint64_t *ret_ns, struct err *err);
/* Thaws and ends the second process. NULL accepted. */
void freezer_stop(struct freezer *f);

#endif
