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
	unsigned first; /* place in the window where the points begin */
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

	f->n_window = POINTS;
	f->next = (w->first + POINTS) % MODEL_WINDOW;
	for (unsigned i = 0; i < POINTS + 2; i++) {
		struct model_point *p = i == POINTS ? &f->open : &f->lowest;

		p = i < POINTS ? &f->window[(w->first + i) % MODEL_WINDOW] : p;
		p->columns = ALL;
		p->watts = random_between(1, 2);
		p->rate[COL_IDLE] = 1;
		p->rate[COL_EVENT] = random_between(1, 2);
		p->rate[COL_ITSELF] = random_between(0, 1);
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
		for (unsigned k = 0; k <= i && ALL >> i & 1; k++) {
			f->s.cov[i][k] = f->s.cov[k][i] = ALL >> k & 1 ? random_between(-1, 1) : 0;
			f->s.assumed[i][k] = f->s.assumed[k][i] = f->s.cov[i][k] / 2;
		}
	}
}

static double variance(double (*cov)[COLUMNS], const double *rate)
{
	double sum = 0;

	for (unsigned i = 0; i < COLUMNS; i++)
		for (unsigned k = 0; k < COLUMNS; k++)
			sum += rate[i] * cov[i][k] * rate[k];
	return sum;
}

static int set_up_at(void **state, unsigned first)
{
	struct world *w = calloc(1, sizeof(*w));

	w->first = first;
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

static int set_up(void **state)
{
	return set_up_at(state, 0);
}

/* As after the model was learned anew: older points that are not in use are before those that are. */
static int set_up_late(void **state)
{
	return set_up_at(state, MODEL_WINDOW - 7);
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void expect_point(struct world *w, struct model_fit *before, const struct model_point *now,
			 const struct model_point *then, const double *factor)
{
	double served = 0.1;

	for (unsigned k = 0; k < ROWS; k++) {
		const unsigned own = COL_OWN + w->place[k];

		assert_true(fabs(now->rate[own] - factor[k] * then->rate[own]) < 1e-12);
		served += now->rate[own];
	}
	assert_true(fabs(now->rate[COL_SERVED] - served) < 1e-12);
	assert_true(fabs(model_dynamic(&w->f.s.coef, now->rate) - model_dynamic(&before->s.coef, then->rate)) < 1e-12);
	assert_true(fabs(model_dynamic(&w->f.without[0], now->rate) - model_dynamic(&before->without[0], then->rate)) <
		    1e-12);
	assert_true(fabs(variance(w->f.s.cov, now->rate) - variance(before->s.cov, then->rate)) < 1e-9);
	assert_true(fabs(variance(w->f.s.assumed, now->rate) - variance(before->s.assumed, then->rate)) < 1e-9);
}

/* Predictions and how sure they are, a part of a column of each row, and the sums of points that have left the window. */
static void expect_told_by(struct world *w, struct model_fit *before, const double *factor)
{
	struct model_sums sums;

	for (unsigned i = 0; i < POINTS; i++)
		expect_point(w, before, model_nth(&w->f, i), model_nth(before, i), factor);
	expect_point(w, before, &w->f.open, &before->open, factor);
	expect_point(w, before, &w->f.lowest, &before->lowest, factor);
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

/* Nothing changes while it is not known. */
static void test_not_known(void **state)
{
	const double same[ROWS] = { 1, 1, 1 }, half[ROWS] = { 1, 0.5, 1 };
	struct world *w = *state;
	static struct model_fit before;

	before = w->f;
	w->usual[1] = 0;
	model_own_place(&w->f, COL_SERVED, 1, &w->rows);
	expect_told_by(w, &before, same);
	w->usual[1] = 0.004;
	model_own_place(&w->f, COL_SERVED, 1, &w->rows);
	expect_told_by(w, &before, half);
}

/* A row whose usual is another by far does something else: what it did is of rows without a place. */
static void test_something_else(void **state)
{
	static const double others[] = { 0.009, 0.0001, 1e-300, 1e300, INFINITY };

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct world *w;
		const struct model_point *p;
		double served;

		set_up(state);
		w = *state;
		p = model_nth(&w->f, 3);
		served = p->rate[COL_SERVED];
		w->usual[1] = others[i];
		model_own_place(&w->f, COL_SERVED, 1, &w->rows);
		assert_true(p->rate[COL_SERVED] == served);
		assert_true(p->rate[COL_OWN + w->place[1]] == 0 && p->rate[COL_OWN + w->place[0]] > 0);
		assert_true(w->f.s.coef.c[COL_OWN + w->place[1]] == 0);
		tear_down(state);
	}
}

/* Nobody is known by 0: it says that a place is free. */
static void test_nobody(void **state)
{
	struct world *w = *state;

	w->row[1] = 0;
	model_own_place(&w->f, COL_SERVED, 1, &w->rows);
	assert_int_equal(w->place[1], MODEL_OWN);
	assert_true(w->place[0] < MODEL_OWN && w->place[2] < MODEL_OWN);
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
	model_own_place(&w->f, COL_BUSY, 1, &w->rows);
	expect_told_by(w, &before, (double[ROWS]){ 1, 1, 1 });
	assert_true(w->f.own.usual[w->place[0]] == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_known_better, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_known_better, set_up_late, tear_down),
		cmocka_unit_test(test_something_else),
		cmocka_unit_test_setup_teardown(test_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_column, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
