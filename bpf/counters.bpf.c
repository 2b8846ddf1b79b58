// SPDX-License-Identifier: GPL-2.0-only
/* Counters and CPU time per (row, CPU), read at the moment the CPU changes hands.
 *
 * One body (counters_body.bpf.h), several entries: tp_btf where the kernel's BTF allows it, raw_tp
 * elsewhere, perf_event on cgroup switches by name only. User space loads exactly one of them.
 * Two more programs are never attached and run by BPF_PROG_TEST_RUN: flush closes the open
 * interval of the CPU it runs on, retire gives a slot back. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "counters.h"
#include "counters_body.bpf.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sched_switch")
int BPF_PROG(switch_btf, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return on_switch(prev, next, true);
}

SEC("raw_tp/sched_switch")
int BPF_PROG(switch_raw, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return on_switch(prev, next, false);
}

/* Runs in the context of the task that leaves; who comes is not known, so the interval that ends
 * is charged to the row of the one that leaves. Does not fire between the root cgroup and idle. */
SEC("perf_event")
int switch_perf(void *ctx)
{
	struct jd_cpu_state *st = this_cpu_state();
	struct task_struct *curr = (struct task_struct *)bpf_get_current_task();

	if (!st)
		return 0;
	st->slot = slot_of(st, curr, row_key(curr, false), false);
	charge(st, bpf_ktime_get_ns());
	return 0;
}

/* A task that moves itself (or its own thread group) is running here and now: what it used so far
 * belongs to the cgroup it leaves. Tasks moved by others are reported by bpf/lifecycle.bpf.c. */
static __always_inline int on_attach(struct task_struct *leader)
{
	struct task_struct *curr = (struct task_struct *)bpf_get_current_task();

	if (BPF_CORE_READ(leader, tgid) != (int)(bpf_get_current_pid_tgid() >> 32))
		return 0;
	struct jd_cpu_state *st = this_cpu_state();

	if (st)
		close_moved(st, curr);
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(attach_btf, struct cgroup *dst, const char *path, struct task_struct *leader, bool group)
{
	return on_attach(leader);
}

SEC("raw_tp/cgroup_attach_task")
int BPF_PROG(attach_raw, struct cgroup *dst, const char *path, struct task_struct *leader, bool group)
{
	return on_attach(leader);
}

SEC("raw_tp/flush")
int flush(struct bpf_raw_tracepoint_args *ctx)
{
	struct jd_cpu_state *st = this_cpu_state();

	if (!st)
		return JD_FLUSHED;
	if (st->seq & 1)
		return JD_FLUSH_BUSY;
	struct task_struct *curr = (struct task_struct *)bpf_get_current_task();

	if (ctx->args[0] == JD_FLUSH_CLOSE) {
		close_moved(st, curr);
		return JD_FLUSHED;
	}
	close_open(st, curr, task_clock_now(st, curr));
	flip(st);
	return JD_FLUSHED;
}

SEC("raw_tp/retire")
int retire(struct bpf_raw_tracepoint_args *ctx)
{
	return retire_slot((u32)ctx->args[0]);
}
