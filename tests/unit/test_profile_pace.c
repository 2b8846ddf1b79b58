// SPDX-License-Identifier: Apache-2.0
/* The pace of samples, and the period of a priced counter, differ from interval to interval by at most a sixteenth, around what was
 * asked for, and not more often than the sampler can bear. The sampler here is none: it only takes down what it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/clock.h"
#include "profile/priced.h"

#define MEAN_NS 10101010ull /* 99 Hz */
#define INTERVALS 400
#define COUNTS 3000000000ull /* in a second of CPU time */

static uint64_t pace_ns, rest_ns, period;
static unsigned paces;

void sampler_events(struct sampler *s, const struct event_set *events, const struct event_variants *variants)
{
}

const char *sampler_lacks(const struct sampler *s, unsigned event)
{
	return NULL;
}

uint64_t sampler_mean_ns(const struct sampler *s)
{
	return MEAN_NS;
}

uint64_t sampler_rest_ns(const struct sampler *s)
{
	return rest_ns;
}

void sampler_pace(struct sampler *s, uint64_t ns)
{
	pace_ns = ns;
	paces++;
}

uint64_t sampler_period_for(const struct sampler *s, uint64_t counts, uint64_t cpu_ns)
{
	return cpu_ns ? (uint64_t)((double)counts / (double)cpu_ns * (double)MEAN_NS) : 0;
}

void sampler_period(struct sampler *s, unsigned event, uint64_t to)
{
	assert_int_equal(event, 0);
	period = to;
}

uint64_t sampler_period_of(const struct sampler *s, unsigned event)
{
	return period;
}

static void interval(struct priced *p, struct row_shares *r)
{
	const struct snap_price price = { .per_second = 1, .per_count = { 1e-9 } };
	uint64_t counted[SCHEMA_MAX_EVENTS] = { p->counted[0] + COUNTS };

	assert_int_equal(priced_take(p, NULL, r, &price, counted, p->cpu_ns + NS_PER_S), 0);
}

static double share_of(uint64_t got, double mean)
{
	const double x = (double)got / mean - 1;

	assert_true(x >= -1.0 / 16 - 1e-6 && x <= 1.0 / 16 + 1e-6);
	return x;
}

static void test_differs(void **state)
{
	struct priced p = { .events = { .n = 1, .ev = { { .name = "CYCLES", .kind = EVENT_PERF } } } };
	struct row_shares r = { .n_domains = 1 };
	const double mean_counts = (double)COUNTS * (double)MEAN_NS / NS_PER_S;
	double sum = 0, sum_counts = 0, least = 1, most = -1;
	uint64_t before = 0, period_before = 0;

	pace_ns = period = rest_ns = 0;
	for (unsigned i = 0; i < INTERVALS; i++) {
		double x;

		interval(&p, &r);
		assert_int_not_equal(pace_ns, before);
		assert_int_not_equal(period, period_before);
		before = pace_ns;
		period_before = period;
		x = share_of(pace_ns, (double)MEAN_NS);
		sum += x;
		least = x < least ? x : least;
		most = x > most ? x : most;
		sum_counts += share_of(period, mean_counts);
	}
	/* an even spread over an eighth: its mean is off by 0.0018 once in three times */
	assert_true(sum / INTERVALS > -0.01 && sum / INTERVALS < 0.01);
	assert_true(sum_counts / INTERVALS > -0.01 && sum_counts / INTERVALS < 0.01);
	assert_true(least < -0.05 && most > 0.05);
	row_shares_free(&r);
}

/* A change loses half a sample, so a pace is kept for as long as the sampler says. */
static void test_rests(void **state)
{
	struct priced p = { .events = { .n = 1, .ev = { { .name = "CYCLES", .kind = EVENT_PERF } } } };
	struct row_shares r = { .n_domains = 1 };

	rest_ns = 3600 * NS_PER_S;
	p.changed_ns = clock_mono_ns();
	paces = 0;
	period = (uint64_t)((double)COUNTS * (double)MEAN_NS / NS_PER_S);
	for (unsigned i = 0; i < 20; i++)
		interval(&p, &r);
	assert_int_equal(paces, 0);
	rest_ns = 0;
	interval(&p, &r);
	assert_int_equal(paces, 1);
	row_shares_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_differs),
		cmocka_unit_test(test_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
