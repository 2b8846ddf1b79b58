// SPDX-License-Identifier: Apache-2.0
/* The pace of samples, and the period of a priced counter, differ from interval to interval by at most a sixteenth, around what was
 * due, and not more often than the sampler can bear. How many are due follows what each column costs. The sampler here is none: it only takes down what it is told. */
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

#define EVENTS 3

static uint64_t pace_ns, rest_ns, period[EVENTS];
static bool lacks[EVENTS];
static unsigned paces;

void sampler_events(struct sampler *s, const struct event_set *events, const struct event_variants *variants)
{
}

const char *sampler_lacks(const struct sampler *s, unsigned event)
{
	return lacks[event] ? "there is no such counter here" : NULL;
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

uint64_t sampler_period_for(const struct sampler *s, uint64_t counts, uint64_t cpu_ns, double times)
{
	return cpu_ns ? (uint64_t)((double)counts / (double)cpu_ns * (double)MEAN_NS / times) : 0;
}

void sampler_period(struct sampler *s, unsigned event, uint64_t to)
{
	assert_true(event < EVENTS);
	period[event] = to;
}

uint64_t sampler_period_of(const struct sampler *s, unsigned event)
{
	return period[event];
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
	/* time and one counter have three times the rate. The counter costs three times as much: half a time, and 2 x 3 / 4 */
	const double mean_counts = (double)COUNTS * (double)MEAN_NS / NS_PER_S / 2;
	double sum = 0, sum_counts = 0, least = 1, most = -1;
	uint64_t before = 0, period_before = 0;

	pace_ns = period[0] = rest_ns = 0;
	for (unsigned i = 0; i < INTERVALS; i++) {
		double x;

		interval(&p, &r);
		assert_int_not_equal(pace_ns, before);
		assert_int_not_equal(period[0], period_before);
		before = pace_ns;
		period_before = period[0];
		x = share_of(pace_ns, (double)MEAN_NS);
		sum += x;
		least = x < least ? x : least;
		most = x > most ? x : most;
		sum_counts += share_of(period[0], mean_counts);
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
	period[0] = (uint64_t)((double)COUNTS * (double)MEAN_NS / NS_PER_S / 2);
	for (unsigned i = 0; i < 20; i++)
		interval(&p, &r);
	assert_int_equal(paces, 0);
	rest_ns = 0;
	interval(&p, &r);
	assert_int_equal(paces, 1);
	row_shares_free(&r);
}

/* How often a column is sampled in the mean of many intervals, in times of the rate that was asked for; time is the last. */
struct rates {
	double of[EVENTS + 1];
};

static struct rates rates_of(struct priced *p, unsigned n_domains, const struct snap_price *price)
{
	struct row_shares r = { .n_domains = n_domains };
	struct rates sum = { { 0 } };

	rest_ns = 0;
	pace_ns = MEAN_NS;
	memset(period, 0, sizeof(period));
	p->events.n = EVENTS;
	for (unsigned i = 0; i < INTERVALS; i++) {
		uint64_t counted[SCHEMA_MAX_EVENTS] = { 0 };

		for (unsigned e = 0; e < EVENTS; e++)
			counted[e] = p->counted[e] + COUNTS;
		assert_int_equal(priced_take(p, NULL, &r, price, counted, p->cpu_ns + NS_PER_S), 0);
		for (unsigned e = 0; e < EVENTS; e++)
			sum.of[e] += period[e] ? (double)COUNTS * (double)MEAN_NS / NS_PER_S / (double)period[e] /
							 INTERVALS :
						 0;
		sum.of[EVENTS] += (double)MEAN_NS / (double)pace_ns / INTERVALS;
	}
	row_shares_free(&r);
	return sum;
}

static void assert_rates(const struct rates *got, double a, double b, double c, double time)
{
	const double want[] = { a, b, c, time };

	for (unsigned i = 0; i <= EVENTS; i++)
		if (got->of[i] < want[i] * 0.98 || got->of[i] > want[i] * 1.02)
			fail_msg("column %u has %f times the rate, not %f", i, got->of[i], want[i]);
}

/* Samples are dealt out by what a column costs. */
static void test_deals(void **state)
{
	/* of 10 J a second time has 5, and the counters 3, 1 and 1 */
	const struct snap_price mixed = { .per_second = 5, .per_count = { 3e-9 / 3, 1e-9 / 3, 1e-9 / 3 } },
				timeless = { .per_count = { 1e-9, 1e-9, 1e-9 } }, free_of_charge = { .per_second = 5 },
				rare[] = { free_of_charge, { .per_count = { 7 } } };
	struct rates got = rates_of(&(struct priced){ 0 }, 1, &mixed);

	assert_rates(&got, 0.5 + 3 * 0.3, 0.5 + 3 * 0.1, 0.5 + 3 * 0.1, 0.5 + 3 * 0.5);
	got = rates_of(&(struct priced){ 0 }, 1, &timeless); /* CPU time is told all the same */
	assert_rates(&got, 4.0 / 3, 4.0 / 3, 4.0 / 3, 1);
	got = rates_of(&(struct priced){ 0 }, 1, &free_of_charge);
	assert_rates(&got, 0, 0, 0, 1);
	/* a domain that is a part of others has no say, but its samples */
	got = rates_of(&(struct priced){ .beside = { [1] = true } }, 2, rare);
	assert_rates(&got, 0.5, 0, 0, 2.5);
	lacks[0] = true; /* what cannot be sampled gets none of them */
	got = rates_of(&(struct priced){ 0 }, 1, &mixed);
	assert_rates(&got, 0, 0.5 + 2.5 / 7, 0.5 + 2.5 / 7, 0.5 + 2.5 * 5 / 7);
	lacks[0] = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_differs),
		cmocka_unit_test(test_rests),
		cmocka_unit_test(test_deals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
