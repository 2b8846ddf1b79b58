/* SPDX-License-Identifier: Apache-2.0 */
/* The most misses per cycle that a row had (waits.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
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

static void test_the_most_stays(void **state)
{
	struct waits w = { 0 };
	struct snapshot s = seconds(1, 2);

	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(w.most[0] == 0.01 && w.most[1] == 0.02);
	rows[0].counters[1] = MANY / 1000;
	rows[1].counters[1] = MANY / 20;
	s = seconds(2, 3);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(w.most[0] > 0.0099 && w.most[0] < 0.01 && w.most[1] == 0.05);
	s = seconds(3, 3 + 900); /* half of it is forgotten */
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(w.most[0] > 0.0049 && w.most[0] < 0.005);
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
	assert_true(w.most[0] == 0.01 && w.most[1] == 0.02);
	rows[1].quality = QUALITY_LOST;
	s = seconds(3, 4);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(w.most[1] == 0.02);
	rows[1].generation++;
	s = seconds(4, 5);
	assert_int_equal(waits_take(&w, &s), 0);
	assert_true(w.most[1] == 0);
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
	assert_true(w.most[0] == 0.001);
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
		assert_true(w.most[0] == 0 && w.most[1] == 0);
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
	assert_true(w.most[999] == 0.01 && w.most[994] == 0.02); /* an interval that tells nothing takes nothing away */
	for (unsigned i = 0; i < 994; i++)
		assert_true(w.most[i] == 0);
	waits_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_most_stays, set_up),
		cmocka_unit_test_setup(test_what_tells_nothing, set_up),
		cmocka_unit_test_setup(test_time_goes_back, set_up),
		cmocka_unit_test_setup(test_no_counters, set_up),
		cmocka_unit_test_setup(test_more_rows, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
