/* SPDX-License-Identifier: Apache-2.0 */
/* The active-set method on normal equations: variables are set free one by one, the one whose
 * gradient promises most first; a free one that would turn negative goes back to 0. The matrix is
 * scaled and has a prior on its diagonal, so Cholesky's root exists. */
#include <math.h>
#include <string.h>
#include "model.h"

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

/* The bounded variable that wants up most; n = none. */
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

/* Walks from x towards y until a free variable reaches 0, which is bound then. False: reached y. */
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
