// SPDX-License-Identifier: Apache-2.0
/* CPU 1 goes offline and comes back, seen by a reading or between two, for every source that has something open on a
 * CPU or counts by CPU. */
#include "kernel/rig.h"
#include "kernel/controller.h"
#include <sys/mman.h>

static bool set_online(int cpu, const char *value)
{
	char path[64];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, value, 1) == 1;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* CPU 1 leaves and comes back: its time away is offline, never idle, and its events count again. */
static void test_cpu_leaves_and_returns(void **state)
{
	struct test_cgroup cg;
	struct snapshot *s;
	struct rig g;
	pid_t pid;

	rig_open(&g, 1, 4096, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "hotplug", &cg);
	rig_start(&g);
	if (!set_online(1, "0")) {
		printf("SKIP cpu_leaves_and_returns: CPU 1 cannot be taken offline here (%s)\n", strerror(errno));
		cgroup_remove(&cg);
		rig_close(&g);
		return;
	}
	rig_read(&g);
	usleep(300000);
	assert_true(set_online(1, "1"));
	s = rig_snapshot(&g);
	printf("  offline %.3f s, elapsed %.3f s of %.3f s\n", (double)s->cpus[1].offline_ns / 1e9,
	       (double)s->cpus[1].elapsed_ns / 1e9, (double)(s->end_ns - s->start_ns) / 1e9);
	assert_true(s->cpus[1].offline_ns > 290000000);
	/* a flush is within its reading */
	assert_true(s->cpus[1].elapsed_ns < g.read_end_ns - s->start_ns - 290000000);
	pid = start_in(&cg, work_pinned_pair, 200);
	wait_for(pid);
	s = rig_snapshot(&g);
	assert_time("after the return", row_of(s, cg.id)->time_ns, cgroup_cpu_ns(&cg));
	assert_int_equal(row_of(s, cg.id)->n_cells, 2);
	for (unsigned i = 0; i < s->n_cells; i++)
		if (s->cells[i].cpu == 1 && s->cells[i].time_ns > 100000000)
			assert_true(s->cells[i].counters[0] > 0);
	cgroup_remove(&cg);
	rig_close(&g);
}

/* As on a PMU that has too few counters: what is pinned gets none. */
static int starved_open(void *ctx, const struct event_variant *event, int cpu, bool pinned)
{
	struct perf_seam live = perf_seam_live();

	return pinned ? memfd_create("starved", MFD_CLOEXEC) : live.open(live.ctx, event, cpu, false);
}

static void toggle(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		assert_true(set_online(1, "0") && set_online(1, "1"));
}

static const struct snap_cell *cell_on(const struct snapshot *s, const struct snap_row *row, unsigned cpu)
{
	for (unsigned i = 0; row && i < row->n_cells; i++)
		if (s->cells[row->first_cell + i].cpu == cpu)
			return &s->cells[row->first_cell + i];
	return NULL;
}

/* CPU 1 counts again: no value of it is a 0 that passes as measured, and no value is marked without a reason. */
static void check_whole(struct rig *g, const char *name)
{
	struct test_cgroup cg;
	const struct snap_cell *cell;
	struct snapshot *s;

	cgroup_make(g, NULL, name, &cg);
	wait_for(start_in(&cg, work_pinned_pair, 100));
	s = rig_snapshot(g);
	printf("  %s: cpu 1 msr %llu in %.6f of %.6f s, cpu 0 %llu in %.6f\n", name,
	       (unsigned long long)s->cpus[1].msr[0], (double)s->cpus[1].msr_running_ns / 1e9,
	       (double)s->cpus[1].msr_enabled_ns / 1e9, (unsigned long long)s->cpus[0].msr[0],
	       (double)s->cpus[0].msr_running_ns / 1e9);
	assert_true(s->cpus[1].online);
	assert_int_equal(s->cpus[1].quality & ~(unsigned)QUALITY_STALE, 0);
	if (g->schema.idle_merged) /* by the clock, not by the scheduler's books: its steal and interrupts are in */
		assert_true(row_of(s, cg.id)->time_ns > cgroup_cpu_ns(&cg) / 10 * 9);
	else /* what the host takes may be in one of the books later than in the other */
		assert_time_within(name, row_of(s, cg.id)->time_ns, cgroup_cpu_ns(&cg),
				   s->cpus[0].irq_steal_ns + s->cpus[1].irq_steal_ns);
	cell = cell_on(s, row_of(s, cg.id), 1);
	assert_non_null(cell);
	assert_true(cell->time_ns > 50000000);
	if (g->schema.msr.n && g->schema.msr.ev[0].kind == EVENT_PERF) {
		double rate = (double)s->cpus[0].msr[0] / (double)s->cpus[0].msr_running_ns;

		assert_int_equal(s->cpus[1].msr_enabled_ns, s->cpus[1].msr_running_ns);
		assert_true((double)s->cpus[1].msr[0] > 0.5 * rate * (double)s->cpus[1].msr_running_ns);
		assert_true((double)s->cpus[1].msr[0] < 2 * rate * (double)s->cpus[1].msr_running_ns);
	}
	if (g->schema.core.n && g->schema.core.ev[0].kind == EVENT_PERF) {
		double rate = (double)s->cpus[0].msr[0] / (double)s->cpus[0].msr_running_ns;

		/* multiplexed ones are partial where the host took the CPU away between two of them */
		assert_int_equal(cell->quality & (unsigned)QUALITY_LOST, 0);
		assert_true(g->schema.multiplexed || !(cell->quality & QUALITY_PARTIAL));
		assert_true((double)cell->counters[0] > 0.5 * rate * (double)cell->time_ns);
	}
	cgroup_remove(&cg);
}

/* Charges whose counts were lost, of all cgroups and kernel threads, on the CPUs that stayed online. */
static uint64_t lost_on_others(const struct rig *g)
{
	uint64_t lost = 0;

	for (unsigned i = 0; i < g->reading.n_cells; i++) {
		const struct cell_head *h = &g->reading.heads[i];

		if (h->used && h->cpu != 1 && h->row != ROW_IDLE)
			lost += g->reading.rests ? g->reading.rests[i].lost : 0;
	}
	return lost;
}

static void check_toggled(struct rig *g, unsigned times, const char *name)
{
	struct snapshot *s;
	uint64_t others;

	rig_start(g);
	others = lost_on_others(g);
	toggle(times);
	s = rig_snapshot(g);
	others = lost_on_others(g) - others;
	assert_true(s->cpus[1].online);
	assert_true(s->cpus[1].quality & QUALITY_PARTIAL);
	assert_int_equal(s->cpus[0].quality & QUALITY_PARTIAL, 0);
	for (unsigned i = 0; i < s->n_cells; i++)
		if (s->cells[i].cpu == 1)
			assert_true(s->cells[i].quality & QUALITY_PARTIAL);
	if (g->schema.msr.n && g->schema.msr.ev[0].kind == EVENT_PERF) /* never as if it had counted throughout */
		assert_true(s->cpus[1].msr_running_ns < s->cpus[1].msr_enabled_ns);
	/* The losses of CPU 1 are told as those of a CPU that was away. Another CPU has losses only where a slow host
	 * (QEMU's emulation) takes it away between the reads of two multiplexed events. */
	assert_true(g->schema.multiplexed || !others);
	assert_int_equal(s->losses.lost_reads - s->losses.away_reads, others);
	check_whole(g, name);
}

static void toggled(const struct perf_seam *seam, unsigned events, unsigned msr, enum trigger_mode trigger,
		    const char *name)
{
	struct err err = { 0 };
	struct rig g = { .seam = *seam, .events = events, .msr = msr };

	if (rig_try(&g, 4096, trigger, &err)) {
		printf("SKIP toggled %s: %s\n", name, err.text);
	} else if (!set_online(1, "1")) {
		printf("SKIP toggled %s: CPU 1 cannot be taken offline here (%s)\n", name, strerror(errno));
	} else {
		check_toggled(&g, 1, name);
		check_toggled(&g, 3, name);
	}
	rig_close(&g);
}

/* CPU 1 goes and comes between two readings, once and thrice: its events, pinned or multiplexed, and the program of
 * the trigger perf_event are dead, and no list of online CPUs tells. */
static void test_cpu_toggles_within_an_interval(void **state)
{
	struct perf_seam live = perf_seam_live(), starved = { .open = starved_open };

	toggled(&live, 1, 1, TRIGGER_AUTO, "pinned");
	toggled(&starved, 2, 1, TRIGGER_AUTO, "multiplexed");
	toggled(&live, 0, 1, TRIGGER_AUTO, "msr-alone");
	toggled(&live, 0, 0, TRIGGER_AUTO, "time-alone");
}

/* The trigger perf_event needs a controller that is enabled for the cgroups below the root. */
static void test_cpu_toggles_under_perf_event(void **state)
{
	struct perf_seam live = perf_seam_live();

	toggled(&live, 1, 1, TRIGGER_PERF_EVENT, "perf-event");
}

/* Trigger none has nothing open on a CPU, but the kernel may count a CPU's idle time anew. */
static void test_cpu_toggles_under_cpustat(void **state)
{
	struct err err = { 0 };
	struct rig g = { 0 };
	struct cpustat *c;
	uint64_t before;

	assert_int_equal(fsroot_open("/", &g.root), 0);
	assert_int_equal(topology_read(g.root, &g.schema, &err), 0);
	assert_int_equal(hierarchy_detect(g.root, HIERARCHY_AUTO, &g.hierarchy, &err), 0);
	if (!g.hierarchy.v2 || !set_online(1, "1")) {
		printf("SKIP cpu_toggles_under_cpustat: cgroup v1, or CPU 1 cannot be taken offline here\n");
		free(g.schema.cpus);
		fsroot_close(g.root);
		return;
	}
	g.table = cgroup_table_new();
	assert_int_equal(reading_init(&g.reading, &g.schema), 0);
	assert_int_equal(cpustat_open(&g.hierarchy, g.root, &g.schema, &c, &err), 0);
	assert_int_equal(cpustat_read(c, &g.reading, g.table, NULL), 0);
	for (unsigned times = 1; times < 4; times += 2) {
		uint32_t changes = g.reading.cpus[1].online_changes, others = g.reading.cpus[0].online_changes;

		toggle(times);
		assert_int_equal(cpustat_read(c, &g.reading, g.table, NULL), 0);
		assert_true(g.reading.cpus[1].online_changes > changes);
		assert_int_equal(g.reading.cpus[0].online_changes, others);
		changes = g.reading.cpus[1].online_changes;
		before = g.reading.cpus[1].elapsed_ns;
		for (unsigned i = 0; i < 500 && g.reading.cpus[1].elapsed_ns - before <= 250000000; i++) {
			usleep(10000); /* the kernel counts no ticks that a stall of the host took */
			assert_int_equal(cpustat_read(c, &g.reading, g.table, NULL), 0);
		}
		printf("  toggled %u times: then %.3f s\n", times,
		       (double)(g.reading.cpus[1].elapsed_ns - before) / 1e9);
		assert_int_equal(g.reading.cpus[1].online_changes, changes);
		assert_true(g.reading.cpus[1].elapsed_ns - before > 250000000);
	}
	cpustat_close(c);
	reading_free(&g.reading);
	cgroup_table_free(g.table);
	free(g.schema.cpus);
	fsroot_close(g.root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_leaves_and_returns),
		cmocka_unit_test(test_cpu_toggles_within_an_interval),
		cmocka_unit_test_setup_teardown(test_cpu_toggles_under_perf_event, any_controller, controller_restore),
		cmocka_unit_test(test_cpu_toggles_under_cpustat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
