// SPDX-License-Identifier: Apache-2.0
/* Cgroups that come and go: short lives, two CPUs meeting one, rmdir racing exit, a full table.
 * Every loss must be counted. */
#include "kernel/rig.h"

#define MANY 1000

static void work_short(unsigned us)
{
	spin_ns((uint64_t)us * 1000);
}

/* Stands in for the lifecycle source: tells that the cgroups made here have been removed. */
static void end_all(struct rig *g, const struct test_cgroup *cg, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cgroup_end(g->table, cg[i].id, clock_mono_ns());
}

static uint64_t drain(struct rig *g, struct test_cgroup *cg, unsigned n, unsigned *ret_seen, uint8_t *seen)
{
	struct snapshot *s = rig_snapshot(g);
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct snap_row *row = row_of(s, cg[i].id);

		if (!row || !row->time_ns)
			continue;
		sum += row->time_ns;
		*ret_seen += !seen[i];
		seen[i] = 1;
	}
	return sum;
}

/* 1000 cgroups that each live about 20 ms, 20 at a time, read every round. */
static void test_thousand_short_lives(void **state)
{
	static struct test_cgroup cg[MANY];
	static uint8_t seen[MANY];
	struct test_cgroup parent;
	unsigned n_seen = 0, rows, cells;
	uint64_t sum = 0;
	char name[32];
	struct rig g;

	rig_open(&g, 2, 512, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "short", &parent);
	rig_start(&g);
	for (unsigned at = 0; at < MANY; at += 20) {
		pid_t pid[20];

		for (unsigned i = 0; i < 20; i++) {
			snprintf(name, sizeof(name), "c%u", at + i);
			cgroup_make(&g, &parent, name, &cg[at + i]);
			pid[i] = start_in(&cg[at + i], work_short, 500);
		}
		for (unsigned i = 0; i < 20; i++) {
			wait_for(pid[i]);
			cgroup_remove(&cg[at + i]);
		}
		sum += drain(&g, cg, at + 20, &n_seen, seen);
		end_all(&g, cg, at + 20);
	}
	for (int i = 0; i < 4; i++)
		sum += drain(&g, cg, MANY, &n_seen, seen);
	assert_int_equal(n_seen, MANY);
	assert_time("1000 cgroups of 20 ms", sum, cgroup_cpu_ns(&parent));
	assert_int_equal(g.reading.losses.folded, 0);
	assert_int_equal(g.reading.losses.lost_reads, 0);
	rows = g.reading.n_rows;
	cells = g.reading.n_cells;
	printf("  rows %u, cells %u at the end\n", rows, cells);
	assert_true(rows < 200 && cells < 500); /* slots and rows were given back all along */
	cgroup_remove(&parent);
	rig_close(&g);
}

static void test_two_cpus_meet_one_cgroup(void **state)
{
	struct test_cgroup cg[50];
	struct snapshot *s;
	uint64_t got = 0, want = 0;
	unsigned both = 0;
	char name[32];
	struct rig g;

	rig_open(&g, 1, 4096, TRIGGER_AUTO);
	rig_start(&g);
	for (unsigned i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "pair%u", i);
		cgroup_make(&g, NULL, name, &cg[i]);
		wait_for(start_in(&cg[i], work_pinned_pair, 2));
	}
	s = rig_snapshot(&g);
	for (unsigned i = 0; i < 50; i++) {
		const struct snap_row *row = row_of(s, cg[i].id);
		unsigned rows = 0;

		assert_non_null(row);
		for (unsigned k = 0; k < s->n_rows; k++)
			rows += s->rows[k].id == cg[i].id;
		assert_int_equal(rows, 1);
		both += row->n_cells == 2;
		got += row->time_ns;
		want += cgroup_cpu_ns(&cg[i]);
		cgroup_remove(&cg[i]);
	}
	assert_time("50 pairs", got, want);
	printf("  %u of 50 ran on both CPUs\n", both);
	assert_true(both > 25);
	rig_close(&g);
}

/* The child is killed and its cgroup removed at once: its last switch comes after the rmdir. */
static void test_rmdir_races_exit(void **state)
{
	static struct test_cgroup cg[100];
	static uint8_t seen[100];
	struct test_cgroup parent;
	unsigned n_seen = 0;
	uint64_t got = 0;
	char name[32];
	struct rig g;

	rig_open(&g, 1, 4096, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "race", &parent);
	rig_start(&g);
	for (unsigned i = 0; i < 100; i++) {
		pid_t pid;

		snprintf(name, sizeof(name), "r%u", i);
		cgroup_make(&g, &parent, name, &cg[i]);
		pid = start_in(&cg[i], work_spin, 1000);
		usleep(3000);
		kill(pid, SIGKILL);
		while (rmdir(cg[i].path) && errno == EBUSY)
			;
		cgroup_end(g.table, cg[i].id, clock_mono_ns());
		wait_for(pid);
		got += drain(&g, cg, i + 1, &n_seen, seen);
	}
	for (int i = 0; i < 3; i++)
		got += drain(&g, cg, 100, &n_seen, seen);
	assert_time("100 killed and removed", got, cgroup_cpu_ns(&parent));
	cgroup_remove(&parent);
	rig_close(&g);
}

/* 40 cgroups and room for 8: the excess is charged to the parent, counted, and nothing is missing. */
static void test_full_table_folds_into_parent(void **state)
{
	struct test_cgroup parent, cg[40];
	struct snapshot *s;
	uint64_t got = 0;
	char name[32];
	struct rig g;

	rig_open(&g, 1, 8, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "full", &parent);
	rig_start(&g);
	wait_for(start_in(&parent, work_spin, 2)); /* the parent has a row */
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		cgroup_make(&g, &parent, name, &cg[i]);
		wait_for(start_in(&cg[i], work_spin, 2));
	}
	s = rig_snapshot(&g);
	assert_true(s->losses.folded >= 32);
	for (unsigned i = 0; i < 40; i++) {
		const struct snap_row *row = row_of(s, cg[i].id);

		got += row ? row->time_ns : 0;
	}
	assert_non_null(row_of(s, parent.id));
	got += row_of(s, parent.id)->time_ns;
	assert_time("full table, parent and children", got, cgroup_cpu_ns(&parent));
	printf("  folded %llu times\n", (unsigned long long)s->losses.folded);
	for (unsigned i = 0; i < 40; i++)
		cgroup_remove(&cg[i]);
	cgroup_remove(&parent);
	rig_close(&g);
}

/* No room and no ancestor but the root that has a row: `other` gets it, whatever the root has. */
static void test_full_table_spares_the_root(void **state)
{
	struct test_cgroup root, cg[40];
	struct snapshot *s;
	uint64_t folded = 0;
	char name[32];
	struct rig g;
	pid_t pid;

	rig_open(&g, 1, 8, TRIGGER_AUTO);
	if (g.hierarchy.private_namespace || !g.hierarchy.v2) {
		printf("SKIP full_table_spares_the_root: the root of the hierarchy is not seen, or cgroup v1\n");
		rig_close(&g);
		return;
	}
	rig_start(&g);
	snprintf(root.path, sizeof(root.path), "%s", g.hierarchy.mount);
	pid = fork();
	if (!pid) { /* the root has a row before the table is full */
		cgroup_join(&root, 0);
		work_spin(20);
		_exit(0);
	}
	wait_for(pid);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "top%u", i);
		cgroup_make(&g, NULL, name, &cg[i]);
		wait_for(start_in(&cg[i], work_spin, 2));
	}
	s = rig_snapshot(&g);
	for (unsigned i = 0; i < 40; i++)
		folded += row_of(s, cg[i].id) ? 0 : cgroup_cpu_ns(&cg[i]);
	printf("  without a row %.3f ms, other %.3f ms\n", (double)folded / 1e6,
	       (double)s->rows[ROW_OTHER].time_ns / 1e6);
	assert_true(folded > 20 * NS_PER_MS);
	assert_true(s->rows[ROW_OTHER].time_ns + folded / 50 > folded);
	for (unsigned i = 0; i < 40; i++)
		cgroup_remove(&cg[i]);
	rig_close(&g);
}

/* The quota keeps one tenant's cgroups from taking every row: room for 64, a quarter each. The excess is the tenant's
 * own, who has no task outside of those; not of whoever is above, who has. */
static void test_quota_spares_the_others(void **state)
{
	struct test_cgroup slice, greedy, cg[60], modest;
	struct snapshot *s;
	uint64_t got;
	unsigned own = 0;
	char name[32];
	struct rig g;

	rig_open(&g, 1, 64, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "quota", &slice);
	cgroup_make(&g, &slice, "greedy", &greedy);
	rig_start(&g);
	wait_for(start_in(&slice, work_spin, 1));
	for (unsigned i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		cgroup_make(&g, &greedy, name, &cg[i]);
		wait_for(start_in(&cg[i], work_spin, 1));
	}
	cgroup_make(&g, &slice, "modest", &modest);
	wait_for(start_in(&modest, work_spin, 2));
	s = rig_snapshot(&g);
	assert_non_null(row_of(s, greedy.id));
	got = row_of(s, greedy.id)->time_ns;
	for (unsigned i = 0; i < 60; i++) {
		const struct snap_row *row = row_of(s, cg[i].id);

		own += row != NULL;
		got += row ? row->time_ns : 0;
	}
	printf("  greedy tenant got %u rows\n", own);
	assert_int_equal(own, 16);
	assert_time("greedy tenant", got, cgroup_cpu_ns(&greedy));
	assert_non_null(row_of(s, modest.id));
	assert_time("above them", row_of(s, slice.id)->time_ns,
		    cgroup_cpu_ns(&slice) - cgroup_cpu_ns(&greedy) - cgroup_cpu_ns(&modest));
	assert_time("modest tenant", row_of(s, modest.id)->time_ns, cgroup_cpu_ns(&modest));
	for (unsigned i = 0; i < 60; i++)
		cgroup_remove(&cg[i]);
	cgroup_remove(&modest);
	cgroup_remove(&greedy);
	cgroup_remove(&slice);
	rig_close(&g);
}

/* A level deeper a share is half of it: one pod's flood leaves its class room for the other pods. */
static void test_quota_halves(void **state)
{
	struct test_cgroup slice, class, bad, cg[30], good;
	struct snapshot *s;
	unsigned own = 0;
	char name[32];
	struct rig g;

	rig_open(&g, 1, 64, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "halves", &slice);
	cgroup_make(&g, &slice, "class", &class);
	cgroup_make(&g, &class, "bad", &bad);
	rig_start(&g);
	for (unsigned i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "b%u", i);
		cgroup_make(&g, &bad, name, &cg[i]);
		wait_for(start_in(&cg[i], work_spin, 1));
	}
	cgroup_make(&g, &class, "good", &good);
	wait_for(start_in(&good, work_spin, 2));
	s = rig_snapshot(&g);
	for (unsigned i = 0; i < 30; i++)
		own += row_of(s, cg[i].id) != NULL;
	printf("  flooding pod got %u rows\n", own);
	assert_int_equal(own, 8);
	assert_non_null(row_of(s, bad.id));
	assert_non_null(row_of(s, good.id));
	assert_time("its neighbour", row_of(s, good.id)->time_ns, cgroup_cpu_ns(&good));
	for (unsigned i = 0; i < 30; i++)
		cgroup_remove(&cg[i]);
	cgroup_remove(&good);
	cgroup_remove(&bad);
	cgroup_remove(&class);
	cgroup_remove(&slice);
	rig_close(&g);
}

/* So deep that no level with a quota is seen from there: no row of its own, or depth would be a way around the quota. */
static void test_quota_of_a_long_chain(void **state)
{
	struct test_cgroup cg[40];
	struct snapshot *s;
	struct rig g;

	rig_open(&g, 1, 64, TRIGGER_AUTO);
	for (unsigned i = 0; i < 40; i++)
		cgroup_make(&g, i ? &cg[i - 1] : NULL, i ? "d" : "chain", &cg[i]);
	rig_start(&g);
	wait_for(start_in(&cg[30], work_spin, 2));
	wait_for(start_in(&cg[39], work_spin, 5));
	s = rig_snapshot(&g);
	assert_null(row_of(s, cg[39].id));
	assert_non_null(row_of(s, cg[30].id));
	assert_time("chain", row_of(s, cg[30].id)->time_ns, cgroup_cpu_ns(&cg[30]));
	for (unsigned i = 40; i-- > 0;)
		cgroup_remove(&cg[i]);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thousand_short_lives),
		cmocka_unit_test(test_two_cpus_meet_one_cgroup),
		cmocka_unit_test(test_rmdir_races_exit),
		cmocka_unit_test(test_full_table_folds_into_parent),
		cmocka_unit_test(test_full_table_spares_the_root),
		cmocka_unit_test(test_quota_spares_the_others),
		cmocka_unit_test(test_quota_halves),
		cmocka_unit_test(test_quota_of_a_long_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
