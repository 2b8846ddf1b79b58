// SPDX-License-Identifier: Apache-2.0
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "log.h"

struct first_step {
	char name[16];
	void *(*run)(void *arg);
	void *arg;
};

static void *begin(void *arg)
{
	struct first_step s = *(struct first_step *)arg;

	free(arg);
	/* the thread names itself: another thread's name is written through /proc, which a sandbox may have closed */
	pthread_setname_np(pthread_self(), s.name);
	return s.run(s.arg);
}

/* The kernel ends a program at once for a fault that is blocked, and a sanitizer could not say where it was. */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };

static int create(pthread_t *ret, size_t stack_bytes, struct first_step *s)
{
	const long least = sysconf(_SC_THREAD_STACK_MIN); /* 128 KiB on arm64 */
	pthread_attr_t attr;
	sigset_t all, before;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return rc;
	sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (stack_bytes)
		rc = pthread_attr_setstacksize(&attr, least > (long)stack_bytes ? (size_t)least : stack_bytes);
	if (!rc)
		rc = pthread_create(ret, &attr, begin, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

int thread_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *), void *arg)
{
	struct first_step *s = malloc(sizeof(*s));
	pthread_t thread;
	int rc;

	if (!s)
		return -ENOMEM;
	*s = (struct first_step){ .run = run, .arg = arg };
	snprintf(s->name, sizeof(s->name), "%s", name);
	rc = create(&thread, stack_bytes, s);
	if (rc) {
		free(s);
		return -rc;
	}
	*ret = thread;
	return 0;
}

void thread_hurry(const char *what)
{
	const struct sched_param p = { .sched_priority = sched_get_priority_min(SCHED_RR) };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &p) != 0)
		log_debug("%s: no real-time priority: %s", what, strerror(errno));
}

void thread_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool thread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
					.tv_nsec = (long)(until_ns % NS_PER_S) };

	return pthread_cond_timedwait(cond, lock, &until) == 0;
}
