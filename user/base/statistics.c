/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
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
