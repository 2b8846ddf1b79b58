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
	__u64 args[1] = {what};
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

static unsigned stage(struct counters *c, unsigned cpu, unsigned bank)
{
	const struct jd_cpu_state *st = &c->states[cpu];
	uint32_t slot = READ_ONCE(st->head[bank]);
	unsigned n = 0;

	while (slot < c->max_slots && n < c->max_slots) {
		const struct jd_row *row = &c->rows[row_index(c, cpu, bank, slot)];
		struct staged_row *s = &c->staged[n++];

		s->slot = slot;
		s->now.time_ns = READ_ONCE(row->time_ns);
		s->now.switches = READ_ONCE(row->switches);
		s->now.lost = READ_ONCE(row->lost);
		for (unsigned i = 0; i < c->schema->core.n; i++)
			s->now.counters[i] = READ_ONCE(row->counters[i]);
		slot = READ_ONCE(row->next);
	}
	return n;
}

/* What was counted between attaching and here belongs to no interval. */
static void forget_bank(struct counters *c, unsigned cpu, unsigned bank)
{
	unsigned n = stage(c, cpu, bank);

	for (unsigned i = 0; i < n; i++) {
		size_t at = row_index(c, cpu, bank, c->staged[i].slot);

		c->seen[at] = c->staged[i].now;
		if (c->mux_rows)
			c->seen_mux[at] = c->mux_rows[at];
	}
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
			forget_bank(c, cpu, bank);
	}
	if (saved)
		sched_setaffinity(0, sizeof(before), &before);
}

/* What was reported ahead (from the clock while a CPU was idle, or by a flush that ran ahead of the
 * scheduler) is not reported again; a step back becomes credit. Returns what is new. */
static uint64_t settle(uint64_t *credit, uint64_t brought)
{
	uint64_t settled;

	if ((int64_t)brought < 0) {
		*credit += -brought;
		return 0;
	}
	settled = brought < *credit ? brought : *credit;

	*credit -= settled;
	return brought - settled;
}

/* Scales each counter by enabled / running of this step and keeps the worst of them. */
static void add_multiplexed(struct counters *c, size_t at, struct cell_values *v, const struct seen_row *now,
			    const struct seen_row *before)
{
	const struct jd_mux_row *mux = &c->mux_rows[at];
	struct jd_mux_row *seen = &c->seen_mux[at];
	uint64_t worst_enabled = 0, worst_running = 0;

	for (unsigned i = 0; i < c->schema->core.n; i++) {
		uint64_t raw = now->counters[i] - before->counters[i];
		uint64_t enabled = mux->enabled_ns[i] - seen->enabled_ns[i];
		uint64_t running = mux->running_ns[i] - seen->running_ns[i];

		seen->enabled_ns[i] += enabled;
		seen->running_ns[i] += running;
		if (c->schema->core.ev[i].kind != EVENT_PERF)
			continue;
		if (running)
			v->counters[i] += (uint64_t)((unsigned __int128)raw * enabled / running);
		if (!worst_enabled || (enabled && (unsigned __int128)running * worst_enabled <
						  (unsigned __int128)worst_running * enabled)) {
			worst_enabled = enabled;
			worst_running = running;
		}
	}
	v->enabled_ns += worst_enabled;
	v->running_ns += worst_running;
}

static void add_counters(struct counters *c, size_t at, struct cell_values *v, const struct seen_row *now,
			 uint64_t time_ns)
{
	const struct seen_row *before = &c->seen[at];

	for (unsigned i = 0; i < c->schema->core.n; i++)
		if (c->schema->core.ev[i].kind == EVENT_TASK_CLOCK)
			v->counters[i] += time_ns;
		else if (!c->schema->multiplexed)
			v->counters[i] += now->counters[i] - before->counters[i];
	if (c->schema->multiplexed) {
		add_multiplexed(c, at, v, now, before);
	} else {
		v->enabled_ns += time_ns;
		v->running_ns += time_ns;
	}
}

/* Adds one staged row to the reading. Returns the CPU time it brought. */
static uint64_t commit_row(struct read_context *x, unsigned cpu, unsigned bank, const struct staged_row *s)
{
	struct counters *c = x->c;
	size_t at = row_index(c, cpu, bank, s->slot);
	struct seen_row *before = &c->seen[at];
	uint64_t time_ns = s->now.time_ns - before->time_ns, switches = s->now.switches - before->switches;
	uint64_t lost = c->cpus[cpu].broken ? switches : s->now.lost - before->lost;
	int64_t row = switches ? counters_row(x, s->slot) : -ENODATA;
	struct cell_values *v = row >= 0 ? reading_cell(x->r, (uint32_t)row, (uint16_t)cpu) : NULL;

	if (!v)   /* nothing new, or no memory: what was not taken stays in the difference */
		return 0;
	time_ns = settle(&c->credit_ns[(size_t)cpu * c->max_slots + s->slot], time_ns);
	v->time_ns += time_ns;
	v->switches += switches;
	v->lost += lost;
	add_counters(c, at, v, &s->now, time_ns);
	if (lost && s->slot != JD_SLOT_IDLE)
		x->r->cpus[cpu].lost_ns += (uint64_t)((unsigned __int128)time_ns * lost / switches);
	*before = s->now;
	c->slot_changed[s->slot] = x->r->number;
	return time_ns;
}

static void commit(struct read_context *x, unsigned cpu, unsigned bank, unsigned n)
{
	uint64_t time_ns = 0;

	for (unsigned i = 0; i < n; i++)
		time_ns += commit_row(x, cpu, bank, &x->c->staged[i]);
	x->r->cpus[cpu].elapsed_ns += time_ns;
}

/* Reports the open idle interval up to now, ahead of the charge that will come. */
static void close_idle_from_clock(struct read_context *x, unsigned cpu, uint64_t now_ns)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	uint64_t clock = x->c->clock_ktime ? now_ns : now_ns - st->clock_offset_ns - st->irq_steal_ns;
	uint64_t open_ns = clock - st->since_ns;
	uint64_t *credit_ns = &x->c->credit_ns[(size_t)cpu * x->c->max_slots + JD_SLOT_IDLE];
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

	if ((seq & 1) || x->c->visit_idle || READ_ONCE(st->key) != JD_KEY_IDLE)
		return false;
	if (seq != cs->seq)
		n = stage(x->c, cpu, bank);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (READ_ONCE(st->seq) != seq)
		return false;
	commit(x, cpu, bank, n);
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
		uint64_t add = IS_ERROR(st->msr[i]) || IS_ERROR(cs->msr[i]) ? 0 : st->msr[i] - cs->msr[i];

		if ((int)i == x->c->tsc_event && time_ns) {
			x->c->tsc_per_ns = (double)add / (double)time_ns;
			add = settle(&cs->tsc_credit, add);
		}
		rc->msr[i] += add;
		cs->msr[i] = st->msr[i];
	}
	time_ns = settle(&cs->msr_credit_ns, time_ns);
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
	commit(x, cpu, bank, stage(c, cpu, bank));
	take_irq_steal(x, cpu);
	take_msr(x, cpu);
	c->cpus[cpu].seq = 0;   /* the other bank is active now: look at it whatever its number */
	x->r->cpus[cpu].read_mono_ns = st->flush_mono_ns;
	return 0;
}

void counters_read_offline(struct read_context *x, unsigned cpu)
{
	for (unsigned bank = 0; bank < JD_BANKS; bank++)
		commit(x, cpu, bank, stage(x->c, cpu, bank));
	x->c->credit_ns[(size_t)cpu * x->c->max_slots + JD_SLOT_IDLE] = 0;
}
