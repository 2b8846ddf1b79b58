/* SPDX-License-Identifier: Apache-2.0 */
/* The states by which memory's waits are told (terms.c): misses per cycle over the usual ones, and the row's own misses per second, both
 * with what they vary by within an interval. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formula/terms.h"

#define CPUS 3
#define CYCLES 2000000000ull
#define MISSES 10000000ull
#define USUAL 0.008
#define HERE (0.005 / USUAL) /* MISSES / CYCLES */

static struct schema schema = { .n_cpus = CPUS, .core = { .n = 3 } };
static struct snap_cell cells[2];
static struct snap_row row = { .kind = ROW_CGROUP, .n_cells = 2 };
static struct snap_cpu cpus[CPUS];
static struct snapshot snapshot = {
	.schema = &schema, .n_rows = 1, .rows = &row, .n_cells = 2, .cells = cells, .cpus = cpus
};

struct states {
	double served, itself; /* by how much more than without a part beside others */
};

/* A cell that ran for a second and was beside others for this part of it; `most` times its misses per cycle are its most. */
static struct states states_of(double beside, double most)
{
	struct weights w = { 0 };
	struct terms t = { 0 };
	static struct model_fit f;
	const double usual = USUAL, at_most = most * 0.005;
	double work[WORK_MOST] = { 0 }, base;
	struct states ret;

	strcpy(schema.core.ev[0].name, "CYCLES");
	strcpy(schema.core.ev[1].name, "LLC_MISSES");
	schema.core.ev[2] = (struct event_desc){ .name = "OTHERS_BUSY",
						 .kind = beside >= 0 ? EVENT_OTHERS_BUSY : schema.core.ev[0].kind };
	for (unsigned i = 0; i < 2; i++)
		cells[i] = (struct snap_cell){ .cpu = (uint16_t)i,
					       .time_ns = 1000000000,
					       .counters = { CYCLES, MISSES, (uint64_t)(fmax(beside, 0) * 1e9) } };
	f = (struct model_fit){ .first_traffic = 2e7, .first_clock = 2e9 };
	assert_int_equal(weights_reserve(&w, &snapshot), 0);
	memset(w.cpus, 1, CPUS);
	w.elapsed_ns = CPUS * 1000000000ull;
	for (unsigned i = 0; i < CPUS; i++)
		cpus[i] = (struct snap_cpu){ .online = true, .elapsed_ns = 1000000000 };
	assert_int_equal(terms_reserve(&t, &snapshot), 0);
	t.usual = &usual;
	t.most = &at_most;
	terms_of(&t, &snapshot, &w, &f);
	terms_add(&t, &cells[0], false, work);
	base = work[terms_place(&t, COL_EVENT + 1)];
	assert_true(base == MISSES);
	ret.served = work[terms_place(&t, COL_SERVED)] / base / HERE;
	ret.itself = (work[terms_place(&t, COL_ITSELF)] / base + 0.5) /
		     0.5; /* the centre is 0.5, and 1e7 / 2e7 is the state */
	terms_free(&t);
	weights_free(&w);
	return ret;
}

static void test_varies(void **state)
{
	static const struct {
		double beside, most, more;
	} jobs[] = {
		{ 0.8, 1.5, 1.0625 }, /* 1/4 x 0.5^2 */
		{ 0.5, 1.2, 1.04 }, /* 1 x 0.2^2 */
		{ 0.9, 2, 1 + 1.0 / 9 },
		{ 0.1, 3, 2 }, /* at most as much again */
		{ 1, 2, 1 }, /* always beside another */
		{ 1.5, 2, 1 },
		{ 0, 2, 1 }, /* never */
		{ 0.5, 1, 1 }, /* it has its most now */
		{ 0.5, 0.5, 1 },
		{ -1, 2, 1 }, /* nobody counts it */
	};

	for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct states s = states_of(jobs[i].beside, jobs[i].most);

		assert_true(fabs(s.served - jobs[i].more) < 1e-6);
		assert_true(fabs(s.itself - jobs[i].more) < 1e-6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_varies) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
