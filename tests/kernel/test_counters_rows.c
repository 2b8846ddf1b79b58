// SPDX-License-Identifier: Apache-2.0
/* More cgroups run on a CPU between two readings than it has rows: with a reader that hears of it nothing is lost, and
 * without one the rest is in `other`, counted. */
#include <poll.h>
#include "kernel/rig.h"

#define ROWS 16
#define MANY 40

struct crowd {
	struct rig g;
	struct test_cgroup cg[MANY];
	unsigned woken;
};

/* Every cgroup runs for a moment, one after the other. A reader makes room whenever it is woken. */
static struct crowd *crowd_run(bool reader)
{
	static struct crowd c;
	static unsigned crowds; /* one that failed leaves its cgroups */
	struct err err = { 0 };
	char name[32];

	memset(&c, 0, sizeof(c));
	c.g.seam = perf_seam_live();
	c.g.events = 2;
	c.g.bank_rows = ROWS;
	if (rig_try(&c.g, 4096, TRIGGER_AUTO, &err))
		fail_msg("%s", err.text);
	assert_true(counters_fd(c.g.counters) >= 0);
	rig_start(&c.g);
	crowds++;
	for (unsigned i = 0; i < MANY; i++) {
		struct pollfd woken = { .fd = counters_fd(c.g.counters), .events = POLLIN };

		snprintf(name, sizeof(name), "crowd%u-%u", crowds, i);
		cgroup_make(&c.g, NULL, name, &c.cg[i]);
		wait_for(start_in(&c.cg[i], work_above_on_0, 2));
		if (!reader || poll(&woken, 1, 0) <= 0)
			continue;
		c.woken++;
		counters_make_room(c.g.counters, &c.g.reading, c.g.table, NULL);
		assert_int_equal(poll(&woken, 1, 0), 0);
	}
	return &c;
}

static void crowd_end(struct crowd *c)
{
	for (unsigned i = 0; i < MANY; i++)
		cgroup_remove(&c->cg[i]);
	rig_close(&c->g);
}

/* The host may stall between the kernel's reading of its clock and the program's. The kernel then gives that time to another
 * cgroup than the program does, so a few may be off. A reading that loses a row each time makes as many off as it was woken. */
static void test_room_is_made(void **state)
{
	struct crowd *c = crowd_run(true);
	const struct snapshot *s = rig_snapshot(&c->g);
	uint64_t got = 0, want = 0;
	unsigned strays = 0;

	for (unsigned i = 0; i < MANY; i++) {
		const struct snap_row *row = row_of(s, c->cg[i].id);
		uint64_t kernel_ns = cgroup_cpu_ns(&c->cg[i]);

		if (!row)
			fail_msg("%s has no row", c->cg[i].path);
		if (time_is_off(row->time_ns, kernel_ns, s->cpus[0].irq_steal_ns)) {
			printf("  %s: %.3f ms, kernel says %.3f ms\n", c->cg[i].path, (double)row->time_ns / 1e6,
			       (double)kernel_ns / 1e6);
			strays++;
		} else {
			got += row->time_ns;
			want += kernel_ns;
		}
	}
	printf("  woken %u times for %u cgroups in %u rows, %u strays\n", c->woken, MANY, ROWS, strays);
	assert_true(c->woken >= MANY / ROWS);
	assert_true(strays <= c->woken / 2);
	assert_time_within("all others", got, want, s->cpus[0].irq_steal_ns);
	assert_int_equal(s->losses.folded, 0);
	crowd_end(c);
}

static void test_without_a_reader(void **state)
{
	struct crowd *c = crowd_run(false);
	const struct snapshot *s = rig_snapshot(&c->g);
	uint64_t folded_ns = 0;
	unsigned rows = 0;

	for (unsigned i = 0; i < MANY; i++) {
		const struct snap_row *row = row_of(s, c->cg[i].id);

		rows += row != NULL;
		folded_ns += row ? 0 : cgroup_cpu_ns(&c->cg[i]);
	}
	printf("  %u rows, %llu look-ups without room; %.3f ms in other, %.3f ms of cgroups without a row\n", rows,
	       (unsigned long long)s->losses.folded, (double)s->rows[ROW_OTHER].time_ns / 1e6, (double)folded_ns / 1e6);
	assert_in_range(rows, 1, MANY - 1);
	assert_true(s->losses.folded >= MANY - rows);
	assert_true(folded_ns > 0 && s->rows[ROW_OTHER].time_ns + folded_ns / 50 > folded_ns);
	crowd_end(c);
}

/* A bank that has been full is as good as new after a reading. */
static void test_room_after_a_reading(void **state)
{
	struct crowd *c = crowd_run(false);
	const struct snapshot *s;

	rig_snapshot(&c->g);
	wait_for(start_in(&c->cg[MANY - 1], work_above_on_0, 5));
	s = rig_snapshot(&c->g);
	assert_non_null(row_of(s, c->cg[MANY - 1].id));
	assert_true(row_of(s, c->cg[MANY - 1].id)->time_ns > 4 * NS_PER_MS);
	assert_int_equal(s->losses.folded, 0);
	crowd_end(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room_is_made),
		cmocka_unit_test(test_without_a_reader),
		cmocka_unit_test(test_room_after_a_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
