/* SPDX-License-Identifier: Apache-2.0 */
/* Query parameters, Accept (RFC 9110, 12.5.1), and the boxes between two threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/http.h"
#include "serve/board.h"
#include "serve/query.h"

static int parse(struct query *q, const char *name, const char *value)
{
	struct err err = { 0 };
	int rc = query_parse(q, "sort limit depth interval format", &name, &value, 1, &err);

	if (rc)
		assert_non_null(strchr(err.text, ';'));
	return rc;
}

static void test_parameters(void **state)
{
	static const char *const wrong[][2] = {
		{ "sort", "colour" }, { "sort", "" }, { "sort", NULL }, { "limit", "-1" }, { "limit", "1x" }, { "limit", "" },
		{ "depth", "99999999999999999999" }, { "interval", "5" }, { "interval", "9ms" }, { "interval", "2h" },
		{ "format", "abcdefghijklmnop" }, { "colour", "red" }, { "", "1" }, { "sort limit", "power" },
	};
	struct query q;

	assert_int_equal(parse(&q, "limit", "20"), 0);
	assert_int_equal(q.limit, 20);
	assert_true(q.depth == UINT64_MAX && q.sort == SORT_POWER && !q.interval_ns && !q.format[0]);
	assert_int_equal(parse(&q, "sort", "name"), 0);
	assert_int_equal(q.sort, SORT_NAME);
	assert_int_equal(parse(&q, "interval", "10ms"), 0);
	assert_int_equal(q.interval_ns, 10000000);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_not_equal(parse(&q, wrong[i][0], wrong[i][1]), 0);
}

static void test_twice(void **state)
{
	const char *names[] = { "limit", "limit" }, *values[] = { "1", "1" };
	struct query q;

	assert_int_not_equal(query_parse(&q, "limit", names, values, 2, NULL), 0);
	assert_int_equal(query_parse(&q, "limit", names, values, 1, NULL), 0);
	assert_int_equal(query_parse(&q, "", names, values, 0, NULL), 0);
	assert_int_not_equal(query_parse(&q, "", names, values, 1, NULL), 0);
}

static void test_accept(void **state)
{
	static const char *const types[] = { "application/json", "application/cbor", "text/plain; charset=utf-8", NULL };
	static const struct { const char *accept; int want; } cases[] = {
		{ NULL, 0 }, { "", 0 }, { "  ", 0 }, { "*/*", 0 }, { "application/*", 0 }, { "text/plain", 2 }, { "TEXT/Plain", 2 },
		{ "text/*", 2 }, { "application/cbor, application/json;q=0.9", 1 }, { "application/json;q=0, */*", 1 },
		{ "text/plain;q=0.2,application/cbor;q=0.3", 1 }, { "image/png", -1 }, { "application/json;q=0", -1 },
		{ "*/*;q=0.1, text/plain", 2 }, { "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", 2 }, { "text/html,*/*;q=0.8", 0 },
		{ "application/jsonx", -1 }, { "application/js", -1 }, { ",,,", -1 }, { "text/plain;q=", -1 }, { ";q=1", -1 },
		{ "application/json ; q=0.1 , application/cbor ; q=0.2", 1 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (http_accept(cases[i].accept, types) != cases[i].want)
			fail_msg("%s: %d", cases[i].accept, http_accept(cases[i].accept, types));
}

static void test_board(void **state)
{
	int values[BOARD_BOXES];
	struct board b;

	board_init(&b);
	for (int i = 0; i < BOARD_BOXES; i++)
		b.boxes[i] = &values[i];
	assert_null(board_latest(&b));
	for (int i = 0; i < 10; i++) {
		int box = board_take(&b);

		assert_true(box >= 0);
		values[box] = i;
		board_put(&b, box, true);
	}
	assert_int_equal(*(int *)board_latest(&b), 9);
	assert_int_equal(*(int *)board_latest(&b), 9);
	assert_null(board_next(&b));
	/* a reader that wants each: three more fit beside the one it holds */
	board_keep(&b, true);
	for (int i = 10; i < 20; i++) {
		int box = board_take(&b);

		if (box < 0)
			continue;
		values[box] = i;
		board_put(&b, box, i != 11);
	}
	assert_int_equal(*(int *)board_next(&b), 10);
	assert_int_equal(*(int *)board_next(&b), 12);
	assert_int_equal(*(int *)board_next(&b), 13);
	assert_null(board_next(&b));
	assert_int_equal(b.lost, 6);
	board_fini(&b);
}

struct race { struct board b; uint64_t values[BOARD_BOXES][64]; };

static void *write_boxes(void *arg)
{
	struct race *r = arg;

	for (uint64_t n = 1; n <= 200000; n++) {
		int box = board_take(&r->b);

		if (box < 0)
			continue;
		for (unsigned i = 0; i < 64; i++)
			r->values[box][i] = n;
		board_put(&r->b, box, true);
	}
	return NULL;
}

/* The box that a reader holds is never written. */
static void test_board_threads(void **state)
{
	static struct race r;
	uint64_t last = 0;
	pthread_t writer;

	board_init(&r.b);
	for (int i = 0; i < BOARD_BOXES; i++)
		r.b.boxes[i] = r.values[i];
	assert_int_equal(pthread_create(&writer, NULL, write_boxes, &r), 0);
	while (last < 200000) {
		const uint64_t *v = board_latest(&r.b);

		if (!v)
			continue;
		for (unsigned i = 1; i < 64; i++)
			assert_int_equal(v[i], v[0]);
		assert_true(v[0] >= last);
		last = v[0];
	}
	pthread_join(writer, NULL);
	board_fini(&r.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameters), cmocka_unit_test(test_twice), cmocka_unit_test(test_accept),
		cmocka_unit_test(test_board), cmocka_unit_test(test_board_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
