/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays: what is kept, what is zeroed, and what a refusal leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

static void test_one_by_one(void **state)
{
	uint64_t *v = NULL;
	uint32_t cap = 0, grown = 0;

	(void)state;
	for (uint32_t i = 0; i < 10000; i++) {
		grown += i == cap;
		assert_int_equal(ARRAY_ROOM(v, cap, i + 1), 0);
		assert_true(cap > i);
		v[i] = i * 7u;
	}
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(v[i], i * 7u);
	assert_true(grown < 20);
	free(v);
}

static void test_room_stays(void **state)
{
	char *v = NULL, *before;
	uint32_t cap = 0;

	(void)state;
	assert_int_equal(ARRAY_ROOM(v, cap, 0), 0);
	assert_null(v);
	assert_int_equal(ARRAY_ROOM(v, cap, 100), 0);
	assert_int_equal(cap, 150);
	before = v;
	assert_int_equal(ARRAY_ROOM(v, cap, 150), 0);
	assert_int_equal(ARRAY_ROOM(v, cap, 1), 0);
	assert_ptr_equal(v, before);
	assert_int_equal(cap, 150);
	free(v);
}

static void test_zeroed(void **state)
{
	uint32_t *v = NULL, cap = 0, had;

	(void)state;
	for (uint32_t n = 1; n < 3000; n += 300) {
		had = cap;
		assert_int_equal(ARRAY_ZEROED(v, cap, n), 0);
		for (uint32_t i = 0; i < cap; i++)
			assert_int_equal(v[i], i < had ? 5 : 0);
		for (uint32_t i = 0; i < cap; i++)
			v[i] = 5;
	}
	free(v);
}

static void test_too_many(void **state)
{
	uint64_t *v = NULL;
	uint32_t cap = 0;

	(void)state;
	assert_int_equal(ARRAY_ROOM(v, cap, UINT32_MAX), -ENOMEM);
	assert_int_equal(ARRAY_ZEROED(v, cap, SIZE_MAX), -ENOMEM);
	assert_int_equal(ARRAY_RESIZE(v, SIZE_MAX / 8), -ENOMEM);
	assert_null(v);
	assert_int_equal(cap, 0);
	assert_int_equal(array_step(UINT32_MAX), 0);
	assert_int_equal(array_step(0), 16);
	assert_int_equal(array_step(1000), 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_by_one),
		cmocka_unit_test(test_room_stays),
		cmocka_unit_test(test_zeroed),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
