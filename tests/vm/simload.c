/* SPDX-License-Identifier: Apache-2.0 */
/* simload [-d CGROUP-DIRECTORY] [-p CPU] [-c CYCLE-MS] [-b BUSY-PERCENT] NAME CPU-MS
 * Joins the cgroup, takes the name that simpmu reads (modules/README) and then uses CPU-MS of CPU
 * time: all at once, or BUSY-PERCENT of every CYCLE-MS. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void wait_until_ns(uint64_t mono_ns)
{
	struct timespec t = { .tv_sec = (time_t)(mono_ns / 1000000000), .tv_nsec = (long)(mono_ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void join_cgroup(const char *dir)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die(path);
	close(fd);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		die("sched_setaffinity");
}

/* Until the process has used so much CPU time in all. */
static void burn(uint64_t cpu_ns)
{
	volatile unsigned n = 0;

	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < cpu_ns)
		while (++n % 4096)
			;
}

int main(int argc, char **argv)
{
	uint64_t cycle_ns = 0, busy = 100, want, at, used;
	int opt;

	while ((opt = getopt(argc, argv, "d:p:c:b:")) != -1) {
		switch (opt) {
		case 'd':
			join_cgroup(optarg);
			break;
		case 'p':
			pin(atoi(optarg));
			break;
		case 'c':
			cycle_ns = strtoull(optarg, NULL, 10) * NS_PER_MS;
			break;
		case 'b':
			busy = strtoull(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2)
		return 2;
	/* from the next switch on, everybody charges it to the new cgroup */
	wait_until_ns(now_ns(CLOCK_MONOTONIC) + NS_PER_MS);
	prctl(PR_SET_NAME, argv[optind]);
	want = strtoull(argv[optind + 1], NULL, 10) * NS_PER_MS;
	at = now_ns(CLOCK_MONOTONIC);
	for (used = 0; cycle_ns && used + cycle_ns * busy / 100 < want; at += cycle_ns) {
		used += cycle_ns * busy / 100;
		burn(used);
		wait_until_ns(at + cycle_ns);
	}
	burn(want);
	return 0;
}
