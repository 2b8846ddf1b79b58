// SPDX-License-Identifier: GPL-2.0-only
/* Programs that no counter program can undercut, on the same tracepoint in the same run: nothing,
 * the first comparison, and the stamp with plain reads whose values are dropped. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define MAX_EVENTS 8

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 n_events = 0;
const volatile __u32 n_cpus = 1;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} events SEC(".maps");

SEC("tp_btf/sched_switch")
int BPF_PROG(empty, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return 0;
}

/* The same for a request of a block device. */
SEC("tp_btf/block_getrq")
int BPF_PROG(empty_begin, struct bio *bio)
{
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(empty_complete, struct request *rq, int error, unsigned int bytes)
{
	return 0;
}

/* Kept alive without being stored: the compiler may not drop what it believes is used. */
#define USE(v) asm volatile("" : : "r"(v))

SEC("tp_btf/sched_switch")
int BPF_PROG(compare, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (prev->cgroups->dfl_cgrp->kn->id == next->cgroups->dfl_cgrp->kn->id)
		return 0;
	USE(next);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(limit, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 stamp = prev->pid ? prev->se.exec_start : next->se.exec_start;

	USE(stamp);
#pragma unroll
	for (u32 i = 0; i < MAX_EVENTS; i++)
		if (i < n_events)
			bpf_perf_event_read(&events, i * n_cpus + cpu);
	return 0;
}
