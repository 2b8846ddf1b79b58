// SPDX-License-Identifier: Apache-2.0
/* bench VERB [ARGUMENT...]: the parts of `make bench` that need more than a shell. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/heap.h"
#include "bench.h"

static const struct verb {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{ "ring", "ring [ROUNDS [HOPS]]: cost of a switch against the limit program and perf", bench_ring },
	{ "running", "running [ROUNDS]: kernel's own ns per run with 2 to 1000 cgroups taking turns", bench_running },
	{ "storm", "storm [ROUNDS]: mkdir and rmdir with the lifecycle program off and on; resolving ids",
	  bench_storm },
	{ "readout", "readout [ROUNDS]: what a reading costs with 10 to 10 000 cgroups", bench_readout },
	{ "large", "large: what the rows of a reading cost with up to 512 CPUs", bench_large },
	{ "sums", "sums [MS]: rows against the machine's own count", bench_sums },
	{ "energy", "energy: what a read of an energy counter costs per interface", bench_energy },
	{ "spans", "spans [ROUNDS]: what a process and a probed call cost", bench_spans },
	{ "block", "block [ROUNDS]: what a request of a block device costs", bench_block },
	{ "traces", "traces [ROUNDS]: what a span costs on its way to a collector", bench_traces },
	{ "load", "load N MS CPUS: N cgroups that run on CPUS CPUs every MS ms (0: never), until stdin ends",
	  bench_load },
	{ "report",
	  "report MS [BYTES FILE]: the limit program of a report every MS ms, with a document of BYTES in FILE, until stdin ends",
	  bench_report },
	{ "start",
	  "start MS: the limit program of a start: jouled's programs loaded, attached, kept for MS ms and closed",
	  bench_start },
	{ "hold", "hold: an empty program at each switch, until stdin ends", bench_hold },
};

static void on_signal(int sig)
{
	(void)sig;
	exit(130);
}

static int usage(void)
{
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		fprintf(stderr, "bench %s\n", verbs[i].help);
	return 2;
}

static cpu_set_t at_begin;

void bench_unpin(void)
{
	sched_setaffinity(0, sizeof(at_begin), &at_begin);
}

int main(int argc, char **argv)
{
	const char *reason = NULL;
	cpu_set_t set;

	if (argc < 2)
		return usage();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		fprintf(stderr, "bench: two CPUs are needed: one for the ring, one for the harness\n");
		return 1;
	}
	heap_keeps_freed(); /* as the agent does */
	sched_getaffinity(0, sizeof(at_begin), &at_begin);
	CPU_ZERO(&set);
	CPU_SET(HARNESS_CPU, &set);
	sched_setaffinity(0, sizeof(set), &set);
	if (groups_begin(&reason)) {
		fprintf(stderr, "bench: %s\n", reason);
		return 1;
	}
	atexit(groups_end);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	return usage();
}
