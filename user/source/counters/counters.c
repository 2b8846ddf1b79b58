// SPDX-License-Identifier: Apache-2.0
/* The counters source: opening, one reading over all CPUs, CPUs that come and go. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
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
	c->core_variants = o->core_variants;
	c->msr_variants = o->msr_variants;
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
	events_cpu_came(c->root, &c->schema->core, c->core_variants, cpu);
	events_cpu_came(c->root, &c->schema->msr, c->msr_variants, cpu);
	open_events(c, cpu);
	c->cpus_came = true;
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
	for (unsigned cpu = 0; c->cpus_came && cpu < c->n_cpus; cpu++)
		counters_set_siblings(c, cpu);
	c->cpus_came = false;
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


/* Flushes the busy CPUs, then closes the idle ones. What the banks hold is taken later: that takes longer than all
 * flushes, and the CPUs are to be of one instant. */
static void stop_clocks(struct read_context *x)
{
	struct counters *c = x->c;
	unsigned n = 0;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		if (c->cpus[cpu].online && !counters_looks_idle(c, cpu))
			c->to_flush[n++] = cpu;
	counters_flush_all(c, n);
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		if (c->cpus[cpu].online && !c->cpus[cpu].flushed && !counters_read_idle(x, cpu))
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
		int rc = c->cpus[cpu].flushed ? counters_take_flushed(&x, cpu) : 0;

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
