// SPDX-License-Identifier: Apache-2.0
/* Decimal text by whole words: the same digits as printf, within the bytes that callers reserve. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "encode/emit.h"

#define FRACTION_MAX 10

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* The room is what callers reserve, so that a byte behind it is seen. */
static void same_number(uint64_t v)
{
	char *room = malloc(EMIT_U64_MAX), expected[32];
	const int n = snprintf(expected, sizeof(expected), "%" PRIu64, v);

	assert_non_null(room);
	assert_int_equal(emit_u64(room, v) - room, n);
	assert_memory_equal(room, expected, (size_t)n);
	free(room);
}

static void test_each_number_of_digits(void **state)
{
	uint64_t power = 1;

	(void)state;
	for (unsigned i = 0; i < EMIT_U64_MAX; i++, power *= 10) {
		same_number(power - 1);
		same_number(power);
		same_number(power + 1);
		same_number(power * 9 / 7);
	}
	same_number(UINT64_MAX);
}

static void test_any_number(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200000; i++)
		same_number(next_random() >> i % 64);
}

static void same_fraction(uint64_t v, unsigned decimals)
{
	char *room = malloc(FRACTION_MAX), expected[32] = "", *end;
	int n = 0;

	assert_non_null(room);
	if (v) {
		n = snprintf(expected, sizeof(expected), ".%0*" PRIu64, (int)decimals, v);
		while (expected[n - 1] == '0')
			n--;
	}
	end = emit_fraction(room, v, decimals);
	assert_int_equal(end - room, n);
	assert_memory_equal(room, expected, (size_t)n);
	free(room);
}

static void test_fractions(void **state)
{
	(void)state;
	for (unsigned decimals = 1; decimals <= 9; decimals++) {
		uint64_t one = 1;

		for (unsigned i = 0; i < decimals; i++, one *= 10) {
			same_fraction(one, decimals);
			same_fraction(one * 9, decimals);
		}
		same_fraction(0, decimals);
		same_fraction(one - 1, decimals);
		for (unsigned i = 0; i < 20000; i++)
			same_fraction(next_random() % one, decimals);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_number_of_digits),
		cmocka_unit_test(test_any_number),
		cmocka_unit_test(test_fractions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
