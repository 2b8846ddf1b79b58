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
#define USUAL 32 /* the usual error is a mean of about so many points */
#define WRONG 9.0 /* times the usual square: the point is missed */
#define WRONG_SHARE 0.03 /* ... if the error is also more than this part of the mean power */
#define STRIKES 4 /* points missed, less points met, that prove a model wrong; it begins anew with these points */
#define SKEW 0.005 /* from which a point weighs less */
#define DEAD_COUNTS 1000.0 /* counts that must be missing */
#define HALF_POINTS 3 /* at least, for a model by half of the points */

static double miss_of(const struct model_solution *s, const struct model_point *p)
{
	return p->watts - s->coef.c[COL_IDLE] - model_dynamic(&s->coef, p->rate);
}

/* Less weight for a point whose energy and counts are of different times, because a CPU was slow to answer. */
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

static void model_add_point(struct model_sums *s, const struct model_point *p, double weight);

/* When the window is full, its oldest point becomes part of the sums. */
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

/* Sums of all points that have the wanted columns. */
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

static bool model_solve(const struct model_sums *s, const struct model_prior *prior, double sigma_guess,
			struct model_solution *ret);

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
	f->n_window = f->n_window < STRIKES - 1 ? f->n_window : STRIKES - 1; /* and the point at hand */
	f->points = f->n_window;
	f->strikes = 0;
	f->usual = 0;
	f->ready = false;
	f->relearned++;
}

/* Compares a point's error, before the point is learned from, with the usual error. */
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
	/* large errors raise the usual error slowly */
	square = f->usual > 0 ? fmin(square, WRONG * f->usual) : square;
	f->usual += (square - f->usual) / fmin(f->points, USUAL);
	if (f->strikes >= STRIKES)
		begin_anew(f);
}

static double running(double mean, double value, unsigned n)
{
	return mean + (value - mean) / (n < MODEL_HELD ? n : MODEL_HELD);
}

/* What the model and formula share make of a point that neither has seen. Share's idle power is the prior's. */
static void hold_out(struct model_fit *f, const struct model_point *p, const struct model_prior *prior)
{
	struct model_held *h = &f->held;
	double idle = fmin(prior->idle_watts, p->watts), rate = p->rate[prior->share_column];

	if (h->share_column != prior->share_column)
		*h = (struct model_held){ .share_column = prior->share_column };
	if (p->skew > 2 * SKEW)
		return;
	if (f->ready && h->share_rate > 0 && (p->columns & f->s.columns) == f->s.columns) {
		h->points++;
		h->model = running(h->model, fabs(miss_of(&f->s, p)), h->points);
		h->share = running(h->share, fabs(p->watts - idle - h->share_watts / h->share_rate * rate), h->points);
		h->dynamic = running(h->dynamic, p->watts - idle, h->points);
	}
	h->share_watts = h->share_watts * (1 - 1.0 / MODEL_WINDOW) + (p->watts - idle) * p->seconds;
	h->share_rate = h->share_rate * (1 - 1.0 / MODEL_WINDOW) + rate * p->seconds;
}

static void close_point(struct model_fit *f, const struct model_prior *prior)
{
	struct model_point *p = &f->open;

	if (!f->lowest_ns || p->watts <= f->lowest.watts || f->last_ns - f->lowest_ns > MODEL_LOWEST_NS) {
		f->lowest = *p;
		f->lowest_ns = f->last_ns;
	}
	hold_out(f, p, prior);
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
	if (end_ns < f->last_ns) /* the time went back: another recording */
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
		fit(f, p->columns, prior); /* a counter is gone: the model is fitted without it at once */
}

unsigned model_alive(const struct model_fit *f, const struct model_point *p, unsigned columns)
{
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		if (!(p->rate[COL_EVENT + i] > 0) && f->per_busy[i] * p->rate[COL_BUSY] * p->seconds >= DEAD_COUNTS)
			columns &= ~(1u << (COL_EVENT + i));
	return columns;
}

/* Least squares from sums. Normal equations say nothing in directions in which the points did not move: with few
 * points, with counters that move together, on a machine that is always busy. There a prior decides: all dynamic
 * power goes to the one column that formula share would use. Its deviation is the whole dynamic power, so any real
 * evidence outweighs it. The covariance shows where the prior still decides. */

#define SIGMA_START 0.01 /* of the mean power: the assumed error of a point before any is known */
#define SIGMA_POINTS 2 /* weight of that assumption, in points */
#define SIGMA_MIN 5e-4 /* counters of energy and of work are not read at the same instant */
#define DYNAMIC_MIN 0.05 /* of the mean power: the least dynamic power that the prior assumes */

/* The regression in columns scaled to a mean square of 1, so that an unknown is watts. */
struct problem {
	unsigned n, column[COLUMNS];
	double scale[COLUMNS], prior[COLUMNS], precision;
	double a[COLUMNS][COLUMNS], b[COLUMNS], x[COLUMNS];
};

/* Adds a point to sums over s->columns. */
static void model_add_point(struct model_sums *s, const struct model_point *p, double weight)
{
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (!(s->columns >> i & 1))
			continue;
		for (unsigned k = 0; k <= i; k++)
			s->xx[i][k] += weight * p->rate[i] * p->rate[k];
		s->xy[i] += weight * p->rate[i] * p->watts;
	}
	s->yy += weight * p->watts * p->watts;
	s->n += weight;
}

double model_dynamic(const struct model_coef *c, const double *what)
{
	double sum = 0;

	for (unsigned i = COL_BUSY; i < COLUMNS; i++)
		sum += c->c[i] * what[i];
	return sum;
}

static double xx(const struct model_sums *s, unsigned i, unsigned k)
{
	return i >= k ? s->xx[i][k] : s->xx[k][i];
}

static void pose(struct problem *q, const struct model_sums *s, const struct model_prior *prior)
{
	double mean = s->xy[COL_IDLE] / s->n, idle = fmin(prior->idle_watts, mean);
	double dynamic = fmax(mean - idle, DYNAMIC_MIN * mean);

	memset(q, 0, sizeof(*q));
	q->precision = 1 / (dynamic * dynamic);
	for (unsigned i = 0; i < COLUMNS; i++) {
		double size = s->columns >> i & 1 ? sqrt(s->xx[i][i] / s->n) : 0;

		if (!(size > 0) || (i == COL_IDLE && prior->idle_fixed))
			continue;
		q->column[q->n] = i;
		q->scale[q->n] = size;
		if (i == COL_IDLE)
			q->prior[q->n] = idle;
		else if (i == prior->share_column)
			q->prior[q->n] = dynamic * size / (s->xx[i][COL_IDLE] / s->n);
		q->n++;
	}
}

/* Right sides are of the power above a fixed idle. */
static double above_idle(const struct model_sums *s, const struct model_prior *prior, unsigned column)
{
	return s->xy[column] - (prior->idle_fixed ? prior->idle_watts * s->xx[column][COL_IDLE] : 0);
}

static void solve(struct problem *q, const struct model_sums *s, const struct model_prior *prior, double sigma)
{
	for (unsigned i = 0; i < q->n; i++) {
		for (unsigned k = 0; k < q->n; k++)
			q->a[i][k] = xx(s, q->column[i], q->column[k]) / (q->scale[i] * q->scale[k] * sigma * sigma);
		q->a[i][i] += q->precision;
		q->b[i] = above_idle(s, prior, q->column[i]) / (q->scale[i] * sigma * sigma) +
			  q->precision * q->prior[i];
	}
	model_nnls(q->n, (const double(*)[COLUMNS])q->a, q->b, q->x);
}

/* Sum of squared errors, from the sums; rounding can make zero slightly negative. */
static double left_over(const struct model_coef *c, const struct model_sums *s)
{
	double rest = s->yy;

	for (unsigned i = 0; i < COLUMNS; i++) {
		if (!(s->columns >> i & 1))
			continue;
		rest -= 2 * c->c[i] * s->xy[i];
		for (unsigned k = 0; k < COLUMNS; k++)
			if (s->columns >> k & 1)
				rest += c->c[i] * c->c[k] * xx(s, i, k);
	}
	return fmax(rest, 0);
}

static void take_solution(struct model_solution *r, const struct problem *q, const struct model_sums *s,
			  const struct model_prior *prior)
{
	double mean = s->xy[COL_IDLE] / s->n, start = SIGMA_START * mean;
	unsigned used = 0;

	memset(r, 0, sizeof(*r));
	if (prior->idle_fixed)
		r->coef.c[COL_IDLE] = prior->idle_watts;
	for (unsigned i = 0; i < q->n; i++) {
		r->coef.c[q->column[i]] = q->x[i] / q->scale[i];
		used += q->x[i] > 0;
	}
	r->columns = s->columns;
	r->n = s->n;
	r->mean_watts = mean;
	r->sigma = sqrt((SIGMA_POINTS * start * start + left_over(&r->coef, s)) /
			(SIGMA_POINTS + fmax(s->n - used, 0)));
	r->sigma = fmax(r->sigma, SIGMA_MIN * mean);
}

static bool take_covariance(struct model_solution *r, const struct problem *q)
{
	double inverse[COLUMNS][COLUMNS];

	if (!model_invert(q->n, (const double(*)[COLUMNS])q->a, inverse))
		return false;
	for (unsigned i = 0; i < q->n; i++)
		for (unsigned k = 0; k < q->n; k++)
			r->cov[q->column[i]][q->column[k]] = inverse[i][k] / (q->scale[i] * q->scale[k]);
	return true;
}

/* Non-negative coefficients for the sums; sigma_guess 0 = none. False when there is nothing to solve. */
static bool model_solve(const struct model_sums *s, const struct model_prior *prior, double sigma_guess,
			struct model_solution *ret)
{
	struct model_solution r = { .sigma = sigma_guess };
	struct problem q;

	if (!(s->n > 0) || !(s->xy[COL_IDLE] > 0) || !isfinite(s->yy))
		return false;
	pose(&q, s, prior);
	if (!(r.sigma > 0))
		r.sigma = SIGMA_START * s->xy[COL_IDLE] / s->n;
	/* The deviation weighs evidence against prior, so the second pass uses the deviation of the first. */
	for (unsigned pass = 0; pass < 2; pass++) {
		solve(&q, s, prior, r.sigma);
		take_solution(&r, &q, s, prior);
	}
	if (!take_covariance(&r, &q))
		return false;
	*ret = r;
	return true;
}

/* The active-set method on normal equations: variables are set free one by one, the one with the largest gradient
 * first. A free variable that would turn negative goes back to 0. The matrix is scaled and has a prior on its
 * diagonal, so Cholesky's root exists. */

#define MAX_ROUNDS (3 * COLUMNS)

/* Cholesky's root of the rows and columns in idx. */
static bool root_of(unsigned n, const double (*a)[COLUMNS], const unsigned *idx, double (*l)[COLUMNS])
{
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k <= i; k++) {
			double sum = a[idx[i]][idx[k]];

			for (unsigned j = 0; j < k; j++)
				sum -= l[i][j] * l[k][j];
			if (k < i)
				l[i][k] = sum / l[k][k];
			else if (!(sum > 0))
				return false;
			else
				l[i][i] = sqrt(sum);
		}
	}
	return true;
}

static void solve_root(unsigned n, const double (*l)[COLUMNS], double *x)
{
	for (unsigned i = 0; i < n; i++) {
		for (unsigned j = 0; j < i; j++)
			x[i] -= l[i][j] * x[j];
		x[i] /= l[i][i];
	}
	for (unsigned i = n; i-- > 0;) {
		for (unsigned j = i + 1; j < n; j++)
			x[i] -= l[j][i] * x[j];
		x[i] /= l[i][i];
	}
}

/* The unbounded optimum of the free variables; 0 elsewhere. */
static bool solve_free(unsigned n, const double (*a)[COLUMNS], const double *b, const bool *is_free, double *ret)
{
	double l[COLUMNS][COLUMNS], y[COLUMNS];
	unsigned idx[COLUMNS] = { 0 }, m = 0;

	memset(ret, 0, n * sizeof(*ret));
	for (unsigned i = 0; i < n; i++) {
		if (!is_free[i])
			continue;
		y[m] = b[i];
		idx[m++] = i;
	}
	if (!root_of(m, a, idx, l))
		return false;
	solve_root(m, l, y);
	for (unsigned i = 0; i < m; i++)
		ret[idx[i]] = y[i];
	return true;
}

/* The bounded variable with the largest gradient; n = none. */
static unsigned steepest(unsigned n, const double (*a)[COLUMNS], const double *b, const bool *is_free, const double *x)
{
	double best = 0;
	unsigned at = n;

	for (unsigned i = 0; i < n; i++) {
		double gradient = b[i], size = fabs(b[i]);

		if (is_free[i])
			continue;
		for (unsigned j = 0; j < n; j++) {
			gradient -= a[i][j] * x[j];
			size += fabs(a[i][j] * x[j]);
		}
		gradient /= sqrt(a[i][i]);
		if (gradient > best && gradient * sqrt(a[i][i]) > 1e-12 * size) {
			best = gradient;
			at = i;
		}
	}
	return at;
}

/* Walks from x towards y until a free variable reaches 0; that variable is bound then. False: it reached y. */
static bool step_back(unsigned n, bool *is_free, double *x, const double *y)
{
	double step = 1;

	for (unsigned i = 0; i < n; i++)
		if (is_free[i] && y[i] <= 0)
			step = fmin(step, x[i] > 0 ? x[i] / (x[i] - y[i]) : 0);
	for (unsigned i = 0; i < n; i++)
		x[i] += step * (y[i] - x[i]);
	if (step >= 1)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (is_free[i] && y[i] <= 0 && x[i] <= 1e-12 * fabs(y[i])) {
			is_free[i] = false;
			x[i] = 0;
		}
	}
	return true;
}

void model_nnls(unsigned n, const double (*a)[COLUMNS], const double *b, double *ret_x)
{
	bool is_free[COLUMNS] = { false };
	double y[COLUMNS];

	memset(ret_x, 0, n * sizeof(*ret_x));
	for (unsigned round = 0; round < MAX_ROUNDS; round++) {
		unsigned at = steepest(n, a, b, is_free, ret_x);

		if (at == n)
			return;
		is_free[at] = true;
		for (unsigned back = 0; back <= n; back++)
			if (!solve_free(n, a, b, is_free, y) || !step_back(n, is_free, ret_x, y))
				break;
	}
}

bool model_invert(unsigned n, const double (*a)[COLUMNS], double (*ret)[COLUMNS])
{
	double l[COLUMNS][COLUMNS], x[COLUMNS];
	unsigned idx[COLUMNS] = { 0 };

	for (unsigned i = 0; i < n; i++)
		idx[i] = i;
	if (!root_of(n, a, idx, l))
		return false;
	for (unsigned k = 0; k < n; k++) {
		memset(x, 0, sizeof(x));
		x[k] = 1;
		solve_root(n, l, x);
		for (unsigned i = 0; i < n; i++)
			ret[i][k] = x[i];
	}
	return true;
}
