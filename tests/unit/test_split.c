/* SPDX-License-Identifier: Apache-2.0 */
/* Splits: exact sums, no bias however small the share, huge weights, parts that come and go.
 * Expected shares are kept as 128-bit integers in 2^-64 of a unit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formula/split.h"

static uint64_t seed = 42;
static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t total(const uint64_t *part, unsigned n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += part[i];
	return sum;
}

static void test_by_hand(void **state)
{
	uint64_t weight[3] = { 1, 1, 1 }, part[3], given[3] = { 0 };
	int64_t carry[3] = { 0 };

	for (unsigned k = 0; k < 3; k++) {
		assert_true(split(10, weight, carry, part, 3));
		assert_int_equal(total(part, 3), 10);
		for (unsigned i = 0; i < 3; i++) {
			assert_in_range(part[i], 3, 4);
			given[i] += part[i];
		}
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(given[i], 10);
	weight[0] = 5;
	weight[1] = 0;
	weight[2] = 15;
	memset(carry, 0, sizeof(carry));
	assert_true(split(1000, weight, carry, part, 3));
	assert_int_equal(part[0], 250);
	assert_int_equal(part[1], 0);
	assert_int_equal(part[2], 750);
}

static void test_nobody(void **state)
{
	uint64_t weight[2] = { 0, 0 }, part[2] = { 9, 9 };
	int64_t carry[2] = { 1234, -1234 };

	assert_false(split(10, weight, carry, part, 2));
	assert_int_equal(part[0] + part[1], 0);
	assert_int_equal(carry[0], 1234);
	assert_false(split(10, weight, carry, part, 0));
}

static void test_nothing_to_split(void **state)
{
	uint64_t weight[2] = { 1, 2 }, part[2] = { 9, 9 };
	int64_t carry[2] = { 1ll << 31, -(1ll << 31) };

	assert_true(split(0, weight, carry, part, 2));
	assert_int_equal(part[0] + part[1], 0);
	assert_int_equal(carry[0], 1ll << 31);
}

/* A thousandth of a unit per call is 100 units after 100000 calls. */
static void test_small_share(void **state)
{
	uint64_t weight[2] = { 1, 999999 }, part[2], small = 0;
	int64_t carry[2] = { 0 };

	for (unsigned k = 0; k < 100000; k++) {
		assert_true(split(1000, weight, carry, part, 2));
		assert_int_equal(part[0] + part[1], 1000);
		small += part[0];
	}
	assert_in_range(small, 99, 101);
}

/* A thousand equal rows share 10 units a call: after 100 calls each has its unit, never two at once. */
static void test_many_small(void **state)
{
	static uint64_t weight[1000], part[1000], given[1000];
	static int64_t carry[1000];

	for (unsigned i = 0; i < 1000; i++)
		weight[i] = 12345;
	for (unsigned k = 0; k < 1000; k++) {
		assert_true(split(10, weight, carry, part, 1000));
		for (unsigned i = 0; i < 1000; i++) {
			assert_in_range(part[i], 0, 1);
			given[i] += part[i];
		}
	}
	for (unsigned i = 0; i < 1000; i++)
		assert_in_range(given[i], 9, 11);
}

/* Without weight a part gets nothing, even when it is owed; it is paid when it weighs again. */
static void test_owed_later(void **state)
{
	uint64_t weight[2] = { 0, 7 }, part[2];
	int64_t carry[2] = { 5ll << 32, -(5ll << 32) };

	assert_true(split(100, weight, carry, part, 2));
	assert_int_equal(part[0], 0);
	assert_int_equal(part[1], 100);
	weight[0] = 7;
	assert_true(split(100, weight, carry, part, 2));
	assert_int_equal(part[0], 55);
	assert_int_equal(part[1], 45);
	assert_int_equal(carry[0], 0);
}

/* More in advance than this amount can make good: the rest stays owed, nobody goes below zero. */
static void test_in_advance(void **state)
{
	uint64_t weight[4] = { 1, 1, 1, 1 }, part[4];
	int64_t carry[4] = { -(40ll << 32), -(7ll << 31), 42ll << 32, 3ll << 31 };

	assert_true(split(3, weight, carry, part, 4));
	assert_int_equal(total(part, 4), 3);
	assert_int_equal(part[0] + part[1], 0);
	assert_int_equal(carry[0] + carry[1] + carry[2] + carry[3], 0);
	for (unsigned k = 0; k < 30; k++) {
		assert_true(split(8, weight, carry, part, 4));
		assert_int_equal(total(part, 4), 8);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(carry[i] + (1ll << 32), 0, 2ll << 32);
}

static void test_huge(void **state)
{
	uint64_t weight[5] = { SPLIT_WEIGHT_MAX, SPLIT_WEIGHT_MAX, SPLIT_WEIGHT_MAX, 1, 0 }, part[5];
	int64_t carry[5] = { 0 };

	assert_true(split(UINT64_MAX, weight, carry, part, 5));
	assert_int_equal(total(part, 5), UINT64_MAX);
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(part[i], UINT64_MAX / 3 - 1, UINT64_MAX / 3 + 1);
	assert_in_range(part[3], 0, 2);
	assert_true(split(1, weight, carry, part, 5));
	assert_int_equal(total(part, 5), 1);
}

/* Amounts and weights of every size, and parts that have weight only now and then. */
enum { PARTS = 40 };

static uint64_t any_weight(void)
{
	uint64_t r = random64();

	if (r % 4 == 0)
		return 0;
	r = random64() >> (random64() % 64);
	return r > SPLIT_WEIGHT_MAX ? SPLIT_WEIGHT_MAX : r;
}

/* amount * weight / sum in 2^-64 of a unit, below 2^127 for amounts below 2^50. */
static __int128 exact_q64(uint64_t amount, uint64_t weight, unsigned __int128 sum)
{
	unsigned __int128 whole = (unsigned __int128)amount * weight / sum;
	unsigned __int128 rest = (unsigned __int128)amount * weight % sum, fraction = 0;

	for (unsigned bit = 0; bit < 64; bit++) {
		rest <<= 1;
		fraction = fraction << 1 | (rest >= sum);
		rest -= rest >= sum ? sum : 0;
	}
	return (__int128)(whole << 64 | fraction);
}

static void one_run(unsigned n, unsigned calls, double *worst)
{
	uint64_t weight[PARTS], part[PARTS];
	__int128 exact[PARTS] = { 0 }, given[PARTS] = { 0 };
	int64_t carry[PARTS] = { 0 };

	for (unsigned k = 0; k < calls; k++) {
		uint64_t amount = random64() >> (random64() % 50 + 14);
		unsigned __int128 sum = 0;

		for (unsigned i = 0; i < n; i++)
			sum += weight[i] = any_weight();
		assert_int_equal(split(amount, weight, carry, part, n), sum != 0);
		if (!sum)
			continue;
		assert_int_equal(total(part, n), amount);
		for (unsigned i = 0; i < n; i++) {
			double error;

			assert_true(part[i] <= amount && (weight[i] || !part[i]));
			exact[i] += exact_q64(amount, weight[i], sum);
			given[i] += (__int128)part[i] << 64;
			error = fabs((double)(given[i] - exact[i]) / 0x1p64);
			*worst = error > *worst ? error : *worst;
		}
	}
}

/* 49 / 49 is less than 1 for a double: the exact remainder says that nothing is owed. */
static void test_whole_shares(void **state)
{
	uint64_t weight[64], part[64];

	for (unsigned n = 1; n <= 64; n++) {
		int64_t carry[64] = { 0 };

		for (unsigned i = 0; i < n; i++)
			weight[i] = 1;
		assert_true(split(n, weight, carry, part, n));
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(part[i], 1);
			assert_int_equal(carry[i], 0);
		}
	}
}

static void test_long_run(void **state)
{
	double worst = 0;
	unsigned calls = 0;

	for (unsigned run = 0; run < 200; run++) {
		unsigned n = 1 + (unsigned)(random64() % PARTS);

		one_run(n, 1000, &worst);
		calls += 1000;
	}
	printf("split: %u calls, largest distance of a part from its exact share %.2f units\n", calls, worst);
	assert_true(worst < 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),          cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_nothing_to_split), cmocka_unit_test(test_small_share),
		cmocka_unit_test(test_many_small),       cmocka_unit_test(test_owed_later),
		cmocka_unit_test(test_in_advance),       cmocka_unit_test(test_huge),
		cmocka_unit_test(test_whole_shares),     cmocka_unit_test(test_long_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
