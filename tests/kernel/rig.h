/* SPDX-License-Identifier: Apache-2.0 */
/* A counters source on the running kernel, cgroups to fill it, and the kernel's own figures to
 * compare with. Everything made here is named jouled-test-PID-* and removed again. */
#ifndef JD_TEST_RIG_H
#define JD_TEST_RIG_H
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "model/snapshot.h"
#include "source/counters/counters.h"
#include "source/counters/topology.h"
#include "leftovers.h"

struct rig {
	struct fsroot *root;
	struct schema schema;
	struct hierarchy hierarchy;
	struct perf_seam seam;
	struct event_variants variants[SCHEMA_MAX_EVENTS];
	uint32_t bank_rows; /* 0: as many as the machine has */
	const uint16_t *siblings; /* by CPU; NULL: as the machine says */
	bool columns; /* also those of the switch program: SIBLING_BUSY, IDLE_EXITS, OTHERS_BUSY */
	unsigned events, msr; /* times the TSC is counted per row, and per CPU */
	struct cgroup_table *table;
	struct counters *counters;
	struct reading reading;
	struct consumer *consumer;
	uint64_t read_end_ns; /* when the last reading was complete; reading.mono_ns is when it began */
};

static uint64_t read_number(const char *path, const char *key)
{
	char text[4096] = "", *at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = key ? strstr(text, key) : text;
	return at ? strtoull(at + (key ? strlen(key) : 0), NULL, 10) : 0;
}

static void rig_events(struct event_set *set, unsigned n)
{
	uint64_t type = read_number("/sys/bus/event_source/devices/msr/type", NULL);

	set->n = n;
	for (unsigned i = 0; i < n; i++) {
		struct event_desc *ev = &set->ev[i];

		ev->kind = type ? EVENT_PERF : EVENT_TASK_CLOCK;
		ev->type = (uint32_t)type;
		snprintf(ev->pmu, sizeof(ev->pmu), "msr");
		snprintf(ev->name, sizeof(ev->name), "event-%u", i);
	}
}

static void rig_columns(struct event_set *set)
{
	set->ev[set->n++] = (struct event_desc){ .name = "SIBLING_BUSY", .kind = EVENT_SIBLING_BUSY };
	set->ev[set->n++] = (struct event_desc){ .name = "IDLE_EXITS", .kind = EVENT_IDLE_EXITS };
	set->ev[set->n++] = (struct event_desc){ .name = "OTHERS_BUSY", .kind = EVENT_OTHERS_BUSY };
}

/* The seam, events and msr are the caller's, set before; 0 or what the counters said in *err. */
static int rig_try(struct rig *g, uint64_t max_cgroups, enum trigger_mode trigger, struct err *err)
{
	int ret;

	assert_int_equal(fsroot_open("/", &g->root), 0);
	assert_int_equal(topology_read(g->root, &g->schema, err), 0);
	assert_int_equal(hierarchy_detect(g->root, HIERARCHY_AUTO, &g->hierarchy, err), 0);
	remove_leftovers(g->hierarchy.mount);
	rig_events(&g->schema.core, g->events);
	rig_events(&g->schema.msr, g->msr);
	if (g->columns)
		rig_columns(&g->schema.core);
	struct counters_options o = { .trigger = trigger,
				      .max_cgroups = max_cgroups,
				      .bank_rows = g->bank_rows,
				      .siblings = g->siblings,
				      .root = g->root,
				      .hierarchy = &g->hierarchy,
				      .seam = &g->seam,
				      .core_variants = g->variants,
				      .msr_variants = g->variants };

	ret = counters_open(&o, &g->schema, &g->counters, err);
	g->table = cgroup_table_new();
	assert_int_equal(reading_init(&g->reading, &g->schema), 0);
	g->consumer = consumer_new(&g->reading);
	return ret;
}

/* events: how many times the msr PMU's TSC is counted per row; without that PMU, task time. */
static void rig_open(struct rig *g, unsigned events, uint64_t max_cgroups, enum trigger_mode trigger)
{
	struct err err = { 0 };

	memset(g, 0, sizeof(*g));
	g->seam = perf_seam_live();
	g->events = events;
	if (rig_try(g, max_cgroups, trigger, &err))
		fail_msg("%s", err.text);
}

static void rig_read(struct rig *g)
{
	g->reading.number++;
	g->reading.mono_ns = clock_mono_ns();
	g->reading.boot_ns = clock_boot_ns();
	assert_int_equal(counters_read(g->counters, &g->reading, g->table, NULL), 0);
	g->read_end_ns = clock_mono_ns();
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Whoever was on a CPU is switched from. */
static void visit_cpus(unsigned n)
{
	cpu_set_t before;
	bool saved = sched_getaffinity(0, sizeof(before), &before) == 0;

	for (unsigned cpu = 0; cpu < n && cpu < CPU_SETSIZE; cpu++)
		pin((int)cpu);
	if (saved)
		sched_setaffinity(0, sizeof(before), &before);
}

/* A child that was waited for may still be on its way off its CPU, and the kernel's account of it is read
 * later than ours. A visit there ends its time. The sleep leaves the CPUs idle again. */
static struct snapshot *rig_snapshot(struct rig *g)
{
	visit_cpus(g->schema.n_cpus);
	usleep(10000);
	rig_read(g);
	return consumer_snapshot(g->consumer, &g->reading);
}

static void rig_start(struct rig *g)
{
	rig_read(g);
	consumer_mark(g->consumer, &g->reading);
}

static void rig_close(struct rig *g)
{
	counters_close(g->counters);
	consumer_free(g->consumer);
	reading_free(&g->reading);
	cgroup_table_free(g->table);
	free(g->schema.cpus);
	fsroot_close(g->root);
}

/* A cgroup below the mount, or below another one when parent is given. */
struct test_cgroup {
	char path[512];
	uint64_t id;
};

static void cgroup_make(struct rig *g, const struct test_cgroup *parent, const char *name, struct test_cgroup *ret)
{
	struct stat st;

	if (parent)
		snprintf(ret->path, sizeof(ret->path), "%.400s/%s", parent->path, name);
	else
		snprintf(ret->path, sizeof(ret->path), "%.300s/jouled-test-%d-%s", g->hierarchy.mount, getpid(), name);
	assert_int_equal(mkdir(ret->path, 0755), 0);
	assert_int_equal(stat(ret->path, &st), 0);
	ret->id = st.st_ino;
}

static void cgroup_remove(const struct test_cgroup *cg)
{
	for (int i = 0; i < 20000 && rmdir(cg->path) && errno == EBUSY; i++)
		usleep(1000);
}

static void cgroup_join(const struct test_cgroup *cg, pid_t pid)
{
	char path[600], text[16];
	int fd, n = snprintf(text, sizeof(text), "%d", pid);

	snprintf(path, sizeof(path), "%s/cgroup.procs", cg->path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)n) != n) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		abort();
	}
	close(fd);
}

/* CPU time of the subtree by the kernel's own books. */
static uint64_t cgroup_cpu_ns(const struct test_cgroup *cg)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/cpu.stat", cg->path);
	return read_number(path, "usage_usec ") * 1000;
}

/* A fork that begins its life in cg. Joining is another matter: the kernel's books split the tick in
 * which a move falls, and where moving is slow (emulated machines) that tick is often the wrong one. */
static pid_t fork_into(const struct test_cgroup *cg)
{
	int fd = open(cg->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)fd };
	pid_t pid = fd < 0 ? -1 : (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (fd >= 0 && pid)
		close(fd);
	return pid;
}

/* Runs work in a child that is in cg; returns its pid. */
static pid_t start_in(const struct test_cgroup *cg, void (*work)(unsigned ms), unsigned ms)
{
	pid_t pid = fork_into(cg);

	if (pid < 0) { /* a v1 hierarchy */
		pid = fork();
		if (pid == 0)
			cgroup_join(cg, 0);
	}
	if (pid)
		return pid;
	work(ms);
	_exit(0);
}

static void wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void pin_all(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	sched_setaffinity(0, sizeof(set), &set);
}

static void spin_ns(uint64_t ns)
{
	for (uint64_t end = clock_mono_ns() + ns; clock_mono_ns() < end;)
		;
}

/* Of CPU time, which a busy host may stretch as it likes. */
static void spin_cpu_ns(uint64_t ns)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((uint64_t)(now.tv_sec - begin.tv_sec) * NS_PER_S + (uint64_t)now.tv_nsec - (uint64_t)begin.tv_nsec < ns);
}

static void work_spin(unsigned ms)
{
	spin_ns((uint64_t)ms * NS_PER_MS);
}

/* On CPU 0 and above the other tasks there, where that is allowed: it is not switched from until it ends. */
static void work_above_on_0(unsigned ms)
{
	struct sched_param above = { .sched_priority = 1 };

	pin(0);
	sched_setscheduler(0, SCHED_FIFO, &above);
	work_spin(ms);
}

static void work_cycle(unsigned ms, uint64_t busy_ns, uint64_t sleep_ns)
{
	struct timespec nap = { .tv_nsec = (long)sleep_ns };

	for (uint64_t end = clock_mono_ns() + (uint64_t)ms * NS_PER_MS; clock_mono_ns() < end;) {
		spin_ns(busy_ns);
		nanosleep(&nap, NULL);
	}
}

static void work_duty(unsigned ms)
{
	work_cycle(ms, NS_PER_MS, NS_PER_MS);
}

static void work_bursts(unsigned ms)
{
	work_cycle(ms, 20000, 200000);
}

static void work_forks(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

/* On CPUs 0 and 1, that much time on each. */
static void work_pinned_pair(unsigned ms)
{
	pid_t pid = fork();

	pin(pid ? 0 : 1);
	spin_cpu_ns((uint64_t)ms * NS_PER_MS);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static const struct snap_row *row_of(const struct snapshot *s, uint64_t id)
{
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++)
		if (s->rows[i].id == id)
			return &s->rows[i];
	return NULL;
}

static uint64_t time_diff(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns;
}

/* 1 % or 100 us, whichever is larger, and slack_ns beyond that. */
static uint64_t time_bound(uint64_t want_ns, uint64_t slack_ns)
{
	return (want_ns / 100 > 100000 ? want_ns / 100 : 100000) + slack_ns;
}

static bool time_is_off(uint64_t got_ns, uint64_t want_ns, uint64_t slack_ns)
{
	return time_diff(got_ns, want_ns) > time_bound(want_ns, slack_ns);
}

static void assert_time_within(const char *what, uint64_t got_ns, uint64_t want_ns, uint64_t slack_ns)
{
	printf("  %s: %.3f ms, kernel says %.3f ms (%+.3f %%)\n", what, (double)got_ns / 1e6, (double)want_ns / 1e6,
	       want_ns ? 100.0 * ((double)got_ns - (double)want_ns) / (double)want_ns : 0.0);
	if (time_is_off(got_ns, want_ns, slack_ns))
		fail_msg("%s: off by %.3f ms, bound %.3f ms, %.3f of it slack", what,
			 (double)time_diff(got_ns, want_ns) / 1e6, (double)time_bound(want_ns, slack_ns) / 1e6,
			 (double)slack_ns / 1e6);
}

static void assert_time(const char *what, uint64_t got_ns, uint64_t want_ns)
{
	assert_time_within(what, got_ns, want_ns, 0);
}

#endif
