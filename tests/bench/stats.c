// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench.h"

void samples_add(struct samples *s, double v)
{
	if (s->n < BENCH_MAX_SAMPLES)
		s->v[s->n++] = v;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double samples_quantile(const struct samples *s, double q)
{
	struct samples sorted = *s;
	double at, low;

	if (!s->n)
		return NAN;
	qsort(sorted.v, sorted.n, sizeof(sorted.v[0]), by_value);
	at = q * (sorted.n - 1);
	low = floor(at);
	if ((unsigned)low + 1 >= sorted.n)
		return sorted.v[sorted.n - 1];
	return sorted.v[(unsigned)low] + (at - low) * (sorted.v[(unsigned)low + 1] - sorted.v[(unsigned)low]);
}

double samples_error(const struct samples *s)
{
	double deviation = (samples_quantile(s, 0.75) - samples_quantile(s, 0.25)) / 1.349;

	return 1.2533 * deviation / sqrt(s->n);
}

/* xorshift64*: order only, so that a variant does not always meet the same neighbour. */
void shuffle(unsigned *order, unsigned n, uint64_t *seed)
{
	for (unsigned i = n; i > 1; i--) {
		unsigned j, t;

		*seed ^= *seed >> 12;
		*seed ^= *seed << 25;
		*seed ^= *seed >> 27;
		j = (unsigned)((*seed * 2685821657736338717ull) >> 33) % i;
		t = order[i - 1];
		order[i - 1] = order[j];
		order[j] = t;
	}
}

uint64_t bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

void bench_die(const char *what, int err)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(err));
	exit(1);
}
