/* SPDX-License-Identifier: Apache-2.0 */
/* Power of a domain = idle + sum of coefficient x rate, learned from points of half a second or more
 * (docs/attribution.md, formula model). The last MODEL_WINDOW points are kept one by one; older ones
 * are sums that lose half their weight in MODEL_HALF_LIFE_NS. When the model errs much more than it
 * used to, all but the newest points are forgotten. */
#include <math.h>
#include <string.h>
#include "model.h"

#define ROBUST 3.0 /* deviations beyond which a point weighs less */
#define SETTLED 20 /* points before a model can be called wrong */
#define USUAL 32 /* points that the usual miss is a mean of, about */
#define WRONG 9.0 /* times the usual square: a point is missed */
#define WRONG_SHARE 0.03 /* ... and it is worth the trouble: of the mean power */
#define STRIKES 4 /* points missed, less points met, that prove a model wrong; it begins anew with those */
#define SKEW 0.005 /* from which a point weighs less */
#define DEAD_COUNTS 1000.0 /* counts that must be missing */
#define HALF_POINTS 3 /* at least, for a model by half of the points */

static double miss_of(const struct model_solution *s, const struct model_point *p)
{
	return p->watts - s->coef.c[COL_IDLE] - model_dynamic(&s->coef, p->rate);
}

/* Energy and counts of times that differ: a CPU that was slow to answer. */
static double skew_weight(const struct model_point *p)
{
	return 1 / (1 + pow(p->skew / SKEW, 2));
}

/* A point far off the line says little about the line. */
static double weight_of(const struct model_fit *f, const struct model_point *p)
{
	double miss = f->ready ? fabs(miss_of(&f->s, p)) : 0;

	return skew_weight(p) * (miss > ROBUST * f->s.sigma ? ROBUST * f->s.sigma / miss : 1);
}

static void decay(struct model_sums *s, double factor)
{
	for (unsigned i = 0; i < COLUMNS; i++) {
		for (unsigned k = 0; k <= i; k++)
			s->xx[i][k] *= factor;
		s->xy[i] *= factor;
	}
	s->yy *= factor;
	s->n *= factor;
}

/* A full window's oldest point becomes part of the sums. */
static void push(struct model_fit *f, const struct model_point *p)
{
	struct model_point *place = &f->window[f->next];

	if (f->n_window == MODEL_WINDOW) {
		f->old.columns = f->old.n > 0 ? f->old.columns & place->columns : place->columns;
		model_add_point(&f->old, place, weight_of(f, place));
	} else {
		f->n_window++;
	}
	*place = *p;
	f->next = (f->next + 1) % MODEL_WINDOW;
}

static const struct model_point *nth_last(const struct model_fit *f, unsigned n)
{
	return &f->window[(f->next + MODEL_WINDOW - 1 - n) % MODEL_WINDOW];
}

/* Everything that knows the wanted columns. */
static void sum_all(const struct model_fit *f, unsigned columns, struct model_sums *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (f->old.n > 0 && (f->old.columns & columns) == columns)
		*ret = f->old;
	ret->columns = columns;
	for (unsigned i = 0; i < f->n_window; i++) {
		const struct model_point *p = nth_last(f, i);

		if ((p->columns & columns) == columns)
			model_add_point(ret, p, weight_of(f, p));
	}
}

/* The window's points above or below its mean power. */
static void sum_half(const struct model_fit *f, unsigned columns, bool upper, struct model_sums *ret)
{
	double mean = 0;

	memset(ret, 0, sizeof(*ret));
	ret->columns = columns;
	for (unsigned i = 0; i < f->n_window; i++)
		mean += nth_last(f, i)->watts / f->n_window;
	for (unsigned i = 0; i < f->n_window; i++) {
		const struct model_point *p = nth_last(f, i);

		if ((p->columns & columns) == columns && (p->watts > mean) == upper)
			model_add_point(ret, p, skew_weight(p));
	}
}

static void solve_others(struct model_fit *f, unsigned columns, const struct model_prior *prior)
{
	struct model_solution half;
	struct model_sums sums;

	for (unsigned i = OTHER_LOW; i <= OTHER_HIGH; i++) {
		sum_half(f, columns, i == OTHER_HIGH, &sums);
		if (sums.n < HALF_POINTS || !model_solve(&sums, prior, f->s.sigma, &half))
			continue;
		f->s.other[i] = half.coef;
		f->s.has_other[i] = true;
	}
}

static void fit(struct model_fit *f, unsigned columns, const struct model_prior *prior)
{
	struct model_sums sums;

	sum_all(f, columns, &sums);
	if (!model_solve(&sums, prior, f->s.sigma, &f->s)) {
		f->ready = false;
		return;
	}
	f->ready = f->points >= MODEL_READY;
	solve_others(f, columns, prior);
}

static void begin_anew(struct model_fit *f)
{
	memset(&f->old, 0, sizeof(f->old));
	memset(&f->s, 0, sizeof(f->s));
	f->n_window = f->n_window < STRIKES - 1 ? f->n_window : STRIKES - 1; /* and the one that comes now */
	f->points = f->n_window;
	f->strikes = 0;
	f->usual = 0;
	f->ready = false;
	f->relearned++;
}

/* A point is met before it is learned from: what it misses by, against what was usual. */
static void check_error(struct model_fit *f, const struct model_point *p)
{
	const struct model_solution *s = &f->s;
	double square, least;

	if (!f->ready || (p->columns & s->columns) != s->columns || p->skew > 2 * SKEW)
		return;
	square = pow(miss_of(s, p), 2);
	least = fmax(WRONG * f->usual, pow(WRONG_SHARE * s->mean_watts, 2));
	if (square > least && f->points >= SETTLED)
		f->strikes++;
	else if (f->strikes)
		f->strikes--;
	/* misses that are not usual make it so slowly */
	square = f->usual > 0 ? fmin(square, WRONG * f->usual) : square;
	f->usual += (square - f->usual) / fmin(f->points, USUAL);
	if (f->strikes >= STRIKES)
		begin_anew(f);
}

static void close_point(struct model_fit *f, const struct model_prior *prior)
{
	struct model_point *p = &f->open;

	if (!f->lowest_ns || p->watts <= f->lowest.watts || f->last_ns - f->lowest_ns > MODEL_LOWEST_NS) {
		f->lowest = *p;
		f->lowest_ns = f->last_ns;
	}
	check_error(f, p);
	push(f, p);
	f->points++;
	fit(f, p->columns, prior);
	memset(p, 0, sizeof(*p));
}

void model_skip(struct model_fit *f)
{
	memset(&f->open, 0, sizeof(f->open));
}

static void join(struct model_point *open, const struct model_point *p)
{
	double seconds = open->seconds + p->seconds;

	open->columns = open->seconds > 0 ? open->columns & p->columns : p->columns;
	open->watts = (open->watts * open->seconds + p->watts * p->seconds) / seconds;
	for (unsigned i = 0; i < COLUMNS; i++)
		open->rate[i] = (open->rate[i] * open->seconds + p->rate[i] * p->seconds) / seconds;
	open->skew = (open->skew * open->seconds + p->skew * p->seconds) / seconds;
	open->seconds = seconds;
}

void model_learn(struct model_fit *f, const struct model_point *p, const struct model_prior *prior, uint64_t end_ns)
{
	if (end_ns < f->last_ns) /* another recording */
		memset(f, 0, sizeof(*f));
	if (f->last_ns)
		decay(&f->old, exp2(-(double)(end_ns - f->last_ns) / (double)MODEL_HALF_LIFE_NS));
	f->last_ns = end_ns;
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		if (p->rate[COL_EVENT + i] > 0 && p->rate[COL_BUSY] > 0)
			f->per_busy[i] = p->rate[COL_EVENT + i] / p->rate[COL_BUSY];
	join(&f->open, p);
	if (f->open.seconds * 1e9 >= (double)MODEL_POINT_NS)
		close_point(f, prior);
	else if ((p->columns & f->s.columns) != f->s.columns)
		fit(f, p->columns, prior); /* a counter is gone: at once without it */
}

unsigned model_alive(const struct model_fit *f, const struct model_point *p, unsigned columns)
{
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		if (!(p->rate[COL_EVENT + i] > 0) && f->per_busy[i] * p->rate[COL_BUSY] * p->seconds >= DEAD_COUNTS)
			columns &= ~(1u << (COL_EVENT + i));
	return columns;
}
