/* SPDX-License-Identifier: Apache-2.0 */
/* The I/O loop: order of posted work, loop_call waits, nothing is lost at the stop, any thread may post. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"

#define POSTERS 4
#define POSTS 5000

static struct loop *started(void)
{
	struct loop *l = NULL;

	assert_int_equal(loop_start(&l), 0);
	assert_non_null(l);
	return l;
}

struct seen {
	pthread_t thread;
	char name[16];
	sigset_t blocked;
};

static void look(void *arg)
{
	struct seen *s = arg;

	s->thread = pthread_self();
	pthread_getname_np(s->thread, s->name, sizeof(s->name));
	pthread_sigmask(SIG_BLOCK, NULL, &s->blocked);
}

static void test_runs_on_its_own_thread(void **state)
{
	struct loop *l = started();
	struct seen s = { 0 };

	assert_int_equal(loop_call(l, look, &s), 0);
	assert_false(pthread_equal(s.thread, pthread_self()));
	assert_string_equal(s.name, "jouled-io");
	assert_true(sigismember(&s.blocked, SIGPIPE));
	assert_true(sigismember(&s.blocked, SIGTERM));
	loop_stop(l);
}

static unsigned order[100], n_order;

static void note(void *arg)
{
	order[n_order++] = (unsigned)(uintptr_t)arg;
}

static void test_order_is_kept(void **state)
{
	struct loop *l = started();

	n_order = 0;
	for (unsigned i = 0; i < 99; i++)
		assert_int_equal(loop_post(l, note, (void *)(uintptr_t)i), 0);
	loop_call(l, note, (void *)(uintptr_t)99);
	assert_int_equal(n_order, 100);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(order[i], i);
	loop_stop(l);
}

static atomic_uint count;

static void add_one(void *arg)
{
	atomic_fetch_add(&count, 1);
}

static void *poster(void *arg)
{
	for (unsigned i = 0; i < POSTS; i++)
		assert_int_equal((i % 16 ? loop_post : loop_call)(arg, add_one, NULL), 0);
	return NULL;
}

static void test_many_threads_and_nothing_lost_at_stop(void **state)
{
	struct loop *l = started();
	pthread_t t[POSTERS];

	atomic_store(&count, 0);
	for (unsigned i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, poster, l), 0);
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(t[i], NULL);
	loop_stop(l);
	assert_int_equal(atomic_load(&count), POSTERS * POSTS);
}

struct chain {
	struct loop *loop;
	unsigned left;
	atomic_uint timer;
};

static void again(void *arg)
{
	struct chain *c = arg;

	if (!atomic_load(&c->timer) && c->left) {
		c->left--;
		loop_post(c->loop, again, c);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	atomic_store(&((struct chain *)arg)->timer, 1);
}

/* Work that posts itself for ever must leave the base time for its events. */
static void test_posting_does_not_starve_events(void **state)
{
	struct chain c = { .loop = started(), .left = 100000000 };
	struct event *ev = event_new(loop_base(c.loop), -1, 0, on_timer, &c);
	struct timeval soon = { .tv_usec = 20000 };

	event_add(ev, &soon);
	loop_post(c.loop, again, &c);
	for (unsigned i = 0; i < 500 && !atomic_load(&c.timer); i++)
		usleep(10000);
	assert_true(atomic_load(&c.timer));
	event_free(ev);
	loop_stop(c.loop);
}

static void test_stop_without_work(void **state)
{
	loop_stop(NULL);
	for (int i = 0; i < 50; i++)
		loop_stop(started());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_on_its_own_thread),
		cmocka_unit_test(test_order_is_kept),
		cmocka_unit_test(test_many_threads_and_nothing_lost_at_stop),
		cmocka_unit_test(test_posting_does_not_starve_events),
		cmocka_unit_test(test_stop_without_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
