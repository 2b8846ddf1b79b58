/* SPDX-License-Identifier: Apache-2.0 */
/* A model that begins anew (fit.c): its points lie anywhere in the window then, and nothing counts points of before. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "formula/model.h"

#define ALL (COLUMN(COL_IDLE) | COLUMN(COL_HEAT) | COLUMN(COL_START) | COLUMN(COL_BUSY))

static struct model_fit f;
static struct model_scratch work;
static const struct model_prior prior = { .idle_watts = 1, .share_column = COL_BUSY, .narrow = true };
static uint64_t seconds;

static void learn(unsigned n, double price)
{
	for (unsigned i = 0; i < n; i++) {
		struct model_point p = { .seconds = 1, .columns = ALL, .counted = COLUMN(COL_BUSY) };
		const double busy = 0.1 + 0.2 * (double)(seconds % 7);

		p.rate[COL_IDLE] = 1;
		p.rate[COL_BUSY] = busy;
		p.watts = 1 + price * busy;
		model_set_heat(&f, &p);
		model_learn(&f, &p, &prior, ++seconds * 1000000000, &work);
	}
}

static int begun_anew(void **state)
{
	f = (struct model_fit){ 0 };
	seconds = 0;
	learn(100, 2);
	for (unsigned i = 0; i < TRIALS; i++)
		f.choice.since[i] = 90;
	for (unsigned i = 0; i < 20 && !f.relearned; i++)
		learn(1, 6);
	assert_int_equal(f.relearned, 1);
	assert_true(f.n_window < 10);
	return 0;
}

/* What was taken before can be dropped as soon as something that was taken since. */
static void test_since(void **state)
{
	for (unsigned i = 0; i < TRIALS; i++)
		assert_true(f.choice.since[i] <= f.points);
}

/* The points in use have another heat as their column. */
static void test_heat(void **state)
{
	const unsigned other = f.heat_at ? 0 : MODEL_HEATS - 1;

	learn(3, 6);
	for (unsigned i = 0; i < f.n_window; i++)
		assert_true(fabs(model_nth(&f, i)->heat[0] - model_nth(&f, i)->heat[MODEL_HEATS - 1]) > 0.01);
	model_take_heat(&f, other);
	for (unsigned i = 0; i < f.n_window; i++)
		assert_true(model_nth(&f, i)->rate[COL_HEAT] == model_nth(&f, i)->heat[other]);
}

/* The new price is learned, and no point of before has a part in it. */
static void test_price(void **state)
{
	learn(10, 6);
	assert_true(f.ready);
	assert_true(fabs(f.s.coef.c[COL_BUSY] - 6) < 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_since, begun_anew),
		cmocka_unit_test_setup(test_heat, begun_anew),
		cmocka_unit_test_setup(test_price, begun_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
