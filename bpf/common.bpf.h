/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts that the programs share: kernel types and numbers, pairs of entries, the cgroup of a task, the threads of a
 * process, and the wake-up of a ring's reader. */
#ifndef JOULED_COMMON_BPF_H
#define JOULED_COMMON_BPF_H
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* The kernel lets only GPL programs call some of the helpers. */
char LICENSE[] SEC("license") = "GPL";

#define PF_EXITING 0x00000004 /* include/linux/sched.h */
#define PF_KTHREAD 0x00200000

#define BPF_RB_NO_WAKEUP 1 /* include/uapi/linux/bpf.h */
#define BPF_RB_FORCE_WAKEUP 2
#define BPF_RB_AVAIL_DATA 0

/* One body with two entries: NAME_btf (tp_btf) and NAME_raw (raw_tp) for kernels that refuse tp_btf. User space loads
 * one of the two (user/source/bpf_load.h). `call` is the body's call; the arguments of the tracepoint follow. */
#define BPF_ENTRIES(name, tracepoint, call, ...) \
	SEC("tp_btf/" tracepoint) int BPF_PROG(name##_btf, ##__VA_ARGS__) \
	{ \
		return call; \
	} \
	SEC("raw_tp/" tracepoint) int BPF_PROG(name##_raw, ##__VA_ARGS__) \
	{ \
		return call; \
	}

/* The task's cgroup in the perf_event hierarchy of cgroup v1. */
static __always_inline struct cgroup *task_cgroup_v1(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	u32 subsys = bpf_core_enum_value(enum cgroup_subsys_id, perf_event_cgrp_id);
	struct cgroup_subsys_state *css = NULL;

	bpf_core_read(&css, sizeof(css), &set->subsys[subsys]);
	return BPF_CORE_READ(css, cgroup);
}

/* Head of the list of a process's threads. */
static __always_inline struct list_head *thread_list(struct signal_struct *signal)
{
	return (void *)signal + bpf_core_field_offset(struct signal_struct, thread_head);
}

/* The thread at a node of that list. */
static __always_inline struct task_struct *thread_at(struct list_head *node)
{
	return (void *)node - bpf_core_field_offset(struct task_struct, thread_node);
}

/* Tells user space, which sets it back, that a table has new work. To be called behind the work. The word is written only
 * when that is news, so that its line of the cache stays with all CPUs. */
static __always_inline void tell_changed(u32 *changed)
{
	if (!*changed)
		*changed = 1;
}

/* Flags of a record that goes into a ring of `bytes`: the reader empties the ring at each reading, and is woken before
 * that only when a quarter of the ring is full. */
static __always_inline u64 wake_when_filling(void *ring, u64 bytes)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > bytes / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

#endif
