// SPDX-License-Identifier: Apache-2.0
/* Three functions whose CPU times are as 6 to 3 to 1, each called from main, until so much CPU time was used. A turn takes another
 * time each: with a period of its own, close to that of the samples, they would fall on the same function many times in a row. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define WORKER(name) \
	__attribute__((noinline)) void name(unsigned rounds) \
	{ \
		for (unsigned i = 0; i < rounds * 10000; i++) \
			sink += i; \
	}

WORKER(work_large)
WORKER(work_middle)
WORKER(work_small)

__attribute__((noinline)) void all_work(void)
{
	static uint32_t random = 1;

	random = random * 1664525 +
		 1013904223; /* the generator of Numerical Recipes: its high bits are the good ones */
	const unsigned length = 1 + (random >> 28);

	work_large(6 * length);
	work_middle(3 * length);
	work_small(length);
	sink++;
}

int main(int argc, char **argv)
{
	const uint64_t until = cpu_ns() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 1000) * 1000000u;

	while (cpu_ns() < until)
		all_work();
	return 7;
}
