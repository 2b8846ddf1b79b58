/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/event_find.h"
#include "terms.h"

#define CENTRE 0.5 /* of states that are parts of one */

int terms_reserve(struct terms *t, const struct snapshot *s)
{
	if (t->cap_cpus >= s->schema->n_cpus && t->load)
		return 0;
	free(t->load);
	t->cap_cpus = 0;
	t->load = calloc(s->schema->n_cpus + 1, sizeof(*t->load));
	if (!t->load)
		return -ENOMEM;
	t->cap_cpus = s->schema->n_cpus;
	return 0;
}

void terms_free(struct terms *t)
{
	free(t->load);
}

static bool is_base(const struct schema *s, unsigned event)
{
	return s->core.ev[event].kind == EVENT_PERF || s->core.ev[event].kind == EVENT_IDLE_EXITS;
}

/* Busy share of the domain's other CPUs, for each of them. */
static void find_load(struct terms *t, const struct snapshot *s, const struct weights *w)
{
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		double busy = (double)w->busy_ns - (double)s->cpus[i].busy_ns,
		       elapsed = (double)w->elapsed_ns - (double)s->cpus[i].elapsed_ns;

		t->load[i] = w->cpus[i] && elapsed > 0 ? fmin(fmax(busy / elapsed, 0), 1) : 0;
	}
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
};

static struct totals total(const struct terms *t, const struct snapshot *s, const struct weights *w)
{
	struct totals all = { 0, 0, 0 };

	for (unsigned i = 0; i < s->n_cells; i++) {
		const struct snap_cell *c = &s->cells[i];

		if (!w->cpus[c->cpu] || s->rows[c->row].kind == ROW_IDLE || c->quality & QUALITY_LOST)
			continue;
		all.time_s += (double)c->time_ns / 1e9;
		all.cycles += t->cycles >= 0 ? (double)c->counters[t->cycles] : 0;
		all.misses += t->misses >= 0 ? (double)c->counters[t->misses] : 0;
	}
	return all;
}

void terms_of(struct terms *t, const struct snapshot *s, const struct weights *w, struct model_fit *f)
{
	double seconds = (double)w->elapsed_ns / 1e9 / (w->n_cpus ? w->n_cpus : 1);
	struct totals all;

	t->s = s;
	t->cycles = event_find_cycles(&s->schema->core);
	t->misses = event_find_misses(&s->schema->core);
	t->sibling = find_kind(&s->schema->core, EVENT_SIBLING_BUSY);
	find_load(t, s, w);
	all = total(t, s, w);
	if (!(f->first_clock > 0) && all.time_s > 0)
		f->first_clock = all.cycles / all.time_s;
	if (!(f->first_traffic > 0) && seconds > 0)
		f->first_traffic = all.misses / seconds;
	t->clock_centre = f->first_clock;
	t->traffic = f->first_traffic > 0 && seconds > 0 ?
			     all.misses / (all.misses + f->first_traffic * seconds) - CENTRE :
			     0;
	t->bends = 1u << BEND_LOAD | (t->cycles >= 0 && f->first_clock > 0 ? 1u << BEND_CLOCK : 0) |
		   (t->sibling >= 0 ? 1u << BEND_SIBLING : 0) | (s->schema->n_core_types > 1 ? 1u << BEND_TYPE : 0) |
		   (t->misses >= 0 && f->first_traffic > 0 ? 1u << BEND_TRAFFIC : 0);
}

/* What a price is bent by on this cell. */
static void states(const struct terms *t, const struct snap_cell *c, double *ret)
{
	double clock = c->time_ns && t->cycles >= 0 ? (double)c->counters[t->cycles] / ((double)c->time_ns / 1e9) : 0;

	ret[BEND_LOAD] = t->load[c->cpu] - CENTRE;
	clock = t->clock_centre > 0 ? clock / t->clock_centre : 1;
	ret[BEND_CLOCK] = fmin(clock * clock, 16) - 1;
	ret[BEND_SIBLING] = c->time_ns && t->sibling >= 0 ?
				    fmin((double)c->counters[t->sibling] / (double)c->time_ns, 1) - CENTRE :
				    0;
	ret[BEND_TYPE] = (t->s->schema->cpus[c->cpu].core_type > 0) - CENTRE;
	ret[BEND_TRAFFIC] = t->traffic;
}

void terms_add(const struct terms *t, const struct snap_cell *c, bool idle, double *did)
{
	double state[BENDS], did_s = idle ? 0 : (double)c->time_ns / 1e9;
	unsigned n = c->quality & QUALITY_LOST ? 0 : t->s->schema->core.n;

	states(t, c, state);
	did[COL_BUSY] += did_s;
	for (unsigned i = 0; i < n; i++)
		did[COL_EVENT + i] += (double)c->counters[i];
	for (unsigned b = 0; b < BENDS; b++) {
		double *bent = &did[COL_BENT + b * BASES];

		if (!(t->bends >> b & 1))
			continue;
		bent[BASE_BUSY] += did_s * state[b];
		for (unsigned i = 0; i < n; i++)
			bent[BASE_EVENT + i] += (double)c->counters[i] * state[b];
	}
}

double terms_joules(const struct terms *t, const struct snap_cell *c, bool idle, const struct model_coef *coef,
		    unsigned bends)
{
	const double *price = &coef->c[COL_BASE];
	unsigned n = c->quality & QUALITY_LOST ? 0 : t->s->schema->core.n;
	double state[BENDS], base[BASES], joules = 0;

	base[BASE_BUSY] = idle ? 0 : (double)c->time_ns / 1e9;
	for (unsigned i = 0; i < n; i++)
		base[BASE_EVENT + i] = (double)c->counters[i];
	for (unsigned i = 0; i < BASE_EVENT + n; i++)
		joules += price[i] * base[i];
	if (bends)
		states(t, c, state);
	for (unsigned b = 0; b < BENDS; b++) {
		double bent = 0;

		if (!(bends >> b & 1))
			continue;
		price = &coef->c[COL_BENT + b * BASES];
		for (unsigned i = 0; i < BASE_EVENT + n; i++)
			bent += price[i] * base[i];
		joules += bent * state[b];
	}
	return joules > 0 ? joules : 0;
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
	bent = base & terms_counted(s) >> COL_BASE;
	for (unsigned b = 0; b < BENDS; b++) {
		if (!(t->bends >> b & 1))
			continue;
		if (b == BEND_TRAFFIC)
			columns |= (bent & COLUMN(BASE_EVENT + t->misses)) << (COL_BENT + b * BASES);
		else
			columns |= bent << (COL_BENT + b * BASES);
	}
	return columns;
}

double terms_price(const struct model_coef *c, const double *all, unsigned base)
{
	double price = c->c[COL_BASE + base];

	for (unsigned b = 0; b < BENDS && all[COL_BASE + base] > 0; b++)
		price += c->c[COL_BENT + b * BASES + base] * all[COL_BENT + b * BASES + base] / all[COL_BASE + base];
	return fmax(price, 0);
}
