// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "wall_fit.h"

enum { AT_FOOT, AT_BEND, AT_INPUT, COLUMNS = AT_INPUT + WALL_INPUTS };

#define ROUNDS 16 /* of bend and weights */
#define ROBUST 2.5 /* deviations beyond which a point weighs less */
#define PRIOR 1e-3 /* weight of what is believed without points, in points */
#define USUAL_GAIN 1.1
#define MOVED 0.02 /* of its largest value: an input that moves less has no price */
#define CPU_MOVED 0.05
#define BEYOND 0.1
#define HELD 0.92 /* quantile: 9 of 10, with room for the number of points */
#define STRETCHES 16 /* of time: misses of neighbouring points are alike, those of stretches are not */
#define SURE 3.0 /* deviations by which stretches have to be predicted better ... */
#define BETTER 0.9 /* ... and part of the misses that may be left */

const double wall_lag_s[WALL_LAGS] = { 8, 25, 80 };

const char *wall_input_name(enum wall_input i)
{
	static const char *const names[WALL_INPUTS] = {
		[WALL_CPU] = "cpu",
		[WALL_DRAM] = "dram",
		[WALL_GPU] = "gpu",
		[WALL_READ] = "disk-read",
		[WALL_WRITE] = "disk-write",
		[WALL_REQUESTS] = "disk-requests",
		[WALL_BYTES] = "network-bytes",
		[WALL_PACKETS] = "network-packets",
		[WALL_FANS] = "fans",
		[WALL_LAG] = "lag-8s",
		[WALL_LAG + 1] = "lag-25s",
		[WALL_LAG + 2] = "lag-80s",
	};

	return (unsigned)i < WALL_INPUTS ? names[i] : "unknown";
}

/* Least squares with a lower bound for each coefficient. */
struct squares {
	unsigned n;
	double a[COLUMNS][COLUMNS], b[COLUMNS], low[COLUMNS], x[COLUMNS];
	bool bound[COLUMNS];
};

/* Solves for the coefficients that are not at their bound (Gauss, with pivots). False: the columns depend on each other. */
static bool solve_free(struct squares *q)
{
	double m[COLUMNS][COLUMNS + 1];
	unsigned at[COLUMNS], n = 0;

	for (unsigned i = 0; i < q->n; i++)
		if (!q->bound[i])
			at[n++] = i;
	for (unsigned i = 0; i < n; i++) {
		m[i][n] = q->b[at[i]];
		for (unsigned k = 0; k < q->n; k++)
			m[i][n] -= q->bound[k] ? q->a[at[i]][k] * q->low[k] : 0;
		for (unsigned k = 0; k < n; k++)
			m[i][k] = q->a[at[i]][at[k]];
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned pivot = i;

		for (unsigned k = i + 1; k < n; k++)
			pivot = fabs(m[k][i]) > fabs(m[pivot][i]) ? k : pivot;
		if (!(fabs(m[pivot][i]) > 1e-12))
			return false;
		for (unsigned k = i; k <= n; k++) {
			double t = m[i][k];

			m[i][k] = m[pivot][k];
			m[pivot][k] = t;
		}
		for (unsigned r = 0; r < n; r++) {
			double f = r == i ? 0 : m[r][i] / m[i][i];

			for (unsigned k = i; k <= n && f != 0; k++)
				m[r][k] -= f * m[i][k];
		}
	}
	for (unsigned i = 0; i < q->n; i++)
		q->x[i] = q->low[i];
	for (unsigned i = 0; i < n; i++)
		q->x[at[i]] = m[i][n] / m[i][i];
	return true;
}

/* The one coefficient that is farthest below its bound, or COLUMNS. */
static unsigned below_bound(const struct squares *q)
{
	unsigned worst = COLUMNS;

	for (unsigned i = 0; i < q->n; i++)
		if (!q->bound[i] && q->x[i] < q->low[i] - 1e-9 &&
		    (worst == COLUMNS || q->x[i] - q->low[i] < q->x[worst] - q->low[worst]))
			worst = i;
	return worst;
}

/* The coefficient at its bound that would lower the error most if it were let go, or COLUMNS. */
static unsigned worth_freeing(const struct squares *q)
{
	unsigned best = COLUMNS;
	double most = 1e-9;

	for (unsigned i = 0; i < q->n; i++) {
		double pull = q->b[i];

		for (unsigned k = 0; k < q->n; k++)
			pull -= q->a[i][k] * q->x[k];
		if (q->bound[i] && pull > most) {
			most = pull;
			best = i;
		}
	}
	return best;
}

/* Columns are scaled to a length of about 1, so the limits above have a meaning. */
static bool solve(struct squares *q)
{
	unsigned i;

	memset(q->bound, 0, sizeof(q->bound));
	for (unsigned turns = 0; turns < 4 * COLUMNS; turns++) {
		if (!solve_free(q))
			return false;
		i = below_bound(q);
		if (i != COLUMNS) {
			q->bound[i] = true;
			continue;
		}
		i = worth_freeing(q);
		if (i == COLUMNS)
			return true;
		q->bound[i] = false;
	}
	return below_bound(q) == COLUMNS;
}

struct job {
	const struct wall_point *points;
	unsigned n;
	unsigned skip_from, skip_to; /* points that are held out */
	unsigned columns; /* bits of inputs */
	double scale[COLUMNS];
	double sigma;
};

static bool is_held_out(const struct job *j, unsigned i)
{
	return i >= j->skip_from && i < j->skip_to;
}

static double inside(const struct wall_model *m, const double *x)
{
	double sum = 0;

	for (unsigned i = 0; i < WALL_INPUTS; i++)
		sum += m->price[i] * x[i];
	return sum;
}

static double told(const struct wall_model *m, const double *x)
{
	double s = inside(m, x);

	return m->foot + m->gain * s + m->bend * s * s;
}

static unsigned columns_of(const struct job *j, const struct wall_model *m, const struct wall_point *p,
			   unsigned *ret_at, double *ret_value)
{
	double s = inside(m, p->x);
	unsigned n = 0;

	ret_at[n] = AT_FOOT;
	ret_value[n++] = 1;
	ret_at[n] = AT_BEND;
	ret_value[n++] = s * s;
	for (unsigned i = 0; i < WALL_INPUTS; i++) {
		if (!(j->columns >> i & 1))
			continue;
		ret_at[n] = AT_INPUT + i;
		ret_value[n++] = p->x[i];
	}
	return n;
}

static void find_scales(struct job *j, const struct wall_model *m)
{
	double value[COLUMNS];
	unsigned at[COLUMNS], n;

	memset(j->scale, 0, sizeof(j->scale));
	for (unsigned i = 0; i < j->n; i++) {
		n = columns_of(j, m, &j->points[i], at, value);
		for (unsigned k = 0; k < n; k++)
			j->scale[at[k]] = fmax(j->scale[at[k]], fabs(value[k]));
	}
	for (unsigned k = 0; k < COLUMNS; k++)
		j->scale[k] = j->scale[k] > 0 ? j->scale[k] : 1;
}

/* A point that is far off says little. */
static double weight_of(const struct job *j, const struct wall_model *m, const struct wall_point *p)
{
	double miss = fabs(p->watts - told(m, p->x));

	return j->sigma > 0 && miss > ROBUST * j->sigma ? ROBUST * j->sigma / miss : 1;
}

/* What is believed without points: memory and GPU cost what they measure, with the usual gain; nothing else costs anything. */
static void add_prior(const struct job *j, struct squares *q, const unsigned *at, double points)
{
	for (unsigned k = 0; k < q->n; k++) {
		unsigned i = at[k] >= AT_INPUT ? at[k] - AT_INPUT : WALL_INPUTS;
		double scale = j->scale[at[k]], weight = PRIOR * points;

		q->a[k][k] += at[k] == AT_FOOT ? 1e-9 : weight;
		if (i == WALL_CPU || i == WALL_DRAM || i == WALL_GPU)
			q->b[k] += weight * USUAL_GAIN * scale;
		q->low[k] = i == WALL_CPU ? scale : 0;
	}
}

/* foot = gain x base - bend x base^2, the smaller of its two solutions. */
static double base_of(const struct wall_model *m)
{
	double d = m->gain * m->gain - 4 * m->bend * m->foot;

	if (!(m->bend * m->foot > 1e-9) || !(d > 0))
		return m->foot / m->gain;
	return fmin((m->gain - sqrt(d)) / (2 * m->bend), m->foot);
}

static bool step(struct job *j, struct wall_model *m)
{
	struct squares q = { 0 };
	double value[COLUMNS], points = 0;
	unsigned at[COLUMNS];

	find_scales(j, m);
	for (unsigned i = 0; i < j->n; i++) {
		double w = is_held_out(j, i) ? 0 : weight_of(j, m, &j->points[i]);

		q.n = columns_of(j, m, &j->points[i], at, value);
		points += w;
		for (unsigned k = 0; k < q.n && w > 0; k++) {
			for (unsigned l = 0; l < q.n; l++)
				q.a[k][l] += w * value[k] * value[l] / j->scale[at[k]] / j->scale[at[l]];
			q.b[k] += w * value[k] * j->points[i].watts / j->scale[at[k]];
		}
	}
	add_prior(j, &q, at, points);
	if (!solve(&q))
		return false;
	memset(m->price, 0, sizeof(m->price));
	for (unsigned k = 0; k < q.n; k++) {
		double c = q.x[k] / j->scale[at[k]];

		if (at[k] == AT_FOOT)
			m->foot = c;
		else if (at[k] == AT_BEND)
			m->bend = c;
		else
			m->price[at[k] - AT_INPUT] = c;
	}
	m->gain = m->price[WALL_CPU];
	for (unsigned i = 0; i < WALL_INPUTS; i++)
		m->price[i] /= m->gain;
	return true;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* 1.48 times the median miss: the deviation of points that are not far off. */
static double deviation(const struct job *j, const struct wall_model *m)
{
	double miss[WALL_POINTS];
	unsigned n = 0;

	for (unsigned i = 0; i < j->n; i++)
		if (!is_held_out(j, i))
			miss[n++] = fabs(j->points[i].watts - told(m, j->points[i].x));
	if (!n)
		return 0;
	qsort(miss, n, sizeof(*miss), by_size);
	return 1.4826 * miss[n / 2] + 1e-6; /* cppcheck-suppress uninitvar ; n of them are set */
}

/* The bend depends on what is inside, which depends on the prices: a few rounds settle both. */
static bool learn(struct job *j, struct wall_model *m)
{
	*m = (struct wall_model){ .gain = USUAL_GAIN, .price[WALL_CPU] = 1 };
	j->sigma = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (!step(j, m))
			return false;
		j->sigma = deviation(j, m);
	}
	return true;
}

/* Relative misses of every point by the points of the other blocks of time. False: some block could not be predicted. */
static bool hold_out(struct job *j, double *ret_misses)
{
	struct wall_model m;

	for (unsigned block = 0; block < WALL_BLOCKS; block++) {
		j->skip_from = j->n * block / WALL_BLOCKS;
		j->skip_to = j->n * (block + 1) / WALL_BLOCKS;
		if (!learn(j, &m))
			return false;
		for (unsigned i = j->skip_from; i < j->skip_to; i++) {
			const struct wall_point *p = &j->points[i];

			ret_misses[i] = fabs(told(&m, p->x) - p->watts) / fmax(p->watts, 1e-3);
		}
	}
	j->skip_from = j->skip_to = 0;
	return true;
}

static double mean(const double *v, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += v[i];
	return n ? sum / n : NAN;
}

static void find_range(const struct wall_point *points, unsigned n, struct wall_model *m)
{
	for (unsigned k = 0; k < WALL_INPUTS; k++) {
		m->low[k] = m->high[k] = points[0].x[k];
		for (unsigned i = 1; i < n; i++) {
			m->low[k] = fmin(m->low[k], points[i].x[k]);
			m->high[k] = fmax(m->high[k], points[i].x[k]);
		}
	}
}

static bool moved(const struct wall_model *range, unsigned input, double part)
{
	return range->high[input] - range->low[input] > part * range->high[input] && range->high[input] > 0;
}

static bool begin(const struct job *j, struct wall_model *ret)
{
	*ret = (struct wall_model){ 0 };
	if (j->n < WALL_READY || j->n > WALL_POINTS)
		return false;
	find_range(j->points, j->n, ret);
	return moved(ret, WALL_CPU, CPU_MOVED);
}

/* Makes *best the model of these inputs, whose points were held out with these misses. */
static bool adopt(struct job *j, double *misses, struct wall_model *best)
{
	struct wall_model m;

	if (!learn(j, &m))
		return false;
	m.base = base_of(&m);
	m.error = mean(misses, j->n);
	qsort(misses, j->n, sizeof(*misses), by_size);
	memcpy(m.low, best->low, sizeof(m.low));
	memcpy(m.high, best->high, sizeof(m.high));
	m.points = j->n;
	m.used = j->columns;
	m.half_width = misses[(unsigned)fmin(ceil(HELD * (j->n + 1)), j->n) - 1];
	*best = m;
	return true;
}

/* Tries a set of inputs; keeps it in *best when its held-out error is the least so far. */
static void try_columns(struct job *j, unsigned columns, struct wall_model *best)
{
	double misses[WALL_POINTS];

	j->columns = columns;
	if (!hold_out(j, misses))
		return;
	/* a further input has to be worth it */
	if (best->points && !(mean(misses, j->n) < 0.97 * best->error))
		return;
	adopt(j, misses, best);
}

static unsigned moved_columns(const struct wall_model *range, unsigned from, unsigned to)
{
	unsigned columns = 0;

	for (unsigned i = from; i < to; i++)
		columns |= moved(range, i, MOVED) ? 1u << i : 0;
	return columns;
}

/* Misses fell, in stretch after stretch. */
static bool is_surely_better(const double *before, const double *now, unsigned n)
{
	double sum = 0, squares = 0, all = 0, mean_gain, deviation_of_it;

	for (unsigned k = 0; k < STRETCHES; k++) {
		double gain = 0;

		for (unsigned i = n * k / STRETCHES; i < n * (k + 1) / STRETCHES; i++) {
			gain += before[i] - now[i];
			all += before[i];
		}
		sum += gain;
		squares += gain * gain;
	}
	mean_gain = sum / STRETCHES;
	deviation_of_it = sqrt(fmax(squares / STRETCHES - mean_gain * mean_gain, 0) / (STRETCHES - 1));
	return sum > (1 - BETTER) * all && mean_gain > SURE * deviation_of_it;
}

bool wall_fit_sure(const struct wall_point *points, unsigned n, struct wall_model *ret)
{
	const unsigned from[] = { WALL_READ, WALL_BYTES, WALL_FANS }, to[] = { WALL_BYTES, WALL_FANS, WALL_LAG };
	struct job j = { .points = points, .n = n };
	double misses[WALL_POINTS], now[WALL_POINTS];

	if (!begin(&j, ret))
		return false;
	j.columns = 1u << WALL_CPU | moved_columns(ret, WALL_DRAM, WALL_READ);
	if (!hold_out(&j, misses))
		return false;
	for (unsigned k = 0; k < sizeof(from) / sizeof(from[0]); k++) {
		const unsigned before = j.columns, more = moved_columns(ret, from[k], to[k]);

		j.columns |= more;
		if (more && hold_out(&j, now) && is_surely_better(misses, now, n))
			memcpy(misses, now, n * sizeof(*misses));
		else
			j.columns = before;
	}
	return adopt(&j, misses, ret);
}

bool wall_fit(const struct wall_point *points, unsigned n, struct wall_model *ret)
{
	struct job j = { .points = points, .n = n };
	unsigned columns;

	if (!begin(&j, ret))
		return false;
	columns = 1u << WALL_CPU | moved_columns(ret, WALL_DRAM, WALL_LAG);
	try_columns(&j, columns, ret);
	for (unsigned i = WALL_LAG; !(columns >> WALL_FANS & 1) && i < WALL_INPUTS; i++)
		if (moved(ret, i, MOVED))
			try_columns(&j, columns | 1u << i, ret);
	return ret->points > 0;
}

/* Beyond what was seen, by more than a tenth of it; an input that was always the same has no price, so any change counts. */
static bool is_outside(const struct wall_model *m, unsigned i, double x)
{
	double room = BEYOND * m->high[i] + 1e-3;

	if (i >= WALL_LAG && !(m->used >> i & 1))
		return false;
	return x > m->high[i] + room || (x < m->low[i] - room && m->used >> i & 1);
}

struct wall_power wall_power(const struct wall_model *m, const double x[WALL_INPUTS])
{
	struct wall_power p = { .base = m->base };
	double s = inside(m, x);

	for (unsigned i = WALL_DRAM; i < WALL_INPUTS; i++) {
		double watts = m->price[i] * x[i];

		if (i >= WALL_FANS)
			p.fans += watts;
		else if (i >= WALL_BYTES)
			p.network += watts;
		else if (i >= WALL_READ)
			p.disk += watts;
	}
	for (unsigned i = 0; i < WALL_INPUTS; i++)
		p.outside |= is_outside(m, i, x[i]) ? 1u << i : 0;
	p.inside = s - p.fans - p.disk - p.network;
	p.total = told(m, x);
	p.supply = p.total - p.base - s;
	return p;
}
