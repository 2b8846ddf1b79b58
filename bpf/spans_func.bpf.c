// SPDX-License-Identifier: GPL-2.0-only
/* Entry and return of one probed function. User space loads a copy per function, because kernels before 5.15 give
 * a probe no cookie that distinguishes functions. The stack pointer identifies an open call. Open calls below the
 * one that returns, or below a new one, were left by longjmp or lost their return probe; they are closed as partial.
 * Calls on a second stack of the same thread (coroutines) end the same way. */
#include "common.bpf.h"
#include "spans.h"
#include "spans_calls.bpf.h"

const volatile __u32 func = 0;

/* First part of the program's registers. The ABI fixes it (arch/x86/include/uapi/asm/ptrace.h,
 * arch/arm64/include/uapi/asm/ptrace.h), so it needs no relocation. */
#if defined(__TARGET_ARCH_x86)
struct span_regs {
	u64 other[16], pc, cs, flags, sp, ss;
};
#define RETURN_POPPED 8 /* ret took the return address off the stack */
#else
struct span_regs {
	u64 regs[31], sp, pc, pstate;
};
#define RETURN_POPPED 0
#endif

/* An empty call stack to copy from: too large for the BPF program's own stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct jd_call_stack);
} empty SEC(".maps");

/* Number of the last call on each CPU; the numbers repeat after 2^26 calls, see next_number(). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} numbers SEC(".maps");

static __always_inline struct jd_call_stack *stack_of(u32 tid)
{
	struct jd_call_stack *st = bpf_map_lookup_elem(&stacks, &tid), *fresh;
	u32 zero = 0;

	if (st)
		return st;
	fresh = bpf_map_lookup_elem(&empty, &zero);
	if (!fresh)
		return NULL;
	bpf_map_update_elem(&stacks, &tid, fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&stacks, &tid);
}

/* Every CPU and function counts on its own: CPU (10 bits), function (6) and number (26) make 42 bits. */
static __always_inline u64 next_number(void)
{
	u32 zero = 0;
	u64 *n = bpf_map_lookup_elem(&numbers, &zero);

	if (!n)
		return 0;
	*n += 1;
	return (u64)(bpf_get_smp_processor_id() & 1023) << 32 | (u64)(func & (JD_MAX_FUNCS - 1)) << 26 |
	       ((*n & 0x3ffffff) ?: 1);
}

static __always_inline bool open_call(struct jd_func_state *state, struct jd_call_stack *st, const struct call_end *now,
				      u64 sp)
{
	struct jd_frame *f;

	if (st->depth >= JD_CALL_DEPTH) {
		__sync_fetch_and_add(&state->too_deep, 1);
		return false;
	}
	f = frame_at(st, st->depth);
	f->sp = sp;
	f->func = func;
	f->epoch = state->epoch;
	f->cpu_ns = now->cpu_ns;
	f->switches = now->switches;
	f->id = 0;
	if (state->singles > 0) {
		state->singles--;
		f->id = next_number();
	}
	f->start_ns = now->now;
	st->depth++;
	return true;
}

/* True when the program should also see the call's return. */
static __always_inline bool on_entry(struct span_regs *regs)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 tid = (u32)id, at = func;
	struct jd_func_state *state = bpf_map_lookup_elem(&funcs, &at);
	struct jd_call_stack *st;
	struct call_end now;
	u64 sp = regs->sp;

	if (!state)
		return false;
	__sync_fetch_and_add(&state->entries, 1);
	if (!state->armed)
		return false;
	st = stack_of(tid);
	if (!st) {
		__sync_fetch_and_add(&state->too_deep, 1);
		return false;
	}
	call_now((struct task_struct *)bpf_get_current_task(), &now);
	for (int i = 0; i < JD_CALL_DEPTH; i++) {
		if (!st->depth || st->depth > JD_CALL_DEPTH)
			break;
		struct jd_frame *f = frame_at(st, st->depth - 1);

		if (f->sp > sp || (f->sp == sp && f->func != func)) /* same place, another function: a tail call */
			break;
		close_top(st, &now, JD_SPAN_PARTIAL);
	}
	return open_call(state, st, &now, sp);
}

static __always_inline void on_return(struct span_regs *regs)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct jd_call_stack *st = bpf_map_lookup_elem(&stacks, &tid);
	u64 sp = regs->sp - RETURN_POPPED;
	struct call_end now;

	if (!st)
		return;
	call_now((struct task_struct *)bpf_get_current_task(), &now);
	for (int i = 0; i < JD_CALL_DEPTH; i++) {
		if (!st->depth || st->depth > JD_CALL_DEPTH)
			break;
		struct jd_frame *f = frame_at(st, st->depth - 1);
		bool ours = f->sp == sp && f->func == func;

		if (f->sp > sp)
			break;
		close_top(st, &now, ours ? 0 : JD_SPAN_PARTIAL);
		if (ours)
			break;
	}
}

SEC("uprobe")
int func_entry(struct span_regs *regs)
{
	on_entry(regs);
	return 0;
}

SEC("uretprobe")
int func_return(struct span_regs *regs)
{
	on_return(regs);
	return 0;
}

/* Entry and return in one program (6.13): runs at the entry and, where that returned 0, at the return. At the return
 * the program counter is the return address, which differs from the function's own start. */
SEC("uprobe")
int func_session(struct span_regs *regs)
{
	if (bpf_get_func_ip(regs) != regs->pc) {
		on_return(regs);
		return 0;
	}
	return on_entry(regs) ? 0 : 1;
}
