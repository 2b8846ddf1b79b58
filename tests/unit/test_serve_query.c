/* SPDX-License-Identifier: Apache-2.0 */
/* Query parameters, times, Accept (RFC 9110, 12.5.1), the cost of a switch, and the boxes between two threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/http/http.h"
#include "base/instant.h"
#include "serve/board.h"
#include "serve/status.h"
#include "serve/query.h"

static int parse(struct query *q, const char *name, const char *value)
{
	struct err err = { 0 };
	int rc = query_parse(q, "sort limit depth interval format", &(struct query_args){ &name, &value, 1 }, &err);

	if (rc)
		assert_non_null(strchr(err.text, ';'));
	return rc;
}

static void test_parameters(void **state)
{
	static const char *const wrong[][2] = {
		{ "sort", "colour" },
		{ "sort", "" },
		{ "sort", NULL },
		{ "limit", "-1" },
		{ "limit", "1x" },
		{ "limit", "" },
		{ "depth", "99999999999999999999" },
		{ "interval", "5" },
		{ "interval", "9ms" },
		{ "interval", "2h" },
		{ "format", "abcdefghijklmnop" },
		{ "colour", "red" },
		{ "", "1" },
		{ "sort limit", "power" },
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

	assert_int_not_equal(query_parse(&q, "limit", &(struct query_args){ names, values, 2 }, NULL), 0);
	assert_int_equal(query_parse(&q, "limit", &(struct query_args){ names, values, 1 }, NULL), 0);
	assert_int_equal(query_parse(&q, "", &(struct query_args){ names, values, 0 }, NULL), 0);
	assert_int_not_equal(query_parse(&q, "", &(struct query_args){ names, values, 1 }, NULL), 0);
}

static void test_accept(void **state)
{
	static const char *const types[] = { "application/json", "application/cbor", "text/plain; charset=utf-8",
					     NULL };
	static const struct {
		const char *accept;
		int want;
	} cases[] = {
		{ NULL, 0 },
		{ "", 0 },
		{ "  ", 0 },
		{ "*/*", 0 },
		{ "application/*", 0 },
		{ "text/plain", 2 },
		{ "TEXT/Plain", 2 },
		{ "text/*", 2 },
		{ "application/cbor, application/json;q=0.9", 1 },
		{ "application/json;q=0, */*", 1 },
		{ "text/plain;q=0.2,application/cbor;q=0.3", 1 },
		{ "image/png", -1 },
		{ "application/json;q=0", -1 },
		{ "*/*;q=0.1, text/plain", 2 },
		{ "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", 2 },
		{ "text/html,*/*;q=0.8", 0 },
		{ "application/jsonx", -1 },
		{ "application/js", -1 },
		{ ",,,", -1 },
		{ "text/plain;q=", -1 },
		{ ";q=1", -1 },
		{ "application/json ; q=0.1 , application/cbor ; q=0.2", 1 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (http_accept(cases[i].accept, types) != cases[i].want)
			fail_msg("%s: %d", cases[i].accept, http_accept(cases[i].accept, types));
}

#define S 1000000000ll

/* Seconds by `date -u -d TIME +%s`. */
static void test_time(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} right[] = {
		{ "0", 0 },
		{ "1767225600", 1767225600 * S },
		{ "1767225600.5", 1767225600 * S + S / 2 },
		{ "1767225600.000000001", 1767225600 * S + 1 },
		{ "1767225600.0000000009", 1767225600 * S },
		{ "2026-01-31T12:00:00Z", 1769860800 * S },
		{ "2026-01-31t12:00:00z", 1769860800 * S },
		{ "2026-01-31 12:00:00Z", 1769860800 * S },
		{ "2026-01-31T12:00:00.25Z", 1769860800 * S + S / 4 },
		{ "2026-01-31T12:00:00+01:00", 1769857200 * S },
		{ "2026-01-31T12:00:00-08:30", 1769891400 * S },
		{ "2024-02-29T00:00:00Z", 1709164800 * S },
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2016-12-31T23:59:60Z", 1483228800 * S },
		{ "2026-12-31T23:30:00-01:00", 1798763400 * S },
		{ "-1h", 1000000 * S - 3600 * S },
		{ "-90m", 1000000 * S - 5400 * S },
		{ "-1500ms", 1000000 * S - 3 * S / 2 },
	};
	/* clang-format off */
	static const char *const wrong[] = {
		"", "-", "now", "1h", "-1", "--1h", "+1", " 1", "1 ", "1.", ".5", "1.5x", "0x10", "1e9", "9000000001", "99999999999999999999",
		"2026-01-31", "2026-01-31T12:00Z", "2026-01-31T12:00:00", "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00+1:00",
		"2026-01-31T12:00:00+0100", "2026-01-31T12:00:00+24:00", "2026-01-31T12:00:00+01:60", "2026-01-31T12:00:00Zx",
		"2026-02-30T12:00:00Z", "2025-02-29T12:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
		"2026-01-32T00:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:61Z", "1969-12-31T23:59:59Z",
		"2351-01-01T00:00:00Z", "2026-1-31T12:00:00Z", "2026/01/31T12:00:00Z", "-99999999999999999999h",
		"2026-01-31T12:00:0aZ", ":", "::::::::::::::::::::", "2026-01-31T1-:00:00Z",
	};
	/* clang-format on */
	int64_t ns;

	for (unsigned i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		if (instant_parse(right[i].text, 1000000 * S, &ns) != 0 || ns != right[i].want)
			fail_msg("%s: %lld", right[i].text, (long long)ns);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ns = -7;
		if (instant_parse(wrong[i], 1000000 * S, &ns) == 0 || ns != -7)
			fail_msg("%s: %lld", wrong[i], (long long)ns);
	}
}

/* One burst, however large, is an interval like any other; few samples wait. */
static void test_cost(void **state)
{
	struct switch_cost c = { 0 };
	uint64_t ns = 0, n = 0;

	assert_int_equal(switch_cost_follow(&c, 0, 0), 0);
	assert_int_equal(switch_cost_follow(&c, 900, 3), 300);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(switch_cost_follow(&c, ns += 2000, n += 10), 200);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(switch_cost_follow(&c, ns += 65000 * 1000, n += 1000), 200);
	/* a machine that changes for good is followed */
	for (unsigned i = 0; i < COST_INTERVALS / 2 + 1; i++)
		switch_cost_follow(&c, ns += 4000, n += 10);
	assert_int_equal(switch_cost_follow(&c, ns, n), 400);
	assert_int_equal(switch_cost_follow(&c, ns + 7 * 9000, n + 7), 400);
	assert_int_equal(c.samples, n);
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

struct race {
	struct board b;
	uint64_t values[BOARD_BOXES][64];
};

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
		cmocka_unit_test(test_parameters),    cmocka_unit_test(test_twice), cmocka_unit_test(test_accept),
		cmocka_unit_test(test_time),          cmocka_unit_test(test_cost),  cmocka_unit_test(test_board),
		cmocka_unit_test(test_board_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
