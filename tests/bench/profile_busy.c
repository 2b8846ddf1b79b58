// SPDX-License-Identifier: Apache-2.0
/* profile_busy: works without end below a stack of DEPTH frames, and each 200 ms tells when it is (CLOCK_MONOTONIC), the CPU
 * time it had so far, both in nanoseconds, and the rounds it did. Rounds per CPU time are what an interrupt takes away, whoever
 * else is on the machine. For profile.py. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define DEPTH 20
#define ROUNDS 20000
#define TELL_NS 200000000ull

static uint64_t ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static __attribute__((noinline)) void work(void)
{
	volatile uint64_t x = 1;

	for (unsigned i = 0; i < ROUNDS; i++)
		x = x * 6364136223846793005ull + i;
}

/* Until nobody reads any more. */
static void tell_for_ever(void)
{
	uint64_t done = 0, told = ns_of(CLOCK_MONOTONIC);
	int rc = 0;

	while (rc >= 0) {
		const uint64_t now = ns_of(CLOCK_MONOTONIC);

		work();
		done++;
		if (now - told < TELL_NS)
			continue;
		told = now;
		rc = printf("%llu %llu %llu\n", (unsigned long long)now,
			    (unsigned long long)ns_of(CLOCK_PROCESS_CPUTIME_ID), (unsigned long long)done);
		fflush(stdout);
	}
}

static __attribute__((noinline)) int below(unsigned depth)
{
	volatile char room[200];

	room[0] = (char)depth;
	if (!depth) {
		tell_for_ever();
		return 0;
	}
	return below(depth - 1) + room[0]; /* not the last call: it needs its frame */
}

int main(void)
{
	return below(DEPTH) != 0;
}
