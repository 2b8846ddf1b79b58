// SPDX-License-Identifier: Apache-2.0
/* The least that a program costs which sees every switch: an empty one, attached until standard input ends. */
#include <stdio.h>
#include "bench.h"

int bench_hold(int argc, char **argv)
{
	struct program *p = limit_attach(LIMIT_EMPTY, 0);

	(void)argc;
	(void)argv;
	if (!p)
		return 1;
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	program_detach(p);
	return 0;
}
