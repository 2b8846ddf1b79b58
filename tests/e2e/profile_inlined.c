// SPDX-License-Identifier: Apache-2.0
/* Functions that are compiled into the one that calls them, until so much CPU time was used. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

static inline __attribute__((always_inline)) void innermost(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i; /* the hot line */
}

static inline __attribute__((always_inline)) void between(unsigned n)
{
	innermost(n);
	sink++;
}

__attribute__((noinline)) void outermost(unsigned n);
void outermost(unsigned n)
{
	between(n);
	sink += 2;
}

int main(int argc, char **argv)
{
	const uint64_t most_ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	struct timespec t;

	do {
		outermost(1000000);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while ((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 < most_ms);
	return 0;
}
