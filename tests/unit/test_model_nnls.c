/* SPDX-License-Identifier: Apache-2.0 */
/* Least squares with bounds, against the conditions that tell the one optimum of a convex problem:
 * nothing negative, no gradient that pulls a bound variable up, none at all on a free one (Karush,
 * Kuhn, Tucker); and the inverse against its definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formula/model.h"

#define SIZES 14 /* unknowns at most */

static uint64_t seed = 88172645463325252ull;

static double random_between(double lo, double hi)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return lo + (hi - lo) * ((double)(seed >> 11) / 9007199254740992.0);
}

/* X'X of m random rows, and a little on the diagonal. */
static void random_problem(unsigned n, double small, double (*a)[COLUMNS], double *b)
{
	memset(a, 0, sizeof(double[COLUMNS][COLUMNS]));
	for (unsigned m = 0; m < 2 * n; m++) {
		double row[COLUMNS], y = random_between(-1, 2);

		for (unsigned i = 0; i < n; i++)
			row[i] = random_between(0, 1);
		for (unsigned i = 0; i < n; i++) {
			for (unsigned k = 0; k < n; k++)
				a[i][k] += row[i] * row[k];
			b[i] = (m ? b[i] : 0) + row[i] * y;
		}
	}
	for (unsigned i = 0; i < n; i++)
		a[i][i] += small;
}

static void test_optimal(void **state)
{
	double a[COLUMNS][COLUMNS], b[COLUMNS], x[COLUMNS];
	unsigned bound = 0, is_free = 0, negative = 0;

	for (unsigned round = 0; round < 20000; round++) {
		unsigned n = 1 + round % SIZES;
		bool any[COLUMNS];

		for (unsigned i = 0; i < n; i++)
			any[i] = round % 2 && i % 3 == 0; /* of either sign */

		random_problem(n, round % 3 ? 1e-6 : 1e-2, a, b);
		model_nnls(n, (const double(*)[COLUMNS])a, b, round % 2 ? any : NULL, x);
		for (unsigned i = 0; i < n; i++) {
			double gradient = b[i], size = fabs(b[i]);

			for (unsigned k = 0; k < n; k++) {
				gradient -= a[i][k] * x[k];
				size += fabs(a[i][k] * x[k]);
			}
			assert_true(x[i] >= 0 || any[i]);
			assert_true(gradient < 1e-9 * size);
			assert_true((x[i] == 0 && !any[i]) || gradient > -1e-9 * size);
			negative += x[i] < 0;
			bound += x[i] == 0;
			is_free += x[i] > 0;
		}
	}
	assert_true(bound > 10000 && is_free > 10000 && negative > 1000); /* all kinds were there */
}

/* y = 3 a + 5 c, b is a copy of a: the sum is right, and nothing is negative. */
static void test_twins(void **state)
{
	double a[COLUMNS][COLUMNS] = { { 2, 2, 0 }, { 2, 2, 0 }, { 0, 0, 4 } }, b[COLUMNS] = { 6, 6, 20 }, x[COLUMNS];

	for (unsigned i = 0; i < 3; i++)
		a[i][i] += 1e-9;
	model_nnls(3, (const double(*)[COLUMNS])a, b, NULL, x);
	assert_true(x[0] >= 0 && x[1] >= 0);
	assert_true(fabs(x[0] + x[1] - 3) < 1e-6);
	assert_true(fabs(x[2] - 5) < 1e-6);
}

static void test_inverse(void **state)
{
	double a[COLUMNS][COLUMNS], b[COLUMNS], inverse[COLUMNS][COLUMNS];

	for (unsigned round = 0; round < 1000; round++) {
		unsigned n = 1 + round % SIZES;

		random_problem(n, 1e-2, a, b);
		assert_true(model_invert(n, (const double(*)[COLUMNS])a, inverse));
		for (unsigned i = 0; i < n; i++) {
			for (unsigned k = 0; k < n; k++) {
				double sum = 0;

				for (unsigned j = 0; j < n; j++)
					sum += a[i][j] * inverse[j][k];
				assert_true(fabs(sum - (i == k)) < 1e-9);
			}
		}
	}
}

/* The solver also ends when its input is no problem of this kind. */
static void test_hopeless(void **state)
{
	static const double bad[] = { NAN, INFINITY, -INFINITY, -1, 0, 1e308 };
	double a[COLUMNS][COLUMNS], b[COLUMNS], x[COLUMNS], inverse[COLUMNS][COLUMNS];

	for (unsigned round = 0; round < 10000; round++) {
		for (unsigned i = 0; i < COLUMNS; i++) {
			for (unsigned k = 0; k < COLUMNS; k++)
				a[i][k] = bad[(unsigned)random_between(0, 6)];
			b[i] = bad[(unsigned)random_between(0, 6)];
		}
		model_nnls(SIZES, (const double(*)[COLUMNS])a, b, NULL, x);
		model_invert(SIZES, (const double(*)[COLUMNS])a, inverse);
	}
	memset(a, 0, sizeof(a));
	assert_false(model_invert(1, (const double(*)[COLUMNS])a, inverse));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_optimal),
		cmocka_unit_test(test_twins),
		cmocka_unit_test(test_inverse),
		cmocka_unit_test(test_hopeless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
