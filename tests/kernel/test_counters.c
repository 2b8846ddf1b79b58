// SPDX-License-Identifier: Apache-2.0
/* Known work in cgroups of our own on the running kernel, against cpu.stat, schedstat, perf and the
 * clock: what jouled adds up must be what the kernel's own books say. */
#include "kernel/rig.h"
#include <dirent.h>
#include "source/counters/rows.h"

/* One workload in a cgroup of its own; it has ended when both books are read. */
static void check_work(const char *name, void (*work)(unsigned), unsigned arg, enum trigger_mode trigger)
{
	struct test_cgroup cg;
	struct snapshot *s;
	struct rig g;

	rig_open(&g, 2, 4096, trigger);
	cgroup_make(&g, NULL, name, &cg);
	rig_start(&g);
	wait_for(start_in(&cg, work, arg));
	s = rig_snapshot(&g);
	assert_non_null(row_of(s, cg.id));
	assert_time(name, row_of(s, cg.id)->time_ns, cgroup_cpu_ns(&cg));
	assert_int_equal(s->losses.lost_reads, 0);
	assert_int_equal(s->losses.folded, 0);
	cgroup_remove(&cg);
	rig_close(&g);
}

static void test_workloads_tp_btf(void **state)
{
	check_work("spinner", work_spin, 400, TRIGGER_TP_BTF);
	check_work("duty-1ms", work_duty, 800, TRIGGER_TP_BTF);
	check_work("bursts-20us", work_bursts, 800, TRIGGER_TP_BTF);
	check_work("forks", work_forks, 500, TRIGGER_TP_BTF);
}

static void test_workloads_raw_tp(void **state)
{
	check_work("spinner", work_spin, 400, TRIGGER_RAW_TP);
	check_work("duty-1ms", work_duty, 800, TRIGGER_RAW_TP);
	check_work("bursts-20us", work_bursts, 800, TRIGGER_RAW_TP);
	check_work("forks", work_forks, 500, TRIGGER_RAW_TP);
}

/* Readings every 5 ms in between must not bend the sum. */
static void test_many_readings(void **state)
{
	struct test_cgroup cg;
	struct rig g;
	pid_t pid;

	rig_open(&g, 2, 4096, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "many", &cg);
	rig_start(&g);
	pid = start_in(&cg, work_duty, 800);
	for (int i = 0; i < 180; i++) {
		usleep(5000);
		rig_read(&g);
	}
	wait_for(pid);
	assert_time("180 readings", row_of(rig_snapshot(&g), cg.id)->time_ns, cgroup_cpu_ns(&cg));
	cgroup_remove(&cg);
	rig_close(&g);
}

/* The same with threads that help to flush, as on large machines. */
static void test_helpers(void **state)
{
	struct test_cgroup cg;
	struct rig g;
	pid_t pid;

	rig_open(&g, 2, 4096, TRIGGER_AUTO);
	assert_int_equal(counters_helpers_start(g.counters, 2, 0), 0);
	cgroup_make(&g, NULL, "helped", &cg);
	rig_start(&g);
	pid = start_in(&cg, work_duty, 400);
	for (int i = 0; i < 90; i++) {
		usleep(5000);
		rig_read(&g);
	}
	wait_for(pid);
	assert_time("90 readings with helpers", row_of(rig_snapshot(&g), cg.id)->time_ns, cgroup_cpu_ns(&cg));
	cgroup_remove(&cg);
	rig_close(&g);
}

/* 0 = it had no CPU, so it has no row. */
static uint64_t time_of(const struct snapshot *s, const struct test_cgroup *cg)
{
	const struct snap_row *row = row_of(s, cg->id);

	return row ? row->time_ns : 0;
}

/* The kernel books what a task ran since its last look at it, a tick or longer where the host keeps its CPU waiting, to
 * the cgroup that the task moves to. So most tries must agree within a tick, not all. */
enum { MOVE_TRIES = 5 };

/* A spinner is moved while it runs: its CPU is closed at the move, as the agent does when the
 * lifecycle program reports it. What it runs from the move to the close may be in either row. 1 = the rows agree. */
static int move_while_running(void)
{
	uint64_t may_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK), want_b, got_b;
	struct test_cgroup a, b;
	struct snapshot *s;
	struct rig g;
	pid_t pid;

	rig_open(&g, 2, 4096, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "from", &a);
	cgroup_make(&g, NULL, "to", &b);
	rig_start(&g);
	pid = start_in(&a, work_spin, 600);
	usleep(300000);
	may_ns -= clock_mono_ns();
	cgroup_join(&b, pid);
	for (unsigned cpu = 0; cpu < g.schema.n_cpus; cpu++)
		counters_close_cpu(g.counters, cpu);
	may_ns += clock_mono_ns();
	wait_for(pid);
	s = rig_snapshot(&g);
	want_b = cgroup_cpu_ns(&b);
	got_b = time_of(s, &b);
	printf("  moved: %.3f ms, kernel says %.3f ms, %.3f apart at most\n", (double)got_b / 1e6, (double)want_b / 1e6,
	       (double)may_ns / 1e6);
	assert_time("moved, both", time_of(s, &a) + got_b, cgroup_cpu_ns(&a) + want_b);
	cgroup_remove(&a);
	cgroup_remove(&b);
	rig_close(&g);
	return got_b + may_ns > want_b && want_b + may_ns > got_b;
}

static void test_moved_while_running(void **state)
{
	int agree = 0;

	for (int i = 0; i < MOVE_TRIES; i++)
		agree += move_while_running();
	assert_true(agree > MOVE_TRIES / 2);
}

/* A task that moves itself: what it used before is not the new cgroup's, and what it uses after is, although no switch
 * comes in between that would tell: above all others on its CPU, it gives it to none until it ends. 1 = the row agrees
 * with the kernel, -1 = no such task may be in a cgroup here. */
static int join_itself(void)
{
	uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK), want = 0, got = 0;
	struct sched_param above = { .sched_priority = 1 };
	struct test_cgroup cg;
	int status, may;
	struct rig g;
	pid_t pid;

	rig_open(&g, 2, 4096, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "joined", &cg);
	rig_start(&g);
	pid = fork();
	if (!pid) {
		pin(0);
		if (sched_setscheduler(0, SCHED_FIFO, &above))
			_exit(77);
		spin_cpu_ns(100 * NS_PER_MS);
		cgroup_join(&cg, 0);
		spin_cpu_ns(100 * NS_PER_MS);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	may = WIFEXITED(status) && !WEXITSTATUS(status);
	if (may) {
		got = time_of(rig_snapshot(&g), &cg);
		want = cgroup_cpu_ns(&cg);
		printf("  joined: %.3f ms, kernel says %.3f ms\n", (double)got / 1e6, (double)want / 1e6);
		assert_true(want > 90 * NS_PER_MS);
	}
	cgroup_remove(&cg);
	rig_close(&g);
	return !may ? -1 : got + tick_ns > want && want + tick_ns > got;
}

static void test_joins_itself(void **state)
{
	int agree = 0;

	for (int i = 0; i < MOVE_TRIES; i++) {
		int one = join_itself();

		if (one < 0) {
			printf("SKIP joins_itself: a task with a real-time priority is not let into a cgroup here\n");
			return;
		}
		agree += one;
	}
	assert_true(agree > MOVE_TRIES / 2);
}

/* The row of a cgroup that ran on CPU 0. */
static uint32_t row_on_0(const struct rig *g, const struct test_cgroup *cg)
{
	const struct jd_cpu_state *st = &g->counters->states[0];
	uint32_t row = 0;

	while (g->counters->info[slot_at(g->counters, 0, st->bank & 1, row)].key != cg->id)
		assert_true(++row < st->n_rows[st->bank & 1]);
	return row;
}

/* Runs there for 300 ms, and returns when the books have it, on another CPU: it has to see that while it is so. */
static pid_t start_on_0(const struct rig *g, const struct test_cgroup *cg)
{
	const volatile struct jd_cpu_state *st = &g->counters->states[0];
	pid_t pid = 0;

	pin(1);
	for (int tries = 0; tries < 10 && !pid; tries++) {
		pid = start_in(cg, work_above_on_0, 300);
		while (st->key != cg->id) {
			if (waitpid(pid, NULL, WNOHANG) == pid) {
				pid = 0;
				break;
			}
			usleep(1000);
		}
	}
	assert_true(pid > 0);
	return pid;
}

struct stamp {
	uint64_t since_ns, count;
};

/* Of the last charge on a CPU. */
static struct stamp stamp_of(const struct jd_cpu_state *st)
{
	const volatile struct jd_cpu_state *now = st;
	struct stamp s;
	uint64_t seq;

	do {
		seq = now->seq;
		s = (struct stamp){ now->since_ns, now->last[0] };
	} while (seq & 1 || seq != now->seq);
	return s;
}

/* The task in the books ran for 100 ms and left, and the kernel did not tell: it gets the counts of its time, and the one that ran
 * after it those of the rest. */
static void test_missed_departure(void **state)
{
	struct test_cgroup ran, left;
	struct stamp before, after;
	const struct snap_row *rows[2];
	struct jd_cpu_state *st;
	struct snapshot *s;
	uint32_t row;
	double rate, per_ns[2];
	struct rig g;
	pid_t pid;

	rig_open(&g, 1, 4096, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "after", &ran);
	cgroup_make(&g, NULL, "left", &left);
	rig_start(&g);
	st = &g.counters->states[0];
	before = stamp_of(st);
	usleep(200000); /* the event has counted for longer than is taken from it below */
	wait_for(start_in(&left, work_above_on_0, 1));
	row = row_on_0(&g, &left);
	pid = start_on_0(&g, &ran);
	after = stamp_of(st);
	rate = g.schema.core.ev[0].kind == EVENT_TASK_CLOCK ?
		       1 :
		       (double)(after.count - before.count) / (double)(after.since_ns - before.since_ns);
	st->row = row;
	st->key = left.id;
	st->since_ns -= 100 * NS_PER_MS;
	st->last[0] -= (uint64_t)(100 * NS_PER_MS * rate);
	*(volatile uint64_t *)&st->task = 1;
	wait_for(pid);
	pin_all();
	s = rig_snapshot(&g);
	rows[0] = row_of(s, left.id);
	rows[1] = row_of(s, ran.id);
	assert_true(s->losses.missed_switches > 0);
	/* what the host took of it may be told later than the arrival of the other */
	assert_time_within("left", rows[0]->time_ns, cgroup_cpu_ns(&left) + 100 * NS_PER_MS,
			   5 * NS_PER_MS + s->cpus[0].irq_steal_ns);
	for (int i = 0; i < 2; i++) {
		const struct snap_cell *c = &s->cells[rows[i]->first_cell];

		printf("  %s: %.3f ms, %llu counts\n", i ? "ran" : "left", (double)c->time_ns / 1e6,
		       (unsigned long long)c->counters[0]);
		per_ns[i] = (double)c->counters[0] / (double)c->time_ns;
	}
	assert_true(per_ns[0] > 0.8 * per_ns[1] && per_ns[0] < 1.25 * per_ns[1]);
	cgroup_remove(&ran);
	cgroup_remove(&left);
	rig_close(&g);
}

/* The kernel did not tell of a switch: another task runs than the books say. It is found at the next switch, and the
 * time is of the one that ran, not of the one in the books. */
static void test_missed_switch(void **state)
{
	struct test_cgroup ran, booked;
	struct jd_cpu_state *st;
	struct snapshot *s;
	uint32_t row;
	uint64_t own_ns;
	struct rig g;
	pid_t pid;

	rig_open(&g, 1, 4096, TRIGGER_AUTO);
	cgroup_make(&g, NULL, "ran", &ran);
	cgroup_make(&g, NULL, "booked", &booked);
	rig_start(&g);
	wait_for(start_in(&booked, work_above_on_0, 1));
	own_ns = cgroup_cpu_ns(&booked);
	st = &g.counters->states[0];
	row = row_on_0(&g, &booked);
	pid = start_on_0(&g, &ran);
	st->row = row;
	st->key = booked.id;
	*(volatile uint64_t *)&st->task = 1;
	wait_for(pid);
	pin_all();
	s = rig_snapshot(&g);
	printf("  %llu missed; booked %.3f ms\n", (unsigned long long)s->losses.missed_switches,
	       (double)time_of(s, &booked) / 1e6);
	assert_true(s->losses.missed_switches > 0);
	assert_time("ran", row_of(s, ran.id)->time_ns, cgroup_cpu_ns(&ran));
	assert_true(row_of(s, booked.id)->time_ns < own_ns + 1000000);
	cgroup_remove(&ran);
	cgroup_remove(&booked);
	rig_close(&g);
}

struct kernel_threads {
	struct {
		int pid;
		uint64_t ns;
	} of[4096];
	unsigned n;
};

/* CPU time of the kernel's own threads by /proc/PID/schedstat, by increasing pid. */
static void kernel_threads_read(struct kernel_threads *ret)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	ret->n = 0;
	while ((e = readdir(d)) && ret->n < 4096) {
		char path[300], text[512] = "", *after;
		int fd;
		unsigned flags = 0;

		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		fd = e->d_name[0] >= '0' && e->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
		if (fd < 0)
			continue;
		if (read(fd, text, sizeof(text) - 1) > 0 && (after = strrchr(text, ')')))
			sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags);
		close(fd);
		if (!(flags & 0x00200000)) /* PF_KTHREAD */
			continue;
		snprintf(path, sizeof(path), "/proc/%s/schedstat", e->d_name);
		ret->of[ret->n].pid = atoi(e->d_name);
		ret->of[ret->n++].ns = read_number(path, NULL);
	}
	closedir(d);
}

/* What they ran from one look to the next; *ret_ended when one of them ended, with what it ran. */
static uint64_t ran_ns(const struct kernel_threads *from, const struct kernel_threads *to, bool *ret_ended)
{
	uint64_t sum = 0;
	unsigned k = 0;

	*ret_ended = false;
	for (unsigned i = 0; i < to->n; i++) {
		for (; k < from->n && from->of[k].pid < to->of[i].pid; k++)
			*ret_ended = true;
		sum += to->of[i].ns;
		if (k < from->n && from->of[k].pid == to->of[i].pid)
			sum -= from->of[k++].ns;
	}
	*ret_ended |= k < from->n;
	return sum;
}

static void keep_kernel_threads_busy(struct rig *g)
{
	static const char buf[65536];

	for (int i = 0; i < 200; i++) { /* what is left of a cgroup is freed by kworkers */
		struct test_cgroup cg;

		cgroup_make(g, NULL, "freed", &cg);
		cgroup_remove(&cg);
	}
	for (int i = 0; i < 40; i++) { /* dirty pages and flushes keep them busy too, but not on tmpfs */
		int fd = open("jouled-test-kworker", O_CREAT | O_WRONLY | O_TRUNC, 0600);

		for (int k = 0; k < 16; k++)
			assert_int_equal(write(fd, buf, sizeof(buf)), (int)sizeof(buf));
		fsync(fd);
		close(fd);
	}
	unlink("jouled-test-kworker");
}

/* /proc is walked before and after each reading: on a slow machine they work on during the walk. What a thread ran that
 * ended is in our row and no longer in /proc. */
static void test_kernel_threads_have_their_own_row(void **state)
{
	static struct kernel_threads before[2], after[2];
	bool ended = true, ended_between;
	struct rig g;

	rig_open(&g, 1, 4096, TRIGGER_AUTO);
	for (unsigned i = 0; i < 10 && ended; i++) {
		kernel_threads_read(&before[0]);
		rig_start(&g);
		kernel_threads_read(&before[1]);
		keep_kernel_threads_busy(&g);
		kernel_threads_read(&after[0]);
		uint64_t got = rig_snapshot(&g)->rows[ROW_KERNEL].time_ns;

		kernel_threads_read(&after[1]);
		uint64_t least = ran_ns(&before[1], &after[0], &ended_between),
			 most = ran_ns(&before[0], &after[1], &ended);

		printf("  kernel threads: %.3f ms, /proc says %.3f to %.3f ms%s\n", (double)got / 1e6,
		       (double)least / 1e6, (double)most / 1e6, ended ? ", and one ended" : "");
		assert_true(least > 1000000 || ended_between);
		assert_true(got + 1000000 > least || ended_between);
		assert_true(got < most + most / 10 + 3000000 || ended);
	}
	assert_false(ended);
	rig_close(&g);
}

/* Per CPU: rows + idle + irq/steal = elapsed exactly. Returns by how many ns elapsed is beyond 0.1 % of CLOCK_MONOTONIC
 * at most: a flush falls somewhere between the begin and the end of its reading, which lie apart where the host is
 * busy. */
static uint64_t check_clock(struct rig *g, const struct snapshot *s, uint64_t first_end_ns)
{
	uint64_t least = s->end_ns - first_end_ns, wall = g->read_end_ns - s->start_ns;
	uint64_t most = wall + wall / 1000, beyond = 0;

	least -= least / 1000;
	for (unsigned cpu = 0; cpu < g->schema.n_cpus; cpu++) {
		uint64_t sum = 0, elapsed = s->cpus[cpu].elapsed_ns;

		if (!s->cpus[cpu].online)
			continue;
		for (unsigned i = 0; i < s->n_cells; i++)
			if (s->cells[i].cpu == cpu)
				sum += s->cells[i].time_ns;
		printf("  cpu %u: rows %.6f s, clock %.6f to %.6f s\n", cpu, (double)sum / 1e9, (double)least / 1e9,
		       (double)wall / 1e9);
		assert_int_equal(sum, elapsed);
		if (elapsed > most && elapsed - most > beyond)
			beyond = elapsed - most;
		if (elapsed < least && least - elapsed > beyond)
			beyond = least - elapsed;
	}
	return beyond;
}

/* A host that takes a CPU away between the scheduler's look at its clock and ours moves the end of one interval. A
 * wrong clock shows in every one. */
static void test_time_adds_up(void **state)
{
	struct test_cgroup cg;
	uint64_t first_end_ns;
	struct rig g;
	pid_t pid;

	for (unsigned events = 0; events < 2; events++) { /* 0: idle CPUs closed from the clock */
		uint64_t beyond = 1;

		rig_open(&g, events, 4096, TRIGGER_AUTO);
		cgroup_make(&g, NULL, "clock", &cg);
		rig_start(&g);
		for (unsigned i = 0; i < 5 && beyond; i++) {
			first_end_ns = g.read_end_ns;
			pid = start_in(&cg, work_duty, 1900);
			usleep(2000000);
			beyond = check_clock(&g, rig_snapshot(&g), first_end_ns);
			wait_for(pid);
		}
		if (beyond)
			fail_msg("elapsed time is %.6f s beyond the clock's 0.1 %% in five intervals",
				 (double)beyond / 1e9);
		cgroup_remove(&cg);
		rig_close(&g);
	}
}

static uint64_t perf_value(int fd)
{
	uint64_t v[3]; /* value, time enabled, time running */

	assert_int_equal(read(fd, v, sizeof(v)), (int)sizeof(v));
	return v[0];
}

static uint64_t perf_sum(const int fd[2])
{
	uint64_t sum = 0;

	for (int cpu = 0; cpu < 2; cpu++)
		sum += fd[cpu] >= 0 ? perf_value(fd[cpu]) : 0;
	return sum;
}

/* Every row's counters together are the system-wide count of the same event; that is read before and
 * after each reading, which take their time where the host is busy. */
static void test_counters_add_up(void **state)
{
	struct test_cgroup cg;
	struct snapshot *s;
	struct rig g;
	pid_t pid;
	uint64_t first[2], last[2], got = 0, least, most;
	int fd[2];

	rig_open(&g, 3, 4096, TRIGGER_AUTO);
	if (g.schema.core.ev[0].kind != EVENT_PERF) {
		printf("SKIP counters_add_up: no msr PMU, so no event to count\n");
		rig_close(&g);
		return;
	}
	for (int cpu = 0; cpu < 2; cpu++)
		fd[cpu] = g.seam.open(g.seam.ctx, &(struct event_variant){ .type = g.schema.core.ev[0].type }, cpu,
				      false);
	cgroup_make(&g, NULL, "sum", &cg);
	first[0] = perf_sum(fd);
	rig_start(&g);
	first[1] = perf_sum(fd);
	pid = start_in(&cg, work_bursts, 1900);
	usleep(2000000);
	last[0] = perf_sum(fd);
	s = rig_snapshot(&g);
	last[1] = perf_sum(fd);
	for (unsigned i = 0; i < s->n_cells; i++)
		got += s->cells[i].counters[2];
	least = last[0] - first[1];
	most = last[1] - first[0];
	printf("  all rows %llu, perf %llu to %llu\n", (unsigned long long)got, (unsigned long long)least,
	       (unsigned long long)most);
	assert_true(got < most + most / 1000 && least < got + got / 1000);
	wait_for(pid);
	for (int cpu = 0; cpu < 2; cpu++)
		close(fd[cpu]);
	cgroup_remove(&cg);
	rig_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_workloads_tp_btf),
		cmocka_unit_test(test_workloads_raw_tp),
		cmocka_unit_test(test_many_readings),
		cmocka_unit_test(test_helpers),
		cmocka_unit_test(test_moved_while_running),
		cmocka_unit_test(test_joins_itself),
		cmocka_unit_test(test_missed_switch),
		cmocka_unit_test(test_missed_departure),
		cmocka_unit_test(test_kernel_threads_have_their_own_row),
		cmocka_unit_test(test_time_adds_up),
		cmocka_unit_test(test_counters_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
