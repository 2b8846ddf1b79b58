// SPDX-License-Identifier: Apache-2.0
/* Power at the wall against machines whose truth is known by cause (wall_plant.h): learned from some loads, judged on others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "wall_plant.h"

#define SECONDS 5 /* of a point */
#define LEARNED 240 /* points: 20 minutes */
#define JUDGED 400 /* seconds, of other loads */
#define MACHINES 10

static const struct plant_kind kinds[] = {
	{ "server, fans told", 35, 40, 160, 12, 8, 0.05, 0.00025, 0.008, 0.05, 0.004, 0.003, 24, 20, true, 0.003 },
	{ "server, fans not told", 35, 40, 160, 12, 8, 0.05, 0.00025, 0.008, 0.05, 0.004, 0.003, 24, 20, false, 0.003 },
	{ "desktop", 12, 8, 90, 4, 4, 0.08, 0.0005, 0.006, 0.04, 0.002, 0.001, 4, 30, true, 0.005 },
	{ "fanless", 5, 3, 25, 2, 1.5, 0.1, 0.001, 0.004, 0.03, 0.002, 0.001, 0, 0, false, 0.01 },
	{ "two sockets, coarse meter", 70, 90, 420, 40, 15, 0.04, 0.00008, 0.02, 0.08, 0.006, 0.004, 60, 15, true,
	  0.01 },
};

struct errors {
	double sum, worst, held, n, cause[4], cause_true[4];
};

static void judge(const struct wall_model *m, struct plant *p, struct errors *e)
{
	for (unsigned s = 0; s < JUDGED; s += SECONDS) {
		struct wall_point point = { 0 };
		double truth = 0, part[4] = { 0 }, missed;
		struct wall_power told;

		for (unsigned i = 0; i < SECONDS; i++) {
			plant_tick(p);
			truth += p->truth_total / SECONDS;
			part[0] += p->truth_supply / SECONDS;
			part[1] += p->truth_fans / SECONDS;
			part[2] += p->truth_disk / SECONDS;
			part[3] += p->truth_network / SECONDS;
			for (unsigned k = 0; k < WALL_INPUTS; k++)
				point.x[k] += p->x[k] / SECONDS;
		}
		told = wall_power(m, point.x);
		missed = fabs(told.total - truth) / truth;
		e->sum += missed;
		e->worst = fmax(e->worst, missed);
		e->held += missed <= m->half_width;
		e->n++;
		for (unsigned c = 0; c < 4; c++) {
			const double told_part[4] = { told.supply, told.fans, told.disk, told.network };

			e->cause[c] += told_part[c];
			e->cause_true[c] += part[c];
		}
		assert_float_equal(told.total,
				   told.base + told.inside + told.supply + told.fans + told.disk + told.network, 1e-9);
	}
}

static unsigned learn(struct plant *p, struct wall_point *points)
{
	for (unsigned i = 0; i < LEARNED; i++)
		points[i] = plant_point(p, SECONDS);
	return LEARNED;
}

static void test_held_out_loads(void **state)
{
	static struct wall_point points[WALL_POINTS];

	for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct errors e = { 0 };
		double width = 0;

		for (unsigned seed = 1; seed <= MACHINES; seed++) {
			struct plant p = plant_new(&kinds[k], seed), other = plant_new(&kinds[k], 1000 + seed);
			struct wall_model m;

			assert_true(wall_fit(points, learn(&p, points), &m));
			width += m.half_width / MACHINES;
			judge(&m, &other, &e);
		}
		printf("%-28s mean %.2f %% worst %.2f %% said %.2f %% holds %.1f %%; by cause, told of true: supply %.2f fans %.2f "
		       "disk %.2f network %.2f\n",
		       kinds[k].name, 100 * e.sum / e.n, 100 * e.worst, 100 * width, 100 * e.held / e.n,
		       e.cause[0] / e.cause_true[0], e.cause_true[1] > 0 ? e.cause[1] / e.cause_true[1] : NAN,
		       e.cause[2] / e.cause_true[2], e.cause[3] / e.cause_true[3]);
		assert_true(e.sum / e.n <= 0.03);
		assert_true(e.worst <= 0.05);
		assert_true(e.held / e.n >= 0.90);
		assert_true(e.cause[2] / e.cause_true[2] > 0.9 && e.cause[2] / e.cause_true[2] < 1.1);
		assert_true(e.cause[3] / e.cause_true[3] > 0.9 && e.cause[3] / e.cause_true[3] < 1.1);
		assert_true(!kinds[k].sensor || fabs(e.cause[1] / e.cause_true[1] - 1) < 0.1);
	}
}

static void test_says_when_outside(void **state)
{
	static struct wall_point points[WALL_POINTS];
	struct plant p = plant_new(&kinds[0], 5);
	struct wall_model m;
	double x[WALL_INPUTS];

	p.busy = 0.5;
	assert_true(wall_fit(points, learn(&p, points), &m));
	memcpy(x, points[LEARNED / 2].x, sizeof(x));
	assert_int_equal(wall_power(&m, x).outside, 0);
	x[WALL_CPU] = 1.2 * m.high[WALL_CPU];
	assert_int_equal(wall_power(&m, x).outside, 1u << WALL_CPU);
	x[WALL_CPU] = m.high[WALL_CPU];
	x[WALL_GPU] = 200; /* it was never there */
	assert_int_equal(wall_power(&m, x).outside, 1u << WALL_GPU);
}

static void test_too_little(void **state)
{
	static struct wall_point points[WALL_POINTS];
	struct plant p = plant_new(&kinds[0], 3);
	struct wall_model m;

	learn(&p, points);
	assert_false(wall_fit(points, WALL_READY - 1, &m));
	assert_int_equal(m.points, 0);
	for (unsigned i = 0; i < LEARNED; i++)
		points[i].x[WALL_CPU] = 50; /* the load never changed */
	assert_false(wall_fit(points, LEARNED, &m));
}

/* One point in twenty that is wild: a meter that sticks. */
static void test_wild_points(void **state)
{
	static struct wall_point points[WALL_POINTS];
	struct plant p = plant_new(&kinds[0], 8), other = plant_new(&kinds[0], 9);
	struct errors e = { 0 };
	struct wall_model m;

	learn(&p, points);
	for (unsigned i = 0; i < LEARNED; i += 20)
		points[i].watts *= 1.6;
	assert_true(wall_fit(points, LEARNED, &m));
	judge(&m, &other, &e);
	printf("wild points: mean %.2f %% worst %.2f %%\n", 100 * e.sum / e.n, 100 * e.worst);
	assert_true(e.sum / e.n <= 0.03);
}

enum holds { NOTHING, DISK, NETWORK, BOTH, HOLDS };

/* psys of a machine: packages and memory with what their regulators lose, something that comes and goes as it likes, and the work
 * that it holds. */
static unsigned learn_psys(const struct plant_kind *k, uint64_t seed, enum holds holds, struct wall_point *points)
{
	struct plant p = plant_new(k, seed), other = plant_new(k, 5000 + seed);

	for (unsigned i = 0; i < LEARNED; i++) {
		struct wall_point point = { .when = i };

		for (unsigned s = 0; s < SECONDS; s++) {
			plant_tick(&p);
			plant_tick(&other);
			point.watts += 4 + 1.07 * (p.x[WALL_CPU] + p.x[WALL_DRAM]) + 0.03 * k->board * other.load;
			point.watts += holds & DISK ? p.truth_disk : 0;
			point.watts += holds & NETWORK ? p.truth_network : 0;
			for (unsigned n = 0; n < WALL_INPUTS; n++)
				point.x[n] += p.x[n] / SECONDS;
		}
		point.watts *= (1 + 0.001 * plant_normal(&p)) / SECONDS;
		points[i] = point;
	}
	return LEARNED;
}

static bool has_any(const struct wall_model *m, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		if (m->used >> i & 1 || m->price[i] > 0)
			return true;
	return false;
}

/* Joules that the model tells for what was moved, beside the true ones. */
static double told_of_true(const struct wall_model *m, const struct plant_kind *k, const struct wall_point *points)
{
	double told = 0, truth = 0;

	for (unsigned i = 0; i < LEARNED; i++) {
		const double *x = points[i].x;

		told += m->gain * wall_power(m, x).disk;
		truth += (x[WALL_READ] + x[WALL_WRITE]) * k->per_mb + x[WALL_REQUESTS] * k->per_request;
	}
	return told / truth;
}

/* What is in psys is found there, and what is not in it has no price. */
static void test_psys(void **state)
{
	static const unsigned with_disk[] = { 0, 1, 2 }; /* kinds whose disk draws enough to be seen in psys */
	static struct wall_point points[WALL_POINTS];
	unsigned found[HOLDS] = { 0 }, wrong = 0, of = 0;
	double least = 9, most = 0;

	for (unsigned k = 0; k < sizeof(with_disk) / sizeof(with_disk[0]); k++)
		for (unsigned seed = 1; seed <= MACHINES; seed++)
			for (enum holds h = NOTHING; h < HOLDS; h++) {
				const struct plant_kind *kind = &kinds[with_disk[k]];
				struct wall_model m;
				bool disk, network;

				assert_true(wall_fit_sure(points, learn_psys(kind, seed, h, points), &m));
				disk = has_any(&m, WALL_READ, WALL_BYTES);
				network = has_any(&m, WALL_BYTES, WALL_FANS);
				found[h] += (!(h & DISK) || disk) && (!(h & NETWORK) || network);
				wrong += (disk && !(h & DISK)) + (network && !(h & NETWORK));
				of += !(h & DISK) + !(h & NETWORK);
				if (h & DISK && disk) {
					least = fmin(least, told_of_true(&m, kind, points));
					most = fmax(most, told_of_true(&m, kind, points));
				}
			}
	printf("psys: disk found %u of 30, network %u, both %u; wrongly %u of %u; disk told of true %.3f to %.3f\n",
	       found[DISK], found[NETWORK], found[BOTH], wrong, of, least, most);
	assert_int_equal(found[NOTHING], 30);
	assert_int_equal(found[DISK], 30);
	assert_true(found[NETWORK] >= 27 && found[BOTH] >= 27);
	assert_int_equal(wrong, 0);
	assert_true(least > 0.9 && most < 1.1);
	assert_false(wall_fit_sure(points, WALL_READY - 1, &(struct wall_model){ 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_out_loads), cmocka_unit_test(test_says_when_outside),
		cmocka_unit_test(test_too_little),     cmocka_unit_test(test_wild_points),
		cmocka_unit_test(test_psys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
