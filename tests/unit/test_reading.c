/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, cells and their reuse; totals of domains against figures worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "model/cgroup.h"
#include "model/reading.h"
#include "model/snapshot.h"

static struct cpu_desc cpu_list[8];
static struct schema schema = { .n_cpus = 8, .cpus = cpu_list };

static void test_special_rows(void **state)
{
	struct reading r;

	assert_int_equal(reading_init(&r, &schema), 0);
	assert_int_equal(r.n_rows, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(r.rows[i].used);
		assert_int_equal(r.rows[i].kind, i);
	}
	assert_string_equal(row_kind_name(ROW_IRQ_STEAL), "irq+steal");
	assert_string_equal(row_kind_name(ROW_IDLE), "idle");
	reading_drop_row(&r, ROW_OTHER);
	assert_true(r.rows[ROW_OTHER].used);
	reading_free(&r);
	reading_free(&r);
	reading_free(NULL);
}

static void test_cells_in_cpu_order(void **state)
{
	static const uint16_t order[] = { 5, 0, 7, 3, 1, 6, 2, 4 };
	struct cgroup cg = { .id = 9, .path = "/x" };
	struct reading r;
	int64_t row;
	unsigned seen = 0;

	assert_int_equal(reading_init(&r, &schema), 0);
	row = reading_add_row(&r, &cg);
	assert_int_equal(row, 4);
	assert_true(cg.in_use);
	for (unsigned i = 0; i < 8; i++)
		reading_cell(&r, (uint32_t)row, order[i])->time_ns = 100u + order[i];
	for (uint32_t i = r.rows[row].first_cell; i != UINT32_MAX; i = r.heads[i].next_in_row, seen++) {
		assert_int_equal(r.heads[i].cpu, seen);
		assert_int_equal(r.cells[i].time_ns, 100 + seen);
	}
	assert_int_equal(seen, 8);
	assert_ptr_equal(reading_cell(&r, (uint32_t)row, 3), &r.cells[3]);
	assert_int_equal(r.n_cells, 8);
	assert_null(reading_cell(&r, (uint32_t)row, 8));
	assert_null(reading_cell(&r, 5, 0));
	reading_free(&r);
}

static void test_reuse_moves_generation(void **state)
{
	struct cgroup a = { .id = 1, .path = "/a" }, b = { .id = 2, .path = "/b" };
	struct reading r;
	uint32_t generation;

	assert_int_equal(reading_init(&r, &schema), 0);
	assert_int_equal(reading_add_row(&r, &a), 4);
	reading_cell(&r, 4, 2)->counters[0] = 77;
	generation = r.rows[4].generation;
	reading_drop_row(&r, 4);
	assert_false(a.in_use);
	assert_int_equal(reading_add_row(&r, &b), 4);
	assert_int_not_equal(r.rows[4].generation, generation);
	assert_int_equal(reading_cell(&r, 4, 6)->counters[0], 0); /* the same cell, emptied */
	assert_int_equal(r.n_cells, 1);
	assert_int_equal(r.heads[0].cpu, 6);
	reading_free(&r);
}

static void test_changed_follows_the_number(void **state)
{
	struct cgroup cg = { .id = 1, .path = "/a" };
	struct reading r;

	assert_int_equal(reading_init(&r, &schema), 0);
	reading_add_row(&r, &cg);
	r.number = 41;
	reading_cell(&r, 4, 0);
	r.number = 42;
	reading_cell(&r, 4, 1);
	assert_int_equal(r.heads[0].changed, 41);
	assert_int_equal(r.heads[1].changed, 42);
	assert_int_equal(r.row_changed[4], 42);
	reading_free(&r);
}

/* The slower of two consumers holds a dropped row, then nobody does. */
static void test_dropped_row_waits_for_consumers(void **state)
{
	struct cgroup a = { .id = 1, .path = "/a" }, b = { .id = 2, .path = "/b" };
	struct reading r;
	struct consumer *fast, *slow;

	assert_int_equal(reading_init(&r, &schema), 0);
	fast = consumer_new(&r);
	slow = consumer_new(&r);
	r.number = 1;
	reading_add_row(&r, &a);
	reading_drop_row(&r, 4);
	assert_true(a.in_use);
	assert_non_null(consumer_snapshot(fast, &r));
	assert_int_equal(reading_reap(&r), 0);
	assert_int_equal(reading_add_row(&r, &b), 5);
	assert_non_null(consumer_snapshot(slow, &r));
	assert_int_equal(reading_reap(&r), 1);
	assert_false(a.in_use);
	assert_int_equal(r.n_dropped, 0);
	consumer_free(slow);
	consumer_free(fast);
	reading_free(&r);
}

static void test_dropped_row_comes_back(void **state)
{
	struct cgroup a = { .id = 1, .path = "/a" }, b = { .id = 2, .path = "/b" };
	struct consumer *c;
	struct reading r;

	assert_int_equal(reading_init(&r, &schema), 0);
	c = consumer_new(&r);
	r.number = 1;
	assert_int_equal(reading_add_row(&r, &a), 4);
	assert_int_equal(reading_add_row(&r, &b), 5);
	reading_cell(&r, 5, 0)->time_ns = 10;
	reading_drop_row(&r, 4);
	reading_drop_row(&r, 5);
	assert_int_equal(reading_add_row(&r, &b), 5);
	assert_int_equal(reading_cell(&r, 5, 0)->time_ns, 10);
	assert_int_equal(r.n_dropped, 1);
	consumer_free(c);
	assert_int_equal(reading_reap(&r), 1);
	assert_true(b.in_use);
	assert_false(a.in_use);
	reading_free(&r);
}

static void test_consumer_may_outlive_reading(void **state)
{
	struct reading r;
	struct consumer *c;

	assert_int_equal(reading_init(&r, &schema), 0);
	c = consumer_new(&r);
	reading_free(&r);
	consumer_free(c);
}

static void test_domain_units(void **state)
{
	/* Unit 2^-14 J: 2^14 units are one joule. */
	struct reading_domain d = { .units = 16384, .uj_num = 1000000, .uj_den = 16384 };

	assert_int_equal(reading_domain_uj(&d), 1000000);
	assert_int_equal(reading_domain_q32(&d), 1ull << 32);
	d.units = 1; /* 61.03515625 uJ, 2^18 in 2^-32 J */
	assert_int_equal(reading_domain_uj(&d), 61);
	assert_int_equal(reading_domain_q32(&d), 1u << 18);
	/* Unit 2^-16 J, 2^50 + 1 units: floor((2^50 + 1) * 10^6 / 2^16); the product needs 70 bits. */
	d = (struct reading_domain){ .units = (1ull << 50) + 1, .uj_num = 1000000, .uj_den = 65536 };
	assert_int_equal(reading_domain_uj(&d), 17179869184000015ull);
	assert_int_equal(reading_domain_q32(&d), 65536); /* 2^34 J leave nothing below 2^64, one unit is 2^16 */
	d = (struct reading_domain){ .units = 3000000, .uj_num = 1, .uj_den = 1 };
	assert_int_equal(reading_domain_q32(&d), 3ull << 32);
	d.uj_den = 0;
	assert_int_equal(reading_domain_uj(&d), 0);
	assert_int_equal(reading_domain_q32(&d), 0);
}

static void test_words(void **state)
{
	assert_string_equal(quality_name(0), "measured");
	assert_string_equal(quality_name(QUALITY_WRAPPED), "wrapped");
	assert_string_equal(quality_name(QUALITY_WRAPPED | QUALITY_MULTIPLEXED), "multiplexed");
	assert_string_equal(quality_name(QUALITY_ESTIMATED | QUALITY_MULTIPLEXED), "estimated");
	assert_string_equal(quality_name(QUALITY_STALE | QUALITY_ESTIMATED), "stale");
	assert_string_equal(quality_name(QUALITY_PARTIAL | QUALITY_STALE), "partial");
	assert_string_equal(quality_name(QUALITY_LOST | QUALITY_PARTIAL), "lost");
	assert_string_equal(domain_kind_name(DOMAIN_DRAM), "dram");
	assert_string_equal(domain_kind_name(DOMAIN_KINDS), "unknown");
	assert_string_equal(energy_interface_name(ENERGY_MSR), "msr");
	assert_string_equal(idle_policy_name(IDLE_BY_SHARE), "by-share");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_special_rows),
		cmocka_unit_test(test_cells_in_cpu_order),
		cmocka_unit_test(test_reuse_moves_generation),
		cmocka_unit_test(test_changed_follows_the_number),
		cmocka_unit_test(test_dropped_row_waits_for_consumers),
		cmocka_unit_test(test_dropped_row_comes_back),
		cmocka_unit_test(test_consumer_may_outlive_reading),
		cmocka_unit_test(test_domain_units),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
