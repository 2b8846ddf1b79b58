/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroup of a running process in the hierarchy that is accounted, from /proc/PID/cgroup (proc(5)). */
#ifndef JD_PROCESS_CGROUP_H
#define JD_PROCESS_CGROUP_H
#include "hierarchy.h"

/* Its path below the mount. 0, or -ENOENT. */
int process_cgroup_path(const struct fsroot *root, const struct hierarchy *h, uint32_t pid, char *ret_path,
			size_t size);
/* 0, or -ENOENT: no such process, or its cgroup is out of sight. */
int process_cgroup(const struct fsroot *root, const struct hierarchy *h, uint32_t pid, uint64_t *ret_id);

#endif
