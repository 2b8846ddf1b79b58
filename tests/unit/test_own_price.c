/* SPDX-License-Identifier: Apache-2.0 */
/* What was learned of rows with prices of their own, when their usual misses per cycle are known better (own_price.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "formula/model.h"

#define ROWS 3
#define POINTS 20
#define ALL (COLUMN(COL_IDLE) | COLUMN(COL_EVENT) | COLUMNS_OF_WAIT | COLUMNS_OF_OWN)

struct world {
	struct model_fit f;
	uint64_t row[ROWS];
	double did[ROWS], usual[ROWS];
	uint8_t place[ROWS];
	struct model_own_rows rows;
};

static double random_between(double lo, double hi)
{
	return lo + (hi - lo) * (double)random() / RAND_MAX;
}

static void add_up(const struct model_fit *f, struct model_sums *ret)
{
	model_clear_sums(ret, ALL);
	for (unsigned i = 0; i < POINTS; i++)
		model_add_point(ret, model_nth(f, i), 1);
}

static void learn(struct world *w)
{
	struct model_fit *f = &w->f;

	f->n_window = f->next = POINTS;
	for (unsigned i = 0; i < POINTS; i++) {
		struct model_point *p = &f->window[i];

		p->columns = ALL;
		p->watts = random_between(1, 2);
		p->rate[COL_IDLE] = 1;
		p->rate[COL_EVENT] = random_between(1, 2);
		p->rate[COL_ALONE] = random_between(0, 1);
		p->rate[COL_SERVED] = 0.1; /* of rows without a place */
		for (unsigned k = 0; k < ROWS; k++) {
			p->rate[COL_OWN + w->place[k]] = random_between(0, 1);
			p->rate[COL_SERVED] += p->rate[COL_OWN + w->place[k]];
		}
	}
	add_up(f, &f->old);
	f->n_without = 1;
	for (unsigned i = 0; i < COLUMNS; i++) {
		f->s.coef.c[i] = ALL >> i & 1 ? random_between(-1, 1) : 0;
		f->without[0].c[i] = ALL >> i & 1 ? random_between(-1, 1) : 0;
	}
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->rows = (struct model_own_rows){ ROWS, w->row, w->did, w->usual, w->place };
	for (unsigned i = 0; i < ROWS; i++) {
		w->row[i] = 100 + i;
		w->did[i] = 1 + i;
		w->usual[i] = 0.001 * (1 + i);
	}
	model_own_place(&w->f, COL_SERVED, 1, &w->rows);
	learn(w);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

/* Predictions, a part of a column of each row, and the sums of points that have left the window. */
static void expect_told_by(struct world *w, const struct model_fit *before, const double *factor)
{
	struct model_sums sums;

	for (unsigned i = 0; i < POINTS; i++) {
		const struct model_point *now = &w->f.window[i], *then = &before->window[i];
		double served = 0.1;

		for (unsigned k = 0; k < ROWS; k++) {
			const unsigned own = COL_OWN + w->place[k];

			assert_true(fabs(now->rate[own] - factor[k] * then->rate[own]) < 1e-12);
			served += now->rate[own];
		}
		assert_true(fabs(now->rate[COL_SERVED] - served) < 1e-12);
		assert_true(fabs(model_dynamic(&w->f.s.coef, now->rate) - model_dynamic(&before->s.coef, then->rate)) <
			    1e-12);
		assert_true(fabs(model_dynamic(&w->f.without[0], now->rate) -
				 model_dynamic(&before->without[0], then->rate)) < 1e-12);
	}
	add_up(&w->f, &sums);
	for (unsigned i = 0; i < COLUMNS; i++) {
		assert_true(fabs(sums.xy[i] - w->f.old.xy[i]) < 1e-10);
		for (unsigned k = 0; k <= i; k++)
			assert_true(!(ALL >> i & 1) || !(ALL >> k & 1) ||
				    fabs(sums.xx[i][k] - w->f.old.xx[i][k]) < 1e-10);
	}
}

static void test_known_better(void **state)
{
	const double factor[ROWS] = { 0.5, 1, 3 };
	struct world *w = *state;
	static struct model_fit before;

	before = w->f;
	for (unsigned i = 0; i < ROWS; i++)
		w->usual[i] /= factor[i];
	model_own_place(&w->f, COL_SERVED, 1, &w->rows);
	expect_told_by(w, &before, factor);
}

/* It is known again after a time in which it was not, and nothing changes while it is not. */
static void test_not_known(void **state)
{
	const double same[ROWS] = { 1, 1, 1 };
	struct world *w = *state;
	static struct model_fit before;

	before = w->f;
	w->usual[1] = 0;
	model_own_place(&w->f, COL_SERVED, 1, &w->rows);
	expect_told_by(w, &before, same);
	w->usual[1] = 0.007;
	model_own_place(&w->f, COL_SERVED, 1, &w->rows);
	expect_told_by(w, &before, same);
}

/* Prices by another column are not told by misses per cycle. */
static void test_another_column(void **state)
{
	struct world *w = *state;
	static struct model_fit before;

	w->rows.usual = NULL;
	model_own_place(&w->f, COL_BUSY, 1, &w->rows);
	learn(w);
	before = w->f;
	w->usual[0] *= 2;
	model_own_place(&w->f, COL_BUSY, 1, &w->rows);
	expect_told_by(w, &before, (double[ROWS]){ 1, 1, 1 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_known_better, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_column, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
