// SPDX-License-Identifier: Apache-2.0
/* Reading one CPU. A busy CPU is flushed (flush.c): the kernel closes its open interval and flips the bank,
 * so the bank left behind has no writer. An idle CPU is not woken: its active bank is copied and
 * taken when the CPU's sequence number did not move meanwhile, and its open idle interval is
 * closed from the clock. */
#include <sched.h>
#include "base/clock.h"
#include "counters.h"
#include "rows.h"

#define AFFINITY_CPUS 8192 /* the most that a kernel may be built for; a shorter mask than the kernel's is refused */
#define IS_ERROR(v) ((v) >= (uint64_t)-4095)

/* A real switch on every CPU opens its interval with a fresh clock. What was counted before belongs to no interval. On
 * CPUs outside our affinity mask the flush alone opens it. */
void counters_prime(struct counters *c)
{
	const size_t size = CPU_ALLOC_SIZE(AFFINITY_CPUS);
	cpu_set_t *before = CPU_ALLOC(AFFINITY_CPUS), *one = CPU_ALLOC(AFFINITY_CPUS);
	const bool moves = before && one && sched_getaffinity(0, size, before) == 0;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		if (!c->cpus[cpu].online)
			continue;
		if (moves) {
			CPU_ZERO_S(size, one);
			CPU_SET_S(cpu, size, one);
			sched_setaffinity(0, size, one);
		}
		counters_flush(c, cpu, JD_FLUSH_FLIP);
	}
	if (moves)
		sched_setaffinity(0, size, before);
	CPU_FREE(before);
	CPU_FREE(one);
}

/* Reports the open idle interval up to now, ahead of the charge that will come. */
static void close_idle_from_clock(struct read_context *x, unsigned cpu, uint64_t now_ns)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	uint64_t clock = x->c->clock_ktime ? now_ns : now_ns - st->clock_offset_ns - st->irq_steal_ns;
	uint64_t open_ns = clock - st->since_ns;
	int64_t number = counters_cell(x, cpu, JD_SLOT_IDLE);
	uint64_t *ahead_ns;

	if ((!st->clock_offset_ns && !x->c->clock_ktime) || number < 0)
		return;
	ahead_ns = &x->r->ahead_ns[number];
	if ((int64_t)open_ns <= (int64_t)*ahead_ns)
		return;
	open_ns -= *ahead_ns;
	if (reading_add_time(x->r, (uint32_t)number, open_ns))
		return;
	*ahead_ns += open_ns;
	x->r->heads[number].ahead = true;
	x->r->cpus[cpu].elapsed_ns += open_ns;
}

/* The time-stamp counter goes on while the CPU sleeps. It is carried forward at the last rate seen, and the next
 * flush settles it. APERF and MPERF stand still in idle, so theirs wait for the flush. */
static void carry_tsc(struct read_context *x, unsigned cpu, uint64_t now_ns)
{
	struct cpu_source *cs = &x->c->cpus[cpu];
	struct reading_cpu *rc = &x->r->cpus[cpu];
	uint64_t ahead_ns = now_ns - cs->msr_mono_ns, tsc;

	if (!cs->msr_mono_ns || ahead_ns <= cs->msr_credit_ns)
		return;
	rc->msr_enabled_ns += ahead_ns - cs->msr_credit_ns;
	rc->msr_running_ns += ahead_ns - cs->msr_credit_ns;
	cs->msr_credit_ns = ahead_ns;
	if (x->c->tsc_event < 0)
		return;
	tsc = (uint64_t)((double)ahead_ns * x->c->tsc_per_ns);
	if (tsc > cs->tsc_credit) {
		rc->msr[x->c->tsc_event] += tsc - cs->tsc_credit;
		cs->tsc_credit = tsc;
	}
}

bool counters_looks_idle(const struct counters *c, unsigned cpu)
{
	const struct jd_cpu_state *st = &c->states[cpu];

	return !c->visit_idle && !c->cpus[cpu].visit && READ_ONCE(st->key) == JD_KEY_IDLE;
}

bool counters_read_idle(struct read_context *x, unsigned cpu)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	struct cpu_source *cs = &x->c->cpus[cpu];
	uint64_t seq = __atomic_load_n(&st->seq, __ATOMIC_ACQUIRE);
	uint64_t now = clock_mono_ns();
	unsigned bank = READ_ONCE(st->bank) & 1, n = 0;

	if ((seq & 1) || !counters_looks_idle(x->c, cpu))
		return false;
	if (seq != cs->seq)
		n = counters_stage_bank(x->c, cpu, bank);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (READ_ONCE(st->seq) != seq)
		return false;
	counters_take_staged(x, cpu, n);
	close_idle_from_clock(x, cpu, now);
	carry_tsc(x, cpu, now);
	cs->seq = seq;
	x->r->cpus[cpu].read_mono_ns = now;
	x->r->cpus[cpu].msr_stale = true;
	return true;
}

/* The count of msr event i since the last flush; false when it is unknown for some of that time. */
static bool take_msr_event(struct read_context *x, unsigned cpu, unsigned i, uint64_t time_ns)
{
	struct cpu_source *cs = &x->c->cpus[cpu];
	uint64_t now = x->c->states[cpu].msr[i], add;

	if (x->c->schema->msr.ev[i].kind != EVENT_PERF)
		return true;
	if (x->c->event_fds[(size_t)(JD_MAX_EVENTS + i) * x->c->n_cpus + cpu] < 0)
		return !cs->broken; /* this CPU has no such event */
	if (IS_ERROR(now)) {
		cs->msr_lost++;
		return false;
	}
	add = now < cs->msr[i] ? 0 : now - cs->msr[i];
	if (cs->restarted) /* it counts from here on; the time before is not expected of it */
		add = 0;
	if ((int)i == x->c->tsc_event && cs->restarted) {
		cs->tsc_credit = 0;
	} else if ((int)i == x->c->tsc_event && time_ns) {
		x->c->tsc_per_ns = (double)add / (double)time_ns;
		add = counters_settle(&cs->tsc_credit, add);
	}
	x->r->cpus[cpu].msr[i] += add;
	add = cs->msr[i];
	cs->msr[i] = now;
	return now >= add && !cs->restarted;
}

static void take_msr(struct read_context *x, unsigned cpu)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	struct cpu_source *cs = &x->c->cpus[cpu];
	struct reading_cpu *rc = &x->r->cpus[cpu];
	uint64_t time_ns = cs->msr_mono_ns ? st->msr_mono_ns - cs->msr_mono_ns : 0;
	bool whole = true;

	for (unsigned i = 0; i < x->c->schema->msr.n; i++)
		whole &= take_msr_event(x, cpu, i, time_ns);
	time_ns = counters_settle(&cs->msr_credit_ns, time_ns);
	rc->msr_enabled_ns += time_ns;
	rc->msr_running_ns += whole ? time_ns : 0;
	rc->lost_ns += whole ? 0 : time_ns;
	cs->msr_mono_ns = st->msr_mono_ns;
	rc->msr_stale = false;
}

static void take_irq_steal(struct read_context *x, unsigned cpu)
{
	struct cpu_source *cs = &x->c->cpus[cpu];
	uint64_t now = x->c->states[cpu].irq_steal_ns, add = now - cs->irq_steal_ns;
	int64_t cell;

	if (cs->restarted) /* the kernel's account of it may have begun anew */
		cs->irq_steal_ns = now;
	if (!add || (int64_t)add < 0 || cs->restarted)
		return;
	cell = reading_cell_number(x->r, ROW_IRQ_STEAL, (uint16_t)cpu);
	if (cell < 0 || reading_add_time(x->r, (uint32_t)cell, add))
		return;
	x->r->cpus[cpu].elapsed_ns += add;
	cs->irq_steal_ns = now;
}

/* A scheduler clock that was not ticking may jump over the time away after the CPU's first switches, and some row
 * would get that time. */
static void take_return(struct read_context *x, unsigned cpu, unsigned bank)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	struct cpu_source *cs = &x->c->cpus[cpu];
	uint64_t began_ns = st->began_mono_ns > cs->offline_since_ns ? st->began_mono_ns : cs->offline_since_ns;

	x->r->cpus[cpu].offline_ns += began_ns - cs->offline_since_ns;
	counters_trim_bank(x->c, cpu, bank, st->flush_mono_ns > began_ns ? st->flush_mono_ns - began_ns : 0);
	cs->returned = false;
}

int counters_take_flushed(struct read_context *x, unsigned cpu)
{
	struct counters *c = x->c;
	struct cpu_source *cs = &c->cpus[cpu];

	cs->flushed = false;
	if (cs->flush_rc)
		return cs->flush_rc;
	if (cs->returned)
		take_return(x, cpu, cs->left_bank);
	counters_take_bank(x, cpu, cs->left_bank);
	take_irq_steal(x, cpu);
	take_msr(x, cpu);
	cs->restarted = cs->visit = false;
	cs->seq = 0; /* the other bank is active now: look at it whatever its number */
	x->r->cpus[cpu].read_mono_ns = c->states[cpu].flush_mono_ns;
	return 0;
}

int counters_read_cpu(struct read_context *x, unsigned cpu)
{
	if (counters_read_idle(x, cpu))
		return 0;
	counters_flip(x->c, cpu);
	return counters_take_flushed(x, cpu);
}

void counters_read_offline(struct read_context *x, unsigned cpu)
{
	unsigned bank = x->c->states[cpu].bank & 1;
	int64_t idle;

	counters_take_bank(x, cpu, bank);
	counters_void_bank(x->c, cpu, bank);
	idle = counters_cell(x, cpu, JD_SLOT_IDLE);
	if (idle < 0)
		return;
	x->r->ahead_ns[idle] = 0;
	x->r->heads[idle].ahead = false;
}
