// SPDX-License-Identifier: Apache-2.0
/* Cgroups for the whole agent to measure: each has a process per CPU, and runs on each CPU once per
 * period. Says "ready" when all are in place and lives until its standard input ends. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "bench.h"

int bench_load(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
	int ms = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
	unsigned cpus = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 2;
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };
	struct ring *rings[2] = { NULL, NULL };

	if (n < 2 || cpus < 1 || cpus > 2)
		return 2;
	for (unsigned i = 0; i < cpus; i++)
		rings[i] = ring_start(&(struct ring_options){ .n = n, .cpu = i });
	puts("ready");
	fflush(stdout);
	while (poll(&in, 1, ms > 0 ? ms : -1) == 0)
		for (unsigned i = 0; i < cpus; i++)
			ring_run(rings[i], n);
	for (unsigned i = 0; i < cpus; i++)
		ring_stop(rings[i]);
	return 0;
}
