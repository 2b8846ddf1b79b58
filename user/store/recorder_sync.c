/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of its own for fdatasync(2), once a second: a disk may take long, and rows go on meanwhile. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../base/thread.h"
#include "recorder_internal.h"

/* Descriptors are only ever added while the thread lives, so that it works on a copy. */
static int sync_all(struct recorder_syncer *s)
{
	int fds[RECORDER_TABLES + RECORDER_EXTRA_MAX], code = 0;
	unsigned n = s->n;

	memcpy(fds, s->fds, sizeof(fds));
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < n; i++)
		/* EINVAL, EROFS: what cannot be synchronised need not be (fsync(2)) */
		if (fdatasync(fds[i]) != 0 && errno != EINVAL && errno != EROFS && !code)
			code = -errno;
	pthread_mutex_lock(&s->lock);
	return code;
}

static void *sync_each_second(void *arg)
{
	struct recorder_syncer *s = arg;
	struct timespec until;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		int code;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		while (!s->stop && pthread_cond_timedwait(&s->wake, &s->lock, &until) != ETIMEDOUT)
			;
		code = sync_all(s);
		if (!s->failed)
			s->failed = code;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int recorder_sync_start(struct recorder_syncer *s)
{
	pthread_condattr_t monotonic;
	int code;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	code = thread_start(&s->thread, "sync", 0, sync_each_second, s);
	s->running = code == 0;
	return code;
}

void recorder_sync_add(struct recorder_syncer *s, int fd)
{
	pthread_mutex_lock(&s->lock);
	s->fds[s->n++] = fd;
	pthread_mutex_unlock(&s->lock);
}

int recorder_sync_stop(struct recorder_syncer *s)
{
	if (!s->running)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	s->running = false;
	return s->failed;
}
