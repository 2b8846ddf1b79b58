// SPDX-License-Identifier: Apache-2.0
/* The cost of spans: a process that is started and waited for, and a call of a function, with the source off and on in
 * turn; the reader's time per process. */
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"
#include "source/spans/spans.h"

#define PROCESSES 300
#define MAX_SLOWDOWN 1.05
#define MAX_READER_NS 20000
#define MAX_LOST 0.03

extern char **environ;
static unsigned long finished;

static void count(void *ctx, const struct span *s)
{
	(void)ctx;
	(void)s;
	finished++;
}

static double start_processes(void)
{
	char *const args[] = { "true", NULL };
	uint64_t begin = bench_now_ns();
	pid_t pid;

	for (unsigned i = 0; i < PROCESSES; i++) {
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ))
			bench_die("/bin/true", 1);
		waitpid(pid, NULL, 0);
	}
	return (double)(bench_now_ns() - begin) / PROCESSES;
}

/* All of a CPU for the probe, so that it stays. */
static struct spans *start(const struct fsroot *root, const struct hierarchy *h, const struct span_function *fn)
{
	const struct spans_options o = {
		.root = root, .hierarchy = h, .functions = fn, .n_functions = fn ? 1 : 0, .budget = 1, .finished = count
	};
	struct err err = { 0 };
	struct spans *s = NULL;

	if (spans_open(&o, &s, &err) || spans_start(s)) {
		fprintf(stderr, "bench: %s\n", err.text);
		exit(1);
	}
	return s;
}

#define CALLS 20000

__attribute__((noinline, noclone, used, visibility("default"))) void bench_called(void);
void bench_called(void)
{
	__asm__ volatile("" ::: "memory");
}

static double call_function(void)
{
	uint64_t begin = bench_now_ns();

	for (unsigned i = 0; i < CALLS; i++)
		bench_called();
	return (double)(bench_now_ns() - begin) / CALLS;
}

static void print_ratio(const char *what, const struct samples *off, const struct samples *on)
{
	printf("\n%s, ns (quartiles): without %.1f %.1f %.1f, with %.1f %.1f %.1f, %.3f x\n", what,
	       samples_quantile(off, 0.25), samples_median(off), samples_quantile(off, 0.75),
	       samples_quantile(on, 0.25), samples_median(on), samples_quantile(on, 0.75),
	       samples_median(on) / samples_median(off));
}

static void report(const struct samples *off, const struct samples *on, const struct spans_stats *st)
{
	double a = samples_median(off), b = samples_median(on);
	double reader = st->processes ? (double)st->poll_ns / (double)st->processes : 0;

	report_goal("spans: start and end of a process", verdict_of(b <= a * MAX_SLOWDOWN), "at most 1.05 x without",
		    "%.1f us without, %.1f us with (%.3f x)", a / 1000, b / 1000, b / a);
	report_goal("spans: agent's CPU time per process", verdict_of(reader <= MAX_READER_NS), "at most 20 us",
		    "%.1f us", reader / 1000);
}

static void bench_calls(const struct fsroot *root, const struct hierarchy *h, unsigned rounds)
{
	static const struct span_function fn = { "/proc/self/exe", "bench_called" };
	struct samples off = { 0 }, on = { 0 };
	struct spans_stats st = { 0 };
	uint64_t missed = 0;

	for (unsigned i = 0; i < rounds && i < BENCH_MAX_SAMPLES; i++) {
		samples_add(&off, call_function());
		struct spans *s = start(root, h, &fn);

		samples_add(&on, call_function());
		spans_stats(s, &st);
		missed += st.probed_calls < CALLS;
		spans_close(s);
	}
	print_ratio("A call of a probed function", &off, &on);
	report_goal("spans: a probed call", missed ? NOT_RUN : PASS, "measured",
		    "%.0f ns without, %.0f ns with (quartiles %.0f, %.0f), "
		    "budget 1 %% of a CPU = %.0f calls/s",
		    samples_median(&off), samples_median(&on), samples_quantile(&on, 0.25), samples_quantile(&on, 0.75),
		    1e7 / samples_median(&on));
}

struct speed {
	uint64_t calls, wall_ns, cpu_ns;
};

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct speed call_for(uint64_t ns)
{
	uint64_t begin = bench_now_ns(), cpu = cpu_now_ns();
	struct speed s = { 0 };

	while (bench_now_ns() < begin + ns)
		for (int i = 0; i < 100; i++, s.calls++) {
			bench_called();
			for (volatile int k = 0; k < 3000; k++) /* about 1 us */
				;
		}
	s.wall_ns = bench_now_ns() - begin;
	s.cpu_ns = cpu_now_ns() - cpu;
	return s;
}

static atomic_bool polling;

static void *poll_thread(void *spans)
{
	while (polling) {
		spans_poll(spans);
		usleep(200000);
	}
	return NULL;
}

/* The part of a CPU that a function called all the time loses to its probe at the default budget. It is taken by CPU
 * time, because on a busy machine the function does not get all of a CPU. The speed alone is taken before and
 * afterwards; the first second is left out. */
static void bench_budget(const struct fsroot *root, const struct hierarchy *h)
{
	static const struct span_function fn = { "/proc/self/exe", "bench_called" };
	const struct spans_options o = {
		.root = root, .hierarchy = h, .functions = &fn, .n_functions = 1, .finished = count
	};
	struct speed before = call_for(1500000000), with, after;
	struct err err = { 0 };
	struct spans *s = NULL;
	double alone, lost;
	pthread_t t;

	if (spans_open(&o, &s, &err) || spans_start(s)) {
		fprintf(stderr, "bench: %s\n", err.text);
		exit(1);
	}
	polling = true;
	pthread_create(&t, NULL, poll_thread, s);
	call_for(1000000000);
	with = call_for(4000000000);
	polling = false;
	pthread_join(t, NULL);
	spans_close(s);
	after = call_for(1500000000);
	alone = (double)(before.cpu_ns + after.cpu_ns) / (double)(before.calls + after.calls);
	lost = ((double)with.cpu_ns - alone * (double)with.calls) / (double)with.wall_ns;
	report_goal("spans: a hot function with its probe", verdict_of(lost <= MAX_LOST), "at most 3 % of a CPU",
		    "%.2f %% of a CPU (%.0f ns a call alone)", 100 * lost, alone);
}

int bench_spans(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 21;
	struct samples off = { 0 }, on = { 0 };
	struct spans_stats sum = { 0 }, st;
	struct hierarchy h;
	struct fsroot *root;
	struct err err = { 0 };

	if (fsroot_open("/", &root) || hierarchy_detect(root, HIERARCHY_AUTO, &h, &err))
		bench_die("hierarchy", 1);
	for (unsigned i = 0; i < rounds && i < BENCH_MAX_SAMPLES; i++) {
		struct spans *s;

		samples_add(&off, start_processes());
		s = start(root, &h, NULL);
		samples_add(&on, start_processes());
		usleep(200000);
		spans_poll(s);
		spans_stats(s, &st);
		sum.poll_ns += st.poll_ns;
		sum.processes += st.processes;
		spans_close(s);
	}
	print_ratio("Start and end of a process", &off, &on);
	report(&off, &on, &sum);
	bench_calls(root, &h, rounds);
	bench_budget(root, &h);
	fsroot_close(root);
	return 0;
}
