/* SPDX-License-Identifier: Apache-2.0 */
/* Least squares from sums. Normal equations alone know nothing in directions in which the points did
 * not move: few points, counters that go hand in hand, a machine that is always busy. A prior stands
 * there, what formula share would say (all dynamic power to its one column), weak enough to yield to
 * any real evidence: its deviation is the whole dynamic power. Where it still speaks, the covariance
 * says so. */
#include <math.h>
#include <string.h>
#include "model.h"

#define SIGMA_START 0.01 /* of the mean power: the miss of a point before any is known */
#define SIGMA_POINTS 2 /* how many points that belief is worth */
#define SIGMA_MIN 5e-4 /* counters of energy and of work are not read at the same instant */
#define DYNAMIC_MIN 0.05 /* of the mean power: what the prior allows for at least */

/* The regression in columns scaled to a mean square of 1, so that an unknown is watts. */
struct problem {
	unsigned n, column[COLUMNS];
	double scale[COLUMNS], prior[COLUMNS], precision;
	double a[COLUMNS][COLUMNS], b[COLUMNS], x[COLUMNS];
};

void model_add_point(struct model_sums *s, const struct model_point *p, double weight)
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

/* Squares left over, from the sums; rounding can make nothing a little less. */
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

bool model_solve(const struct model_sums *s, const struct model_prior *prior, double sigma_guess,
		 struct model_solution *ret)
{
	struct model_solution r = { .sigma = sigma_guess };
	struct problem q;

	if (!(s->n > 0) || !(s->xy[COL_IDLE] > 0) || !isfinite(s->yy))
		return false;
	pose(&q, s, prior);
	if (!(r.sigma > 0))
		r.sigma = SIGMA_START * s->xy[COL_IDLE] / s->n;
	/* The deviation weighs evidence against prior: once more with what it turned out to be. */
	for (unsigned pass = 0; pass < 2; pass++) {
		solve(&q, s, prior, r.sigma);
		take_solution(&r, &q, s, prior);
	}
	if (!take_covariance(&r, &q))
		return false;
	*ret = r;
	return true;
}
