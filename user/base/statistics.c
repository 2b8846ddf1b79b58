/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "statistics.h"

/* Up to 10 from the published table, then Fisher's expansion around the normal quantile z (Abramowitz and
 * Stegun 26.7.5), right to four digits from there on. */
double student_t(unsigned freedom)
{
	static const double table[] = {
		12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
	};
	const double z = 1.959963984540054, z2 = z * z;
	double v = freedom;

	if (freedom <= 10)
		return table[freedom ? freedom - 1 : 0];
	return z + z * (z2 + 1) / 4 / v + z * (z2 * (5 * z2 + 16) + 3) / 96 / (v * v) +
	       z * (z2 * (z2 * (3 * z2 + 19) + 17) - 15) / 384 / (v * v * v);
}

struct statistics statistics_of(const double *v, unsigned n)
{
	struct statistics s = { 0 };
	double squares = 0;

	for (unsigned i = 0; i < n; i++)
		s.mean += v[i] / n;
	for (unsigned i = 0; i < n; i++)
		squares += (v[i] - s.mean) * (v[i] - s.mean);
	if (n > 1) {
		s.stddev = sqrt(squares / (n - 1));
		s.ci95 = student_t(n - 1) * s.stddev / sqrt(n);
	}
	return s;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_size);
	return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

struct statistics_bounds statistics_bounds_of(const double *v, unsigned n, double *scratch)
{
	struct statistics_bounds b = { .low = -INFINITY, .high = INFINITY };
	double sigma;

	memcpy(scratch, v, n * sizeof(*v));
	b.median = median_of(scratch, n);
	if (n < STATISTICS_OUTLIERS_LEAST)
		return b;
	for (unsigned i = 0; i < n; i++)
		scratch[i] = fabs(v[i] - b.median);
	sigma = median_of(scratch, n) / 0.6745;
	if (sigma <= 0)
		sigma = statistics_of(scratch, n).mean * 1.253314;
	b.low = b.median - 3.5 * sigma;
	b.high = b.median + 3.5 * sigma;
	return b;
}
