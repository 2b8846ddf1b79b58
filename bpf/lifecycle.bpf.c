// SPDX-License-Identifier: GPL-2.0-only
/* Writes births, ends and renames of cgroups of the one accounted hierarchy, and tasks moved while
 * they run on another CPU, into a ring buffer. One body has two entries per tracepoint: tp_btf where
 * it loads, raw_tp elsewhere; user space loads one set. The cgroup tracepoints fire under the
 * cgroup mutex, so records are in the ring in the order of events. */
#include "common.bpf.h"
#include "lifecycle.h"

const volatile __s32 hierarchy_id = 0; /* 0 = v2; cgroup ids are unique within one hierarchy only */
const volatile __u64 mount_id = 0; /* cgroup at the mount's root; 0 = the hierarchy's own root */

__u64 lost_cgroups; /* records that found the ring full */
__u64 lost_moves;
__u32 wake_for_birth; /* user space sets it; the next birth wakes user space and clears it */

#define RING_BYTES (512 * 1024)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} events SEC(".maps");

/* A record is built here and copied with its true length, because reserving it in the ring would take a
 * whole JD_PATH_MAX each. One suffices: these tracepoints fire under trace_cgroup_path_lock. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct jd_lifecycle_event);
} scratch SEC(".maps");

/* Before 5.16, and on kernels without THREAD_INFO_IN_TASK, a task's CPU is its own field. */
struct task_struct___cpu {
	unsigned int cpu;
} __attribute__((preserve_access_index));

static __always_inline bool accounted(struct cgroup *cgrp)
{
	return BPF_CORE_READ(cgrp, root, hierarchy_id) == hierarchy_id;
}

static __always_inline struct jd_lifecycle_event *record(__u32 kind, struct cgroup *cgrp)
{
	u32 zero = 0;
	struct jd_lifecycle_event *e = bpf_map_lookup_elem(&scratch, &zero);

	if (!e)
		return NULL;
	e->kind = kind;
	e->flags = 0;
	e->cgroup_id = BPF_CORE_READ(cgrp, kn, id);
	e->mono_ns = bpf_ktime_get_ns();
	e->level = BPF_CORE_READ(cgrp, level);
	e->cpu = 0;
	e->path_len = 0;
	e->mount_level = 0;
	return e;
}

/* Level at which the mounted part of the hierarchy begins above cgrp. */
static __always_inline __u32 mount_level(struct cgroup *cgrp)
{
	if (!mount_id)
		return 0;
	for (int i = 0; i < JD_MOUNT_DEPTH && cgrp; i++) {
		if (BPF_CORE_READ(cgrp, kn, id) == mount_id)
			return BPF_CORE_READ(cgrp, level);
		cgrp = BPF_CORE_READ(cgrp, self.parent, cgroup);
	}
	return JD_OUTSIDE;
}

/* The reader takes births and ends at the next reading: waking it for each would cost the process that
 * makes the cgroup several microseconds. The reader is woken when the ring fills up between two readings,
 * and by a birth when it asked for that; it asks again after a pause. */
static __always_inline __u64 wake(__u32 kind)
{
	if (kind == JD_CGROUP_MKDIR && wake_for_birth) {
		wake_for_birth = 0;
		return BPF_RB_FORCE_WAKEUP;
	}
	return wake_when_filling(&events, RING_BYTES);
}

static __always_inline int report(__u32 kind, struct cgroup *cgrp, const char *path)
{
	struct jd_lifecycle_event *e;
	__u64 n;

	if (!accounted(cgrp))
		return 0;
	e = record(kind, cgrp);
	if (!e)
		return 0;
	e->mount_level = mount_level(cgrp);
	n = bpf_probe_read_kernel_str(e->path, sizeof(e->path), path);
	if (n == 0 || n > JD_PATH_MAX) { /* unreadable: still report the id */
		e->path[0] = '\0';
		e->flags = JD_PATH_TRUNCATED;
		n = 1;
	}
	e->path_len = n - 1;
	if (n == JD_PATH_MAX)
		e->flags = JD_PATH_TRUNCATED;
	if (bpf_ringbuf_output(&events, e, offsetof(struct jd_lifecycle_event, path) + n, wake(kind)))
		__sync_fetch_and_add(&lost_cgroups, 1);
	return 0;
}

static __always_inline void report_moved(struct cgroup *cgrp, __u32 cpu)
{
	struct jd_lifecycle_event *e = record(JD_TASK_MOVED, cgrp);

	if (!e)
		return;
	e->cpu = cpu;
	e->path[0] = '\0';
	if (bpf_ringbuf_output(&events, e, offsetof(struct jd_lifecycle_event, path) + 1, BPF_RB_FORCE_WAKEUP))
		__sync_fetch_and_add(&lost_moves, 1);
}

static __always_inline __u32 task_cpu(struct task_struct *task)
{
	struct task_struct___cpu *old = (void *)task;

	return bpf_core_field_exists(task->thread_info.cpu) ? BPF_CORE_READ(task, thread_info.cpu) :
	       bpf_core_field_exists(old->cpu)              ? BPF_CORE_READ(old, cpu) :
							      JD_EVERY_CPU;
}

/* Not for a task on this CPU: the counters program closes its interval at the same tracepoint. */
static __always_inline void moved(struct cgroup *dst, struct task_struct *task)
{
	__u32 cpu;

	/* an int until 6.x, a byte beside others since then: reads it with the size in the kernel's BTF */
	if (!bpf_core_field_exists(task->on_cpu) || !BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu))
		return;
	cpu = task_cpu(task);
	if (cpu != bpf_get_smp_processor_id())
		report_moved(dst, cpu);
}

static __always_inline int on_attach(struct cgroup *dst, struct task_struct *leader, bool group)
{
	struct list_head *head, *node;
	struct signal_struct *signal;

	if (!accounted(dst))
		return 0;
	if (!group) {
		moved(dst, leader);
		return 0;
	}
	signal = BPF_CORE_READ(leader, signal);
	head = thread_list(signal);
	node = BPF_CORE_READ(head, next);
	for (int i = 0; i < JD_MOVED_THREADS; i++) {
		if (!node || node == head)
			return 0;
		moved(dst, thread_at(node));
		node = BPF_CORE_READ(node, next);
	}
	report_moved(dst, JD_EVERY_CPU);
	return 0;
}

BPF_ENTRIES(mkdir, "cgroup_mkdir", report(JD_CGROUP_MKDIR, cgrp, path), struct cgroup *cgrp, const char *path)

BPF_ENTRIES(rmdir, "cgroup_rmdir", report(JD_CGROUP_RMDIR, cgrp, path), struct cgroup *cgrp, const char *path)

BPF_ENTRIES(rename, "cgroup_rename", report(JD_CGROUP_RENAME, cgrp, path), struct cgroup *cgrp, const char *path)

BPF_ENTRIES(attach, "cgroup_attach_task", on_attach(dst, leader, group), struct cgroup *dst, const char *path,
	    struct task_struct *leader, bool group)
