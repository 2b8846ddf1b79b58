/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroup hierarchy is accounted, from the mount table (/proc/self/mountinfo): v2, or the v1
 * hierarchy of the perf_event controller where that is mounted; hybrid hosts have both. */
#ifndef JD_HIERARCHY_H
#define JD_HIERARCHY_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/config/config.h"

struct hierarchy {
	bool v2; /* false: v1 perf_event */
	uint32_t id; /* kernel hierarchy id: 0 for v2, else from /proc/cgroups */
	char mount[4096]; /* where it is mounted, as this process sees it */
	char subdir[4096]; /* the mount's root within the hierarchy ("/" unless namespaced or bind-mounted) */
	bool private_namespace; /* this process sees only part of the tree */
	char reason[200]; /* why this one */
};
int hierarchy_detect(const struct fsroot *root, enum hierarchy_mode mode, struct hierarchy *ret, struct err *err);

#endif
