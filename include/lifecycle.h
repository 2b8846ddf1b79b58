/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Ring buffer records of bpf/lifecycle.bpf.c: births, ends and renames of cgroups, and tasks
 * moved between cgroups while they run on a CPU. Paths are below the accounted hierarchy's
 * root, NUL-terminated; a path that did not fit is flagged and repaired by file handle. */
#ifndef JOULED_LIFECYCLE_H
#define JOULED_LIFECYCLE_H

#define JD_PATH_MAX 1024

enum jd_lifecycle_kind { JD_CGROUP_MKDIR = 1, JD_CGROUP_RMDIR, JD_CGROUP_RENAME, JD_TASK_MOVED };
enum jd_lifecycle_flag { JD_PATH_TRUNCATED = 1 };

struct jd_lifecycle_event {
	__u32 kind;
	__u32 flags;
	__u64 cgroup_id;
	__u64 mono_ns;
	__u32 level;
	__u32 cpu;      /* JD_TASK_MOVED: CPU the task runs on */
	__u32 path_len; /* without the NUL; 0 for JD_TASK_MOVED */
	__u32 reserved;
	char path[JD_PATH_MAX];
};

_Static_assert(sizeof(struct jd_lifecycle_event) == 40 + JD_PATH_MAX, "lifecycle event layout");

#endif
