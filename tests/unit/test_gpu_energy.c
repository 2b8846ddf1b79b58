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

/* A GPU whose counter moves every 100 ms and is asked every 800 ms, at another phase each time, and whose power is asked every
 * 100 ms. */
struct carried {
	double watts; /* truly */
	double told; /* the sensor's, relative to it */
	double lag_ms; /* of the sensor, when watts change */
	double joules, mean; /* up to now; what the sensor has come to */
	struct gpu_energy e;
	uint64_t ms, counted_mj, due_ms, asked;
};

static void carried_start(struct carried *c, double watts)
{
	c->watts = c->mean = watts;
	gpu_energy_start(&c->e, 0);
	gpu_energy_counter(&c->e, 0, 0);
	gpu_energy_power(&c->e, (uint64_t)(watts * c->told * 1000), 0);
	gpu_energy_carry(&c->e);
}

static void carried_run(struct carried *c, uint64_t until_ms)
{
	for (; c->ms < until_ms;) {
		c->ms++;
		c->joules += c->watts / 1000;
		c->mean += c->lag_ms > 0 ? (c->watts - c->mean) / c->lag_ms : c->watts - c->mean;
		if (c->ms % 100 == 0)
			c->counted_mj = (uint64_t)(c->joules * 1000);
		if (c->ms % 100 != 37)
			continue;
		gpu_energy_power(&c->e, (uint64_t)(c->mean * c->told * 1000), c->ms * MS);
		if (c->ms < c->due_ms)
			continue;
		/* a look that was late sees a step more */
		gpu_energy_counter(&c->e, c->counted_mj - (c->asked++ % 3 == 2) * (uint64_t)(c->watts * 100),
				   c->ms * MS);
		c->due_ms = c->ms + 800;
	}
}

/* Watts of a second do not jump with the counter's steps, and the total is the counter's but for one step. */
static void carried_steady(void **state)
{
	struct carried c = { .told = 1 };
	uint64_t before = 0;

	carried_start(&c, 700);
	for (uint64_t s = 1; s <= 60; s++) {
		carried_run(&c, s * 1000);
		if (s > 1)
			assert_in_range(c.e.uj - before, 700e6 * 0.96, 700e6 * 1.04);
		before = c.e.uj;
	}
	assert_true(fabs((double)c.e.uj / 1e6 - c.joules) < 700 * 0.2);
	assert_int_equal(c.e.time_ns, 59937 * MS);
	assert_int_equal(c.e.gaps + c.e.resets + c.e.dropped, 0);
}

/* Readings that fall between looks have the energy up to their instant. */
static void carried_to_the_reading(void **state)
{
	struct carried c = { .told = 1 };
	uint64_t before = 0;

	carried_start(&c, 700);
	for (uint64_t ms = 250; ms <= 20000; ms += 250) {
		carried_run(&c, ms);
		gpu_energy_reach(&c.e, ms * MS);
		assert_int_equal(c.e.time_ns, ms * MS);
		if (ms > 2000)
			assert_in_range(c.e.uj - before, 175e6 * 0.9, 175e6 * 1.1);
		before = c.e.uj;
	}
	assert_true(fabs((double)c.e.uj / 1e6 - c.joules) < 700 * 0.2);
}

/* A look that began before a reading may be told after it. */
static void carried_out_of_order(void **state)
{
	struct gpu_energy e;

	gpu_energy_start(&e, 0);
	gpu_energy_counter(&e, 0, 0);
	gpu_energy_power(&e, 100000, 0);
	gpu_energy_carry(&e);
	gpu_energy_reach(&e, 200 * MS);
	gpu_energy_power(&e, 300000, 199 * MS);
	gpu_energy_reach(&e, 150 * MS);
	assert_int_equal(e.gaps, 0);
	assert_int_equal(e.uj, 20000000);
	assert_int_equal(e.time_ns, 200 * MS);
	gpu_energy_power(&e, 300000, 300 * MS);
	assert_int_equal(e.uj, 50000000);
}

/* A sensor that tells 5 % too much, or too little, does not count: the total stays the counter's. */
static void carried_bias(void **state)
{
	for (double told = 0.95; told < 1.1; told += 0.1) {
		struct carried c = { .told = told };

		carried_start(&c, 500);
		carried_run(&c, 200000);
		assert_true(fabs((double)c.e.uj / 1e6 - c.joules) < 500 * 0.45);
	}
}

/* A sensor that tells the mean of a second lags behind what begins and ends; the counter's next answer mends it. */
static void carried_lag(void **state)
{
	struct carried c = { .told = 1, .lag_ms = 500 };

	carried_start(&c, 70);
	carried_run(&c, 5000);
	c.watts = 700;
	carried_run(&c, 10000);
	assert_true(fabs((double)c.e.uj / 1e6 - c.joules) < 700 * 0.45);
	c.watts = 70;
	carried_run(&c, 20000);
	assert_true(fabs((double)c.e.uj / 1e6 - c.joules) < 70 * 0.45 + 1);
}

/* What power carried too far is not taken back: energy waits until the counter has come so far. */
static void carried_never_back(void **state)
{
	struct gpu_energy e;
	uint64_t before = 0;

	gpu_energy_start(&e, 0);
	gpu_energy_counter(&e, 0, 0);
	gpu_energy_power(&e, 100000, 0);
	gpu_energy_carry(&e);
	for (uint64_t t = 100; t <= 20000; t += 100) {
		gpu_energy_power(&e, t < 1000 ? 1000000 : 100000, t * MS);
		if (t % 1000 == 0)
			gpu_energy_counter(&e, t * 100, t * MS);
		assert_true(e.uj >= before);
		before = e.uj;
	}
	assert_true(fabs((double)e.uj / 1e6 - 2000) < 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carried_steady),
		cmocka_unit_test(carried_to_the_reading),
		cmocka_unit_test(carried_out_of_order),
		cmocka_unit_test(carried_bias),
		cmocka_unit_test(carried_lag),
		cmocka_unit_test(carried_never_back),
		cmocka_unit_test(steady_counter),
		cmocka_unit_test(no_step_no_time),
		cmocka_unit_test(reset),
		cmocka_unit_test(spike),
		cmocka_unit_test(ramp),
		cmocka_unit_test(silence),
		cmocka_unit_test(disagreement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
