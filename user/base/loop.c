/* SPDX-License-Identifier: Apache-2.0 */
/* The I/O thread: an event base, a list of functions to run, and an eventfd that wakes it for them. event_active() is
 * not used: libevent runs events that became active that way before it looks at the sockets again, so a function that
 * posts itself would starve them. */
#include "loop.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "thread.h"

/* libevent and our callbacks need a few KiB; the default of 8 MiB would count where memory is locked. */
#define LOOP_STACK_BYTES (256u << 10)

struct loop_work {
	struct loop_work *next;
	void (*fn)(void *arg);
	void *arg;
	bool waited; /* on its caller's stack: set done, do not free */
	bool done;
};

struct loop {
	struct event_base *base;
	int wake_fd;
	struct event *wake;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* the list and every `done` */
	pthread_cond_t ran;
	struct loop_work *first, **last;
	struct loop_work stop; /* kept here so that stopping cannot run out of memory */
};

/* Runs the functions that are in the list now. Functions posted meanwhile wait for the next round, so that a function
 * which posts itself does not keep the sockets waiting. */
static void loop_run_posted(struct loop *l)
{
	pthread_mutex_lock(&l->lock);
	struct loop_work *w = l->first;
	l->first = NULL;
	l->last = &l->first;
	pthread_mutex_unlock(&l->lock);

	while (w) {
		struct loop_work *next = w->next;
		bool waited = w->waited;

		w->fn(w->arg);
		if (waited) {
			pthread_mutex_lock(&l->lock);
			w->done = true;
			pthread_cond_broadcast(&l->ran);
			pthread_mutex_unlock(&l->lock);
		} else if (w != &l->stop) {
			free(w);
		}
		w = next;
	}
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	eventfd_t count;

	eventfd_read(fd, &count);
	loop_run_posted(arg);
}

static void loop_add(struct loop *l, struct loop_work *w)
{
	pthread_mutex_lock(&l->lock);
	w->next = NULL;
	*l->last = w;
	l->last = &w->next;
	pthread_mutex_unlock(&l->lock);
	eventfd_write(l->wake_fd, 1);
}

static void *loop_thread(void *arg)
{
	struct loop *l = arg;

	event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

static int loop_start_thread(struct loop *l)
{
	int rc = thread_start(&l->thread, "jouled-io", LOOP_STACK_BYTES, loop_thread, l);

	l->started = !rc;
	return rc;
}

static void use_threads(void)
{
	evthread_use_pthreads();
}

/* libevent ends the process when it has no descriptor for itself, so there must be some: of epoll, a wake-up and a pair for
 * signals. 0 or -errno. */
static int find_room(int fd)
{
	int copies[6], rc = 0;
	unsigned n = 0;

	while (!rc && n < sizeof(copies) / sizeof(copies[0])) {
		copies[n] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (copies[n] < 0)
			rc = -errno;
		else
			n++;
	}
	while (n > 0)
		close(copies[--n]);
	return rc;
}

int loop_start(struct loop **ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct loop *l = calloc(1, sizeof(*l));
	int rc = -ENOMEM;

	if (!l)
		return -ENOMEM;
	/* Before any base exists: libevent gives a base its locks when it is made. */
	pthread_once(&once, use_threads);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->ran, NULL);
	l->last = &l->first;
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd < 0)
		rc = -errno;
	else if ((rc = find_room(l->wake_fd)) == 0) {
		rc = -ENOMEM;
		l->base = event_base_new();
	}
	if (l->base)
		l->wake = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, on_wake, l);
	if (l->wake && event_add(l->wake, NULL) == 0)
		rc = loop_start_thread(l);
	if (rc) {
		loop_stop(l);
		return rc;
	}
	*ret = l;
	return 0;
}

static void loop_break(void *arg)
{
	event_base_loopbreak(((struct loop *)arg)->base);
}

void loop_stop(struct loop *l)
{
	if (!l)
		return;
	if (l->started) {
		l->stop.fn = loop_break;
		l->stop.arg = l;
		loop_add(l, &l->stop);
		pthread_join(l->thread, NULL);
	}
	/* These were posted after the stop. Their owners wait for them, because they free what they carry. */
	while (l->first)
		loop_run_posted(l);
	if (l->wake)
		event_free(l->wake);
	if (l->base)
		event_base_free(l->base);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	pthread_cond_destroy(&l->ran);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

int loop_post(struct loop *l, void (*fn)(void *arg), void *arg)
{
	struct loop_work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fn = fn;
	w->arg = arg;
	loop_add(l, w);
	return 0;
}

int loop_call(struct loop *l, void (*fn)(void *arg), void *arg)
{
	struct loop_work w = { .fn = fn, .arg = arg, .waited = true };

	loop_add(l, &w);
	pthread_mutex_lock(&l->lock);
	while (!w.done)
		pthread_cond_wait(&l->ran, &l->lock);
	pthread_mutex_unlock(&l->lock);
	return 0;
}
