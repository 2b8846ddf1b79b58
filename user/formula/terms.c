/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/event_find.h"
#include "terms.h"

#define CENTRE 0.5 /* of states that are parts of one */
#define CLOCK_MOST 16 /* of the squared clock */
#define TRAFFIC_MOST 32 /* of the first traffic */

/* A CPU of the domain in the interval. */
struct term_cpu {
	double load; /* busy part of the domain's other CPUs */
	double busy_s, misses; /* of its rows */
	double misses_beside; /* per s that another CPU is busy */
};

int terms_reserve(struct terms *t, const struct snapshot *s)
{
	if (t->cap_cpus >= s->schema->n_cpus && t->cpu)
		return 0;
	free(t->cpu);
	t->cap_cpus = 0;
	t->cpu = calloc(s->schema->n_cpus + 1, sizeof(*t->cpu));
	if (!t->cpu)
		return -ENOMEM;
	t->cap_cpus = s->schema->n_cpus;
	return 0;
}

void terms_free(struct terms *t)
{
	free(t->cpu);
}

static bool is_base(const struct schema *s, unsigned event)
{
	return s->core.ev[event].kind == EVENT_PERF || s->core.ev[event].kind == EVENT_IDLE_EXITS;
}

static int find_kind(const struct event_set *set, enum event_kind kind)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->ev[i].kind == kind)
			return (int)i;
	return -1;
}

struct totals {
	double time_s, cycles, misses;
	double asleep_s; /* no CPU was busy: what the idle row has in the column of others */
};

static struct totals total(struct terms *t, const struct snapshot *s, const struct weights *w)
{
	struct totals all = { 0 };

	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		t->cpu[i] = (struct term_cpu){ 0 };
	for (unsigned i = 0; i < s->n_cells; i++) {
		const struct snap_cell *c = &s->cells[i];
		struct term_cpu *cpu = &t->cpu[c->cpu];
		double misses;

		if (!w->cpus[c->cpu] || c->quality & QUALITY_LOST)
			continue;
		if (s->rows[c->row].kind == ROW_IDLE) {
			all.asleep_s += t->others >= 0 ? (double)c->counters[t->others] / 1e9 : 0;
			continue;
		}
		misses = t->misses >= 0 ? (double)c->counters[t->misses] : 0;
		all.time_s += (double)c->time_ns / 1e9;
		all.cycles += t->cycles >= 0 ? (double)c->counters[t->cycles] : 0;
		all.misses += misses;
		cpu->busy_s += (double)c->time_ns / 1e9;
		cpu->misses += misses;
	}
	return all;
}

/* What the other CPUs did while they were busy, for each CPU. */
static void find_others(struct terms *t, const struct snapshot *s, const struct weights *w, const struct totals *all)
{
	t->others_most = 0;
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		struct term_cpu *cpu = &t->cpu[i];
		double busy = (double)w->busy_ns - (double)s->cpus[i].busy_ns,
		       elapsed = (double)w->elapsed_ns - (double)s->cpus[i].elapsed_ns,
		       busy_s = all->time_s - cpu->busy_s;

		if (!w->cpus[i])
			continue;
		t->others_most += s->cpus[i].elapsed_ns > 0;
		cpu->load = elapsed > 0 ? fmin(fmax(busy / elapsed, 0), 1) : 0;
		cpu->misses_beside = busy_s > 0 ? (all->misses - cpu->misses) / busy_s : 0;
	}
	t->others_most = fmax(t->others_most - 1, 0);
}

void terms_of(struct terms *t, const struct snapshot *s, const struct weights *w, struct model_fit *f)
{
	const struct event_set *set = &s->schema->core;
	double seconds = (double)w->elapsed_ns / 1e9 / (w->n_cpus ? w->n_cpus : 1);
	struct totals all;

	t->s = s;
	t->cycles = event_find_cycles(set);
	t->misses = event_find_misses(set);
	t->sibling = find_kind(set, EVENT_SIBLING_BUSY);
	t->others = find_kind(set, EVENT_OTHERS_BUSY);
	all = total(t, s, w);
	find_others(t, s, w, &all);
	if (!(f->first_clock > 0) && all.time_s > 0)
		f->first_clock = all.cycles / all.time_s;
	if (!(f->first_traffic > 0) && seconds > 0)
		f->first_traffic = all.misses / seconds;
	f->misses = t->misses >= 0 ? COL_EVENT + (unsigned)t->misses : 0;
	t->first_clock = f->first_clock;
	t->first_traffic = f->first_traffic;
	t->traffic = seconds > 0 ? all.misses / seconds : 0;
	t->awake = t->others >= 0 && seconds > 0 ? fmin(fmax(1 - all.asleep_s / seconds, 0), 1) : NAN;
	t->bends = 1u << BEND_LOAD | (t->cycles >= 0 && f->first_clock > 0 ? 1u << BEND_CLOCK : 0) |
		   (t->sibling >= 0 ? 1u << BEND_SIBLING : 0) | (s->schema->n_core_types > 1 ? 1u << BEND_TYPE : 0) |
		   (t->misses >= 0 && f->first_traffic > 0 ? 1u << BEND_TRAFFIC | 1u << BEND_QUEUE : 0);
}

/* What prices are bent by on this cell, for the bends asked for. */
static void states(const struct terms *t, const struct snap_cell *c, unsigned bends, double *ret)
{
	double time_s = (double)c->time_ns / 1e9, beside = -1, traffic = t->traffic, clock = 1;

	if (t->others >= 0 && c->time_ns && bends & (1u << BEND_LOAD | 1u << BEND_TRAFFIC | 1u << BEND_QUEUE))
		beside = fmin((double)c->counters[t->others] / (double)c->time_ns, t->others_most);
	if (bends >> BEND_LOAD & 1)
		ret[BEND_LOAD] = (beside >= 0 && t->others_most > 0 ? beside / t->others_most : t->cpu[c->cpu].load) -
				 CENTRE;
	if (bends >> BEND_CLOCK & 1) {
		if (c->time_ns && t->cycles >= 0)
			clock = (double)c->counters[t->cycles] / time_s / t->first_clock;
		ret[BEND_CLOCK] = fmin(clock * clock, CLOCK_MOST) - 1;
	}
	if (bends >> BEND_SIBLING & 1)
		ret[BEND_SIBLING] = c->time_ns ?
					    fmin((double)c->counters[t->sibling] / (double)c->time_ns, 1) - CENTRE :
					    0;
	ret[BEND_TYPE] = (t->s->schema->cpus[c->cpu].core_type > 0) - CENTRE;
	if (!(bends & (1u << BEND_TRAFFIC | 1u << BEND_QUEUE)))
		return;
	if (beside >= 0)
		traffic = (double)c->counters[t->misses] / time_s + beside * t->cpu[c->cpu].misses_beside;
	ret[BEND_TRAFFIC] = traffic / (traffic + t->first_traffic) - CENTRE;
	ret[BEND_QUEUE] = fmin(traffic / t->first_traffic, TRAFFIC_MOST) - CENTRE;
}

static unsigned counts_of(const struct terms *t, const struct snap_cell *c)
{
	return c->quality & QUALITY_LOST ? 0 : t->s->schema->core.n;
}

void terms_add(const struct terms *t, const struct snap_cell *c, bool idle, unsigned bends, double *did)
{
	double state[BENDS], base[BASES];
	unsigned n = counts_of(t, c);

	states(t, c, bends, state);
	base[BASE_BUSY] = idle ? 0 : (double)c->time_ns / 1e9;
	for (unsigned i = 0; i < n; i++)
		base[BASE_EVENT + i] = (double)c->counters[i];
	for (unsigned i = 0; i < BASE_EVENT + n; i++)
		did[COL_BASE + i] += base[i];
	for (unsigned b = 0; b < BENDS_OF_ALL; b++) {
		double *bent = &did[model_bent(b, 0)];

		for (unsigned i = 0; bends >> b & 1 && i < BASE_EVENT + n; i++)
			bent[i] += base[i] * state[b];
	}
	for (unsigned b = BENDS_OF_ALL; b < BENDS && n; b++)
		if (bends >> b & 1)
			did[model_bent(b, 0)] += base[BASE_EVENT + t->misses] * state[b];
}

double terms_joules(const struct terms *t, const struct snap_cell *c, bool idle, const struct model_coef *coef,
		    unsigned bends)
{
	double did[COLUMNS] = { 0 };

	terms_add(t, c, idle, bends & t->bends, did);
	return fmax(model_dynamic(coef, did), 0);
}

model_columns terms_counted(const struct snapshot *s)
{
	model_columns base = COLUMN(BASE_BUSY);

	for (unsigned i = 0; i < s->schema->core.n; i++)
		if (s->schema->core.ev[i].kind == EVENT_PERF)
			base |= COLUMN(BASE_EVENT + i);
	return base << COL_BASE;
}

model_columns terms_columns(const struct terms *t, const struct snapshot *s, const struct weights *w)
{
	model_columns base = COLUMN(BASE_BUSY), columns = COLUMN(COL_IDLE) | COLUMN(COL_HEAT), bent;

	for (unsigned i = 0; i < s->schema->core.n; i++)
		if (is_base(s->schema, i) && weights_have(w, s, i))
			base |= COLUMN(BASE_EVENT + i);
	columns |= base << COL_BASE;
	if (t->awake >= 0)
		columns |= COLUMN(COL_AWAKE);
	bent = base & terms_counted(s) >> COL_BASE;
	for (unsigned b = 0; b < BENDS; b++) {
		if (!(t->bends >> b & 1))
			continue;
		if (b < BENDS_OF_ALL)
			columns |= bent << model_bent(b, 0);
		else if (bent >> (BASE_EVENT + t->misses) & 1)
			columns |= COLUMN(model_bent(b, 0));
	}
	return columns;
}

double terms_price(const struct terms *t, const struct model_coef *c, const double *all, unsigned base)
{
	double price = c->c[COL_BASE + base];

	if (!(all[COL_BASE + base] > 0))
		return fmax(price, 0);
	for (unsigned b = 0; b < BENDS; b++)
		if (b < BENDS_OF_ALL || (int)base == BASE_EVENT + t->misses)
			price += c->c[model_bent(b, base)] * all[model_bent(b, base)] / all[COL_BASE + base];
	return fmax(price, 0);
}
