/* SPDX-License-Identifier: GPL-2.0-only */
/* Columns of a row that no perf event counts: its time beside a busy sibling, its time x the CPUs busy beside it, and how
 * often an idle CPU woke up for it.
 *
 * Each CPU publishes its busy clock in one word. At a charge the difference of the siblings' clocks since the last charge
 * is the overlap. The clocks are those of the scheduler including irq and stolen time (rq->clock), because they are the
 * same on all CPUs; rq->clock_task is not. Two CPUs never look at one moment: what is counted a moment early is missing
 * in the next interval of the same CPU, and the sum stays right. Without these columns none of this is loaded.
 *
 * The clocks of all CPUs are one word, because a charge cannot look at each of them. It is written when a CPU becomes busy
 * or idle, and read at a charge. */
#ifndef JOULED_COUNTERS_COLUMNS_BPF_H
#define JOULED_COUNTERS_COLUMNS_BPF_H
#include "counters_slots.bpf.h"

static __always_inline struct jd_cpu_state *this_cpu_state(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&states, &cpu);
}

/* rq of the CPU that runs `task`; NULL on kernels without group scheduling. */
static __always_inline struct rq *task_rq(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->se.cfs_rq))
		return NULL;
	return BPF_CORE_READ(task, se.cfs_rq, rq);
}

/* The clock that all CPUs share, when the task clock of this CPU, which `prev` leaves, is at `now`. */
static __always_inline u64 wall_clock(struct task_struct *prev, u64 now, bool direct)
{
	if ((sibling_column >= JD_MAX_EVENTS && others_column >= JD_MAX_EVENTS) || clock_ktime ||
	    !bpf_core_field_exists(prev->se.cfs_rq))
		return now;
	struct rq *rq = FIELD(direct, prev, se.cfs_rq, rq);

	return now + FIELD(direct, rq, clock) - FIELD(direct, rq, clock_task);
}

static __always_inline u64 busy_time(u64 busy_clock, u64 wall)
{
	u64 ns = (u64)((s64)busy_clock >> 1);

	return busy_clock & 1 ? ns + wall : ns;
}

/* Sum of the siblings' busy clocks at `wall`. */
static __always_inline u64 siblings_busy(const struct jd_cpu_state *st, u64 wall)
{
	u64 sum = 0;

#pragma unroll
	for (u32 i = 0; i < JD_MAX_SIBLINGS; i++) {
		u32 cpu = st->siblings[i];
		struct jd_cpu_state *sibling = cpu == JD_NO_CPU ? NULL : bpf_map_lookup_elem(&states, &cpu);

		if (!sibling)
			break;
		sum += busy_time(*(volatile u64 *)&sibling->busy_clock, wall);
	}
	return sum;
}

static __always_inline struct jd_machine *the_machine(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&machine, &first);
}

/* The time, modulo 2^JD_LOAD_BITS: a difference of two is right when its sign is taken from there. */
static __always_inline u64 others_busy(u64 load_clock, const struct jd_cpu_state *st, u64 wall)
{
	u64 busy = load_clock & ((1u << JD_COUNT_BITS) - 1);

	return (load_clock >> JD_COUNT_BITS) + busy * wall - busy_time(st->busy_clock, wall);
}

/* Time in which no CPU was busy goes to the idle row of the CPU that ends it. */
static __always_inline void add_others(struct jd_cpu_state *st, struct jd_row *row, u64 wall)
{
	struct jd_machine *m = the_machine();

	if (!m)
		return;
	u64 clock = *(volatile u64 *)&m->load_clock, busy = others_busy(clock, st, wall);
	s64 ns = (s64)((busy - st->others_busy_ns) << JD_COUNT_BITS) >> JD_COUNT_BITS;

	if (st->key == JD_KEY_IDLE) {
		bool asleep = m->asleep_since_ns && !(clock & ((1u << JD_COUNT_BITS) - 1));

		ns = asleep ? (s64)(wall - m->asleep_since_ns) : 0;
		if (ns > 0)
			m->asleep_since_ns = wall;
	} else if (ns <= 0) {
		return;
	}
	st->others_busy_ns = busy;
	if (row && ns > 0)
		row->counters[others_column] += (u64)ns;
}

/* The CPU becomes busy or idle. */
static __always_inline void set_load(bool busy, u64 wall)
{
	struct jd_machine *m = the_machine();

	if (!m)
		return;
	/* First: it counts once no CPU is busy. A virtual CPU may have waited since its `wall`, and others have become
	 * busy and idle again. */
	if (!busy && (s64)(wall - m->asleep_since_ns) > 0)
		m->asleep_since_ns = wall;
	__sync_fetch_and_add(&m->load_clock, busy ? (-wall << JD_COUNT_BITS) + 1 : (wall << JD_COUNT_BITS) - 1);
}

/* Ends the open interval at `wall`; row NULL = it belongs to none. */
static __always_inline void add_columns(struct jd_cpu_state *st, struct jd_row *row, u64 wall)
{
	if (wakeup_column < JD_MAX_EVENTS) {
		if (row)
			row->counters[wakeup_column] += st->woke;
		st->woke = 0;
	}
	if (others_column < JD_MAX_EVENTS)
		add_others(st, row, wall);
	if (sibling_column < JD_MAX_EVENTS) {
		u64 busy = siblings_busy(st, wall);
		s64 overlap = (s64)(busy - st->siblings_busy_ns);

		if (overlap <= 0 && !st->siblings_changed)
			return;
		if (row && st->key != JD_KEY_IDLE && !st->siblings_changed)
			row->counters[sibling_column] += (u64)overlap;
		st->siblings_busy_ns = busy;
		st->siblings_changed = 0;
	}
}

/* The row that is charged from `wall` on. */
static __always_inline void set_key(struct jd_cpu_state *st, u64 key, u64 wall)
{
	u64 busy = key != JD_KEY_IDLE, clock = st->busy_clock;

	if (wakeup_column < JD_MAX_EVENTS && st->key == JD_KEY_IDLE && busy)
		st->woke = 1;
	if (others_column < JD_MAX_EVENTS && (clock & 1) != busy)
		set_load(busy, wall);
	if ((sibling_column < JD_MAX_EVENTS || others_column < JD_MAX_EVENTS) && (clock & 1) != busy)
		*(volatile u64 *)&st->busy_clock = ((u64)((s64)clock >> 1) + (busy ? -wall : wall)) << 1 | busy;
	st->key = key;
}

#endif
