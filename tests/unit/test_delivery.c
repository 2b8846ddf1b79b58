/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of an output to a server, before its spool is there: documents are handed over, and the queue is bounded by what they
 * take. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "agent/output/delivery.h"

static void fill(struct buf *b, char with, size_t n)
{
	uint8_t *to;

	buf_reset(b);
	to = buf_reserve(b, n);
	assert_non_null(to);
	memset(to, with, n);
	b->len = n;
}

static void begin(struct delivery *d, size_t queue_bytes, bool rare)
{
	*d = (struct delivery){
		.to = "here", .what = "documents", .server = "nobody", .queue_bytes = queue_bytes, .rare = rare
	};
	delivery_init(d);
}

/* The buffer gives its memory away and has other memory for the next one. */
static void test_handed_over(void **state)
{
	struct delivery d;
	struct buf b = { 0 };
	const uint8_t *given;

	begin(&d, 1 << 20, false);
	fill(&b, 'a', 100000);
	given = b.data;
	assert_int_equal(delivery_submit(&d, &b, 1500), 0);
	assert_ptr_equal(d.waiting.first->data, given);
	assert_int_equal(d.waiting.first->len, 100000);
	assert_int_equal(d.waiting.first->energy_mj, 2);
	assert_true(d.waiting.first->real_ns > 0);
	assert_true(b.len == 0 && b.cap >= 100000 && b.data != given);
	fill(&b, 'b', 90000);
	assert_int_equal(delivery_submit(&d, &b, 0), 0);
	assert_int_equal(delivery_waiting(&d), 2);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(d.waiting.first->data[i], 'a');
	assert_int_equal(d.waiting.last->data[89999], 'b');
	delivery_free(&d);
	buf_free(&b);
}

/* A small document in a large buffer takes little; and what waits is bounded by what it takes. */
static void test_bound(void **state)
{
	struct delivery d;
	struct buf b = { 0 };
	size_t taken = 0;
	unsigned n = 0;

	begin(&d, 64 << 10, false);
	fill(&b, 'x', 50000);
	buf_reset(&b);
	for (;; n++) {
		fill(&b, 'x', 1000);
		if (delivery_submit(&d, &b, 1000) != 0)
			break;
		assert_true(b.cap >= 50000);
	}
	for (const struct doc *doc = d.waiting.first; doc; doc = doc->next)
		taken += doc->cap;
	assert_true(n > 50 && n < 66);
	assert_true(taken < 2 * (64 << 10));
	assert_int_equal(b.len, 0);
	assert_int_equal(d.figures.dropped_queue, 1);
	assert_int_equal(d.figures.dropped_mj, 1);
	assert_int_equal(delivery_waiting(&d), n);
	delivery_free(&d);
	buf_free(&b);
}

/* Of large documents that are far apart no memory is kept. */
static void test_rare(void **state)
{
	struct delivery d;
	struct buf b = { 0 };

	begin(&d, 1 << 20, true);
	fill(&b, 'p', 300000);
	assert_int_equal(delivery_submit(&d, &b, 0), 0);
	assert_true(!b.data && !b.cap && !b.len);
	assert_null(d.waiting.first->pool);
	assert_int_equal(d.waiting.first->data[299999], 'p');
	delivery_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_handed_over), cmocka_unit_test(test_bound),
					    cmocka_unit_test(test_rare) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
