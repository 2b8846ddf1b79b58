// SPDX-License-Identifier: Apache-2.0
/* The points of a calibration: room for all loads, and their text, whole, of another machine, and broken. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "source/wall/wall_points.h"

static struct wall_points all, back;

static void fill(unsigned n)
{
	memset(&all, 0, sizeof(all));
	for (unsigned i = 0; i < n; i++) {
		struct wall_point p = { .watts = 100 + i % 7 };

		for (unsigned k = 0; k < WALL_INPUTS; k++)
			p.x[k] = k + i / 16.0;
		wall_points_add(&all, &p);
	}
}

static void test_round_trip(void **state)
{
	struct buf text = { 0 };
	struct err err;

	fill(40);
	wall_points_write(&all, "package-0:powercap", &text);
	assert_int_equal(wall_points_read((char *)text.data, text.len, "package-0:powercap", &back, &err), 0);
	assert_int_equal(back.n, all.n);
	assert_memory_equal(back.v, all.v, all.n * sizeof(all.v[0]));
	buf_free(&text);
}

static void test_other_machine(void **state)
{
	struct buf text = { 0 };
	struct err err;

	fill(40);
	wall_points_write(&all, "package-0:powercap", &text);
	assert_int_equal(wall_points_read((char *)text.data, text.len, "package-0:estimate", &back, &err), -ESTALE);
	assert_int_equal(back.n, 0);
	assert_non_null(strstr(err.text, "package-0:powercap"));
	buf_free(&text);
}

/* Cut at any place, and with any byte changed, it is refused or read: never half of it without a word. */
static void test_broken(void **state)
{
	struct buf text = { 0 };
	struct err err;
	char *copy;
	int rc;

	fill(3);
	wall_points_write(&all, "x", &text);
	copy = malloc(text.len);
	for (size_t n = 0; n < text.len; n++) {
		memcpy(copy, text.data, text.len);
		rc = wall_points_read(copy, n, "x", &back, &err);
		assert_true(rc == -EBADMSG || (rc == 0 && n && copy[n - 1] == '\n'));
		assert_true(rc == 0 || back.n == 0);
		copy[n] = '!';
		rc = wall_points_read(copy, text.len, "x", &back, &err);
		assert_true(rc == -EBADMSG || rc == -ESTALE);
	}
	free(copy);
	buf_free(&text);
}

static void test_bad_numbers(void **state)
{
	static const char *const bad[] = { "nan", "inf", "-1", "1e300", "0x10", "" };
	struct buf text = { 0 };
	struct err err;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fill(0);
		buf_reset(&text);
		wall_points_write(&all, "x", &text);
		buf_add_str(&text, bad[i]);
		for (unsigned k = 0; k < WALL_INPUTS; k++)
			buf_add_str(&text, ",1");
		buf_add_str(&text, "\n");
		assert_int_equal(wall_points_read((char *)text.data, text.len, "x", &back, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "line 3"));
	}
	buf_free(&text);
}

/* A machine that rests for days still knows what its few busy minutes were like. */
static void test_rare_loads_stay(void **state)
{
	unsigned busy = 0;

	memset(&all, 0, sizeof(all));
	for (unsigned i = 0; i < 50000; i++) {
		struct wall_point p = { .watts = i > 100 && i < 130 ? 300 : 50 + i % 3 };

		wall_points_add(&all, &p);
		assert_true(all.n <= WALL_POINTS);
	}
	for (unsigned i = 0; i < all.n; i++) {
		busy += all.v[i].watts > 200;
		assert_true(!i || all.v[i].when > all.v[i - 1].when);
	}
	assert_int_equal(busy, 29);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_other_machine),
		cmocka_unit_test(test_broken),          cmocka_unit_test(test_bad_numbers),
		cmocka_unit_test(test_rare_loads_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
