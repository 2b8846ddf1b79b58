// SPDX-License-Identifier: Apache-2.0
/* Energy of stacks: whatever rows, samples and intervals come, the stacks of a row and what had no sample add up to the
 * row, in every domain. */
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

static void sample(struct stacks *t, uint64_t cgroup, uint64_t frame, bool kernel_thread)
{
	const struct stack s = { .cgroup = cgroup, .process = 1, .n = 1, .kernel_thread = kernel_thread };

	stacks_add(t, &s, &frame);
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
			for (unsigned k = random64() % 60; k > 0; k--)
				sample(&t, 1 + random64() % CGROUPS, random64() % 12, random64() % 4 == 0);
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
		cmocka_unit_test(test_kernel_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
