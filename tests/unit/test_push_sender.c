/* SPDX-License-Identifier: Apache-2.0 */
/* What a server costs that refuses documents: it is asked a bounded number of times for each, and the sender pauses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "agent/output/push_sender.h"
#include "base/clock.h"
#include "temp_root.h"

#define ITEM 4
#define ITEMS 1000
#define BURN_NS (2 * NS_PER_MS)

/* The server, in the place of the one client of HTTP. */
static unsigned asked, taken;
static bool takes_nothing, works; /* works: a request costs processor time */

static bool is_bad(const struct buf *body)
{
	for (size_t at = 0; at < body->len; at += ITEM)
		if (memcmp(body->data + at, "bad ", ITEM) == 0)
			return true;
	return takes_nothing;
}

int http_client_ask(struct http_client *c, const struct http_ask *ask, struct http_answer *ret, struct err *err)
{
	const uint64_t end_ns = clock_thread_cpu_ns() + BURN_NS;
	struct buf body = { 0 };

	asked++;
	while (works && clock_thread_cpu_ns() < end_ns)
		;
	assert_int_equal(unpack(PACK_SNAPPY, ask->body, ask->len, &body), 0);
	ret->status = is_bad(&body) ? 400 : 200;
	taken += ret->status == 200 ? (unsigned)(body.len / ITEM) : 0;
	buf_free(&body);
	return 0;
}

bool http_client_changed(const struct http_client *c)
{
	return false;
}

void http_client_free(struct http_client *c)
{
}

static size_t item(const void *p, size_t n)
{
	return n < ITEM ? 0 : ITEM;
}

static void name(const void *p, size_t n, char *dst, size_t size)
{
	snprintf(dst, size, "%.*s", ITEM, (const char *)p);
}

static const struct push_format format = { .type = "x", .packing = PACK_SNAPPY, .item = item, .name = name };

struct world {
	struct delivery d;
	struct push_sender s;
	struct temp_root root;
	char dir[80];
};

static void begin(struct world *w)
{
	struct spool_options o = { .dir = w->dir, .max_bytes = 1 << 20 };
	struct err err = { 0 };

	memset(w, 0, sizeof(*w));
	asked = taken = 0;
	takes_nothing = works = false;
	w->root = temp_root_new();
	snprintf(w->dir, sizeof(w->dir), "%s/spool", w->root.dir);
	w->d = (struct delivery){ .to = "here", .what = "documents", .items = "series", .server = "nobody" };
	delivery_init(&w->d);
	assert_int_equal(spool_open(&o, &w->d.spool, &err), 0);
	w->s = (struct push_sender){ .d = &w->d, .format = &format, .url = "http://here" };
}

static void end(struct world *w)
{
	push_sender_free(&w->s);
	delivery_free(&w->d);
	temp_root_free(&w->root);
}

/* Documents of good items; bad: so many of the first one are bad, each at a place of its own. */
static void add(struct world *w, unsigned n, unsigned bad)
{
	struct buf document = { 0 }, kept = { 0 };

	for (unsigned i = 0; i < ITEMS; i++)
		buf_add(&document, bad && i % (ITEMS / bad) == 7 ? "bad " : "good", ITEM);
	assert_int_equal(push_keep(&w->s, document.data, document.len, &kept), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(spool_append(w->d.spool, clock_real_ns(), kept.data, kept.len), 0);
	buf_free(&document);
	buf_free(&kept);
}

/* The next document, which is not tried again. */
static void deliver(struct world *w)
{
	struct buf record = { 0 };
	struct spool_mark mark;

	assert_int_equal(spool_next(w->d.spool, clock_real_ns(), &record, &mark), 0);
	assert_true(push_deliver(&w->s, &record, &mark));
	spool_done(w->d.spool, &mark);
	buf_free(&record);
}

/* A store that takes nothing so old refuses all that waited: each costs three requests. */
static void test_too_old(void **state)
{
	struct world w;

	begin(&w);
	add(&w, 20, 0);
	takes_nothing = true;
	w.s.gave_up = true;
	for (unsigned i = 0; i < 20; i++)
		deliver(&w);
	assert_int_equal(w.d.figures.refused, 20);
	assert_int_equal(w.d.figures.delivered, 0);
	assert_int_equal(asked, 20 * 3);
	takes_nothing = false;
	add(&w, 1, 0);
	deliver(&w);
	assert_int_equal(taken, ITEMS);
	assert_false(w.s.gave_up);
	end(&w);
}

/* Bad items of the first document that is not too old cost no good ones. */
static void test_bad_items_after_it(void **state)
{
	struct world w;

	begin(&w);
	add(&w, 1, 5);
	w.s.gave_up = true;
	deliver(&w);
	assert_int_equal(taken, ITEMS - 5);
	assert_int_equal(w.d.figures.refused_items, 5);
	assert_int_equal(w.d.figures.refused, 0);
	assert_int_equal(w.d.figures.delivered, 1);
	assert_false(w.s.gave_up);
	end(&w);
}

/* Documents that are dropped take no more of a processor than those that arrive. */
static void test_pauses(void **state)
{
	uint64_t began_ns;
	struct world w;

	begin(&w);
	add(&w, 2, 0);
	takes_nothing = works = w.s.gave_up = true;
	w.d.began_ns = clock_mono_ns() - 800 * NS_PER_MS;
	w.d.spooled = 2;
	began_ns = clock_mono_ns();
	deliver(&w);
	/* a quarter of the time between two documents, which is less than 50 x 3 x BURN_NS */
	assert_true(clock_mono_ns() - began_ns >= 100 * NS_PER_MS);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_old),
		cmocka_unit_test(test_bad_items_after_it),
		cmocka_unit_test(test_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
