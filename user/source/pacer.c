// SPDX-License-Identifier: Apache-2.0
#include "pacer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

#define STACK_BYTES (512u << 10) /* a driver's library and an HTTP client run on it */
#define SHORTEST_NS NS_PER_MS

struct pacer {
	uint64_t (*step)(void *ctx);
	void *ctx;
	pthread_t thread;
	pthread_mutex_t lock; /* the rest */
	pthread_cond_t wake;
	bool stop, now;
};

/* False = stop. */
static bool wait_until(struct pacer *p, uint64_t due_ns)
{
	bool stop;

	pthread_mutex_lock(&p->lock);
	while (!p->stop && !p->now && clock_mono_ns() < due_ns)
		thread_cond_wait(&p->wake, &p->lock, due_ns);
	p->now = false;
	stop = p->stop;
	pthread_mutex_unlock(&p->lock);
	return !stop;
}

static void *run(void *arg)
{
	struct pacer *p = arg;
	uint64_t due = clock_mono_ns(), now;

	do {
		uint64_t pause = p->step(p->ctx);

		if (pause < SHORTEST_NS)
			pause = SHORTEST_NS;
		now = clock_mono_ns();
		due += pause;
		if (due < now)
			due = now + pause - (now - due) % pause;
		else if (due > now + pause) /* woken early */
			due = now + pause;
	} while (wait_until(p, due));
	return NULL;
}

int pacer_start(const char *name, uint64_t (*step)(void *ctx), void *ctx, struct pacer **ret)
{
	struct pacer *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	p->step = step;
	p->ctx = ctx;
	pthread_mutex_init(&p->lock, NULL);
	thread_cond_init(&p->wake);
	rc = thread_start(&p->thread, name, STACK_BYTES, run, p);
	if (rc) {
		pthread_cond_destroy(&p->wake);
		pthread_mutex_destroy(&p->lock);
		free(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void pacer_wake(struct pacer *p)
{
	pthread_mutex_lock(&p->lock);
	p->now = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void pacer_stop(struct pacer *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
