/* SPDX-License-Identifier: Apache-2.0 */
/* A spans source on the running kernel, and what it handed over. */
#ifndef JD_TEST_SPANS_RIG_H
#define JD_TEST_SPANS_RIG_H
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "kernel/five_times.h"
#include "source/cgroup/lifecycle.h"
#include "source/spans/spans.h"

#define RIG_SPANS 40000

struct spans_rig {
	struct fsroot *root;
	struct hierarchy h;
	struct spans *s;
	struct span *got; /* text copied */
	unsigned n;
	unsigned probe_kind; /* kept by rig_open */
};

static void rig_take(void *ctx, const struct span *s)
{
	struct spans_rig *g = ctx;
	struct span *to = &g->got[g->n];

	assert_true(g->n < RIG_SPANS);
	g->n++;
	*to = *s;
	to->comm = strdup(s->comm);
	to->exe = strdup(s->exe);
	to->cmdline = strdup(s->cmdline);
	to->symbol = strdup(s->symbol);
	to->cgroup = to->binary = "";
}

static void rig_open(struct spans_rig *g, const struct span_function *functions, unsigned n, double budget)
{
	struct err err = { 0 };

	*g = (struct spans_rig){ .probe_kind = g->probe_kind };
	g->got = calloc(RIG_SPANS, sizeof(*g->got));
	assert_int_equal(fsroot_open("/", &g->root), 0);
	if (hierarchy_detect(g->root, HIERARCHY_AUTO, &g->h, &err))
		fail_msg("%s", err.text);
	struct spans_options o = { .root = g->root,
				   .hierarchy = &g->h,
				   .functions = functions,
				   .n_functions = n,
				   .budget = budget,
				   .probe_kind = g->probe_kind,
				   .finished = rig_take,
				   .ctx = g };

	if (spans_open(&o, &g->s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(spans_start(g->s), 0);
}

static void rig_forget(struct spans_rig *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		free((char *)g->got[i].comm);
		free((char *)g->got[i].exe);
		free((char *)g->got[i].cmdline);
		free((char *)g->got[i].symbol);
	}
	g->n = 0;
}

static void rig_close(struct spans_rig *g)
{
	spans_close(g->s);
	rig_forget(g);
	free(g->got);
	fsroot_close(g->root);
}

static const struct span *rig_find(const struct spans_rig *g, pid_t pid, unsigned nth)
{
	for (unsigned i = 0; i < g->n; i++)
		if (g->got[i].kind == SPAN_PROCESS && g->got[i].pid == (uint32_t)pid && nth-- == 0)
			return &g->got[i];
	return NULL;
}

/* The span of a process that is reaped. The kernel frees it some time later. */
static const struct span *rig_wait(struct spans_rig *g, pid_t pid, unsigned nth)
{
	const struct span *s = NULL;

	for (int i = 0; i < 6000 && !s; i++) {
		assert_true(spans_poll(g->s) >= 0);
		s = rig_find(g, pid, nth);
		if (!s)
			usleep(10000);
	}
	if (!s)
		fail_msg("no span of process %d", pid);
	return s;
}

/* Until a process waits for something. */
static inline void rig_asleep(pid_t pid)
{
	char path[40], text[512], *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (int i = 0; i < 12000; i++, usleep(10000)) {
		FILE *f = fopen(path, "re");
		size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

		if (f)
			fclose(f);
		text[n] = '\0';
		end = strrchr(text, ')');
		if (end && end[1] == ' ' && end[2] == 'S')
			return;
	}
	fail_msg("process %d does not come to rest", pid);
}

static uint64_t rusage_ns(const struct rusage *u)
{
	return (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1000;
}

static void spin_ms(unsigned ms)
{
	struct timespec t;
	uint64_t begin = clock_thread_cpu_ns();

	while (clock_thread_cpu_ns() < begin + ms * NS_PER_MS)
		clock_gettime(CLOCK_MONOTONIC, &t);
}

/* Within 1 % or bound_ns. */
static bool is_near(const char *what, uint64_t got, uint64_t want, uint64_t bound_ns)
{
	uint64_t diff = got > want ? got - want : want - got, bound = want / 100 > bound_ns ? want / 100 : bound_ns;

	printf("  %s: %.3f ms, want %.3f ms (%+.3f ms)\n", what, (double)got / 1e6, (double)want / 1e6,
	       ((double)got - (double)want) / 1e6);
	return diff <= bound;
}

static void assert_near(const char *what, uint64_t got, uint64_t want, uint64_t bound_ns)
{
	if (!is_near(what, got, want, bound_ns))
		fail_msg("%s: off by more than 1 %% and %.3f ms", what, (double)bound_ns / 1e6);
}

/* For five_times. A parent that is told at once has the CPU time of a child that is still on its way off its CPU: what
 * the child takes until then is only in ours. */
static void expect_near(const char *what, uint64_t got, uint64_t want, uint64_t bound_ns)
{
	if (!is_near(what, got, want, bound_ns))
		wrong = what;
}

#endif
