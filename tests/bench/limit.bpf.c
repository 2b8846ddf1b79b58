// SPDX-License-Identifier: GPL-2.0-only
/* Programs that no counter program can undercut, on the same tracepoint in the same run: nothing,
 * the first comparison, and the stamp with plain reads whose values are dropped; and the same for requests of block devices. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define MAX_EVENTS 8
#define BLOCK_WORDS 1024 /* a power of two */

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

/* The least that knows who asked for a request and adds its bytes and itself to that cgroup's: one word for all bios that
 * fall on it, one counter for all ids that do, no table that fills, no kinds, no kernel threads, no io controller. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BLOCK_WORDS);
	__type(key, u32);
	__type(value, u64);
} askers SEC(".maps");

struct work {
	u64 bytes, requests;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BLOCK_WORDS);
	__type(key, u32);
	__type(value, struct work);
} work SEC(".maps");

__u64 base = 0;

/* The verifier calculates with no typed pointer, but the distance of two pointers is a number to it. */
static __always_inline u64 *asker(struct bio *bio)
{
	u64 at = (u64)bio;
	u32 key;

	asm volatile("%0 -= %1" : "+r"(at) : "r"(&base));
	key = at >> 8 & (BLOCK_WORDS - 1);
	return bpf_map_lookup_elem(&askers, &key);
}

SEC("tp_btf/block_getrq")
int BPF_PROG(limit_begin, struct bio *bio)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *id = asker(bio);

	if (id)
		*id = task->cgroups->dfl_cgrp->kn->id;
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(limit_complete, struct request *rq, int error, unsigned int bytes)
{
	u64 *id = asker(rq->bio);
	struct work *w;
	u32 key;

	if (!id)
		return 0;
	key = *id & (BLOCK_WORDS - 1);
	w = bpf_map_lookup_elem(&work, &key);
	if (!w)
		return 0;
	w->bytes += bytes;
	w->requests += bytes >= rq->__data_len;
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
