/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Ring buffer records of bpf/lifecycle.bpf.c: births, ends and renames of cgroups, and tasks
 * moved between cgroups while they run on a CPU. Paths are below the accounted hierarchy's
 * root, NUL-terminated; a path that did not fit is flagged, and user space repairs it by file
 * handle. A record has offsetof(path) + path_len + 1 bytes. */
#ifndef JOULED_LIFECYCLE_H
#define JOULED_LIFECYCLE_H

#define JD_PATH_MAX 1024 /* TRACE_CGROUP_PATH_LEN, kernel/cgroup/cgroup-internal.h */
#define JD_MOVED_THREADS 64 /* threads of a moved group examined one by one */
#define JD_MOUNT_DEPTH 64 /* ancestors compared with the mount's root */

enum jd_lifecycle_kind { JD_CGROUP_MKDIR = 1, JD_CGROUP_RMDIR, JD_CGROUP_RENAME, JD_TASK_MOVED };
enum jd_lifecycle_flag { JD_PATH_TRUNCATED = 1 };

#define JD_OUTSIDE 0xffffffffu /* mount_level: not below the mounted part of the hierarchy */
#define JD_EVERY_CPU 0xffffffffu /* cpu: more threads moved than were examined */

struct jd_lifecycle_event {
	__u32 kind;
	__u32 flags;
	__u64 cgroup_id;
	__u64 mono_ns;
	__u32 level;
	__u32 cpu; /* JD_TASK_MOVED: CPU the task runs on */
	__u32 path_len; /* without the NUL; 0 for JD_TASK_MOVED */
	__u32 mount_level; /* level of the mount's root: this many components of path lie above it */
	char path[JD_PATH_MAX];
};

_Static_assert(sizeof(struct jd_lifecycle_event) == 40 + JD_PATH_MAX, "lifecycle event layout");

#endif
