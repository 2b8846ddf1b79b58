/* SPDX-License-Identifier: Apache-2.0 */
/* What repeated measurements say: mean, median and spread, and intervals by bootstrap. Every draw comes from a seed, so
 * that the same values and the same seed give the same interval. */
#ifndef JD_COMPARE_BOOTSTRAP_H
#define JD_COMPARE_BOOTSTRAP_H
#include <stdint.h>

#define BOOTSTRAP_RESAMPLES 10000
#define BOOTSTRAP_VALUES_MAX 1000 /* of more values the interval is that of a normal distribution */

/* Pseudo-random numbers: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
struct random {
	uint64_t state;
};

uint64_t random_next(struct random *r);
/* Returns a number from 0 to n - 1. n >= 1 */
unsigned random_below(struct random *r, unsigned n);
/* Puts the first n elements of order into a random order (Fisher and Yates). */
void random_shuffle(struct random *r, unsigned *order, unsigned n);

/* NaN where it is not known: fewer than two values. */
struct interval {
	double low, high;
};

/* Return the 95 % interval of the mean of v, and of mean(b) / mean(a), where a[i] and b[i] belong to one round and are
 * drawn together. Percentiles of BOOTSTRAP_RESAMPLES means, at probabilities widened for few values (Hesterberg: What
 * teachers should know about the bootstrap, 2014, section 5: expanded percentile interval). */
struct interval bootstrap_mean(const double *v, unsigned n, uint64_t seed);
struct interval bootstrap_ratio(const double *a, const double *b, unsigned n, uint64_t seed);

struct summary {
	unsigned n; /* number of known values */
	double mean, median, min, max, stddev; /* stddev of the sample (n - 1), 0 for one value */
	struct interval interval; /* 95 % interval of the mean */
};

/* Values that are NaN are left out. No value: n = 0, the rest is 0. */
struct summary summary_of(const double *v, unsigned n, uint64_t seed);

#endif
