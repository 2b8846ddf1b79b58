/* SPDX-License-Identifier: GPL-2.0-only */
/* Closes an open call: writes a record when the call has an id, otherwise adds it to the sums. */
#ifndef JOULED_SPANS_CALLS_BPF_H
#define JOULED_SPANS_CALLS_BPF_H
#include "spans_maps.bpf.h"

/* Frame at an index. The asm keeps the mask: kernels before 5.13 do not see the bound in optimised code. */
static __always_inline struct jd_frame *frame_at(struct jd_call_stack *st, u64 at)
{
	__asm__ volatile("" : "+r"(at));
	at &= JD_CALL_DEPTH - 1;
	return &st->frames[at];
}

struct call_end {
	u64 now, cpu_ns, switches, start_boot_ns;
	u32 pid, tid;
};

static __always_inline void call_now(struct task_struct *task, struct call_end *ret)
{
	ret->now = bpf_ktime_get_ns();
	ret->cpu_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	ret->switches = BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
	ret->start_boot_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	ret->pid = BPF_CORE_READ(task, tgid);
	ret->tid = BPF_CORE_READ(task, pid);
}

/* A call that never left its CPU used it all the time. The scheduler's own sum is as old as its last update. */
static __always_inline u64 call_cpu(const struct jd_frame *f, const struct call_end *e, u32 *flags)
{
	u64 wall = e->now - f->start_ns, cpu = e->cpu_ns - f->cpu_ns;

	if (e->switches == f->switches)
		return wall;
	*flags |= JD_SPAN_CPU_COARSE;
	return cpu < wall ? cpu : wall;
}

static __always_inline void tell_call(struct jd_func_state *state, const struct jd_frame *f, u64 parent,
				      const struct call_end *e, u32 flags)
{
	struct jd_span_call *c = bpf_ringbuf_reserve(&events, sizeof(*c), 0);

	if (!c) {
		__sync_fetch_and_add(&state->lost, 1);
		return;
	}
	c->cpu_ns = call_cpu(f, e, &flags);
	c->head.kind = JD_SPAN_CALL;
	c->head.pid = e->pid;
	c->head.start_boot_ns = e->start_boot_ns;
	c->head.mono_ns = e->now;
	c->start_ns = f->start_ns;
	c->id = f->id;
	c->parent = parent;
	c->tid = e->tid;
	c->func = f->func;
	c->flags = flags;
	c->pad = 0;
	bpf_ringbuf_submit(c, spans_wake());
}

static __always_inline struct jd_call_sum *sum_of(void *map, const struct jd_call_key *key)
{
	struct jd_call_sum fresh = { .min_start_ns = (u64)-1 };
	struct jd_call_sum *sum = bpf_map_lookup_elem(map, key);

	if (sum)
		return sum;
	bpf_map_update_elem(map, key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

static __always_inline void add_call(struct jd_func_state *state, const struct jd_frame *f, u32 parent_func,
				     const struct call_end *e, u32 flags)
{
	struct jd_call_key key = {
		.start_boot_ns = e->start_boot_ns, .pid = e->pid, .func = (u16)f->func, .parent_func = (u16)parent_func
	};
	u32 zero = 0;
	u64 *odd = bpf_map_lookup_elem(&bank, &zero), cpu = call_cpu(f, e, &flags);
	struct jd_call_sum *sum = odd && *odd ? sum_of(&sums_odd, &key) : sum_of(&sums_even, &key);

	if (!sum) {
		__sync_fetch_and_add(&state->lost, 1);
		return;
	}
	__sync_fetch_and_add(&sum->calls, 1);
	__sync_fetch_and_add(&sum->wall_ns, e->now - f->start_ns);
	__sync_fetch_and_add(&sum->cpu_ns, cpu);
	if (flags & JD_SPAN_PARTIAL)
		__sync_fetch_and_add(&sum->partial, 1);
	if (flags & JD_SPAN_CPU_COARSE)
		__sync_fetch_and_add(&sum->coarse, 1);
	/* threads race here, and the earlier of two values may lose; the error is less than a call's duration */
	if (f->start_ns < sum->min_start_ns)
		sum->min_start_ns = f->start_ns;
	if (e->now > sum->max_end_ns)
		sum->max_end_ns = e->now;
}

/* Takes the innermost open call off the stack. The caller has checked that depth is not 0. */
static __always_inline void close_top(struct jd_call_stack *st, const struct call_end *e, u32 flags)
{
	u32 depth = (u32)st->depth - 1, parent_func = JD_NO_FUNC;
	struct jd_frame *f = frame_at(st, depth);
	struct jd_frame *outer = depth ? frame_at(st, depth - 1) : NULL;
	u32 func = f->func;
	struct jd_func_state *state = bpf_map_lookup_elem(&funcs, &func);

	st->depth = depth;
	if (!state)
		return;
	if (f->epoch != state->epoch) {
		__sync_fetch_and_add(&state->unpaired, 1);
		return;
	}
	if (outer)
		parent_func = outer->func;
	if (f->id)
		tell_call(state, f, outer ? outer->id : 0, e, flags);
	else
		add_call(state, f, parent_func, e, flags);
}

/* A thread that ends, or whose program is replaced, does not return from its open calls any more. */
static __always_inline void close_thread(struct task_struct *task, u32 tid)
{
	struct jd_call_stack *st = bpf_map_lookup_elem(&stacks, &tid);
	struct call_end e;

	if (!st)
		return;
	call_now(task, &e);
	for (int i = 0; i < JD_CALL_DEPTH; i++) {
		if (!st->depth || st->depth > JD_CALL_DEPTH)
			break;
		close_top(st, &e, JD_SPAN_PARTIAL);
	}
	bpf_map_delete_elem(&stacks, &tid);
}

#endif
