/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/statistics.h"

uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

unsigned random_below(struct random *r, unsigned n)
{
	return (unsigned)(((random_next(r) >> 32) * n) >> 32);
}

void random_shuffle(struct random *r, unsigned *order, unsigned n)
{
	for (unsigned i = n; i > 1; i--) {
		unsigned k = random_below(r, i), was = order[k];

		order[k] = order[i - 1];
		order[i - 1] = was;
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the value at probability p of n sorted ones: that of rank p (n + 1), between its neighbours in proportion. */
static double quantile(const double *sorted, unsigned n, double p)
{
	double rank = p * (n + 1) - 1, below = floor(rank);

	if (rank <= 0)
		return sorted[0];
	if (rank >= n - 1)
		return sorted[n - 1];
	if (rank <= below)
		return sorted[(unsigned)below];
	return sorted[(unsigned)below] + (rank - below) * (sorted[(unsigned)below + 1] - sorted[(unsigned)below]);
}

/* Returns the probability below the lower end: 2.5 %, less the fewer values there are. */
static double tail(unsigned n)
{
	return 0.5 * erfc(sqrt(n / (n - 1.0)) * student_t(n - 1) / M_SQRT2);
}

static double sum(const double *v, unsigned n)
{
	double s = 0;

	for (unsigned i = 0; i < n; i++)
		s += v[i];
	return s;
}

/* Returns the interval of sum(b) / sum(a), and with a NULL that of sum(b) / n. */
static struct interval resample(const double *a, const double *b, unsigned n, uint64_t seed)
{
	struct interval ret = { NAN, NAN };
	struct random r = { seed };
	double *drawn = n > 1 ? malloc(BOOTSTRAP_RESAMPLES * sizeof(*drawn)) : NULL;

	if (!drawn)
		return ret;
	for (unsigned k = 0; k < BOOTSTRAP_RESAMPLES; k++) {
		double top = 0, bottom = a ? 0 : n;

		for (unsigned i = 0; i < n; i++) {
			unsigned at = random_below(&r, n);

			top += b[at];
			bottom += a ? a[at] : 0;
		}
		drawn[k] = bottom > 0 ? top / bottom : INFINITY;
	}
	qsort(drawn, BOOTSTRAP_RESAMPLES, sizeof(*drawn), by_size);
	ret.low = quantile(drawn, BOOTSTRAP_RESAMPLES, tail(n));
	ret.high = quantile(drawn, BOOTSTRAP_RESAMPLES, 1 - tail(n));
	free(drawn);
	return ret;
}

struct interval bootstrap_mean(const double *v, unsigned n, uint64_t seed)
{
	struct statistics s;

	if (n <= BOOTSTRAP_VALUES_MAX)
		return resample(NULL, v, n, seed);
	s = statistics_of(v, n);
	return (struct interval){ s.mean - s.ci95, s.mean + s.ci95 };
}

/* Of many values: the variance of b[i] - ratio a[i], as the ratio's (delta method). */
struct interval bootstrap_ratio(const double *a, const double *b, unsigned n, uint64_t seed)
{
	double ratio, squares = 0, half;

	if (n <= BOOTSTRAP_VALUES_MAX)
		return resample(a, b, n, seed);
	ratio = sum(b, n) / sum(a, n);
	for (unsigned i = 0; i < n; i++)
		squares += (b[i] - ratio * a[i]) * (b[i] - ratio * a[i]);
	half = student_t(n - 1) * sqrt(squares / (n - 1) / n) / (sum(a, n) / n);
	return (struct interval){ ratio - half, ratio + half };
}

struct summary summary_of(const double *v, unsigned n, uint64_t seed)
{
	struct summary ret = { 0 };
	struct statistics s;
	double *known = malloc((n + 1) * sizeof(*known));

	if (!known)
		return ret;
	for (unsigned i = 0; i < n; i++)
		if (!isnan(v[i]))
			known[ret.n++] = v[i];
	if (ret.n) {
		s = statistics_of(known, ret.n);
		ret.mean = s.mean;
		ret.stddev = s.stddev;
		ret.interval = bootstrap_mean(known, ret.n, seed);
		qsort(known, ret.n, sizeof(*known), by_size);
		ret.min = known[0];
		ret.max = known[ret.n - 1];
		ret.median = (known[(ret.n - 1) / 2] + known[ret.n / 2]) / 2;
	}
	free(known);
	return ret;
}
