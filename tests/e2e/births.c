// SPDX-License-Identifier: Apache-2.0
/* births DIRECTORY LIVING BIRTHS RATE: LIVING cgroups below DIRECTORY whose process works for a moment each second, and beside
 * them BIRTHS cgroups, RATE a second at most, each with a process that works for about 0.1 ms; then all of them are gone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
#define WORK_NS 100000ull

static const char *top;

static void die(const char *what)
{
	fprintf(stderr, "births: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void work(void)
{
	uint64_t end = now_ns(CLOCK_PROCESS_CPUTIME_ID) + WORK_NS;

	while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
}

/* A process in a new cgroup; 0 in the process itself. */
static pid_t born(const char *kind, unsigned i, char path[300])
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	pid_t pid;
	int fd;

	snprintf(path, 300, "%s/%s%u", top, kind, i);
	if (mkdir(path, 0755))
		die(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	args.cgroup = (uint64_t)fd;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		die("clone3");
	close(fd);
	return pid;
}

/* A cgroup is busy for a moment after its last process. */
static void gone(const char *path)
{
	for (unsigned i = 0; rmdir(path) && i < 5000; i++) {
		if (errno != EBUSY)
			die(path);
		usleep(1000);
	}
}

static void live(unsigned i)
{
	struct timespec second = { 1, 0 }, first = { 0, (long)(i % 1000) * 1000000 };

	nanosleep(&first, NULL);
	for (;;) {
		work();
		nanosleep(&second, NULL);
	}
}

int main(int argc, char **argv)
{
	unsigned living, births, rate;
	pid_t *pids;
	char path[300];
	uint64_t at;

	if (argc != 5)
		return 2;
	top = argv[1];
	living = (unsigned)strtoul(argv[2], NULL, 10);
	births = (unsigned)strtoul(argv[3], NULL, 10);
	rate = (unsigned)strtoul(argv[4], NULL, 10);
	pids = calloc(living + 1, sizeof(*pids));
	if (!pids || !rate)
		return 2;
	for (unsigned i = 0; i < living; i++) {
		pids[i] = born("l", i, path);
		if (!pids[i])
			live(i);
	}
	at = now_ns(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < births; i++, at += NS_PER_S / rate) {
		struct timespec until = { (time_t)(at / NS_PER_S), (long)(at % NS_PER_S) };
		pid_t pid;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		pid = born("b", i, path);
		if (!pid) {
			work();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		gone(path);
	}
	printf("%.3f\n", births ? (double)(now_ns(CLOCK_MONOTONIC) - at + births * (NS_PER_S / rate)) / 1e9 : 0.0);
	for (unsigned i = 0; i < living; i++) {
		snprintf(path, sizeof(path), "%s/l%u", top, i);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		gone(path);
	}
	return 0;
}
