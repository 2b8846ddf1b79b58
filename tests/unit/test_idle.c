/* SPDX-License-Identifier: Apache-2.0 */
/* Idle power: machines with a known idle power, measured with noise, and what is learned of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formula/idle.h"

#define S 1000000000ull
#define CPUS 4

static uint64_t seed = 7;
static double random01(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) * 0x1p-53;
}

struct world {
	struct idle idle;
	uint64_t now_ns;
};

static struct idle_point point(struct world *w, uint64_t duration_ns, double busy, double watts)
{
	w->now_ns += duration_ns;
	return (struct idle_point){ .end_ns = w->now_ns,
				    .duration_ns = duration_ns,
				    .energy_uj = (uint64_t)llround(watts * (double)duration_ns / 1e3),
				    .busy_ns = (uint64_t)llround(busy * CPUS * (double)duration_ns),
				    .elapsed_ns = CPUS * duration_ns };
}

static void learn(struct world *w, double busy, double watts)
{
	struct idle_point p = point(w, S, busy, watts);

	idle_learn(&w->idle, &p, true);
}

static double learned(const struct world *w)
{
	return (double)idle_power_uw(&w->idle) / 1e6;
}

static void assert_watts(double found, double low, double high)
{
	if (found < low || found > high)
		fail_msg("%.4f W is not in %.4f .. %.4f W", found, low, high);
}

static void test_nothing_seen(void **state)
{
	struct world w = { .now_ns = S };
	struct idle_point p = point(&w, S, 0.5, 10);

	assert_int_equal(idle_power_uw(&w.idle), 0);
	assert_true(idle_is_estimated(&w.idle));
	idle_learn(&w.idle, &p, false);
	assert_int_equal(idle_power_uw(&w.idle), 0);
}

/* P = 12 W + 30 W x busy share, without noise. */
static void test_line(void **state)
{
	struct world w = { .now_ns = S };

	for (unsigned k = 0; k < 600; k++) {
		double busy = random01();

		learn(&w, busy, 12 + 30 * busy);
	}
	assert_watts(learned(&w), 11.999, 12.001);
	assert_false(idle_is_estimated(&w.idle));
}

/* 5 % noise, and every tenth interval something that takes 20 W without CPU time. */
static void test_noise_and_outliers(void **state)
{
	struct world w = { .now_ns = S };

	for (unsigned k = 0; k < 3000; k++) {
		double busy = 0.02 + 0.9 * random01() * random01(), watts = 12 + 30 * busy;

		watts *= 0.95 + 0.1 * random01();
		learn(&w, busy, k % 10 == 3 && k % 600 < 200 ? watts + 20 : watts);
	}
	assert_watts(learned(&w), 11, 12.6);
}

/* Two minutes that make no sense in an hour that does. */
static void test_odd_minutes(void **state)
{
	struct world w = { .now_ns = S };

	for (unsigned k = 0; k < 3500; k++) {
		double busy = 0.05 + 0.5 * random01();

		learn(&w, busy, k >= 1800 && k < 1920 ? 90 : 12 + 30 * busy);
	}
	assert_watts(learned(&w), 11.5, 12.5);
}

/* Power that rises fast at first (the package leaves its sleep states): never above the smallest seen. */
static void test_never_above_smallest(void **state)
{
	struct world w = { .now_ns = S };
	double smallest = INFINITY;

	for (unsigned k = 0; k < 2000; k++) {
		double busy = random01(), watts = 5 + 40 * sqrt(busy) * (0.9 + 0.2 * random01());

		smallest = fmin(smallest, watts);
		learn(&w, busy, watts);
		assert_true(learned(&w) <= smallest + 1e-6);
	}
}

static void test_estimated_until_below_half(void **state)
{
	struct world w = { .now_ns = S };

	for (unsigned k = 0; k < 100; k++)
		learn(&w, 0.6 + 0.4 * random01(), 30);
	assert_true(idle_is_estimated(&w.idle));
	learn(&w, 0.49, 20);
	assert_false(idle_is_estimated(&w.idle));
}

/* Always full: one point, from which P x (1 - u) remains. */
static void test_one_point(void **state)
{
	struct world full = { .now_ns = S }, quarter = { .now_ns = S };

	for (unsigned k = 0; k < 10; k++) {
		learn(&full, 1, 50);
		learn(&quarter, 0.25, 20);
	}
	assert_watts(learned(&full), 0, 0.001);
	assert_watts(learned(&quarter), 14.999, 15.001);
}

/* After an hour only the new hour counts; a full hour keeps what low loads taught. */
static void test_sliding_hour(void **state)
{
	struct world w = { .now_ns = S };

	for (unsigned k = 0; k < 600; k++) {
		double busy = random01();

		learn(&w, busy, 12 + 30 * busy);
	}
	for (unsigned k = 0; k < 4000; k++) {
		double busy = random01();

		learn(&w, busy, 20 + 30 * busy);
	}
	assert_watts(learned(&w), 19.99, 20.01);
	for (unsigned k = 0; k < 4000; k++)
		learn(&w, 0.9 + 0.1 * random01(), 48);
	assert_watts(learned(&w), 19.99, 20.01);
	assert_false(idle_is_estimated(&w.idle));
	for (unsigned k = 0; k < 4000; k++)
		learn(&w, 0.95, 10);
	assert_watts(learned(&w), 9.99, 10.01); /* still never above the smallest */
}

/* 10 ms intervals with counters that update each millisecond: joined before they count. */
static void test_short_intervals(void **state)
{
	struct world w = { .now_ns = S };
	double smallest = INFINITY;

	for (unsigned k = 0; k < 60000; k++) {
		double busy = (k / 3000) % 10 * 0.1, watts = (12 + 30 * busy) * (random01() < 0.5 ? 0.1 : 1.9);
		struct idle_point p = point(&w, S / 100, busy, watts);

		smallest = fmin(smallest, watts);
		idle_learn(&w.idle, &p, true);
	}
	assert_watts(learned(&w), 8, 13);
	assert_true(smallest < 2);
}

static void test_power_that_falls(void **state)
{
	struct world w = { .now_ns = S };

	for (unsigned k = 0; k < 600; k++) {
		double busy = random01();

		learn(&w, busy, 40 - 20 * busy);
	}
	assert_watts(learned(&w), 20, 30); /* slope taken as 0: near the middle, below the smallest seen */
	assert_watts(learned(&w), 0, 20.5);
}

/* A domain that always reads 0, and time that goes back (another recording). */
static void test_odd_input(void **state)
{
	struct world w = { .now_ns = 5000 * S };

	for (unsigned k = 0; k < 100; k++)
		learn(&w, random01(), 0);
	assert_int_equal(idle_power_uw(&w.idle), 0);
	w.now_ns = S;
	learn(&w, 0, 25);
	assert_watts(learned(&w), 24.999, 25.001);
	w.now_ns = UINT64_MAX - 10 * S;
	learn(&w, 0, 30);
	assert_watts(learned(&w), 29.999, 30.001);
}

/* 3.333 W over 700 ns and more: each charge is cut to microjoules, their sum is not. */
static void test_charge_carries(void **state)
{
	struct world w = { .now_ns = S };
	uint64_t charged = 0, elapsed_ns = 0;

	for (unsigned k = 0; k < 100000; k++) {
		struct idle_point p = point(&w, 700 + k % 13, 0, 1000);

		charged += idle_charge(&w.idle, &p, 3333000);
		elapsed_ns += p.duration_ns;
	}
	assert_int_equal(charged, 3333 * elapsed_ns / 1000000);
}

static void test_charge_is_clamped(void **state)
{
	struct world w = { .now_ns = S };
	struct idle_point p = point(&w, S, 0.5, 10);

	assert_int_equal(idle_charge(&w.idle, &p, 4000000), 4000000);
	assert_int_equal(idle_charge(&w.idle, &p, 11000000), 10000000);
	assert_int_equal(idle_charge(&w.idle, &p, 4000000), 4000000);
	p.duration_ns = 0;
	assert_int_equal(idle_charge(&w.idle, &p, 4000000), 0);
	p = (struct idle_point){ .duration_ns = UINT64_MAX, .energy_uj = UINT64_MAX };
	assert_int_equal(idle_charge(&w.idle, &p, UINT64_MAX), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_seen),
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_noise_and_outliers),
		cmocka_unit_test(test_odd_minutes),
		cmocka_unit_test(test_never_above_smallest),
		cmocka_unit_test(test_estimated_until_below_half),
		cmocka_unit_test(test_one_point),
		cmocka_unit_test(test_sliding_hour),
		cmocka_unit_test(test_short_intervals),
		cmocka_unit_test(test_power_that_falls),
		cmocka_unit_test(test_odd_input),
		cmocka_unit_test(test_charge_carries),
		cmocka_unit_test(test_charge_is_clamped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
