/* SPDX-License-Identifier: Apache-2.0 */
/* Spans pay with what their cgroup has: never more, whatever they claim; all of it when they used all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formula/span_energy.h"

#define S 1000000000ull
#define MS 1000000ull
#define CGROUPS 5
#define DOMAINS 3

struct world {
	struct schema schema;
	struct snapshot s;
	struct snap_row rows[READING_SPECIAL_ROWS + CGROUPS];
	uint64_t energy[(READING_SPECIAL_ROWS + CGROUPS) * DOMAINS];
	uint64_t now, cut;
	struct span_energy *e;
};

static uint64_t seed = 1234567;

static uint64_t random_to(uint64_t most)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 20) % (most + 1);
}

static void begin(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->schema.n_domains = DOMAINS;
	w->schema.domains[1].kind = DOMAIN_DRAM;
	w->s.schema = &w->schema;
	w->s.rows = w->rows;
	w->s.energy_uj = w->energy;
	w->s.n_rows = READING_SPECIAL_ROWS + CGROUPS;
	for (unsigned i = 0; i < w->s.n_rows; i++) {
		w->rows[i].kind = i < READING_SPECIAL_ROWS ? (enum row_kind)i : ROW_CGROUP;
		w->rows[i].id = i < READING_SPECIAL_ROWS ? 0 : 100 + i - READING_SPECIAL_ROWS;
	}
	w->now = w->cut = 50 * S;
	w->e = span_energy_new(&w->schema, 64);
	assert_non_null(w->e);
}

static void end(struct world *w)
{
	span_energy_free(w->e);
}

/* One cgroup's row of the next interval; uj in each domain d: uj * (d + 1). */
static void set(struct world *w, unsigned cgroup, uint64_t time_ns, uint64_t uj)
{
	w->rows[READING_SPECIAL_ROWS + cgroup].time_ns = time_ns;
	for (unsigned d = 0; d < DOMAINS; d++)
		w->energy[(READING_SPECIAL_ROWS + cgroup) * DOMAINS + d] = uj * (d + 1);
}

static void pass(struct world *w, uint64_t ns)
{
	w->s.start_ns = w->now;
	w->s.end_ns = w->now += ns;
	span_energy_add(w->e, &w->s);
	if (w->now >= w->cut + S) {
		w->cut = w->now;
		span_energy_cut(w->e);
	}
	for (unsigned c = 0; c < CGROUPS; c++)
		set(w, c, 0, 0);
}

static uint64_t take(struct world *w, unsigned cgroup, uint64_t from, uint64_t until, uint64_t cpu,
		     uint64_t uj[DOMAINS])
{
	const struct span_use u = { .cgroup_id = 100 + cgroup, .from_ns = from, .until_ns = until, .cpu_ns = cpu };
	uint64_t all[SCHEMA_MAX_DOMAINS] = { 0 };
	unsigned quality = 0;
	uint64_t left = span_energy_take(w->e, &u, all, &quality);

	for (unsigned d = 0; d < DOMAINS; d++)
		uj[d] += all[d];
	return left;
}

static void test_all_of_it(void **state)
{
	struct world w;
	uint64_t uj[DOMAINS] = { 0 }, start;

	begin(&w);
	start = w.now;
	set(&w, 1, 700 * MS, 1000003);
	pass(&w, S);
	assert_int_equal(span_energy_until(w.e), start + S);
	assert_int_equal(take(&w, 1, start, w.now, 300 * MS, uj), 0);
	assert_int_equal(uj[0], 1000003ull * 3 / 7);
	/* thirds of a microjoule are not lost: the last one gets what is left */
	assert_int_equal(take(&w, 1, start, w.now, 399 * MS, uj), 0);
	assert_int_equal(take(&w, 1, start + 1, start + 2, 5 * MS, uj), 4 * MS);
	for (unsigned d = 0; d < DOMAINS; d++)
		assert_int_equal(uj[d], 1000003 * (d + 1));
	assert_int_equal(take(&w, 1, start, w.now, 1, uj), 1);
	assert_int_equal(take(&w, 2, start, w.now, 7, uj), 7);
	end(&w);
}

/* Half of its time at 1 W, half at 3 W: a span over both pays 2 W; what one second cannot give the other does. */
static void test_over_two_slots(void **state)
{
	struct world w;
	uint64_t uj[DOMAINS] = { 0 }, more[DOMAINS] = { 0 }, start;

	begin(&w);
	start = w.now;
	set(&w, 0, S, 1000000);
	pass(&w, S);
	set(&w, 0, S, 3000000);
	pass(&w, S);
	assert_int_equal(take(&w, 0, start + S / 2, start + 3 * S / 2, S / 2, uj), 0);
	assert_int_equal(uj[0], 1000000);
	assert_int_equal(take(&w, 0, start, w.now, 3 * S / 2, more), 0);
	assert_int_equal(uj[0] + more[0], 4000000);
	end(&w);
}

static void test_short_intervals(void **state)
{
	struct world w;
	uint64_t uj[DOMAINS] = { 0 }, start;

	begin(&w);
	start = w.now;
	for (unsigned i = 0; i < 3000; i++) {
		set(&w, 3, 5 * MS, 50);
		pass(&w, 10 * MS);
	}
	/* 30 s: the first one is still kept, as those of a second are joined */
	assert_int_equal(take(&w, 3, start, start + 100 * MS, 50 * MS, uj), 0);
	assert_int_equal(uj[0], 500);
	end(&w);
}

static void test_too_late(void **state)
{
	struct world w;
	uint64_t uj[DOMAINS] = { 0 }, start;

	begin(&w);
	start = w.now;
	set(&w, 0, S, 1000000);
	pass(&w, S);
	for (unsigned i = 0; i < SPAN_SLOTS - 1; i++)
		pass(&w, S);
	assert_int_equal(take(&w, 0, start, start + S, S / 2, uj), 0);
	assert_int_equal(uj[0], 500000);
	pass(&w, S);
	assert_int_equal(take(&w, 0, start, start + S, S / 2, uj), S / 2);
	assert_int_equal(uj[0], 500000);
	assert_int_equal(take(&w, 0, 0, 5, 3, uj), 3);
	assert_int_equal(take(&w, 0, w.now + S, w.now + 2 * S, 3, uj), 3);
	end(&w);
}

static void test_quality(void **state)
{
	struct span_use u = { .cgroup_id = 100, .cpu_ns = 10 };
	uint64_t uj[SCHEMA_MAX_DOMAINS] = { 0 };
	unsigned quality = 0;
	struct world w;

	begin(&w);
	u.from_ns = w.now;
	w.s.domains[1].share_quality = QUALITY_ESTIMATED; /* dram: always, and not the span's fault */
	set(&w, 0, S, 1);
	pass(&w, S);
	u.until_ns = w.now;
	span_energy_take(w.e, &u, uj, &quality);
	assert_int_equal(quality, QUALITY_MEASURED);
	w.rows[READING_SPECIAL_ROWS].quality = QUALITY_PARTIAL;
	w.s.domains[0].quality = QUALITY_ESTIMATED;
	set(&w, 0, S, 1);
	pass(&w, S);
	u.from_ns = u.until_ns;
	u.until_ns = w.now;
	span_energy_take(w.e, &u, uj, &quality);
	assert_int_equal(quality, QUALITY_PARTIAL | QUALITY_ESTIMATED);
	end(&w);
}

/* As many cgroups as there is room for, over and over: those that are gone make room. */
static void test_bounded(void **state)
{
	struct world w;
	uint64_t uj[DOMAINS] = { 0 };
	struct span_use u = { .cpu_ns = 5 };
	uint64_t all[SCHEMA_MAX_DOMAINS] = { 0 };
	unsigned quality = 0, paid = 0;

	begin(&w);
	span_energy_free(w.e);
	w.e = span_energy_new(&w.schema, CGROUPS);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned c = 0; c < CGROUPS; c++) {
			w.rows[READING_SPECIAL_ROWS + c].id = 1000 * (round + 1) + c;
			set(&w, c, 10, 10);
		}
		u.from_ns = w.now;
		pass(&w, S);
		u.until_ns = w.now;
		u.cgroup_id = 1000 * (round + 1);
		paid += span_energy_take(w.e, &u, all, &quality) == 0;
		for (unsigned i = 0; i < (round % 2 ? SPAN_SLOTS : 1); i++)
			pass(&w, S);
	}
	assert_int_equal(paid, 10); /* the first, and those after a long pause */
	assert_int_equal(uj[0], 0);
	end(&w);
}

/* Random intervals, random spans that claim anything: no cgroup's spans get more than it had. */
static void test_property(void **state)
{
	for (unsigned round = 0; round < 200; round++) {
		uint64_t had[CGROUPS][DOMAINS] = { 0 }, got[CGROUPS][DOMAINS] = { 0 }, start;
		uint64_t time[CGROUPS] = { 0 }, paid[CGROUPS] = { 0 };
		struct world w;

		begin(&w);
		start = w.now;
		for (unsigned i = 0; i < 60; i++) {
			for (unsigned c = 0; c < CGROUPS; c++) {
				uint64_t t = random_to(2) ? random_to(2 * S) : random_to(3),
					 uj = random_to(1u << random_to(30));

				set(&w, c, t, uj);
				time[c] += t;
				for (unsigned d = 0; d < DOMAINS; d++)
					had[c][d] += uj * (d + 1);
			}
			pass(&w, random_to(3) ? 10 * MS + random_to(300 * MS) : random_to(4 * S) + 1);
			for (uint64_t n = random_to(20); n--;) {
				unsigned c = (unsigned)random_to(CGROUPS - 1);
				uint64_t from = start + random_to(w.now - start),
					 until = from + random_to(w.now - from + S);
				uint64_t cpu = random_to(3) ? random_to(50 * MS) : random_to(20 * S);

				paid[c] += cpu - take(&w, c, from, until, cpu, got[c]);
			}
		}
		for (unsigned c = 0; c < CGROUPS; c++) {
			assert_true(paid[c] <= time[c]);
			for (unsigned d = 0; d < DOMAINS; d++)
				assert_true(got[c][d] <= had[c][d]);
		}
		end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_it),       cmocka_unit_test(test_over_two_slots),
		cmocka_unit_test(test_short_intervals), cmocka_unit_test(test_too_late),
		cmocka_unit_test(test_quality),         cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_property),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
