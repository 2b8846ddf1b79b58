// SPDX-License-Identifier: Apache-2.0
/* The kernel's own count of what a program takes (bpf statistics), for N cgroups running in turn.
 * Two clock reads are in every figure: the empty program's is the floor. Statistics are on here only. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "bench.h"

#define MAX_CGROUPS 4096

static const unsigned sizes[] = { 2, 10, 100, 1000 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const struct {
	const char *name;
	int kind;
	unsigned events;
} programs[] = {
	{ "empty tp_btf", LIMIT_EMPTY, 0 },
	{ "limit: stamp, 6 reads", LIMIT_READS, 6 },
	{ "jouled, time only", -1, 0 },
	{ "jouled, 6 counters", -1, 6 },
};
#define N_PROGRAMS (sizeof(programs) / sizeof(programs[0]))

static struct samples runs[N_SIZES][N_PROGRAMS];

static double one(struct ring *r, unsigned i)
{
	struct program *p = programs[i].kind < 0 ? counters_attach(programs[i].events, MAX_CGROUPS) :
						   limit_attach((enum limit_kind)programs[i].kind, programs[i].events);
	uint64_t ns0, n0, ns1, n1;

	ring_run(r, WARM_HOPS);
	program_stats(p, &ns0, &n0);
	ring_run(r, CHUNK_HOPS);
	program_stats(p, &ns1, &n1);
	program_detach(p);
	return n1 > n0 ? (double)(ns1 - ns0) / (double)(n1 - n0) : 0;
}

static void print_table(void)
{
	puts("\n### ns per run by the kernel's statistics, N cgroups running in turn\n\nMedian, quartiles below it; the empty program is the floor.\n");
	puts("| program | N=2 | 10 | 100 | 1000 |\n|---|---|---|---|---|");
	for (unsigned i = 0; i < N_PROGRAMS; i++) {
		printf("| %s |", programs[i].name);
		for (unsigned s = 0; s < N_SIZES; s++)
			printf(" %.0f (%.0f to %.0f) |", samples_median(&runs[s][i]),
			       samples_quantile(&runs[s][i], 0.25), samples_quantile(&runs[s][i], 0.75));
		puts("");
	}
}

int bench_running(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 11;
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct ring *rings[N_SIZES];
	double first, last;

	if (stats < 0)
		bench_die("bpf statistics", errno);
	for (unsigned s = 0; s < N_SIZES; s++)
		rings[s] = ring_start(&(struct ring_options){ .n = sizes[s], .cpu = BENCH_CPU });
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned s = 0; s < N_SIZES; s++)
			for (unsigned i = 0; i < N_PROGRAMS; i++)
				samples_add(&runs[s][i], one(rings[s], i));
	close(stats);
	print_table();
	first = samples_median(&runs[0][N_PROGRAMS - 1]);
	last = samples_median(&runs[N_SIZES - 1][N_PROGRAMS - 1]);
	report_goal("6", verdict_of(last <= 1.5 * first),
		    "1000 running in turn: ns per run at most 1.5 x the value at 2", "%.2f x (%.0f against %.0f ns)",
		    last / first, last, first);
	for (unsigned s = 0; s < N_SIZES; s++)
		ring_stop(rings[s]);
	return 0;
}
