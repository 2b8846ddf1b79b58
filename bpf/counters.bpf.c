// SPDX-License-Identifier: GPL-2.0-only
/* Counters and CPU time per (row, CPU), read when a CPU switches tasks.
 *
 * One body (counters_body.bpf.h) has several entries: tp_btf where the kernel's BTF allows it, raw_tp
 * elsewhere, perf_event on cgroup switches when it is chosen by name. User space loads exactly one of them.
 * Two more programs are never attached; BPF_PROG_TEST_RUN runs them: flush closes the open
 * interval of the CPU it runs on, retire gives slots back. */
#include "common.bpf.h"
#include "counters.h"
#include "counters_body.bpf.h"

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

/* Runs in the context of the task that leaves. The next task is not known here, so the interval that ends
 * is charged to the row of the task that leaves. Does not fire between the root cgroup and idle. */
SEC("perf_event")
int switch_perf(void *ctx)
{
	struct jd_cpu_state *st = this_cpu_state();
	struct task_struct *curr = (struct task_struct *)bpf_get_current_task();

	if (!st)
		return 0;
	if (st->key != JD_KEY_NONE)
		st->row = row_of(st, curr, row_key(curr, false), false);
	u64 now = bpf_ktime_get_ns();

	charge(st, now, now);
	return 0;
}

/* A task that moves itself (or its own thread group) runs on this CPU now: its use so far belongs to
 * the cgroup that it leaves. bpf/lifecycle.bpf.c reports tasks moved by others. */
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

BPF_ENTRIES(attach, "cgroup_attach_task", on_attach(leader), struct cgroup *dst, const char *path,
	    struct task_struct *leader, bool group)

SEC("raw_tp/flush")
int flush(struct bpf_raw_tracepoint_args *ctx)
{
	struct jd_cpu_state *st = this_cpu_state();

	if (!st)
		return JD_FLUSHED;
	if (st->seq & 1)
		return JD_FLUSH_BUSY;
	struct task_struct *curr = (struct task_struct *)bpf_get_current_task();
	bool moved = ctx->args[0] == JD_FLUSH_CLOSE;

	if (moved && BPF_CORE_READ(curr, pid) == 0)
		return JD_FLUSHED;
	if (moved && charge_current) {
		close_other(st);
		return JD_FLUSHED;
	}
	close_open(st, curr, moved ? moved_at(curr) : task_clock_now(st, curr));
	if (!moved)
		flip(st);
	return JD_FLUSHED;
}

SEC("raw_tp/retire")
int retire(struct bpf_raw_tracepoint_args *ctx)
{
#pragma unroll
	for (int i = 0; i < JD_RETIRE_MAX; i++)
		if (ctx->args[i])
			retire_slot((u32)ctx->args[i]);
	return 0;
}
