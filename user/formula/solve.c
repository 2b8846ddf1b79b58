/* SPDX-License-Identifier: Apache-2.0 */
/* Least squares from sums. Normal equations say nothing in directions in which the points did not move: with few
 * points, with counters that move together, on a machine that is always busy. There a prior decides: all dynamic
 * power goes to the one column that formula share would use. Its deviation is the whole dynamic power, so any real
 * evidence outweighs it. The covariance shows where the prior still decides. */

#include <math.h>
#include <string.h>
#include "model.h"

#define SIGMA_START 0.01 /* of the mean power: the assumed error of a point before any is known */
#define SIGMA_POINTS 2 /* weight of that assumption, in points */
#define SIGMA_LEARNED 20 /* ... which is gone when there are so many points */
#define SIGMA_MIN 2e-6 /* counters of energy move in units */
#define BENT_WITHIN 0.3 /* a bend is taken to move less than this part of the dynamic power */
/* ... and, in a package, all prices in proportion, by about this part in a state that is one higher */
#define BENT_BY_LOAD 0.06
#define BENT_BY_CLOCK 0.15
#define WAKE_J 0.0006 /* the price of an exit from idle is taken to be within this: 1 mJ nine times in ten */
#define PASSES 6
#define SETTLED 0.7 /* of the deviation from pass to pass */
#define DYNAMIC_MIN 0.05 /* of the mean power: the least dynamic power that the prior assumes */

/* An unknown is the coefficient of a column, or of several in a fixed proportion. */
struct unknown {
	unsigned n, column[BASES];
	double weight[BASES];
	double most; /* about the largest coefficient; 0 = any */
};

/* The regression in unknowns scaled to a mean square of 1, so that an unknown is watts. */
struct problem {
	unsigned n;
	struct unknown of[COLUMNS];
	bool any[COLUMNS]; /* of either sign */
	double scale[COLUMNS], prior[COLUMNS], precision[COLUMNS];
	double xx[COLUMNS][COLUMNS], xy[COLUMNS], yy; /* of the power above a fixed idle */
	double a[COLUMNS][COLUMNS], b[COLUMNS], x[COLUMNS];
};

static unsigned list(model_columns columns, unsigned *ret)
{
	unsigned n = 0;

	for (; columns; columns &= columns - 1)
		ret[n++] = model_first(columns);
	return n;
}

/* One more than the highest of the columns. */
static unsigned extent(model_columns columns)
{
	const uint64_t high = (uint64_t)(columns >> 64), low = (uint64_t)columns;

	if (high)
		return 128 - (unsigned)__builtin_clzll(high);
	return low ? 64 - (unsigned)__builtin_clzll(low) : 0;
}

void model_clear_sums(struct model_sums *s, model_columns columns)
{
	const unsigned n = extent(columns);

	s->n = s->yy = 0;
	s->columns = columns;
	for (unsigned i = 0; i < n; i++)
		memset(s->xx[i], 0, (i + 1) * sizeof(s->xx[i][0]));
	memset(s->xy, 0, sizeof(s->xy));
}

void model_copy_sums(struct model_sums *to, const struct model_sums *from, model_columns columns)
{
	const unsigned n = extent(columns);

	to->n = from->n;
	to->yy = from->yy;
	to->columns = columns;
	for (unsigned i = 0; i < n; i++)
		memcpy(to->xx[i], from->xx[i], (i + 1) * sizeof(to->xx[i][0]));
	memcpy(to->xy, from->xy, sizeof(to->xy));
}

void model_add_point(struct model_sums *s, const struct model_point *p, double weight)
{
	unsigned at[COLUMNS], n = list(s->columns, at);

	for (unsigned i = 0; i < n; i++) {
		double x = weight * p->rate[at[i]];

		for (unsigned k = 0; k <= i; k++)
			s->xx[at[i]][at[k]] += x * p->rate[at[k]];
		s->xy[at[i]] += x * p->watts;
	}
	s->yy += weight * p->watts * p->watts;
	s->n += weight;
}

void model_add_sums(struct model_sums *s, const struct model_sums *more)
{
	unsigned at[COLUMNS], n = list(s->columns, at);

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k <= i; k++)
			s->xx[at[i]][at[k]] += more->xx[at[i]][at[k]];
		s->xy[at[i]] += more->xy[at[i]];
	}
	s->yy += more->yy;
	s->n += more->n;
}

double model_idle(const struct model_coef *c, const double *state)
{
	double sum = 0;

	for (unsigned i = 0; i < COL_BASE; i++)
		sum += c->c[i] * state[i];
	return sum;
}

double model_dynamic(const struct model_coef *c, const double *what)
{
	double sum = 0;

	for (unsigned i = COL_BASE; i < COLUMNS; i++)
		sum += c->c[i] * what[i];
	return sum;
}

static double xx(const struct model_sums *s, unsigned i, unsigned k)
{
	return i >= k ? s->xx[i][k] : s->xx[k][i];
}

/* Sum over points of the product of an unknown's column and a column. */
static double with_column(const struct model_sums *s, const struct unknown *u, unsigned column)
{
	double sum = 0;

	for (unsigned i = 0; i < u->n; i++)
		sum += u->weight[i] * xx(s, u->column[i], column);
	return sum;
}

static double with_power(const struct model_sums *s, const struct unknown *u, double fixed_idle)
{
	double sum = -fixed_idle * with_column(s, u, COL_IDLE);

	for (unsigned i = 0; i < u->n; i++)
		sum += u->weight[i] * s->xy[u->column[i]];
	return sum;
}

/* Takes an unknown into the problem; nothing to do when its column is 0. */
static void take_unknown(struct problem *q, const struct model_sums *s, const struct unknown *u,
			 const struct model_prior *prior)
{
	double idle = fmin(prior->idle_watts, s->xy[COL_IDLE] / s->n);
	double dynamic = fmax(s->xy[COL_IDLE] / s->n - idle, DYNAMIC_MIN * s->xy[COL_IDLE] / s->n);
	unsigned i = u->column[0], at = q->n;
	double square = 0, within = i >= COL_BENT || i < COL_BASE ? BENT_WITHIN * dynamic : dynamic;

	if (i == COL_IDLE || COLUMNS_OF_WAIT >> i & 1)
		within = dynamic;
	else if (i >= COL_OWN) /* of the mean price */
		within = prior->own * dynamic * s->n / s->xx[prior->share_column][COL_IDLE];
	for (unsigned k = 0; k < u->n; k++)
		square += u->weight[k] * with_column(s, u, u->column[k]);
	if (!(square > 0) || (i == COL_IDLE && prior->idle_fixed))
		return;
	q->n++;
	q->of[at] = *u;
	/* the queue that a row makes for itself does not make its misses cheaper */
	q->any[at] = i == COL_START || (i >= COL_BENT && i != COL_ITSELF);
	q->scale[at] = sqrt(square / s->n);
	within *= i >= COL_OWN ? q->scale[at] : 1;
	if (u->most > 0)
		within = fmin(within, u->most * q->scale[at]);
	if (prior->exits && i == prior->exits)
		within = fmin(within, WAKE_J * q->scale[at]);
	q->precision[at] = 1 / (within * within);
	q->prior[at] = 0;
	if (i == COL_IDLE)
		q->prior[at] = idle;
	else if (i == prior->share_column)
		q->prior[at] = dynamic * q->scale[at] / (s->xx[i][COL_IDLE] / s->n);
	for (unsigned k = 0; k <= at; k++) {
		double sum = 0;

		for (unsigned j = 0; j < q->of[k].n; j++)
			sum += q->of[k].weight[j] * with_column(s, u, q->of[k].column[j]);
		q->xx[at][k] = q->xx[k][at] = sum;
	}
	q->xy[at] = with_power(s, u, prior->idle_fixed ? prior->idle_watts : 0);
}

/* The columns of a joint bend are in the proportion of the prices of their bases. */
static void take_bend(struct problem *q, const struct model_sums *s, model_columns columns, unsigned bend,
		      const struct model_coef *price, const struct model_prior *prior)
{
	struct unknown u = { 0 };

	if (!prior->narrow)
		u.most = bend == BEND_LOAD ? BENT_BY_LOAD : bend == BEND_CLOCK ? BENT_BY_CLOCK : 0;
	for (unsigned i = 0; i < BASES; i++) {
		if (!(columns & COLUMN(model_bent(bend, i))) || !(price->c[COL_BASE + i] > 0))
			continue;
		u.column[u.n] = model_bent(bend, i);
		u.weight[u.n++] = price->c[COL_BASE + i];
	}
	if (u.n)
		take_unknown(q, s, &u, prior);
}

static void pose(struct problem *q, const struct model_sums *s, const struct model_shape *shape,
		 const struct model_coef *price, const struct model_prior *prior)
{
	model_columns columns = shape->columns & s->columns;
	double fixed = prior->idle_fixed ? prior->idle_watts : 0;

	q->n = 0;
	q->yy = s->yy - 2 * fixed * s->xy[COL_IDLE] + fixed * fixed * s->xx[COL_IDLE][COL_IDLE];
	for (model_columns left = columns; left; left &= left - 1) {
		struct unknown u = { .n = 1, .column = { model_first(left) }, .weight = { 1 } };

		if (u.column[0] < COL_BENT || u.column[0] >= COL_MISSES ||
		    !(shape->joint >> ((u.column[0] - COL_BENT) / BASES) & 1))
			take_unknown(q, s, &u, prior);
	}
	for (unsigned b = 0; b < BENDS_OF_ALL; b++)
		if (shape->joint >> b & 1)
			take_bend(q, s, columns, b, price, prior);
}

/* The normal equations of evidence and prior. */
static void weigh(struct problem *q, double sigma)
{
	for (unsigned i = 0; i < q->n; i++) {
		for (unsigned k = 0; k < q->n; k++)
			q->a[i][k] = q->xx[i][k] / (q->scale[i] * q->scale[k] * sigma * sigma);
		q->a[i][i] += q->precision[i];
		q->b[i] = q->xy[i] / (q->scale[i] * sigma * sigma) + q->precision[i] * q->prior[i];
	}
}

static void solve(struct problem *q, double sigma)
{
	weigh(q, sigma);
	model_nnls(q->n, (const double(*)[COLUMNS])q->a, q->b, q->any, q->x);
}

/* Sum of squared errors, from the sums; rounding can make zero slightly negative. */
static double left_over(const struct problem *q)
{
	double rest = q->yy;

	for (unsigned i = 0; i < q->n; i++) {
		double x = q->x[i] / q->scale[i], sum = 0;

		for (unsigned k = 0; k < q->n; k++)
			sum += q->x[k] / q->scale[k] * q->xx[i][k];
		rest += x * (sum - 2 * q->xy[i]);
	}
	return fmax(rest, 0);
}

static void take_solution(struct model_solution *r, const struct problem *q, const struct model_sums *s,
			  const struct model_prior *prior)
{
	double mean = s->xy[COL_IDLE] / s->n, start = SIGMA_START * mean;
	unsigned used = 0;

	memset(&r->coef, 0, sizeof(r->coef));
	if (prior->idle_fixed)
		r->coef.c[COL_IDLE] = prior->idle_watts;
	for (unsigned i = 0; i < q->n; i++) {
		for (unsigned k = 0; k < q->of[i].n; k++)
			r->coef.c[q->of[i].column[k]] = q->of[i].weight[k] * q->x[i] / q->scale[i];
		used += q->x[i] != 0;
	}
	r->n = s->n;
	r->mean_watts = mean;
	r->sigma = sqrt(
		(SIGMA_POINTS * start * start * (r->n < SIGMA_LEARNED ? 1 - r->n / SIGMA_LEARNED : 0) + left_over(q)) /
		(SIGMA_POINTS + fmax(s->n - used, 0)));
	r->sigma = fmax(r->sigma, SIGMA_MIN * mean);
}

/* A matrix over the unknowns, of columns. */
static void to_columns(const struct problem *q, const double (*a)[COLUMNS], double (*ret)[COLUMNS])
{
	memset(ret, 0, sizeof(*ret) * COLUMNS);
	for (unsigned i = 0; i < q->n; i++)
		for (unsigned k = 0; k < q->n; k++)
			for (unsigned j = 0; j < q->of[i].n; j++)
				for (unsigned l = 0; l < q->of[k].n; l++)
					ret[q->of[i].column[j]][q->of[k].column[l]] = q->of[i].weight[j] *
										      q->of[k].weight[l] * a[i][k] /
										      (q->scale[i] * q->scale[k]);
}

/* With A of the points and P of the prior, C = (A + P)^-1 is CAC + CPC: the second is what no point has told. */
static bool take_covariance(struct model_solution *r, const struct problem *q)
{
	double inverse[COLUMNS][COLUMNS], assumed[COLUMNS][COLUMNS];

	if (!model_invert(q->n, (const double(*)[COLUMNS])q->a, inverse))
		return false;
	for (unsigned i = 0; i < q->n; i++) {
		for (unsigned k = 0; k <= i; k++) {
			double sum = 0;

			for (unsigned j = 0; j < q->n; j++)
				sum += inverse[i][j] * q->precision[j] * inverse[k][j];
			assumed[i][k] = assumed[k][i] = sum;
		}
	}
	to_columns(q, (const double(*)[COLUMNS])inverse, r->cov);
	to_columns(q, (const double(*)[COLUMNS])assumed, r->assumed);
	return true;
}

bool model_solve(const struct model_sums *s, const struct model_shape *shape, const struct model_prior *prior,
		 const struct model_solution *guess, struct model_solution *ret)
{
	struct model_coef price = guess->coef;
	struct problem q;
	double sigma = guess->sigma;

	if (!(s->n > 0) || !(s->xy[COL_IDLE] > 0) || !isfinite(s->yy))
		return false;
	if (!(sigma > 0))
		sigma = SIGMA_START * s->xy[COL_IDLE] / s->n;
	if (!(price.c[prior->share_column] > 0))
		price.c[prior->share_column] = 1e-30;
	ret->columns = shape->columns & s->columns;
	/* The deviation weighs evidence against prior, and prices give the proportions of joint bends: each pass uses those of
	 * the one before. */
	for (unsigned pass = 0; pass < PASSES; pass++) {
		double before = sigma;

		pose(&q, s, shape, &price, prior);
		solve(&q, sigma);
		take_solution(ret, &q, s, prior);
		sigma = ret->sigma;
		price = ret->coef;
		if (pass && sigma > SETTLED * before && SETTLED * sigma < before)
			break;
	}
	return true;
}

bool model_covariance(const struct model_sums *s, const struct model_shape *shape, const struct model_prior *prior,
		      struct model_solution *ret)
{
	struct problem q;

	pose(&q, s, shape, &ret->coef, prior);
	weigh(&q, ret->sigma);
	ret->cov_columns = shape->columns & s->columns;
	return take_covariance(ret, &q);
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
static bool step_back(unsigned n, bool *is_free, const bool *any, double *x, const double *y)
{
	double step = 1;

	for (unsigned i = 0; i < n; i++)
		if (is_free[i] && !(any && any[i]) && y[i] <= 0)
			step = fmin(step, x[i] > 0 ? x[i] / (x[i] - y[i]) : 0);
	for (unsigned i = 0; i < n; i++)
		x[i] += step * (y[i] - x[i]);
	if (step >= 1)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (is_free[i] && !(any && any[i]) && y[i] <= 0 && x[i] <= 1e-12 * fabs(y[i])) {
			is_free[i] = false;
			x[i] = 0;
		}
	}
	return true;
}

void model_nnls(unsigned n, const double (*a)[COLUMNS], const double *b, const bool *any, double *ret_x)
{
	bool is_free[COLUMNS] = { false };
	double y[COLUMNS];

	memset(ret_x, 0, n * sizeof(*ret_x));
	for (unsigned i = 0; i < n && any; i++)
		is_free[i] = any[i];
	for (unsigned round = 0; round < MAX_ROUNDS; round++) {
		unsigned at = steepest(n, a, b, is_free, ret_x);

		if (at == n && (round || !any))
			return;
		if (at < n)
			is_free[at] = true;
		for (unsigned back = 0; back <= n; back++)
			if (!solve_free(n, a, b, is_free, y) || !step_back(n, is_free, any, ret_x, y))
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
