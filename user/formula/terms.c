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
#define SERVED_MOST 2 /* times the misses per cycle that a row has as a rule */
#define VARIES_MOST 1 /* of the square of the mean */
#define OF_TRAFFIC (1u << BEND_TRAFFIC | 1u << BEND_QUEUE)
#define OF_WAIT (1u << BEND_ITSELF | 1u << BEND_SERVED)

/* A CPU of the domain in the interval. */
struct term_cpu {
	double load; /* busy part of the domain's other CPUs */
	double busy_s, misses; /* of its rows */
	double misses_beside; /* per s that another CPU is busy */
};

int terms_reserve(struct terms *t, const struct snapshot *s)
{
	t->summed = false;
	if (t->cap_cpus >= s->schema->n_cpus && t->cpu)
		return 0;
	terms_free(t);
	*t = (struct terms){ .cpu = calloc(s->schema->n_cpus + 1, sizeof(*t->cpu)),
			     .of = calloc(s->schema->n_cpus + 1, sizeof(*t->of)) };
	if (!t->cpu || !t->of)
		return -ENOMEM;
	t->cap_cpus = s->schema->n_cpus;
	return 0;
}

void terms_free(struct terms *t)
{
	free(t->cpu);
	free(t->of);
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

static struct term_sums total(struct terms *t, const struct snapshot *s, const struct weights *w)
{
	struct term_sums all = { 0 };

	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		t->cpu[i] = (struct term_cpu){ 0 };
	for (unsigned i = 0; i < s->n_cells; i++) {
		const struct snap_cell *c = &s->cells[i];
		struct term_cpu *cpu = &t->cpu[c->cpu];
		double misses;

		if (!w->cpus[c->cpu] || c->quality & QUALITY_LOST) {
			all.in_part = true;
			continue;
		}
		if (s->rows[c->row].kind == ROW_IDLE) {
			all.asleep_s += t->others >= 0 ? (double)c->counters[t->others] / 1e9 : 0;
			continue;
		}
		misses = t->misses >= 0 ? (double)c->counters[t->misses] : 0;
		all.beside_s += t->others >= 0 ? (double)c->counters[t->others] / 1e9 : 0;
		all.time_s += (double)c->time_ns / 1e9;
		all.tasks_s += s->rows[c->row].kind == ROW_IRQ_STEAL ? 0 : (double)c->time_ns / 1e9;
		all.cycles += t->cycles >= 0 ? (double)c->counters[t->cycles] : 0;
		all.misses += misses;
		cpu->busy_s += (double)c->time_ns / 1e9;
		cpu->misses += misses;
	}
	return all;
}

/* What the other CPUs did while they were busy, for each CPU. */
static void find_others(struct terms *t, const struct snapshot *s, const struct weights *w, const struct term_sums *all)
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

/* Part of the time in which a CPU was busy; NaN = not known. Idle rows tell it, but a switch that the host interrupts can hide
 * what other CPUs did meanwhile. Interrupts and stolen time (`hidden`) may be anywhere. With S1 the sum of what each CPU was busy for and S2 that of each two at once, it is between
 * 2/(k+1) S1 - 2/(k(k+1)) S2, k = 1 + floor(2 S2 / S1) (Dawson and Sankoff, An Inequality for Probabilities, 1967), and
 * S1 - 2/n S2 (Kwerel, Most Stringent Bounds on Aggregated Probabilities, 1975). Both are the same with 2 CPUs. */
static double awake_part(const struct terms *t, const struct snapshot *s, const struct weights *w, double seconds)
{
	double told = 1 - t->sums.asleep_s / seconds, once = t->sums.tasks_s / seconds,
	       twice = t->sums.beside_s / 2 / seconds, hidden = 0, k = 1, least, most;

	if (t->others < 0 || !(seconds > 0))
		return NAN;
	if (t->sums.in_part || !(once > 0))
		return fmin(fmax(told, 0), 1);
	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		hidden += w->cpus[i] ? (double)s->cpus[i].irq_steal_ns / 1e9 / seconds : 0;
	k += floor(2 * twice / once);
	least = 2 / (k + 1) * once - 2 / (k * (k + 1)) * twice;
	most = once + hidden - 2 * twice / (t->others_most + 1);
	return fmin(fmax(fmax(fmin(told, most), least), 0), 1);
}

/* Sums of the CPUs of w, unless those of the domain before were the same ones. */
static void sum_up(struct terms *t, const struct snapshot *s, const struct weights *w)
{
	const unsigned n = s->schema->n_cpus;

	t->same = t->summed && !memcmp(t->of, w->cpus, n);
	if (t->same)
		return;
	t->sums = total(t, s, w);
	find_others(t, s, w, &t->sums);
	memcpy(t->of, w->cpus, n);
	t->summed = true;
}

/* Where the work of a row has its columns. */
static void lay_out(struct terms *t)
{
	const unsigned step = t->n_bases + t->n_bases % 2;

	t->width = step;
	t->bent[BENDS] = 0;
	for (unsigned b = 0; b < BENDS; b++) {
		t->bent[b] = (uint8_t)t->width;
		if (t->bends >> b & 1)
			t->width += b < BENDS_OF_ALL ? step : 1;
	}
	t->width += t->width % 2;
}

void terms_of(struct terms *t, const struct snapshot *s, const struct weights *w, struct model_fit *f)
{
	const struct event_set *set = &s->schema->core;
	unsigned bends = t->bends;
	double seconds;

	t->s = s;
	t->n_bases = BASE_EVENT + set->n;
	t->cycles = event_find_cycles(set);
	t->misses = event_find_misses(set);
	t->sibling = find_kind(set, EVENT_SIBLING_BUSY);
	t->others = find_kind(set, EVENT_OTHERS_BUSY);
	sum_up(t, s, w);
	seconds = (double)w->elapsed_ns / 1e9 / (t->others_most + 1); /* of CPUs that were online */
	if (!(f->first_clock > 0) && t->sums.time_s > 0)
		f->first_clock = t->sums.cycles / t->sums.time_s;
	if (!(f->first_traffic > 0) && seconds > 0)
		f->first_traffic = t->sums.misses / seconds;
	f->beside_most = fmax(f->beside_most, t->others_most); /* older points are of CPUs that may be offline now */
	f->misses = t->misses >= 0 ? COL_EVENT + (unsigned)t->misses : 0;
	t->same = t->same && t->first_clock == f->first_clock && t->first_traffic == f->first_traffic;
	t->first_clock = f->first_clock;
	t->first_traffic = f->first_traffic;
	t->traffic = seconds > 0 ? t->sums.misses / seconds : 0;
	t->awake = awake_part(t, s, w, seconds);
	t->bends = 1u << BEND_LOAD | (t->cycles >= 0 && f->first_clock > 0 ? 1u << BEND_CLOCK : 0) |
		   (t->sibling >= 0 ? 1u << BEND_SIBLING : 0) | (s->schema->n_core_types > 1 ? 1u << BEND_TYPE : 0) |
		   (t->misses >= 0 && f->first_traffic > 0 ? OF_TRAFFIC | (t->cycles >= 0 ? OF_WAIT : 0) : 0);
	t->same = t->same && t->bends == bends;
	lay_out(t);
}

/* Of two numbers. The library's fmin() would be a call for each, because of what is no number. */
static inline double least(double a, double b)
{
	return a < b ? a : b;
}

/* Energy is a sum over moments, of which an interval has the mean: of misses per cycle and their square, it has the square of their mean.
 * A row that ran alone for a part of the interval, with the most, and beside others for the rest, `beside` of it, has so much more in the
 * mean of squares, as a part. */
static double varies(double beside, double now, double most)
{
	if (!(beside > 0) || beside >= 1 || most <= now || !(now > 0))
		return 0;
	return least((1 - beside) / beside * (most / now - 1) * (most / now - 1), VARIES_MOST);
}

/* With a bandwidth B and a demand D of all, each gets the part s = B / (B + D) of what it wants. A row that would have d misses per
 * second has s d; it has the most per cycle when it is alone, where s is B / (B + d). So s, which tells how full the queue is, equals
 * (misses per cycle / the most) - (its misses per second) / B: two states, whose prices the points tell. What is the most of a row is
 * not known. Its usual misses per cycle are, and by how much they differ from the most is in its own price. */
static void wait_states(const struct terms *t, const struct snap_cell *c, double beside, double *ret)
{
	const double misses = (double)c->counters[t->misses], cycles = (double)c->counters[t->cycles],
		     itself = c->time_ns ? misses / ((double)c->time_ns / 1e9) / t->first_traffic : 0,
		     usual = cycles * t->usual[c->row], more = 1 + varies(beside, misses, cycles * t->most[c->row]);

	ret[BEND_ITSELF] = more * least(itself, TRAFFIC_MOST) - CENTRE;
	ret[BEND_SERVED] = usual > 0 ? more * least(misses / usual, SERVED_MOST) : 1;
}

/* What prices are bent by on this cell, for the bends asked for. */
static void states(const struct terms *t, const struct snap_cell *c, unsigned bends, double *ret)
{
	double time_s = (double)c->time_ns / 1e9, beside = -1, traffic = t->traffic, clock = 1;

	if (t->others >= 0 && c->time_ns && bends & (1u << BEND_LOAD | OF_TRAFFIC | OF_WAIT))
		beside = least((double)c->counters[t->others] / (double)c->time_ns, t->others_most);
	if (bends >> BEND_LOAD & 1)
		ret[BEND_LOAD] = (beside >= 0 && t->others_most > 0 ? beside / t->others_most : t->cpu[c->cpu].load) -
				 CENTRE;
	if (bends >> BEND_CLOCK & 1) {
		if (c->time_ns && t->cycles >= 0)
			clock = (double)c->counters[t->cycles] / time_s / t->first_clock;
		ret[BEND_CLOCK] = least(clock * clock, CLOCK_MOST) - 1;
	}
	if (bends >> BEND_SIBLING & 1)
		ret[BEND_SIBLING] = c->time_ns ?
					    least((double)c->counters[t->sibling] / (double)c->time_ns, 1) - CENTRE :
					    0;
	if (bends >> BEND_TYPE & 1)
		ret[BEND_TYPE] = (t->s->schema->cpus[c->cpu].core_type > 0) - CENTRE;
	if (bends & OF_WAIT)
		wait_states(t, c, beside, ret);
	if (!(bends & OF_TRAFFIC))
		return;
	if (beside >= 0)
		traffic = (double)c->counters[t->misses] / time_s + beside * t->cpu[c->cpu].misses_beside;
	ret[BEND_TRAFFIC] = traffic / (traffic + t->first_traffic) - CENTRE;
	ret[BEND_QUEUE] = least(traffic / t->first_traffic, TRAFFIC_MOST) - CENTRE;
}

/* The bases of a cell; counts that were lost are 0. */
static inline void bases_of(const struct terms *t, const struct snap_cell *c, bool idle, double *ret)
{
	const unsigned n = t->n_bases - BASE_EVENT;

	ret[BASE_BUSY] = idle ? 0 : (double)c->time_ns / 1e9;
	if (c->quality & QUALITY_LOST) {
		memset(ret + BASE_EVENT, 0, n * sizeof(*ret));
		return;
	}
	for (unsigned i = 0; i < n; i++)
		ret[BASE_EVENT + i] = (double)c->counters[i];
}

/* Two numbers at a time; both begin at an even place of an array of doubles. */
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

void terms_add(const struct terms *t, const struct snap_cell *c, bool idle, double *work)
{
	double state[BENDS], base[WORK_BASES];
	const pair *from = (const pair *)base;
	pair *to = (pair *)work;
	const unsigned pairs = (t->n_bases + 1) / 2;

	base[(t->n_bases - 1) | 1u] = 0; /* the padding, if there is one */
	states(t, c, t->bends, state);
	bases_of(t, c, idle, base);
	for (unsigned i = 0; i < pairs; i++)
		to[i] += from[i]; /* cppcheck-suppress uninitvar ; bases_of() and the padding set the pairs */
	for (unsigned b = 0; b < BENDS_OF_ALL; b++) {
		if (!(t->bends >> b & 1))
			continue;
		to = (pair *)(work + t->bent[b]);
		for (unsigned i = 0; i < pairs; i++)
			to[i] += from[i] * state[b];
	}
	for (unsigned b = BENDS_OF_ALL; b < BENDS; b++)
		if (t->bends >> b & 1)
			work[t->bent[b]] += base[BASE_EVENT + t->misses] * state[b];
}

/* The base and the bend behind a column; BENDS = it is not bent. */
static struct term_price parts_of(const struct terms *t, unsigned column)
{
	struct term_price p = { .bend = BENDS };

	if (column >= COL_MISSES) {
		p.base = (uint8_t)(BASE_EVENT + t->misses);
		p.bend = (uint8_t)(BENDS_OF_ALL + column - COL_MISSES);
	} else if (column >= COL_BENT) {
		p.base = (uint8_t)((column - COL_BENT) % BASES);
		p.bend = (uint8_t)((column - COL_BENT) / BASES);
	} else {
		p.base = (uint8_t)(column - COL_BASE);
	}
	return p;
}

int terms_place(const struct terms *t, unsigned column)
{
	const struct term_price p = parts_of(t, column);

	if (column < COL_BASE || column >= COL_OWN || p.base >= t->n_bases ||
	    (p.bend < BENDS && !(t->bends >> p.bend & 1)))
		return -1;
	return t->bent[p.bend] + (p.bend >= BENDS_OF_ALL && p.bend < BENDS ? 0 : p.base);
}

void terms_own(struct terms_prices *p, const double *own, unsigned column)
{
	const struct term_price of = parts_of(p->terms, column);

	p->own = own;
	p->own_base = of.base;
	p->own_bend = of.bend;
	if (of.bend < BENDS)
		p->bends |= 1u << of.bend;
}

void terms_prices(const struct terms *t, const struct model_coef *coef, struct terms_prices *ret)
{
	ret->terms = t;
	ret->bends = ret->n = 0;
	ret->own = NULL;
	for (unsigned i = COL_BASE; i < COL_OWN; i++) {
		struct term_price p = parts_of(t, i);

		if (coef->c[i] == 0 || terms_place(t, i) < 0)
			continue;
		if (p.bend < BENDS)
			ret->bends |= 1u << p.bend;
		p.price = coef->c[i];
		ret->of[ret->n++] = p;
	}
}

double terms_joules(const struct terms_prices *p, const struct snap_cell *c, bool idle)
{
	double state[BENDS + 1], base[BASES], sum = 0;

	states(p->terms, c, p->bends, state);
	state[BENDS] = 1;
	bases_of(p->terms, c, idle, base);
	for (unsigned i = 0; i < p->n; i++)
		sum += p->of[i].price * (base[p->of[i].base] * state[p->of[i].bend]);
	if (p->own)
		sum += p->own[c->row] * (base[p->own_base] * state[p->own_bend]);
	return sum > 0 ? sum : 0;
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
	model_columns base = COLUMN(BASE_BUSY), columns = COLUMN(COL_IDLE) | COLUMN(COL_HEAT) | COLUMN(COL_START), bent;

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
