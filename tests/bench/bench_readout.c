// SPDX-License-Identifier: Apache-2.0
/* The cost of a reading beyond that of an empty one when N cgroups ran on two CPUs since the last, against a
 * copy of as many bytes as their rows have. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../include/counters.h"
#include "own.h"
#include "source/counters/rows.h"

#define EVENTS 6
#define MAX_CGROUPS 16384

static const unsigned sizes[] = { 10, 100, 1000, 10000 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static double copy_ns(void *to, const void *from, size_t bytes)
{
	struct samples s = { 0 };

	for (unsigned i = 0; i < 31; i++) {
		uint64_t t0 = bench_now_ns();

		memcpy(to, from, bytes);
		__asm__ volatile("" : : "r"(to) : "memory");
		samples_add(&s, (double)(bench_now_ns() - t0));
	}
	return samples_median(&s);
}

/* Pages of this process that one reading touches: a large one is one. 0: the kernel does not tell. */
static unsigned long pages_touched(struct own *o)
{
	unsigned long kb, referenced = 0, pages = 0;
	FILE *f = fopen("/proc/self/clear_refs", "w");
	char line[512];

	if (!f || fputs("1", f) < 0 || fclose(f) != 0)
		return 0;
	own_read(o);
	f = fopen("/proc/self/smaps", "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Referenced: %lu kB", &kb) == 1)
			referenced = kb;
		else if (sscanf(line, "AnonHugePages: %lu kB", &kb) == 1)
			pages += kb ? (referenced + 2047) / 2048 : referenced / 4;
	}
	if (f)
		fclose(f);
	return pages;
}

static int empty_program(void)
{
	const struct bpf_insn insns[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "bench_empty", "GPL", insns, 2, NULL);

	if (fd < 0)
		bench_die("an empty program", -fd);
	return fd;
}

/* The limit program: runs an empty program on each CPU, as a flush must run, adds what the active bank of each CPU holds to
 * one line of memory a row, and does nothing else. No reading of what other CPUs wrote, after other programs ran, takes
 * less. */
static double plain_ns(struct own *o, int empty_fd, uint64_t *sums)
{
	const struct counters *c = o->counters;
	uint64_t t0 = bench_now_ns(), *to = sums;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

		if (bpf_prog_test_run_opts(empty_fd, &opts))
			bench_die("the empty program", errno);
	}
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++)
		to += own_add_bank(o, cpu, c->states[cpu].bank & 1, to);
	return (double)(bench_now_ns() - t0);
}

static double timed_read(struct own *o)
{
	uint64_t t0 = bench_now_ns();

	own_read(o);
	return (double)(bench_now_ns() - t0);
}

static void one_size(struct own *o, unsigned n, unsigned rounds)
{
	size_t bytes = (size_t)n * 2 * (offsetof(struct jd_row, counters) + EVENTS * sizeof(uint64_t));
	char *from = malloc(bytes), *to = malloc(bytes);
	struct samples full = { 0 }, empty = { 0 }, plain = { 0 }, plain_empty = { 0 };
	int empty_fd = empty_program();
	uint64_t *sums = calloc((size_t)(n + 64) * 2, sizeof(struct jd_row));
	unsigned long pages;
	double copy, net, limit;

	if (!from || !to || !sums)
		bench_die("memory", 12);
	memset(from, 1, bytes);
	memset(to, 1, bytes);
	for (unsigned i = 0; i < rounds + 1; i++) {
		double ns;

		touch_groups(n, BENCH_CPU);
		touch_groups(n, HARNESS_CPU);
		ns = timed_read(o);
		if (i == 0) /* rows and cells are made at first sight */
			continue;
		samples_add(&full, ns);
		for (unsigned k = 0; k < 3; k++)
			samples_add(&empty, timed_read(o));
		touch_groups(n, BENCH_CPU);
		touch_groups(n, HARNESS_CPU);
		samples_add(&plain, plain_ns(o, empty_fd, sums));
		own_read(o);
		for (unsigned k = 0; k < 3; k++)
			samples_add(&plain_empty, plain_ns(o, empty_fd, sums));
	}
	touch_groups(n, BENCH_CPU);
	touch_groups(n, HARNESS_CPU);
	pages = pages_touched(o);
	copy = copy_ns(to, from, bytes);
	net = samples_median(&full) - samples_median(&empty);
	limit = samples_median(&plain) - samples_median(&plain_empty);
	printf("| %u | %.1f (%.1f to %.1f) | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %lu |\n", n,
	       samples_median(&full) / 1e3, samples_quantile(&full, 0.25) / 1e3, samples_quantile(&full, 0.75) / 1e3,
	       samples_median(&empty) / 1e3, net / 1e3, net / n, limit / 1e3, copy / 1e3, net / copy, pages);
	if (n == 1000)
		report_goal("7", verdict_beside(net <= 25e3, limit <= 25e3),
			    "read-out of 1000 cgroups x 2 CPUs x 6: at most 25 us", "%.1f us; limit program %.1f us",
			    net / 1e3, limit / 1e3);
	if (n == 10000)
		report_goal("7", verdict_beside(net <= 250e3, limit <= 250e3), "10 000: at most 250 us",
			    "%.1f us; limit program %.1f us", net / 1e3, limit / 1e3);
	if (n == 1000)
		report_goal("7", verdict_beside(net <= 4 * copy, limit <= 4 * copy),
			    "at most 4 x a copy of the same bytes", "%.1f x (%.1f us)", net / copy, copy / 1e3);
	free(from);
	free(to);
	free(sums);
	close(empty_fd);
}

/* How long a reading stops a CPU: the flush program by the kernel's statistics, after other programs ran. */
static void stop_time(struct own *o, unsigned rounds)
{
	uint64_t ns = 0, runs = 0, from[2];
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	if (stats < 0) {
		report_goal("7", NOT_RUN, "a reading stops a CPU for at most 20 us", "not run: no statistics");
		return;
	}
	prog_stats_fd(o->counters->flush_fd, &from[0], &from[1]);
	for (unsigned i = 0; i < rounds; i++) {
		touch_groups(1000, BENCH_CPU);
		touch_groups(1000, HARNESS_CPU);
		own_read(o);
	}
	prog_stats_fd(o->counters->flush_fd, &ns, &runs);
	close(stats);
	ns = (ns - from[0]) / (runs - from[1]);
	report_goal("7", verdict_of(ns <= 20000), "a reading stops a CPU for at most 20 us",
		    "%.1f us (mean of the flush program's runs)", (double)ns / 1e3);
}

int bench_readout(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 21;
	struct own *o = own_open(EVENTS, MAX_CGROUPS);

	own_prepare_reading(o, true);
	own_read(o);
	puts("\n### Read-out, us per reading (6 counters, every cgroup ran on both CPUs)\n");
	puts("| cgroups | all | empty reading | difference | ns per cgroup | limit program | memcpy of the rows | ratio | pages touched |\n|---|---|---|---|---|---|---|---|---|");
	for (unsigned i = 0; i < N_SIZES; i++) {
		groups_make(sizes[i]);
		one_size(o, sizes[i], sizes[i] > 1000 ? rounds / 4 + 1 : rounds);
	}
	stop_time(o, rounds);
	report_goal("13", verdict_of(o->open_ns <= 250000000), "load and attach at most 250 ms",
		    "%.0f ms (16 384 rows a CPU)", (double)o->open_ns / 1e6);
	program_detach(&o->p);
	return 0;
}

static void sums_read(struct own *o, uint64_t *ret_rows, uint64_t *ret_machine)
{
	static int fds[2] = { -1, -1 };
	uint64_t v;

	for (int cpu = 0; cpu < 2; cpu++)
		if (fds[cpu] < 0 && (fds[cpu] = counter_open(cpu, false)) < 0)
			bench_die("a counter", -fds[cpu]);
	own_read(o);
	for (int cpu = 0; cpu < 2; cpu++)
		if (read(fds[cpu], &v, sizeof(v)) == sizeof(v))
			*ret_machine += v;
	for (uint32_t i = 0; i < o->reading.n_cells; i++)
		if (o->reading.heads[i].used && o->reading.heads[i].cpu < 2)
			*ret_rows += o->reading.cells[i].counters[0];
}

/* Both CPUs run rings: an idle CPU is not woken for a reading, so its counter would lag. */
int bench_sums(int argc, char **argv)
{
	unsigned ms = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000;
	struct own *o = own_open(1, 4096);
	struct ring *a = ring_start(&(struct ring_options){ .n = 2, .cpu = BENCH_CPU });
	struct ring *b = ring_start(&(struct ring_options){ .n = 2, .cpu = HARNESS_CPU });
	uint64_t rows[2] = { 0 }, machine[2] = { 0 };
	double off;

	own_prepare_reading(o, true);
	ring_command(a, (uint64_t)ms * 3000); /* outlasts the second reading */
	ring_command(b, (uint64_t)ms * 3000);
	sums_read(o, &rows[0], &machine[0]);
	for (uint64_t end = bench_now_ns() + ms * 1000000ull; bench_now_ns() < end;)
		;
	sums_read(o, &rows[1], &machine[1]);
	off = (double)(rows[1] - rows[0]) / (double)(machine[1] - machine[0]) - 1;
	report_goal("15", verdict_of(off < 0.001 && off > -0.001),
		    "sum over all rows equals the machine's count within 0.1 %",
		    "%+.4f %% over %u ms of both CPUs in rings", off * 100, ms);
	ring_stop(a);
	ring_stop(b);
	program_detach(&o->p);
	return 0;
}
