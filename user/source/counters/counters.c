// SPDX-License-Identifier: Apache-2.0
/* The counters source: opening, one reading over all CPUs, CPUs that come and go. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "counters.h"
#include "rows.h"

#define SLEPT_NS 10000000 /* tolerance: two clocks are not read at once */

static bool bit(const uint8_t *bits, unsigned i)
{
	return bits[i / 8] & (1u << (i % 8));
}

static int allocate(struct counters *c)
{
	size_t slots = (size_t)c->n_cpus * c->max_slots, rows = (size_t)c->n_cpus * c->bank_rows;
	size_t events = (size_t)(JD_MAX_EVENTS + JD_MAX_MSR_EVENTS) * c->n_cpus;

	/* calloc: pages of slots that are never touched are never resident */
	c->cpus = calloc(c->n_cpus, sizeof(*c->cpus));
	c->event_fds = malloc(events * sizeof(int));
	c->seen = calloc(rows, sizeof(*c->seen));
	c->slot_cells = calloc(slots, sizeof(*c->slot_cells));
	c->staged = calloc(c->bank_rows, sizeof(*c->staged));
	c->to_flush = malloc(c->n_cpus * sizeof(*c->to_flush));
	c->slot_row = malloc(c->max_slots * sizeof(uint32_t));
	if (!c->cpus || !c->event_fds || !c->seen || !c->slot_cells || !c->staged || !c->to_flush || !c->slot_row)
		return -ENOMEM;
	memset(c->event_fds, 0xff, events * sizeof(int));
	memset(c->slot_row, 0xff, c->max_slots * sizeof(uint32_t));
	return 0;
}

static void take_start_values(struct counters *c)
{
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		struct cpu_source *cs = &c->cpus[cpu];
		const struct jd_cpu_state *st = &c->states[cpu];

		cs->irq_steal_ns = st->irq_steal_ns;
		cs->msr_mono_ns = st->msr_mono_ns;
		cs->lost_reads = st->lost_reads;
		memcpy(cs->msr, st->msr, sizeof(cs->msr));
	}
}

/* The kernel tells irq or stolen time apart when the two run queue clocks have ever differed. */
static bool irq_time_seen(const struct counters *c)
{
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		if (c->states[cpu].irq_steal_ns)
			return true;
	return false;
}

/* The msr PMU and the software clocks count wall time, which does not stop when a CPU sleeps. */
static void find_idle_counters(struct counters *c)
{
	const struct schema *s = c->schema;

	c->tsc_event = -1;
	for (unsigned i = 0; i < s->core.n; i++)
		c->clock_events |= s->core.ev[i].kind == EVENT_TASK_CLOCK;
	for (unsigned i = 0; i < s->core.n; i++)
		if (s->core.ev[i].kind == EVENT_PERF &&
		    (!strcmp(s->core.ev[i].pmu, "msr") || s->core.ev[i].type == PERF_TYPE_SOFTWARE))
			c->visit_idle = true;
	for (unsigned i = 0; i < s->msr.n; i++)
		if (s->msr.ev[i].kind == EVENT_PERF && !strcmp(s->msr.ev[i].pmu, "msr") && !s->msr.ev[i].config)
			c->tsc_event = (int)i;
}

static void counters_prime(struct counters *c);

static int open_all(struct counters *c, const struct counters_options *o, struct err *err)
{
	struct schema *s = c->schema;
	int rc = online_open(o->root, &c->online);

	c->online_bits = calloc(c->n_cpus / 8 + 128, 1);
	c->gone_bits = calloc(c->n_cpus / 8 + 1, 1);
	if (!rc && (!c->online_bits || !c->gone_bits))
		rc = -ENOMEM;
	if (!rc)
		rc = online_watch(c->online, c->n_cpus);
	if (!rc)
		rc = online_look(c->online, c->online_bits, c->gone_bits);
	if (rc < 0)
		return err_set(err, rc, "counters: list of online CPUs: %s; mount /sys", strerror(-rc));
	find_idle_counters(c);
	s->multiplexed = counters_must_multiplex(c);
	counters_set_sizes(c);
	rc = allocate(c);
	if (rc)
		return err_set(err, rc, "counters: %s; lower cgroups.max", strerror(-rc));
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		c->cpus[cpu].online = bit(c->online_bits, cpu);
	rc = counters_load(c, o, err);
	if (rc)
		return rc;
	counters_prime(c);
	take_start_values(c);
	s->irq_separate = irq_time_seen(c);
	snprintf(s->clock, sizeof(s->clock), "%s", c->clock_ktime ? "ktime" : "scheduler");
	return 0;
}

int counters_open(const struct counters_options *o, struct schema *s, struct counters **ret, struct err *err)
{
	struct counters *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(err, -ENOMEM, "counters: out of memory; free some");
	c->o = o;
	c->schema = s;
	c->root = o->root;
	c->siblings = o->siblings;
	c->seam = *o->seam;
	c->asleep_ns = (int64_t)(clock_boot_ns() - clock_mono_ns());
	c->n_cpus = s->n_cpus;
	c->max_slots = (uint32_t)o->max_cgroups + JD_FIRST_SLOT;
	memcpy(c->core_variants, o->core_variants, sizeof(c->core_variants));
	memcpy(c->msr_variants, o->msr_variants, sizeof(c->msr_variants));
	rc = open_all(c, o, err);
	if (rc) {
		counters_close(c);
		return rc;
	}
	c->o = NULL;
	*ret = c;
	return 0;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	counters_helpers_stop(c);
	counters_unload(c);
	online_close(c->online);
	free(c->online_bits);
	free(c->gone_bits);
	free(c->cpus);
	free(c->event_fds);
	free(c->seen);
	free(c->slot_cells);
	free(c->staged);
	free(c->to_flush);
	free(c->slot_row);
	free(c);
}

static void counters_read_offline(struct read_context *x, unsigned cpu);

/* The CPU runs nothing any more. Its last interval is unknown, and its events are dead. */
static void cpu_went_offline(struct read_context *x, unsigned cpu)
{
	struct counters *c = x->c;

	c->states[cpu].key = JD_KEY_NONE;
	c->states[cpu].row = JD_NO_ROW;
	c->states[cpu].task = 0;
	counters_read_offline(x, cpu);
	counters_close_events(c, cpu);
	c->cpus[cpu].offline_since_ns = x->r->mono_ns;
}

/* Opens the events of a CPU anew. They begin at 0. */
static void open_events(struct counters *c, unsigned cpu)
{
	struct cpu_source *cs = &c->cpus[cpu];

	cs->broken = counters_open_events(c, cpu) != 0;
	memset(cs->msr, 0, sizeof(cs->msr));
}

void counters_set_siblings(struct counters *c, unsigned cpu)
{
	struct jd_cpu_state *st = &c->states[cpu];
	uint32_t now[JD_MAX_SIBLINGS];
	unsigned n = 0;

	if (c->siblings && c->siblings[cpu] != cpu)
		now[n++] = c->siblings[cpu];
	else if (!c->siblings)
		n = topology_siblings(c->root, cpu, now, JD_MAX_SIBLINGS);
	while (n < JD_MAX_SIBLINGS)
		now[n++] = JD_NO_CPU;
	if (!memcmp(st->siblings, now, sizeof(now)))
		return;
	memcpy(st->siblings, now, sizeof(now));
	st->siblings_changed = 1;
}

/* A CPU that is back, whether or not a reading saw it away. Events opened on it before are dead, and its work since
 * then was not counted. The interval is partial. */
static void cpu_returned(struct read_context *x, unsigned cpu)
{
	struct counters *c = x->c;
	struct cpu_source *cs = &c->cpus[cpu];

	topology_refresh(c->root, c->schema, cpu);
	open_events(c, cpu);
	for (unsigned i = 0; i < c->n_cpus; i++)
		counters_set_siblings(c, i);
	cs->retry_after = 0;
	if (c->perf_links)
		counters_attach_perf_cpu(c, cpu);
	c->states[cpu].clock_offset_ns = 0; /* its clock may have been set anew */
	c->states[cpu].calibrate = JD_CALIBRATIONS;
	cs->restarted = true;
	cs->visit = true;
}

static void follow_cpu(struct read_context *x, unsigned cpu, bool online, bool gone)
{
	struct cpu_source *cs = &x->c->cpus[cpu];
	struct reading_cpu *rc = &x->r->cpus[cpu];

	if (online && cs->online && gone) {
		rc->online_changes += 2;
		cpu_returned(x, cpu);
	} else if (online && !cs->online) {
		rc->online_changes++;
		cs->returned = true;
		cs->msr_mono_ns = cs->msr_credit_ns = 0;
		cpu_returned(x, cpu);
	} else if (!online && cs->online) {
		rc->online_changes++;
		rc->offline_ns += cs->returned ? x->r->mono_ns - cs->offline_since_ns :
						 0; /* it went away before its first flush */
		cs->returned = false;
		cpu_went_offline(x, cpu);
	} else if (!online) {
		rc->offline_ns += x->r->mono_ns - cs->offline_since_ns;
		cs->offline_since_ns = x->r->mono_ns;
	}
	cs->online = rc->online = online;
}

static void follow_hotplug(struct read_context *x)
{
	struct counters *c = x->c;
	bool known = online_look(c->online, c->online_bits, c->gone_bits) >= 0;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		follow_cpu(x, cpu, known ? bit(c->online_bits, cpu) : c->cpus[cpu].online, bit(c->gone_bits, cpu));
}

/* Opens events anew, at doubling distances, whose reads failed since the last reading. */
static void follow_losses(struct read_context *x, unsigned cpu, bool was_away)
{
	struct counters *c = x->c;
	struct cpu_source *cs = &c->cpus[cpu];
	const struct jd_cpu_state *st = &c->states[cpu];
	uint64_t lost = st->lost_reads - cs->lost_reads + cs->msr_lost;

	x->r->losses.lost_reads += lost;
	x->r->losses.away_reads += was_away ? lost : 0;
	x->r->losses.folded += st->folded - cs->folded;
	cs->lost_reads = st->lost_reads;
	cs->msr_lost = 0;
	x->r->losses.missed_switches += st->missed - cs->missed;
	cs->folded = st->folded;
	cs->missed = st->missed;
	if ((!lost || was_away) && !cs->broken) {
		cs->retry_after = 0;
		return;
	}
	if (cs->retry_after && (int32_t)(x->r->number - cs->retry_at) < 0)
		return;
	cs->retry_after = cs->retry_after ? cs->retry_after * 2 : 1;
	if (cs->retry_after > 1024)
		cs->retry_after = 1024;
	cs->retry_at = x->r->number + cs->retry_after;
	open_events(c, cpu);
}

/* After suspend, clocks stood still and counters may have. Each CPU is flushed, idle or not. */
static void follow_sleep(struct counters *c, const struct reading *r)
{
	int64_t before = c->asleep_ns;

	c->asleep_ns = (int64_t)(r->boot_ns - r->mono_ns);
	for (unsigned cpu = 0; c->asleep_ns > before + SLEPT_NS && cpu < c->n_cpus; cpu++)
		c->cpus[cpu].visit = true;
}

static void counters_retire(struct read_context *x);
static bool looks_idle(const struct counters *c, unsigned cpu);
static bool read_idle(struct read_context *x, unsigned cpu);
static int take_flushed(struct read_context *x, unsigned cpu);

/* Flushes the busy CPUs, then closes the idle ones. What the banks hold is taken later: that takes longer than all
 * flushes, and the CPUs are to be of one instant. */
static void stop_clocks(struct read_context *x)
{
	struct counters *c = x->c;
	unsigned n = 0;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		if (c->cpus[cpu].online && !looks_idle(c, cpu))
			c->to_flush[n++] = cpu;
	counters_flush_all(c, n);
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		if (c->cpus[cpu].online && !c->cpus[cpu].flushed && !read_idle(x, cpu))
			counters_flip(c, cpu); /* it woke up */
}

int counters_read(struct counters *c, struct reading *r, struct cgroup_table *t, struct lifecycle *l)
{
	struct read_context x = { .c = c, .r = r, .table = t, .lifecycle = l };
	int first_err = 0;

	follow_sleep(c, r);
	follow_hotplug(&x);
	stop_clocks(&x);
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		bool was_away = c->cpus[cpu].restarted;
		int rc = c->cpus[cpu].flushed ? take_flushed(&x, cpu) : 0;

		if (c->cpus[cpu].online)
			follow_losses(&x, cpu, was_away);
		if (rc && rc != -ENXIO && !first_err) /* ENXIO: it went offline just now */
			first_err = rc;
	}
	if (!first_err)
		counters_retire(&x);
	r->schema->irq_separate |= irq_time_seen(c);
	return first_err;
}

int counters_fd(const struct counters *c)
{
	return c->full ? ring_buffer__epoll_fd(c->full) : -1;
}

/* A CPU that came back is left to the reading, which says what was lost. */
void counters_make_room(struct counters *c, struct reading *r, struct cgroup_table *t, struct lifecycle *l)
{
	struct read_context x = { .c = c, .r = r, .table = t, .lifecycle = l };

	if (!c->full || ring_buffer__consume(c->full) <= 0)
		return;
	r->number++; /* what changes is new to the next reading */
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		const struct cpu_source *cs = &c->cpus[cpu];
		const struct jd_cpu_state *st = &c->states[cpu];

		if (READ_ONCE(st->n_rows[st->bank & 1]) > c->wake_row && cs->online && !cs->visit && !cs->returned)
			counters_read_cpu(&x, cpu);
	}
	r->number--;
}

void counters_close_cpu(struct counters *c, unsigned cpu)
{
	if (cpu < c->n_cpus && c->cpus[cpu].online)
		counters_flush(c, cpu, JD_FLUSH_CLOSE);
}

/* By fdinfo of the maps: an entry of a hash, and what a slot has in `slots`, `subtrees`, `slot_info` and `free_slots`. */
#define HASH_ENTRY_BYTES 96
#define SLOT_BYTES ((1 + JD_QUOTA_LEVELS) * HASH_ENTRY_BYTES + sizeof(struct jd_slot_info) + sizeof(uint32_t))

uint64_t counters_map_bytes(const struct counters *c)
{
	uint64_t rows = (uint64_t)c->n_cpus * JD_BANKS * c->bank_rows;

	return rows * (c->row_bytes + sizeof(uint64_t)) + c->n_cpus * sizeof(struct jd_cpu_state) +
	       (uint64_t)c->n_cpus * c->max_slots * sizeof(struct jd_place) + (uint64_t)c->max_slots * SLOT_BYTES +
	       (c->schema->multiplexed ? rows * sizeof(struct jd_mux_row) : 0);
}

uint64_t counters_self_ns(const struct counters *c, uint64_t *ret_n)
{
	uint64_t ns = 0;

	*ret_n = 0;
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		ns += c->states[cpu].self_ns;
		*ret_n += c->states[cpu].self_samples;
	}
	return ns;
}

const char *counters_reason(const struct counters *c)
{
	return c->reason;
}

/* Slots of the kernel's table to rows of the reading, and back to the free list. */

#define QUIET_READINGS 2 /* complete readings without a count before a slot is retired */

static struct cgroup *find_cgroup(struct read_context *x, uint64_t id)
{
	struct cgroup *cg = cgroup_find(x->table, id);
	char name[32];

	if (cg)
		return cg;
	if (x->lifecycle)
		return lifecycle_resolve(x->lifecycle, id);
	snprintf(name, sizeof(name), "/?%llu", (unsigned long long)id);
	return cgroup_add(x->table, id, name, 1, 0);
}

int64_t counters_row(struct read_context *x, uint32_t slot)
{
	struct counters *c = x->c;
	struct cgroup *cg;
	int64_t row;

	switch (slot) {
	case JD_SLOT_IDLE:
		return ROW_IDLE;
	case JD_SLOT_KERNEL:
		return ROW_KERNEL;
	case JD_SLOT_OTHER:
		return ROW_OTHER;
	}
	if (c->slot_row[slot] != UINT32_MAX)
		return c->slot_row[slot];
	cg = find_cgroup(x, c->info[slot].key);
	row = cg ? reading_add_row(x->r, cg) : -ENOMEM;
	if (row < 0)
		return row;
	c->slot_row[slot] = (uint32_t)row;
	if (slot >= c->top_slot)
		c->top_slot = slot + 1;
	return row;
}

static bool running_somewhere(const struct counters *c, uint32_t slot)
{
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		const struct jd_cpu_state *st = &c->states[cpu];
		uint32_t row = READ_ONCE(st->row);

		if (row < c->bank_rows && slot_at(c, cpu, st->bank & 1, row) == slot)
			return true;
	}
	return false;
}

static void retire(struct read_context *x, uint32_t slot)
{
	struct counters *c = x->c;
	__u64 args[1] = { slot };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (bpf_prog_test_run_opts(c->retire_fd, &opts))
		return;
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		c->slot_cells[(size_t)cpu * c->max_slots + slot] = 0; /* the next owner has cells of its own */
	reading_drop_row(x->r, c->slot_row[slot]);
	c->slot_row[slot] = UINT32_MAX;
}

/* Dead tasks still switch out after their cgroup's rmdir event, so an ended cgroup keeps its slot
 * until complete readings brought nothing more and no CPU is charging it. */
static void counters_retire(struct read_context *x)
{
	struct counters *c = x->c;

	if (!cgroup_table_ended(x->table))
		return;
	for (uint32_t slot = JD_FIRST_SLOT; slot < c->top_slot; slot++) {
		uint32_t row = c->slot_row[slot];

		if (row == UINT32_MAX || !x->r->rows[row].cgroup->ended)
			continue;
		if (x->r->number - x->r->row_changed[row] >= QUIET_READINGS && !running_somewhere(c, slot))
			retire(x, slot);
	}
}

/* Reading one CPU. A busy CPU is flushed (flush.c): the kernel closes its open interval and flips the bank,
 * so the bank left behind has no writer. An idle CPU is not woken: its active bank is copied and
 * taken when the CPU's sequence number did not move meanwhile, and its open idle interval is
 * closed from the clock. */

#define IS_ERROR(v) ((v) >= (uint64_t)-4095)

/* A real switch on every CPU opens its interval with a fresh clock. What was counted before belongs to no interval. On
 * CPUs outside our affinity mask the flush alone opens it. */
static void counters_prime(struct counters *c)
{
	cpu_set_t before, one;
	bool saved = sched_getaffinity(0, sizeof(before), &before) == 0;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		if (!c->cpus[cpu].online)
			continue;
		CPU_ZERO(&one);
		if (cpu < CPU_SETSIZE) {
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
		}
		counters_flush(c, cpu, JD_FLUSH_FLIP);
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
	int64_t number = counters_cell(x, cpu, JD_SLOT_IDLE);
	struct cell_values *v;
	struct cell *cell;

	if ((!st->clock_offset_ns && !x->c->clock_ktime) || number < 0)
		return;
	cell = &x->r->cells[number];
	if ((int64_t)open_ns <= (int64_t)cell->ahead_ns)
		return;
	v = reading_touch(x->r, (uint32_t)number);
	open_ns -= cell->ahead_ns;
	cell->ahead_ns += open_ns;
	x->r->heads[number].ahead = true;
	v->time_ns += open_ns;
	v->enabled_ns += open_ns;
	v->running_ns += open_ns;
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

static bool looks_idle(const struct counters *c, unsigned cpu)
{
	const struct jd_cpu_state *st = &c->states[cpu];

	return !c->visit_idle && !c->cpus[cpu].visit && READ_ONCE(st->key) == JD_KEY_IDLE;
}

/* True when the CPU was idle throughout and everything was taken. */
static bool read_idle(struct read_context *x, unsigned cpu)
{
	const struct jd_cpu_state *st = &x->c->states[cpu];
	struct cpu_source *cs = &x->c->cpus[cpu];
	uint64_t seq = __atomic_load_n(&st->seq, __ATOMIC_ACQUIRE);
	uint64_t now = clock_mono_ns();
	unsigned bank = READ_ONCE(st->bank) & 1, n = 0;

	if ((seq & 1) || !looks_idle(x->c, cpu))
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
	struct cell_values *v;

	if (cs->restarted) /* the kernel's account of it may have begun anew */
		cs->irq_steal_ns = now;
	if (!add || (int64_t)add < 0 || cs->restarted)
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

/* 0, or why it was not flushed. */
static int take_flushed(struct read_context *x, unsigned cpu)
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
	if (read_idle(x, cpu))
		return 0;
	counters_flip(x->c, cpu);
	return take_flushed(x, cpu);
}

/* Its last counts: the bank has no writer any more. */
static void counters_read_offline(struct read_context *x, unsigned cpu)
{
	unsigned bank = x->c->states[cpu].bank & 1;
	int64_t idle;

	counters_take_bank(x, cpu, bank);
	counters_void_bank(x->c, cpu, bank);
	idle = counters_cell(x, cpu, JD_SLOT_IDLE);
	if (idle < 0)
		return;
	x->r->cells[idle].ahead_ns = 0;
	x->r->heads[idle].ahead = false;
}
