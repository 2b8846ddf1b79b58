// SPDX-License-Identifier: Apache-2.0
/* Energy of stacks: whatever rows, samples, prices and intervals come, the stacks of a row and what had no sample add up to
 * the row, in every domain. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "profile/row_shares.h"

#define DOMAINS 3
#define CGROUPS 5

static uint64_t seed = 7;
static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void sample_of(struct stacks *t, uint64_t cgroup, uint64_t frame, bool kernel_thread,
		      const struct stack_sample *what)
{
	const struct stack s = { .cgroup = cgroup, .process = 1, .n = 1, .kernel_thread = kernel_thread };

	stacks_add(t, &s, &frame, what);
}

static void sample(struct stacks *t, uint64_t cgroup, uint64_t frame, bool kernel_thread)
{
	sample_of(t, cgroup, frame, kernel_thread, &(struct stack_sample){ STACK_TIME, 10000000 });
}

/* Periods and prices of every size, some 0. */
static struct stack_sample random_sample(void)
{
	const uint64_t period = random64();

	return (struct stack_sample){ (unsigned)(random64() % STACK_COLUMNS),
				      random64() % 4 ? period >> random64() % 64 : 0 };
}

static double random_price(void)
{
	static const double odd[] = { 0, NAN, INFINITY, -1, DBL_MAX, DBL_MIN };

	return random64() % 3 ? ldexp((double)(random64() & 0xffff), -(int)(random64() % 80)) : odd[random64() % 6];
}

/* Prices for some domains; the others keep those they had. */
static void set_prices(struct row_shares *r)
{
	double joules[STACK_COLUMNS];

	for (unsigned d = 0; d < DOMAINS; d++) {
		for (unsigned c = 0; c < STACK_COLUMNS; c++)
			joules[c] = random_price();
		if (random64() % 2)
			assert_int_equal(row_shares_price(r, d, joules), 0);
	}
}

static void assert_closes(const struct row_shares *r, const struct stacks *t, uint64_t total[][DOMAINS])
{
	for (uint32_t i = 0; i < r->n_rows; i++)
		for (unsigned d = 0; d < DOMAINS; d++) {
			uint64_t sum = r->rows[i].none_uj[d];

			for (uint32_t k = 0; k < t->n; k++)
				if (r->row_of[k] == i)
					sum += row_shares_uj(r, k, d);
			assert_int_equal(sum, r->rows[i].sum_uj[d]);
			assert_int_equal(sum, total[i][d]);
		}
}

static void test_closes(void **state)
{
	static const char *const name[CGROUPS] = { "/", "/a", "/b", "/a/c", "kernel" };

	for (unsigned world = 0; world < 40; world++) {
		uint64_t total[CGROUPS][DOMAINS] = { 0 };
		struct row_shares r = { .n_domains = DOMAINS };
		struct stacks t = { 0 };

		for (unsigned step = 0; step < 20; step++) {
			for (unsigned k = random64() % 60; k > 0; k--) {
				const struct stack_sample what = random_sample();

				sample_of(&t, 1 + random64() % CGROUPS, random64() % 12, random64() % 4 == 0, &what);
			}
			if (world % 2)
				set_prices(&r);
			for (unsigned i = 0; i < CGROUPS; i++)
				for (unsigned d = 0; d < DOMAINS; d++) {
					const uint64_t more = random64() % 3 ?
								      random64() % (1 + (random64() & 0xfffff)) :
								      0;
					struct share_row *row = row_shares_row(&r, name[i], i == 4 ? 0 : i + 1);

					assert_non_null(row);
					total[i][d] += more;
					row_shares_total(row, d, total[i][d], true);
				}
			assert_int_equal(row_shares_split(&r, &t), 0);
			assert_closes(&r, &t, total);
		}
		row_shares_free(&r);
		stacks_free(&t);
	}
}

static void test_follows_samples(void **state)
{
	struct row_shares r = { .n_domains = 1 };
	struct stacks t = { 0 };
	struct share_row *row = row_shares_row(&r, "/a", 2);

	row_shares_total(row, 0, 5000, false); /* before counting begins */
	for (unsigned k = 0; k < 30; k++)
		sample(&t, 2, k % 10 < 6 ? 1 : k % 10 < 9 ? 2 : 3, false);
	row_shares_total(row, 0, 6000, true);
	assert_int_equal(row_shares_split(&r, &t), 0);
	assert_int_equal(row_shares_uj(&r, 0, 0), 600);
	assert_int_equal(row_shares_uj(&r, 1, 0), 300);
	assert_int_equal(row_shares_uj(&r, 2, 0), 100);
	row_shares_total(row, 0, 6007, true); /* nothing was sampled since */
	assert_int_equal(row_shares_split(&r, &t), 0);
	assert_int_equal(r.rows[0].none_uj[0], 7);
	row_shares_total(row, 0, 40, true); /* another cgroup has the name now */
	assert_int_equal(row_shares_split(&r, &t), 0);
	assert_int_equal(r.rows[0].sum_uj[0], 1047);
	row_shares_free(&r);
	stacks_free(&t);
}

/* A stack's part is what its samples stand for times the price of that; without any price it is time. */
static void test_follows_prices(void **state)
{
	const double joules[STACK_COLUMNS] = { [STACK_TIME] = 2e-9, [STACK_EVENT + 1] = 1e-8 },
		     none[STACK_COLUMNS] = { 0 };
	const struct stack_sample time = { STACK_TIME, 10000000 }, dear = { STACK_EVENT + 1, 4000000 },
				  free_of_charge = { STACK_EVENT, 777777777 };
	struct row_shares r = { .n_domains = 2 };
	struct stacks t = { 0 };
	struct share_row *row = row_shares_row(&r, "/a", 2);

	assert_int_equal(row_shares_price(&r, 0, joules), 0);
	assert_int_equal(row_shares_price(&r, 1, none), 0);
	sample_of(&t, 2, 1, false, &time); /* 0.02 J */
	sample_of(&t, 2, 1, false, &free_of_charge);
	sample_of(&t, 2, 2, false, &dear); /* 0.04 J */
	sample_of(&t, 2, 3, false, &time); /* 0.06 J */
	sample_of(&t, 2, 3, false, &dear);
	row_shares_total(row, 0, 1200, true);
	row_shares_total(row, 1, 1000, true);
	assert_int_equal(row_shares_split(&r, &t), 0);
	assert_int_equal(row_shares_uj(&r, 0, 0), 200);
	assert_int_equal(row_shares_uj(&r, 1, 0), 400);
	assert_int_equal(row_shares_uj(&r, 2, 0), 600);
	assert_int_equal(row_shares_uj(&r, 0, 1), 500);
	assert_int_equal(row_shares_uj(&r, 1, 1), 0);
	assert_int_equal(row_shares_uj(&r, 2, 1), 500);
	assert_int_equal(t.v[0].time_ns + t.v[2].time_ns, 20000000);
	sample_of(&t, 2, 2, false, &free_of_charge); /* nothing that has a price was sampled */
	row_shares_total(row, 0, 1203, true);
	assert_int_equal(row_shares_split(&r, &t), 0);
	assert_int_equal(r.rows[0].none_uj[0], 3);
	row_shares_free(&r);
	stacks_free(&t);
}

/* Kernel threads of the root are the kernel's; those of another cgroup are its own. */
static void test_kernel_row(void **state)
{
	struct row_shares r = { .n_domains = 1 };
	struct stacks t = { 0 };

	row_shares_total(row_shares_row(&r, "/", 1), 0, 10, true);
	row_shares_total(row_shares_row(&r, "/a", 2), 0, 20, true);
	row_shares_total(row_shares_row(&r, "kernel", 0), 0, 30, true);
	sample(&t, 1, 1, true);
	sample(&t, 1, 1, false);
	sample(&t, 2, 1, true);
	sample(&t, 9, 1, false);
	assert_int_equal(row_shares_split(&r, &t), 0);
	assert_int_equal(row_shares_uj(&r, 0, 0), 30);
	assert_int_equal(row_shares_uj(&r, 1, 0), 10);
	assert_int_equal(row_shares_uj(&r, 2, 0), 20);
	assert_int_equal(r.row_of[3], HASH_NONE);
	assert_int_equal(r.without_row, 1);
	row_shares_free(&r);
	stacks_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closes),
		cmocka_unit_test(test_follows_samples),
		cmocka_unit_test(test_follows_prices),
		cmocka_unit_test(test_kernel_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
