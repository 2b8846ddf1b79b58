/* SPDX-License-Identifier: GPL-2.0-only */
/* Charging: the common body of all entries of counters.bpf.c. */
#ifndef JOULED_COUNTERS_BODY_BPF_H
#define JOULED_COUNTERS_BODY_BPF_H
#include "counters_columns.bpf.h"

/* Helpers return errors as values in [-4095, -1]; no counter gets that high. */
#define IS_ERROR(v) ((v) >= (u64)-4095)
#define ENOENT 2

struct counter_sample {
	u64 value[JD_MAX_EVENTS];
};

static __always_inline void read_counters(struct counter_sample *ret)
{
	u32 cpu = bpf_get_smp_processor_id();

#pragma unroll
	for (u32 i = 0; i < JD_MAX_EVENTS; i++)
		if (core_mask & (1u << i))
			ret->value[i] = bpf_perf_event_read(&events, i * n_cpus + cpu);
}

/* failed: an event gave no value and may be dead. lost: the count of an event is not known. */
static __always_inline void note_losses(struct jd_cpu_state *st, struct jd_row *row, bool failed, bool lost)
{
	if (failed)
		st->lost_reads++;
	if ((failed || lost) && row)
		row->lost++;
}

/* -ENOENT: this CPU has no such event (hybrid machines); the event is absent there, not lost. A counter that
 * went back belongs to an event that was opened anew (an error as last value is above every count); the counts
 * since the last reading are lost. */
static __always_inline void add_counters(struct jd_cpu_state *st, struct jd_row *row, const struct counter_sample *now)
{
	bool failed = false, lost = false;

#pragma unroll
	for (u32 i = 0; i < JD_MAX_EVENTS; i++) {
		if (!(core_mask & (1u << i)))
			continue;
		/* volatile: the load must stay after the test above, because the value may be unwritten
		 * before it; kernels before 6.3 refuse such a program */
		u64 v = *(const volatile u64 *)&now->value[i], last = st->last[i];

		st->last[i] = v;
		if (IS_ERROR(v))
			failed |= v != (u64)-ENOENT;
		else if (v < last)
			lost = true;
		else if (row)
			row->counters[i] += v - last;
	}
	note_losses(st, row, failed, lost);
}

/* The same, with the time that each event was on the PMU; only while events multiplex. */
static __noinline void add_multiplexed(struct jd_cpu_state *st, struct jd_row *row, struct jd_mux_row *mux)
{
	u32 cpu = bpf_get_smp_processor_id();
	bool failed = false, lost = false;

	for (u32 i = 0; i < JD_MAX_EVENTS; i++) {
		struct bpf_perf_event_value v = {};

		if (!(core_mask & (1u << i)))
			continue;
		long err = bpf_perf_event_read_value(&events, i * n_cpus + cpu, &v, sizeof(v));

		if (err) {
			failed |= err != -ENOENT;
			st->last[i] = (u64)-1;
			continue;
		}
		if (v.counter < st->last[i]) {
			lost = true;
		} else if (row && mux) {
			row->counters[i] += v.counter - st->last[i];
			mux->enabled_ns[i] += v.enabled - st->last_enabled[i];
			mux->running_ns[i] += v.running - st->last_running[i];
		}
		st->last[i] = v.counter;
		st->last_enabled[i] = v.enabled;
		st->last_running[i] = v.running;
	}
	note_losses(st, row, failed, lost);
}

static __always_inline void add_time(struct jd_row *row, u64 time_ns)
{
	row->time_ns += time_ns;
	row->switches++;
}

/* Ends the open interval at `now`, on the machine's clock `wall`, and charges it to the row stored at switch-in. */
static __always_inline void charge(struct jd_cpu_state *st, u64 now, u64 wall)
{
	u32 at = row_index(st, st->row);
	struct jd_row *row = st->row < bank_rows ? bpf_map_lookup_elem(&rows, &at) : NULL;
	struct counter_sample sample;

	if (!multiplexed)
		read_counters(&sample);
	*(volatile u64 *)&st->seq += 1;
	if (row)
		add_time(row, now - st->since_ns); /* negative when a flush ran ahead: takes the excess back */
	else
		st->began_mono_ns = bpf_ktime_get_ns();
	if (multiplexed)
		add_multiplexed(st, row, bpf_map_lookup_elem(&mux_rows, &at));
	else
		add_counters(st, row, &sample);
	add_columns(st, row, wall);
	st->since_ns = now;
	*(volatile u64 *)&st->seq += 1;
}

#define CLOCK_STEP_NS 100000000 /* a larger step means that the clock was set, not that the CPU was late */

/* The scheduler has just updated rq->clock: measures the offset of CLOCK_MONOTONIC to it. When a virtual CPU
 * has to wait in between, the offset comes out too large, never too small, so it may grow no faster than
 * clocks are slewed (500 ppm, kernel/time/ntp.c). */
static __always_inline void calibrate(struct jd_cpu_state *st, struct task_struct *task)
{
	struct rq *rq = task_rq(task);
	u64 old = st->clock_offset_ns, mono, offset, slack;

	st->calibrate--;
	if (!rq)
		return;
	mono = bpf_ktime_get_ns();
	offset = mono - BPF_CORE_READ(rq, clock);
	slack = (mono - st->calibrated_ns) >> 11;
	if (old && (s64)(offset - old) > (s64)slack && (s64)(offset - old) < CLOCK_STEP_NS)
		offset = old + slack;
	st->clock_offset_ns = offset;
	st->calibrated_ns = mono;
}

/* The time at which the stored task left: the arrival of the task that runs now, which the scheduler keeps on
 * its clock including irq and stolen time, or the scheduler's last update for the task that left. */
static __always_inline u64 departure(const struct jd_cpu_state *st, u64 left, struct task_struct *curr, u64 now)
{
	struct rq *rq = task_rq(curr);
	u64 at = st->since_ns;

	if (clock_ktime)
		return at;
	if (BPF_CORE_READ(curr, pid) && rq && bpf_core_field_exists(curr->sched_info.last_arrival))
		at = BPF_CORE_READ(curr, sched_info.last_arrival) -
		     (BPF_CORE_READ(rq, clock) - BPF_CORE_READ(rq, clock_task));
	else
		at = BPF_CORE_READ((struct task_struct *)left, se.exec_start);
	if ((s64)(at - st->since_ns) < 0)
		return st->since_ns;
	return (s64)(now - at) < 0 ? now : at;
}

/* What the next charge goes to, from `wall` on. Outside of the scheduler a flush may interrupt this, and the row found
 * is then one of the bank that was active before. */
static __always_inline void set_row(struct jd_cpu_state *st, struct task_struct *curr, u64 key, u64 wall)
{
	u32 epoch = *(volatile u32 *)&st->epoch;

	set_key(st, key, wall);
	st->row = row_of(st, curr, key, false);
	if (*(volatile u32 *)&st->epoch == epoch || st->row < JD_FIRST_SLOT)
		return;
	u32 *slot = bpf_map_lookup_elem(&slots, &key);

	st->row = row_of_slot(st, slot ? *slot : JD_SLOT_OTHER);
}

#define WHOLE 1024

/* Gives the row `part` of WHOLE of what was counted since the last charge; the next charge has the rest. What cannot be read is
 * left to that one. */
static __noinline void split_counters(struct jd_cpu_state *st, struct jd_row *row, u32 index, u64 part)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct jd_mux_row *mux;

	for (u32 i = 0; i < JD_MAX_EVENTS; i++) {
		struct bpf_perf_event_value v = {};

		if (!(core_mask & (1u << i)) || bpf_perf_event_read_value(&events, i * n_cpus + cpu, &v, sizeof(v)) ||
		    v.counter < st->last[i])
			continue;
		v.counter = (v.counter - st->last[i]) * part / WHOLE;
		row->counters[i] += v.counter;
		st->last[i] += v.counter;
		mux = multiplexed ? bpf_map_lookup_elem(&mux_rows, &index) : NULL;
		if (!mux)
			continue;
		v.enabled = (v.enabled - st->last_enabled[i]) * part / WHOLE;
		v.running = (v.running - st->last_running[i]) * part / WHOLE;
		mux->enabled_ns[i] += v.enabled;
		mux->running_ns[i] += v.running;
		st->last_enabled[i] += v.enabled;
		st->last_running[i] += v.running;
	}
}

/* Another task runs here than the last switch reported: the kernel did not report every switch (seen on
 * a 6.18 for threads of one process). The time until the departure goes to the stored row, and as large a part of the
 * counts; the rest goes to the row of the task that runs. */
static __noinline void resync(struct jd_cpu_state *st, u64 left, struct task_struct *curr, u64 now)
{
	u64 at = departure(st, left, curr, now), wall = wall_clock(curr, at, false);
	u32 index = row_index(st, st->row);
	struct jd_row *row = st->row < bank_rows ? bpf_map_lookup_elem(&rows, &index) : NULL;

	st->missed++;
	*(volatile u64 *)&st->seq += 1;
	if (row) {
		split_counters(st, row, index, (at - st->since_ns) / ((now - st->since_ns) / WHOLE + 1));
		add_time(row, at - st->since_ns);
	}
	add_columns(st, row, wall);
	st->since_ns = at;
	*(volatile u64 *)&st->seq += 1;
	set_row(st, curr, row_key(curr, false), wall);
}

/* The begin of this switch if it is one of those that time themselves; 0 otherwise. */
static __always_inline u64 begin_self(const struct jd_cpu_state *st)
{
	return st->seq & (2 * JD_SELF_EVERY - 1) ? 0 : bpf_ktime_get_ns();
}

static __always_inline void end_self(struct jd_cpu_state *st, u64 began)
{
	u64 took = began ? bpf_ktime_get_ns() - began : 0;

	if (!took || took > JD_SELF_MAX_NS)
		return;
	st->self_ns += took;
	st->self_samples++;
}

static __always_inline int on_switch(struct task_struct *prev, struct task_struct *next, bool direct)
{
	struct jd_cpu_state *st = this_cpu_state();

	if (!st)
		return 0;
	u64 key = row_key(next, direct), stored = st->task;

	st->task = (u64)next;
	if (key == st->key && stored == (u64)prev)
		return 0;
	u64 began = begin_self(st), now;

	/* The scheduler's own stamps equal cpu.stat and are 44 ns cheaper than reading a clock.
	 * Not every kernel keeps the idle task's, so a switch from idle takes the next task's. */
	if (clock_ktime)
		now = bpf_ktime_get_ns();
	else if (FIELD(direct, prev, pid) == 0)
		now = FIELD(direct, next, se.exec_start);
	else
		now = FIELD(direct, prev, se.exec_start);
	if (stored != (u64)prev && stored) {
		resync(st, stored, prev, now);
		if (key == st->key)
			return 0;
	}
	u32 row = row_of(st, next, key, direct);

	u64 wall = wall_clock(prev, now, direct);

	charge(st, now, wall);
	set_key(st, key, wall);
	st->row = row;
	if (st->calibrate)
		calibrate(st, next);
	end_self(st, began);
	return 0;
}

/* The task clock now, between two updates by the scheduler: CLOCK_MONOTONIC less the offset
 * measured at the last switch, less the irq and stolen time that the scheduler knows of. Never
 * before the scheduler's last update. Without an offset (no switch seen yet) that update itself.
 * Time stolen since that update is not known yet, so this can run ahead of the next stamp. The row
 * that got too much is still open, and its next charge is less by as much. */
static __always_inline u64 task_clock_now(struct jd_cpu_state *st, struct task_struct *curr)
{
	u64 mono = bpf_ktime_get_ns();
	struct rq *rq = task_rq(curr);

	st->flush_mono_ns = mono;
	if (clock_ktime)
		return mono;
	if (!rq)
		return BPF_CORE_READ(curr, se.exec_start);
	u64 clock = BPF_CORE_READ(rq, clock), task = BPF_CORE_READ(rq, clock_task);
	u64 now = st->clock_offset_ns ? mono - st->clock_offset_ns : clock;

	st->irq_steal_ns = clock - task;
	if ((s64)(now - clock) < 0)
		now = clock;
	return now - st->irq_steal_ns;
}

/* Charges the open interval up to `now` and looks up the running task's row anew: a task moved meanwhile is
 * charged to its new cgroup from here on. */
static __always_inline void close_open(struct jd_cpu_state *st, struct task_struct *curr, u64 now)
{
	if (st->task && st->task != (u64)curr && !charge_current)
		resync(st, st->task, curr, now);
	st->task = (u64)curr;
	u64 key = row_key(curr, false);

	u64 wall = wall_clock(curr, now, false);

	if (charge_current && st->key != JD_KEY_NONE)
		set_row(st, curr, key, wall);
	charge(st, now, wall);
	set_row(st, curr, key, wall);
	st->calibrate = clock_ktime ? 0 : JD_CALIBRATIONS;
}

/* When the running task counts as moved. Like the kernel's own accounting (cpu.stat), this is the scheduler's last update:
 * the time before it belongs to the old cgroup. */
static __always_inline u64 moved_at(struct task_struct *curr)
{
	return clock_ktime ? bpf_ktime_get_ns() : BPF_CORE_READ(curr, se.exec_start);
}

/* Charges the open interval to other: with trigger perf_event nothing tells which cgroup a moved task left. */
static __always_inline void close_other(struct jd_cpu_state *st)
{
	u64 now = bpf_ktime_get_ns();

	st->row = JD_SLOT_OTHER;
	charge(st, now, now);
}

/* Charges the open interval of the running task, which is being moved. */
static __always_inline void close_moved(struct jd_cpu_state *st, struct task_struct *curr)
{
	if (BPF_CORE_READ(curr, pid) == 0)
		return;
	if (charge_current)
		close_other(st);
	else
		close_open(st, curr, moved_at(curr));
}

static __always_inline void flip_bank(struct jd_cpu_state *st)
{
	u32 at = row_index(st, st->row), slot = st->row;
	u64 *owner = slot >= JD_FIRST_SLOT && slot < bank_rows ? bpf_map_lookup_elem(&row_slots, &at) : NULL;

	st->bank ^= 1;
	st->epoch = st->epoch == 0xffffffffu ? 1 : st->epoch + 1;
	st->n_rows[st->bank & 1] = JD_FIRST_SLOT;
	clear_row(st, JD_SLOT_IDLE);
	clear_row(st, JD_SLOT_KERNEL);
	clear_row(st, JD_SLOT_OTHER);
	if (owner)
		st->row = row_of_slot(st, (u32)*owner);
}

static __always_inline void flip(struct jd_cpu_state *st)
{
	u32 cpu = bpf_get_smp_processor_id();

	st->msr_mono_ns = bpf_ktime_get_ns();
#pragma unroll
	for (u32 i = 0; i < JD_MAX_MSR_EVENTS; i++)
		if (msr_mask & (1u << i))
			st->msr[i] = bpf_perf_event_read(&events, (JD_MAX_EVENTS + i) * n_cpus + cpu);
	flip_bank(st);
}

#endif
