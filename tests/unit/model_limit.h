/* SPDX-License-Identifier: Apache-2.0 */
/* What noise of the sensor leaves to be known: the error of one who knows which columns cost and that nothing else does, learns their
 * prices by plain least squares from all intervals so far, and charges by them without closing a ledger. No formula that must find
 * that out for itself can be expected to do better. */
#ifndef JD_TEST_MODEL_LIMIT_H
#define JD_TEST_MODEL_LIMIT_H
#include "unit/model_errors.h"

enum { LIMIT_IDLE, LIMIT_TIME, LIMIT_INSTRUCTIONS, LIMIT_MISSES, LIMIT_COLUMNS };

struct limit {
	double xx[LIMIT_COLUMNS][LIMIT_COLUMNS], xy[LIMIT_COLUMNS], price[LIMIT_COLUMNS];
	unsigned columns; /* bit per column that costs */
};

/* The prices of the columns in `some`, by Gauss-Jordan; false when they cannot be told, or one is below zero. */
static bool limit_solve(const struct limit *l, unsigned some, double *ret)
{
	double a[LIMIT_COLUMNS][LIMIT_COLUMNS + 1];

	for (unsigned i = 0; i < LIMIT_COLUMNS; i++) {
		for (unsigned k = 0; k < LIMIT_COLUMNS; k++)
			a[i][k] = some >> i & some >> k & 1 ? l->xx[i][k] : i == k;
		a[i][LIMIT_COLUMNS] = some >> i & 1 ? l->xy[i] : 0;
	}
	for (unsigned i = 0; i < LIMIT_COLUMNS; i++) {
		if (!(a[i][i] > 1e-12 * (some >> i & 1 ? l->xx[i][i] : 1)))
			return false;
		for (unsigned k = 0; k < LIMIT_COLUMNS; k++) {
			const double times = k == i ? 0 : a[k][i] / a[i][i];

			for (unsigned j = 0; j <= LIMIT_COLUMNS; j++)
				a[k][j] -= times * a[i][j];
		}
	}
	for (unsigned i = 0; i < LIMIT_COLUMNS; i++) {
		ret[i] = a[i][LIMIT_COLUMNS] / a[i][i];
		if (ret[i] < 0)
			return false;
	}
	return true;
}

/* Of all sets of columns whose prices are not below zero, the one that explains most. */
static void limit_learn(struct limit *l, const double *did, double joules)
{
	double best = 0, price[LIMIT_COLUMNS];

	for (unsigned i = 0; i < LIMIT_COLUMNS; i++) {
		for (unsigned k = 0; k < LIMIT_COLUMNS; k++)
			l->xx[i][k] += did[i] * did[k];
		l->xy[i] += did[i] * joules;
	}
	for (unsigned some = 1; some < 1 << LIMIT_COLUMNS; some++) {
		double explained = 0;

		if (some & ~l->columns || !limit_solve(l, some, price))
			continue;
		for (unsigned i = 0; i < LIMIT_COLUMNS; i++)
			explained += price[i] * l->xy[i];
		if (explained > best)
			memcpy(l->price, price, sizeof(price));
		best = fmax(best, explained);
	}
}

static void limit_work(const struct mw *w, unsigned row, double *ret)
{
	const struct snap_row *r = &w->s.rows[row];

	ret[LIMIT_IDLE] = 0;
	ret[LIMIT_TIME] = (double)r->time_ns / 1e9;
	ret[LIMIT_INSTRUCTIONS] = (double)r->counters[MW_INSTRUCTIONS] / 1e9;
	ret[LIMIT_MISSES] = (double)r->counters[MW_MISSES] / 1e7;
}

static void limit_interval(struct mw *w, struct limit *limits, struct errors *e)
{
	double all[LIMIT_COLUMNS] = { w->c.seconds }, did[LIMIT_COLUMNS];

	for (unsigned i = 0; i < w->s.n_rows; i++) {
		limit_work(w, i, did);
		for (unsigned k = LIMIT_TIME; k < LIMIT_COLUMNS; k++)
			all[k] += did[k];
	}
	for (unsigned d = 0; d < MW_DOMAINS; d++) {
		struct limit *l = &limits[d];

		limit_learn(l, all, (double)w->s.domains[d].energy_uj / 1e6);
		for (unsigned i = READING_SPECIAL_ROWS; i < w->s.n_rows && e; i++) {
			double joules = 0;

			limit_work(w, i, did);
			for (unsigned k = LIMIT_TIME; k < LIMIT_COLUMNS; k++)
				joules += l->price[k] * did[k];
			e->miss[i][d] += fabs(joules - w->truth[i][d]);
			e->truth[i][d] += w->truth[i][d];
		}
	}
}

/* The errors of n intervals after `before` others, of a machine whose clock stands still. */
static void limit_run(const struct mw_config *c, unsigned before, unsigned n, struct errors *ret)
{
	struct limit limits[MW_DOMAINS] = { { .columns = (1 << LIMIT_COLUMNS) - 1 },
					    { .columns = 1 << LIMIT_IDLE | 1 << LIMIT_MISSES } };
	static struct mw w;

	memset(ret, 0, sizeof(*ret));
	assert_int_equal(mw_init(&w, c), 0);
	for (unsigned k = 0; k < before + n; k++) {
		mw_step(&w);
		limit_interval(&w, limits, k < before ? NULL : ret);
	}
	mw_free(&w);
}

#endif
