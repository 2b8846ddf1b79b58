// SPDX-License-Identifier: Apache-2.0
/* Columns that the switch program counts itself, on CPUs 0 and 1 as siblings, whatever they are. Compared are counts
 * that are equal at any load: a CPU with a task that never sleeps is never idle. Where others keep CPU 1 busy all the time,
 * nothing here wakes it up; tests/vm/cases/smt.sh has a machine of its own for that. */
#include "kernel/five_times.h"
#include "kernel/rig.h"
#include <sys/mman.h>
#include "source/counters/rows.h"

enum { SIBLING, WAKEUPS, OTHERS, COLUMNS };
static const uint16_t pair[] = { 1, 0 }, alone[] = { 0, 1 };

/* Work that goes on until the test has read, and says when it is on its CPU: a host may let it wait for long. */
static volatile struct work {
	bool stop, on_cpu[2];
} * work;

static void begin_on(int cpu)
{
	pin(cpu);
	work->on_cpu[cpu] = true;
}

static void spin_until_stopped(int cpu)
{
	begin_on(cpu);
	while (!work->stop)
		;
}

static void spin_on_0(unsigned unused)
{
	spin_until_stopped(0);
}

static void spin_on_1(unsigned unused)
{
	spin_until_stopped(1);
}

static void half_on_1(unsigned unused)
{
	begin_on(1);
	while (!work->stop) {
		spin_cpu_ns(3 * NS_PER_MS);
		usleep(3000);
	}
}

static void open_pair(struct rig *g, const uint16_t *siblings, enum trigger_mode trigger)
{
	struct err err = { 0 };

	memset(g, 0, sizeof(*g));
	g->seam = perf_seam_live();
	g->columns = true;
	g->siblings = siblings;
	if (rig_try(g, 4096, trigger, &err))
		fail_msg("%s", err.text);
	work = mmap(NULL, sizeof(*work), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(work != MAP_FAILED);
}

static void close_pair(struct rig *g)
{
	munmap((void *)work, sizeof(*work));
	rig_close(g);
}

/* What rows that are not idle had on a CPU. */
struct cpu_sum {
	uint64_t time_ns, column[COLUMNS], idle_switches, asleep_ns;
};

static struct cpu_sum sum_of(const struct snapshot *s, unsigned cpu)
{
	struct cpu_sum sum = { 0 };

	for (unsigned i = 0; i < s->n_rows; i++)
		for (unsigned k = 0; k < s->rows[i].n_cells; k++) {
			const struct snap_cell *c = &s->cells[s->rows[i].first_cell + k];

			if (c->cpu != cpu)
				continue;
			if (i == ROW_IDLE) {
				sum.idle_switches += c->switches;
				sum.asleep_ns += c->counters[OTHERS];
				assert_int_equal(c->counters[SIBLING], 0);
				continue;
			}
			sum.time_ns += c->time_ns;
			for (unsigned e = 0; e < COLUMNS; e++)
				sum.column[e] += c->counters[e];
		}
	return sum;
}

/* The two CPUs are read one after the other, at the start and at the end. */
static uint64_t apart_ns(const struct rig *g)
{
	uint64_t a = g->reading.cpus[0].read_mono_ns, b = g->reading.cpus[1].read_mono_ns;

	return a > b ? a - b : b - a;
}

/* What interrupts and the host took from the two CPUs. The clock that siblings share sees it at once, and the books of an idle
 * CPU when it is flushed next, so both may differ by it. */
static uint64_t taken_ns(const struct snapshot *s)
{
	return s->cpus[0].irq_steal_ns + s->cpus[1].irq_steal_ns;
}

static void expect_near(const char *what, uint64_t got, uint64_t want, uint64_t slack)
{
	printf("  %s: %llu, expected %llu (slack %llu)\n", what, (unsigned long long)got, (unsigned long long)want,
	       (unsigned long long)slack);
	if (got + slack < want || got > want + slack)
		wrong = what;
}

#define ALL_NS 100000 /* a switch and a flush do not stamp at one moment */

/* Spins on CPU 0, and does `other` on CPU 1, if any, while the columns are taken. Three readings lie in between. */
static const struct snapshot *run(struct rig *g, struct test_cgroup cg[2], void (*other)(unsigned), uint64_t *ret_slack)
{
	const struct snapshot *s;
	pid_t pids[2] = { 0 };

	cgroup_make(g, NULL, "first", &cg[0]);
	cgroup_make(g, NULL, "second", &cg[1]);
	pids[0] = start_in(&cg[0], spin_on_0, 0);
	pids[1] = other ? start_in(&cg[1], other, 0) : 0;
	for (unsigned cpu = 0; cpu < 2; cpu++)
		while (pids[cpu] && !work->on_cpu[cpu])
			usleep(1000);
	rig_start(g);
	*ret_slack = ALL_NS + apart_ns(g);
	for (int i = 0; i < 3; i++) {
		usleep(100000);
		rig_read(g);
	}
	s = rig_snapshot(g);
	*ret_slack += apart_ns(g) + taken_ns(s);
	work->stop = true;
	for (int i = 0; i < 2; i++)
		if (pids[i])
			wait_for(pids[i]);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		struct cpu_sum sum = sum_of(s, cpu);

		printf("  cpu %u: %.3f ms, %llu idle switches, %llu wakeups\n", cpu, (double)sum.time_ns / 1e6,
		       (unsigned long long)sum.idle_switches, (unsigned long long)sum.column[WAKEUPS]);
	}
	assert_non_null(row_of(s, cg[0].id));
	return s;
}

static void end(struct rig *g, struct test_cgroup cg[2])
{
	cgroup_remove(&cg[0]);
	cgroup_remove(&cg[1]);
	close_pair(g);
}

/* Neither CPU is ever idle: each row's time beside a busy sibling is its whole time, and nobody wakes a CPU up. */
static void check_both_busy(const void *trigger)
{
	struct test_cgroup cg[2];
	struct rig g;
	uint64_t slack;

	open_pair(&g, pair, *(const enum trigger_mode *)trigger);
	const struct snapshot *s = run(&g, cg, spin_on_1, &slack);

	for (unsigned i = 0; i < 2; i++) {
		const struct snap_row *row = row_of(s, cg[i].id);
		struct cpu_sum sum = sum_of(s, i);

		assert_non_null(row);
		assert_true(row->time_ns > 0);
		/* a flush that ran ahead is taken back from the row's time, and from the overlap of whoever is next */
		expect_near("both busy: a row", row->counters[SIBLING], row->time_ns, row->time_ns / 2 + ALL_NS);
		expect_near("both busy: a CPU", sum.column[SIBLING], sum.time_ns, ALL_NS);
		/* of two CPUs, the sibling is all the others */
		if (sysconf(_SC_NPROCESSORS_ONLN) == 2)
			expect_near("both busy: others", sum.column[OTHERS], sum.column[SIBLING], ALL_NS);
		if (sum.column[OTHERS] + ALL_NS < sum.column[SIBLING])
			wrong = "all the others";
		assert_int_equal(sum.asleep_ns, 0);
		assert_int_equal(sum.column[WAKEUPS], 0);
	}
	end(&g, cg);
}

static void test_both_busy(void **state)
{
	static const enum trigger_mode btf = TRIGGER_TP_BTF, raw = TRIGGER_RAW_TP;

	five_times(check_both_busy, &btf);
	five_times(check_both_busy, &raw);
}

struct beside {
	void (*other)(unsigned);
	const char *what;
};

/* CPU 0 is never idle. So the time beside a busy sibling there is the time that CPU 1 was busy, and on CPU 1 all of it. */
static void check_beside(const void *arg)
{
	const struct beside *b = arg;
	struct test_cgroup cg[2];
	struct rig g;
	uint64_t slack;

	open_pair(&g, pair, TRIGGER_AUTO);
	const struct snapshot *s = run(&g, cg, b->other, &slack);
	struct cpu_sum sums[2] = { sum_of(s, 0), sum_of(s, 1) };

	expect_near(b->what, sums[0].column[SIBLING], sums[1].time_ns, slack);
	expect_near("the other CPU", sums[1].column[SIBLING], sums[1].time_ns, ALL_NS + taken_ns(s));
	for (unsigned i = 0; i < 2 && sysconf(_SC_NPROCESSORS_ONLN) == 2; i++)
		expect_near("others", sums[i].column[OTHERS], sums[i].column[SIBLING], ALL_NS);
	assert_int_equal(sums[0].asleep_ns + sums[1].asleep_ns, 0);
	if (row_of(s, cg[0].id)->counters[SIBLING] > sums[1].time_ns + slack)
		wrong = "the row beside";
	assert_int_equal(sums[0].column[WAKEUPS], 0);
	/* an idle interval ends with a wake-up, or with one of four readings */
	assert_true(sums[1].column[WAKEUPS] <= sums[1].idle_switches + 1);
	assert_true(sums[1].column[WAKEUPS] + 4 >= sums[1].idle_switches);
	if (b->other)
		assert_true(row_of(s, cg[1].id)->counters[WAKEUPS] <= row_of(s, cg[1].id)->switches);
	end(&g, cg);
}

static void test_beside_half(void **state)
{
	five_times(check_beside, &(struct beside){ half_on_1, "beside half" });
}

static void test_beside_nothing(void **state)
{
	five_times(check_beside, &(struct beside){ NULL, "beside others" });
}

/* Without a sibling there is no such time, however busy the other CPU is. */
static void test_no_sibling(void **state)
{
	struct test_cgroup cg[2];
	struct rig g;
	uint64_t slack;

	open_pair(&g, alone, TRIGGER_AUTO);
	const struct snapshot *s = run(&g, cg, spin_on_1, &slack);

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(sum_of(s, i).column[SIBLING], 0);
	end(&g, cg);
}

/* The books say that CPU 1 is idle, and that the host took a second more from it than it did at the last reading. */
static void miss_a_switch(struct rig *g)
{
	struct jd_cpu_state *st = &g->counters->states[1];
	volatile uint64_t *clock = (volatile uint64_t *)&st->busy_clock;

	for (int cpu = 1; cpu >= 0; cpu--) { /* a switch there measures the offset of its clock */
		pin(cpu);
		usleep(2000);
	}
	st->irq_steal_ns += NS_PER_S;
	st->key = JD_KEY_IDLE;
	*clock = ((uint64_t)((int64_t)*clock >> 1) + clock_mono_ns() - st->clock_offset_ns) << 1;
	*(volatile uint64_t *)&st->task = 1;
	pin(1);
	usleep(2000);
	pin_all();
}

/* A switch that the kernel did not tell of makes its CPU busy again, at a time on the clock that all CPUs share. */
static void check_missed(const void *unused)
{
	struct test_cgroup cg[2];
	struct rig g;

	open_pair(&g, pair, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "first", &cg[0]);
	cgroup_make(&g, NULL, "second", &cg[1]);
	pid_t pids[2] = { start_in(&cg[0], spin_on_0, 0), start_in(&cg[1], spin_on_1, 0) };

	while (!work->on_cpu[0] || !work->on_cpu[1])
		usleep(1000);
	rig_start(&g);
	miss_a_switch(&g);
	usleep(200000);
	const struct snapshot *s = rig_snapshot(&g);
	struct cpu_sum sum = sum_of(s, 0);

	if (!s->losses.missed_switches)
		wrong = "no switch was missed";
	expect_near("a switch was missed", sum.column[SIBLING], sum.time_ns, sum.time_ns / 2);
	work->stop = true;
	for (int i = 0; i < 2; i++)
		wait_for(pids[i]);
	end(&g, cg);
}

static void test_missed_switch(void **state)
{
	five_times(check_missed, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_busy),      cmocka_unit_test(test_beside_half),
		cmocka_unit_test(test_beside_nothing), cmocka_unit_test(test_no_sibling),
		cmocka_unit_test(test_missed_switch),
	};

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		puts("SKIP columns: the only CPU has no sibling");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
