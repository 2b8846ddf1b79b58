// SPDX-License-Identifier: Apache-2.0
/* The counters source: opening, one reading over all CPUs, CPUs that come and go. */
#include "counters.h"
#include "../base/clock.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "counters_internal.h"

#define SLEPT_NS 10000000 /* two clocks are not read at once */

static bool bit(const uint8_t *bits, unsigned i)
{
	return bits[i / 8] & (1u << (i % 8));
}

static int allocate(struct counters *c)
{
	size_t slots = (size_t)c->n_cpus * c->max_slots;
	size_t events = (size_t)(JD_MAX_EVENTS + JD_MAX_MSR_EVENTS) * c->n_cpus;

	/* calloc: pages of slots that are never touched are never resident */
	c->cpus = calloc(c->n_cpus, sizeof(*c->cpus));
	c->event_fds = malloc(events * sizeof(int));
	c->seen = calloc(slots, sizeof(*c->seen));
	c->views = calloc(slots, sizeof(*c->views));
	c->staged = calloc(c->max_slots, sizeof(*c->staged));
	c->slot_row = malloc(c->max_slots * sizeof(uint32_t));
	c->slot_changed = calloc(c->max_slots, sizeof(uint32_t));
	if (!c->cpus || !c->event_fds || !c->seen || !c->views || !c->staged || !c->slot_row || !c->slot_changed)
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
		cs->flush_mono_ns = st->flush_mono_ns;
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
	int e = online_open(o->root, &c->online);

	c->online_bits = calloc(c->n_cpus / 8 + 128, 1);
	if (!e && !c->online_bits)
		e = -ENOMEM;
	if (!e)
		e = online_read(c->online, c->online_bits, c->n_cpus);
	if (e < 0)
		return err_set(err, e, "counters: list of online CPUs: %s; mount /sys", strerror(-e));
	find_idle_counters(c);
	s->multiplexed = counters_must_multiplex(c);
	e = allocate(c);
	if (e)
		return err_set(err, e, "counters: %s; lower cgroups.max", strerror(-e));
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		c->cpus[cpu].online = bit(c->online_bits, cpu);
	e = counters_load(c, o, err);
	if (e)
		return e;
	counters_prime(c);
	take_start_values(c);
	s->irq_separate = irq_time_seen(c);
	snprintf(s->clock, sizeof(s->clock), "%s", c->clock_ktime ? "ktime" : "scheduler");
	return 0;
}

int counters_open(const struct counters_options *o, struct schema *s, struct counters **ret, struct err *err)
{
	struct counters *c = calloc(1, sizeof(*c));
	int e;

	if (!c)
		return err_set(err, -ENOMEM, "counters: out of memory");
	c->o = o;
	c->schema = s;
	c->root = o->root;
	c->seam = *o->seam;
	c->asleep_ns = (int64_t)(clock_boot_ns() - clock_mono_ns());
	c->n_cpus = s->n_cpus;
	c->max_slots = (uint32_t)o->config->max_cgroups + JD_FIRST_SLOT;
	memcpy(c->core_variants, o->core_variants, sizeof(c->core_variants));
	memcpy(c->msr_variants, o->msr_variants, sizeof(c->msr_variants));
	e = open_all(c, o, err);
	if (e) {
		counters_close(c);
		return e;
	}
	c->o = NULL;
	*ret = c;
	return 0;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	counters_unload(c);
	online_close(c->online);
	free(c->online_bits);
	free(c->cpus);
	free(c->event_fds);
	free(c->seen);
	free(c->views);
	free(c->staged);
	free(c->slot_row);
	free(c->slot_changed);
	free(c);
}

/* Nothing runs there any more: what its last interval was is unknown, and its events are dead. */
static void cpu_went_offline(struct read_context *x, unsigned cpu)
{
	struct counters *c = x->c;

	c->states[cpu].key = JD_KEY_NONE;
	c->states[cpu].slot = JD_NO_SLOT;
	c->states[cpu].task = 0;
	counters_read_offline(x, cpu);
	counters_close_events(c, cpu);
	c->cpus[cpu].offline_since_ns = x->r->mono_ns;
}

static void cpu_came_online(struct read_context *x, unsigned cpu)
{
	struct counters *c = x->c;
	struct cpu_source *cs = &c->cpus[cpu];

	x->r->cpus[cpu].offline_ns += x->r->mono_ns - cs->offline_since_ns;
	topology_refresh(c->root, c->schema, cpu);
	cs->broken = counters_open_events(c, cpu) != 0;
	if (c->perf_links)
		counters_attach_perf_cpu(c, cpu);
	c->states[cpu].clock_offset_ns = 0; /* its clock may have been set anew */
	c->states[cpu].calibrate = JD_CALIBRATIONS;
	counters_flush(c, cpu, JD_FLUSH_FLIP);
	cs->irq_steal_ns = c->states[cpu].irq_steal_ns;
	cs->flush_mono_ns = c->states[cpu].flush_mono_ns;
	memcpy(cs->msr, c->states[cpu].msr, sizeof(cs->msr));
	cs->seq = 0;
}

static void follow_hotplug(struct read_context *x)
{
	struct counters *c = x->c;

	if (online_read(c->online, c->online_bits, c->n_cpus) < 0)
		return;
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		bool online = bit(c->online_bits, cpu);

		if (online != c->cpus[cpu].online) {
			c->cpus[cpu].online = online;
			x->r->cpus[cpu].online_changes++;
			if (online)
				cpu_came_online(x, cpu);
			else
				cpu_went_offline(x, cpu);
		} else if (!online) {
			x->r->cpus[cpu].offline_ns += x->r->mono_ns - c->cpus[cpu].offline_since_ns;
			c->cpus[cpu].offline_since_ns = x->r->mono_ns;
		}
		x->r->cpus[cpu].online = online;
	}
}

/* Reads that failed since the last reading: the CPU may have been off and on again between two
 * readings, which leaves dead events. Reopened at doubling distances. */
static void follow_losses(struct read_context *x, unsigned cpu)
{
	struct counters *c = x->c;
	struct cpu_source *cs = &c->cpus[cpu];
	const struct jd_cpu_state *st = &c->states[cpu];
	uint64_t lost = st->lost_reads - cs->lost_reads;

	x->r->losses.lost_reads += lost;
	x->r->losses.folded += st->folded - cs->folded;
	cs->lost_reads = st->lost_reads;
	x->r->losses.missed_switches += st->missed - cs->missed;
	cs->folded = st->folded;
	cs->missed = st->missed;
	if (!lost && !cs->broken) {
		cs->retry_after = 0;
		return;
	}
	if (cs->retry_after && (int32_t)(x->r->number - cs->retry_at) < 0)
		return;
	cs->retry_after = cs->retry_after ? cs->retry_after * 2 : 1;
	if (cs->retry_after > 1024)
		cs->retry_after = 1024;
	cs->retry_at = x->r->number + cs->retry_after;
	cs->broken = counters_open_events(c, cpu) != 0;
}

/* Sleep to memory takes all CPUs but one offline and brings them back before anybody runs: their events are
 * dead, and the list of online CPUs looks as before. A flush of each finds out (follow_losses). */
static bool has_slept(struct counters *c, const struct reading *r)
{
	int64_t before = c->asleep_ns;

	c->asleep_ns = (int64_t)(r->boot_ns - r->mono_ns);
	return c->asleep_ns > before + SLEPT_NS;
}

int counters_read(struct counters *c, struct reading *r, struct cgroup_table *t, struct lifecycle *l)
{
	struct read_context x = { .c = c, .r = r, .table = t, .lifecycle = l };
	int first_err = 0;

	x.slept = has_slept(c, r);
	follow_hotplug(&x);
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		int e = c->cpus[cpu].online ? counters_read_cpu(&x, cpu) : 0;

		if (c->cpus[cpu].online)
			follow_losses(&x, cpu);
		if (e && e != -ENXIO && !first_err) /* ENXIO: it went offline just now */
			first_err = e;
	}
	if (!first_err)
		counters_retire(&x);
	r->schema->irq_separate |= irq_time_seen(c);
	return first_err;
}

void counters_close_cpu(struct counters *c, unsigned cpu)
{
	if (cpu < c->n_cpus && c->cpus[cpu].online)
		counters_flush(c, cpu, JD_FLUSH_CLOSE);
}

uint64_t counters_map_bytes(const struct counters *c)
{
	uint64_t rows = (uint64_t)c->n_cpus * JD_BANKS * c->max_slots;

	return rows * (sizeof(struct jd_row) + sizeof(uint64_t)) + c->n_cpus * sizeof(struct jd_cpu_state) +
	       (uint64_t)c->max_slots * sizeof(struct jd_slot_info) +
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
