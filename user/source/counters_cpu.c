// SPDX-License-Identifier: Apache-2.0
/* Reading one CPU. A busy CPU is flushed: the kernel closes its open interval and flips the bank,
 * so the bank left behind has no writer. An idle CPU is not woken: its active bank is copied and
 * taken when the CPU's sequence number did not move meanwhile, and its open idle interval is
 * closed from the clock. */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include "../base/clock.h"
#include "counters_internal.h"

#define FLUSH_TRIES 16
#define IS_ERROR(v) ((v) >= (uint64_t)-4095)

#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))

int counters_flush(struct counters *c, unsigned cpu, enum jd_flush_arg what)
{
	__u64 args[1] = { what };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

	for (int i = 0; i < FLUSH_TRIES; i++) {
		if (bpf_prog_test_run_opts(c->flush_fd, &opts))
			return -errno;
		if (opts.retval == JD_FLUSHED)
			return 0;
	}
	return -EBUSY;
}

/* A real switch on every CPU opens its interval with a fresh clock; where the affinity mask does
 * not let us go, the flush alone does. */
void counters_prime(struct counters *c)
{
	cpu_set_t before, one;
	bool saved = sched_getaffinity(0, sizeof(before), &before) == 0;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		unsigned bank = c->states[cpu].bank & 1;

		if (!c->cpus[cpu].online)
			continue;
		CPU_ZERO(&one);
		if (cpu < CPU_SETSIZE) {
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
		}
		if (!counters_flush(c, cpu, JD_FLUSH_FLIP))
			counters_forget_bank(c, cpu, bank);
	}
	if (saved)
		sched_setaffinity(0, sizeof(before), &before);
}

/* Reports the open idle interval up to now, ahead of the charge that will come. */
static void close_idle_from_clock(struct read_context *x, unsigned cpu, uint64_t now_ns)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	uint64_t clock = x->c->clock_ktime ? now_ns : now_ns - st->clock_offset_ns - st->irq_steal_ns;
	uint64_t open_ns = clock - st->since_ns;
	uint64_t *credit_ns = &x->c->views[(size_t)cpu * x->c->max_slots + JD_SLOT_IDLE].credit_ns;
	struct cell_values *v;

	if ((!st->clock_offset_ns && !x->c->clock_ktime) || (int64_t)open_ns <= (int64_t)*credit_ns)
		return;
	v = reading_cell(x->r, ROW_IDLE, (uint16_t)cpu);
	if (!v)
		return;
	open_ns -= *credit_ns;
	*credit_ns += open_ns;
	v->time_ns += open_ns;
	v->enabled_ns += open_ns;
	v->running_ns += open_ns;
	x->r->cpus[cpu].elapsed_ns += open_ns;
}

/* The time-stamp counter goes on while the CPU sleeps: carried forward at the last rate seen, and settled
 * by the next flush. APERF and MPERF stand still in idle, so theirs wait for the flush. */
static void carry_tsc(struct read_context *x, unsigned cpu, uint64_t now_ns)
{
	struct cpu_source *cs = &x->c->cpus[cpu];
	struct reading_cpu *rc = &x->r->cpus[cpu];
	uint64_t ahead_ns = now_ns - cs->flush_mono_ns, tsc;

	if (!cs->flush_mono_ns || ahead_ns <= cs->msr_credit_ns)
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

/* True when the CPU was idle throughout and everything was taken. */
static bool read_idle(struct read_context *x, unsigned cpu)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	struct cpu_source *cs = &x->c->cpus[cpu];
	uint64_t seq = __atomic_load_n(&st->seq, __ATOMIC_ACQUIRE);
	uint64_t now = clock_mono_ns();
	unsigned bank = READ_ONCE(st->bank) & 1, n = 0;

	if ((seq & 1) || x->c->visit_idle || x->slept || READ_ONCE(st->key) != JD_KEY_IDLE)
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

static void take_msr(struct read_context *x, unsigned cpu)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	struct cpu_source *cs = &x->c->cpus[cpu];
	struct reading_cpu *rc = &x->r->cpus[cpu];
	uint64_t time_ns = cs->flush_mono_ns ? st->flush_mono_ns - cs->flush_mono_ns : 0;

	for (unsigned i = 0; i < x->c->schema->msr.n; i++) {
		/* less than before (or than an error): an event opened anew */
		uint64_t add = IS_ERROR(st->msr[i]) || st->msr[i] < cs->msr[i] ? 0 : st->msr[i] - cs->msr[i];

		if ((int)i == x->c->tsc_event && time_ns) {
			x->c->tsc_per_ns = (double)add / (double)time_ns;
			add = counters_settle(&cs->tsc_credit, add);
		}
		rc->msr[i] += add;
		cs->msr[i] = st->msr[i];
	}
	time_ns = counters_settle(&cs->msr_credit_ns, time_ns);
	rc->msr_enabled_ns += time_ns;
	rc->msr_running_ns += time_ns;
	cs->flush_mono_ns = st->flush_mono_ns;
	rc->msr_stale = false;
}

static void take_irq_steal(struct read_context *x, unsigned cpu)
{
	struct cpu_source *cs = &x->c->cpus[cpu];
	uint64_t now = x->c->states[cpu].irq_steal_ns, add = now - cs->irq_steal_ns;
	struct cell_values *v;

	if (!add || (int64_t)add < 0)
		return;
	v = reading_cell(x->r, ROW_IRQ_STEAL, (uint16_t)cpu);
	if (!v)
		return;
	v->time_ns += add;
	v->enabled_ns += add;
	v->running_ns += add;
	x->r->cpus[cpu].elapsed_ns += add;
	cs->irq_steal_ns = now;
}

int counters_read_cpu(struct read_context *x, unsigned cpu)
{
	struct counters *c = x->c;
	struct jd_cpu_state *st = &c->states[cpu];
	unsigned bank;
	int err;

	if (read_idle(x, cpu))
		return 0;
	bank = READ_ONCE(st->bank) & 1;
	err = counters_flush(c, cpu, JD_FLUSH_FLIP);
	if (err)
		return err;
	counters_take_bank(x, cpu, bank);
	take_irq_steal(x, cpu);
	take_msr(x, cpu);
	c->cpus[cpu].seq = 0; /* the other bank is active now: look at it whatever its number */
	x->r->cpus[cpu].read_mono_ns = st->flush_mono_ns;
	return 0;
}

void counters_read_offline(struct read_context *x, unsigned cpu)
{
	counters_take_bank(x, cpu, x->c->states[cpu].bank & 1);
	x->c->views[(size_t)cpu * x->c->max_slots + JD_SLOT_IDLE].credit_ns = 0;
}
