/* SPDX-License-Identifier: Apache-2.0 */
/* The misses per cycle that a row has as a rule, and at most (waits.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "base/clock.h"
#include "formula/waits.h"

#define ROWS 2
#define MANY 1000000000u /* cycles of a second */

static struct schema schema = { .core = { .n = 2 } };
static struct snap_row rows[ROWS];

static struct snapshot seconds(uint64_t from, uint64_t to)
{
	return (struct snapshot){
		.schema = &schema, .start_ns = from * NS_PER_S, .end_ns = to * NS_PER_S, .rows = rows, .n_rows = ROWS
	};
}

static bool near(double is, double expected)
{
	return fabs(is / expected - 1) < 0.002;
}

static int set_up(void **state)
{
	strcpy(schema.core.ev[0].name, "CYCLES");
	strcpy(schema.core.ev[1].name, "LLC_MISSES");
	for (unsigned i = 0; i < ROWS; i++)
		rows[i] = (struct snap_row){ .key = 5 * i,
					     .generation = 7,
					     .counters = { MANY, MANY / 100 * (i + 1) } };
	return 0;
}

/* More than twice the usual, or less than an eighth: then the mean is of what the row does now. */
static void test_something_else(void **state)
{
	static const unsigned misses[] = { MANY / 50 - 1, MANY / 10, MANY / 79, MANY / 700 };
	static const double usual[] = { 0.015, 0.1, 0.056329, 1.0 / 700 }, most[] = { 0.02, 0.1, 0.1, 1.0 / 700 };
	struct waits w = { 0 };
	struct snapshot s = seconds(1, 2);

	assert_int_equal(waits_take(&w, &s), 0);
	for (unsigned i = 0; i < sizeof(misses) / sizeof(misses[0]); i++) {
		rows[0].counters[1] = misses[i];
		s = seconds(2 + i, 3 + i);
		assert_int_equal(waits_take(&w, &s), 0);
		assert_true(near(w.usual[0], usual[i]) && near(w.most[0], most[i]) && near(w.usual[1], 0.02));
	}
	waits_free(&w);
}

/* The mean over all cycles, half of which count no more after a quarter of an hour. */
static void test_mean(void **state)
{
	struct waits w = { 0 };
	struct snapshot s = seconds(1, 2);

	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(near(w.usual[0], 0.01) && near(w.usual[1], 0.02));
	rows[0].counters[0] = MANY / 2;
	rows[0].counters[1] = MANY / 1000 * 9;
	s = seconds(2, 3);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(near(w.usual[0], 0.019 / 1.5) && near(w.usual[1], 0.02));
	assert_true(near(w.most[0], 0.018) && near(w.most[1], 0.02));
	rows[0].counters[0] = MANY / 4 * 3;
	rows[0].counters[1] = MANY / 1000 * 3;
	s = seconds(3, 3 + 900);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(near(w.usual[0], (0.019 / 2 + 0.003) / 1.5) && near(w.most[0], 0.018));
	waits_free(&w);
}

/* Few cycles are of one phase, lost counts tell nothing, and a key goes to another cgroup. */
static void test_what_tells_nothing(void **state)
{
	struct waits w = { 0 };
	struct snapshot s = seconds(1, 2);

	assert_int_equal(waits_take(&w, &s), 0);
	rows[0].counters[0] = 4999999;
	rows[0].counters[1] = 4000000;
	rows[1].counters[1] = MANY;
	rows[1].quality = QUALITY_PARTIAL;
	s = seconds(2, 3);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(near(w.usual[0], 0.01) && near(w.usual[1], 0.02));
	rows[1].quality = QUALITY_LOST;
	s = seconds(3, 4);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(near(w.usual[1], 0.02));
	rows[1].generation++;
	s = seconds(4, 5);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(w.usual[1] == 0);
	waits_free(&w);
}

/* Another recording has an earlier time, and what was known is not of it. */
static void test_time_goes_back(void **state)
{
	struct waits w = { 0 };
	struct snapshot s = seconds(10, 11);

	assert_int_equal(waits_take(&w, &s), 0);
	rows[0].counters[1] = MANY / 1000;
	s = seconds(1, 2);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(near(w.usual[0], 0.001));
	waits_free(&w);
}

/* Without misses or without cycles nobody is known to wait. */
static void test_no_counters(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct waits w = { 0 };
		struct snapshot s = seconds(1, 2);

		set_up(state);
		schema.core.ev[i].name[0] = 'X';
		assert_int_equal(waits_take(&w, &s), 0);
		assert_true(w.usual[0] == 0 && w.usual[1] == 0);
		waits_free(&w);
	}
}

/* A snapshot may have no rows, then more than ever. A row is known by its key, wherever it stands. */
static void test_more_rows(void **state)
{
	static struct snap_row many[1000];
	struct waits w = { 0 };
	struct snapshot s = seconds(1, 2);

	s.n_rows = 0;
	assert_int_equal(waits_take(&w, &s), 0);
	s = seconds(0, 1); /* time goes back, and there is nothing to forget */
	s.n_rows = 0;
	assert_int_equal(waits_take(&w, &s), 0);
	s = seconds(1, 2);
	assert_int_equal(waits_take(&w, &s), 0);
	for (unsigned i = 0; i < 1000; i++)
		many[i] = (struct snap_row){ .key = 999 - i, .generation = 7 };
	s = seconds(2, 3);
	s.rows = many;
	s.n_rows = 1000;
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(near(w.usual[999], 0.01) &&
		    near(w.usual[994], 0.02)); /* an interval that tells nothing takes nothing away */
	for (unsigned i = 0; i < 994; i++)
		assert_true(w.usual[i] == 0);
	waits_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_mean, set_up),
		cmocka_unit_test_setup(test_something_else, set_up),
		cmocka_unit_test_setup(test_what_tells_nothing, set_up),
		cmocka_unit_test_setup(test_time_goes_back, set_up),
		cmocka_unit_test_setup(test_no_counters, set_up),
		cmocka_unit_test_setup(test_more_rows, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
