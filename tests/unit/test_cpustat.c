// SPDX-License-Identifier: Apache-2.0
/* trigger none on a captured machine: what is opened before the energy domains must not follow their packages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "source/counters/counters.h"
#include "temp_root.h"

#define TWO_CPUS "cpu  30 0 0 50 0 0 0 0 0 0\ncpu0 %u 0 0 25 0 0 0 0 0 0\ncpu1 %u 0 0 25 0 0 0 0 0 0\nintr 1\n"

static void put_stat(const struct temp_root *t, unsigned cpu0, unsigned cpu1)
{
	char text[256];

	snprintf(text, sizeof(text), TWO_CPUS, cpu0, cpu1);
	temp_root_put(t, "/proc/stat", text);
}

static uint64_t time_on(struct reading *r, uint16_t cpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->n_cells; i++)
		if (r->heads[i].used && r->heads[i].cpu == cpu && r->rows[r->heads[i].row].kind == ROW_CGROUP)
			sum += r->cells[i].time_ns;
	return sum;
}

/* A virtual machine's host tells of package 60; RAPL may show one that has no CPU here. */
static void test_packages_that_come_with_the_energy(void **state)
{
	static struct hierarchy h = { .v2 = true, .mount = "/sys/fs/cgroup" };
	struct cpu_desc cpus[2] = { { .cpu = 0, .package = 0, .present = true },
				    { .cpu = 1, .package = 1, .present = true } };
	struct schema s = { .n_cpus = 2, .cpus = cpus, .n_packages = 2 };
	struct cgroup_table *table = cgroup_table_new();
	struct temp_root t = temp_root_new();
	struct cpustat *c;
	struct reading r;

	temp_root_put(&t, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 1000\n");
	put_stat(&t, 10, 20);
	assert_int_equal(cpustat_open(&h, t.root, &s, &c, NULL), 0);
	s.n_packages = 61;
	assert_int_equal(reading_init(&r, &s), 0);
	assert_non_null(cgroup_add(table, 7, "/a", 1, 0));
	assert_int_equal(cpustat_read(c, &r, table, NULL), 0);
	/* 10 ticks on CPU 0, 30 on CPU 1: a quarter of the cgroup's 4 ms is package 0's */
	put_stat(&t, 20, 50);
	temp_root_put(&t, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 5000\n");
	assert_int_equal(cpustat_read(c, &r, table, NULL), 0);
	assert_int_equal(time_on(&r, 0), 1000000);
	assert_int_equal(time_on(&r, 1), 3000000);
	/* a CPU that came up in such a package is left out */
	cpus[1].package = 60;
	assert_int_equal(cpustat_read(c, &r, table, NULL), 0);
	cpustat_close(c);
	reading_free(&r);
	cgroup_table_free(table);
	temp_root_free(&t);
}

/* The clock of the tasks is one of many events, and stands where a cell has no counter any more. The cells beside it are as they were. */
static void test_task_clock_behind_other_events(void **state)
{
	static struct hierarchy h = { .v2 = true, .mount = "/sys/fs/cgroup" };
	struct cpu_desc cpu = { .present = true };

	for (unsigned at = 0; at < SCHEMA_MAX_EVENTS; at++) {
		struct schema s = { .n_cpus = 1, .cpus = &cpu, .n_packages = 1, .core.n = at + 1 };
		struct cgroup_table *table = cgroup_table_new();
		struct temp_root t = temp_root_new();
		struct cpustat *c;
		struct reading r;
		int64_t cell;

		s.core.ev[at].kind = EVENT_TASK_CLOCK;
		temp_root_put(&t, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 1000\n");
		put_stat(&t, 10, 0);
		assert_int_equal(cpustat_open(&h, t.root, &s, &c, NULL), 0);
		assert_int_equal(reading_init(&r, &s), 0);
		assert_non_null(cgroup_add(table, 7, "/a", 1, 0));
		assert_int_equal(cpustat_read(c, &r, table, NULL), 0);
		temp_root_put(&t, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 5000\n");
		put_stat(&t, 20, 0);
		assert_int_equal(cpustat_read(c, &r, table, NULL), 0);
		assert_int_equal(time_on(&r, 0), 4000000);
		cell = reading_cell_number(&r, READING_SPECIAL_ROWS, 0);
		for (unsigned i = 0; i <= at; i++)
			assert_int_equal(*cell_counter(&r.cells[cell], reading_rest(&r, (uint32_t)cell), i),
					 i == at ? 4000000 : 0);
		for (uint32_t i = (uint32_t)cell + 1; i < r.cap_cells; i++)
			assert_int_equal(r.cells[i].time_ns + r.cells[i].switches, 0);
		cpustat_close(c);
		reading_free(&r);
		cgroup_table_free(table);
		temp_root_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packages_that_come_with_the_energy),
		cmocka_unit_test(test_task_clock_behind_other_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
