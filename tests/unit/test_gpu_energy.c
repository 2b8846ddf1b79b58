/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of a GPU from its counter and from its power, against curves that can be integrated on paper. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>
#include "base/clock.h"
#include "source/gpu/gpu_ops.h"

#define MS NS_PER_MS

/* 100 W for 10 s, counted in steps of 20 ms, looked at every 100 ms. */
static void steady_counter(void **state)
{
	struct gpu_energy e;

	gpu_energy_start(&e, 1000 * MS);
	for (uint64_t t = 1000; t <= 11000; t += 100)
		gpu_energy_counter(&e, 7000 + t / 20 * 20 * 100, t * MS);
	assert_int_equal(e.uj, 1000000000); /* 100 W x 10 s */
	assert_int_equal(e.time_ns, 11000 * MS);
	assert_int_equal(e.resets + e.dropped + e.gaps, 0);
}

/* A look between two steps moves neither energy nor its time. */
static void no_step_no_time(void **state)
{
	struct gpu_energy e;

	gpu_energy_start(&e, 0);
	gpu_energy_counter(&e, 100, 10 * MS);
	gpu_energy_counter(&e, 200, 20 * MS);
	gpu_energy_counter(&e, 200, 25 * MS);
	assert_int_equal(e.uj, 100000);
	assert_int_equal(e.time_ns, 20 * MS);
	gpu_energy_counter(&e, 200, 700 * MS); /* it stands */
	assert_int_equal(e.time_ns, 700 * MS);
	assert_int_equal(e.uj, 100000);
}

/* The driver is loaded anew: what was before stays, what falls into the gap is not invented. */
static void reset(void **state)
{
	struct gpu_energy e;

	gpu_energy_start(&e, 0);
	gpu_energy_counter(&e, 5000000, 100 * MS);
	gpu_energy_counter(&e, 5010000, 200 * MS);
	gpu_energy_counter(&e, 12, 300 * MS);
	assert_int_equal(e.resets, 1);
	assert_int_equal(e.uj, 10000000);
	gpu_energy_counter(&e, 10012, 400 * MS);
	assert_int_equal(e.uj, 20000000);
}

/* Terawatts were seen where a power state changed. */
static void spike(void **state)
{
	struct gpu_energy e;

	gpu_energy_start(&e, 0);
	gpu_energy_counter(&e, 1000, 100 * MS);
	gpu_energy_counter(&e, 1000 + 4294967, 200 * MS);
	assert_int_equal(e.uj, 0);
	assert_int_equal(e.dropped, 1);
	gpu_energy_counter(&e, 1000 + 4294967 + 30, 300 * MS);
	assert_int_equal(e.uj, 30000);
	gpu_energy_power(&e, 20000000, 310 * MS);
	assert_int_equal(e.dropped, 2);
}

/* Without a counter: a ramp from 0 to 200 W in 10 s is 1000 J, exactly what trapezoids give. */
static void ramp(void **state)
{
	struct gpu_energy e;

	gpu_energy_start(&e, 0);
	for (uint64_t t = 0; t <= 10000; t += 50)
		gpu_energy_power(&e, t * 20, t * MS);
	assert_int_equal(e.uj, 1000000000);
	assert_int_equal(e.time_ns, 10000 * MS);
}

static void silence(void **state)
{
	struct gpu_energy e;

	gpu_energy_start(&e, 0);
	gpu_energy_power(&e, 100000, 100 * MS);
	gpu_energy_power(&e, 100000, 200 * MS);
	gpu_energy_power(&e, 100000, 60200 * MS);
	assert_int_equal(e.uj, 10000000); /* the minute between is not bridged */
	assert_int_equal(e.gaps, 1);
	gpu_energy_gap(&e);
	assert_int_equal(e.gaps, 2);
	gpu_energy_power(&e, 100000, 60300 * MS);
	assert_int_equal(e.uj, 10000000);
}

/* The counter is what counts; who differs by 8 % is told. */
static void disagreement(void **state)
{
	struct gpu_energy e;
	double gap = 0;
	bool told = false;

	gpu_energy_start(&e, 0);
	for (uint64_t t = 100; t <= 40000 && !told; t += 100) {
		gpu_energy_counter(&e, t * 100, t * MS);
		gpu_energy_power(&e, 108000, t * MS);
		told = gpu_energy_compare(&e, t * MS, &gap);
	}
	assert_true(told);
	assert_true(fabs(gap - 0.08) < 0.005);
	assert_int_equal(e.uj % 1000000, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady_counter), cmocka_unit_test(no_step_no_time),
		cmocka_unit_test(reset),          cmocka_unit_test(spike),
		cmocka_unit_test(ramp),           cmocka_unit_test(silence),
		cmocka_unit_test(disagreement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
