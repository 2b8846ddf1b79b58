/* SPDX-License-Identifier: Apache-2.0 */
/* mixes SLICE-US ROUNDS TAG: eight functions with mixes of their own, the times of which are as 40 : 20 : 12 : 10 : 7 :
 * 5 : 4 : 2. In each the task has another name, from which simpmu makes its counts and energy (modules/README): the truth
 * per function is in /proc/simpmu_names. A round gives each function its part of 100 slices: at once where SLICE-US is at
 * least 10000, otherwise one slice at a time, evenly spread. TAG, a letter, tells two such programs apart. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define FUNCTIONS 8
#define PARTS 100
#define SPREAD_US 10000
#define CALIBRATIONS 5

static const unsigned part[FUNCTIONS] = { 40, 20, 12, 10, 7, 5, 4, 2 };
static const char *const mix[FUNCTIONS] = { "ipc10m1", "ipc25m1", "ipc8m20",  "ipc40",
					    "ipc5m40", "ipc15m5", "ipc30m10", "ipc20m30" };
static char name[FUNCTIONS][16];
static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static __attribute__((noinline)) void spin(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		sink += i;
}

/* A call of its own after it keeps the function in the chain of callers. */
#define FUNCTION(n) \
	static __attribute__((noinline)) void mix_##n(uint64_t rounds) \
	{ \
		prctl(PR_SET_NAME, name[n]); \
		spin(rounds); \
		sink++; \
	}

FUNCTION(0)
FUNCTION(1)
FUNCTION(2)
FUNCTION(3)
FUNCTION(4)
FUNCTION(5)
FUNCTION(6)
FUNCTION(7)

static void (*const call[FUNCTIONS])(uint64_t) = { mix_0, mix_1, mix_2, mix_3, mix_4, mix_5, mix_6, mix_7 };

/* Rounds of spin() that take so long, where nothing stops the machine: the best of a few tries. */
static uint64_t rounds_of(uint64_t us)
{
	uint64_t n = 1 << 16, least = 0;

	for (unsigned tries = 0; tries < CALIBRATIONS;) {
		const uint64_t before = cpu_ns();
		uint64_t took;

		spin(n);
		took = cpu_ns() - before;
		if (tries == 0 && took <= 20000000) {
			n *= 2;
			continue;
		}
		least = tries++ == 0 || took < least ? took : least;
	}
	return n * us / (least / 1000);
}

/* One slice at a time: each function has had its part of what was given out, as near as whole slices allow. */
static void spread(uint64_t slice)
{
	unsigned had[FUNCTIONS] = { 0 };

	for (unsigned done = 1; done <= PARTS; done++) {
		unsigned most = 0;
		int lag = -1000000;

		for (unsigned i = 0; i < FUNCTIONS; i++) {
			const int behind = (int)(part[i] * done) - (int)(had[i] * PARTS);

			if (behind > lag) {
				lag = behind;
				most = i;
			}
		}
		had[most]++;
		call[most](slice);
	}
}

int main(int argc, char **argv)
{
	uint64_t slice, rounds;

	if (argc != 4)
		return 2;
	for (unsigned i = 0; i < FUNCTIONS; i++)
		snprintf(name[i], sizeof(name[i]), "%s-%s%u", mix[i], argv[3], i);
	slice = rounds_of(strtoull(argv[1], NULL, 10));
	rounds = strtoull(argv[2], NULL, 10);
	for (uint64_t i = 0; i < rounds; i++) {
		if (strtoull(argv[1], NULL, 10) < SPREAD_US)
			spread(slice);
		else
			for (unsigned k = 0; k < FUNCTIONS; k++)
				call[k](slice * part[k]);
	}
	return 0;
}
