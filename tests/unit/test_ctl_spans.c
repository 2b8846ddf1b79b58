/* SPDX-License-Identifier: Apache-2.0 */
/* What joulectl spans and flame make of traces: text, JSON, trace events, SVG; and of what is no trace. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "ctl/spans.h"

/* make (1 J) > sh (2 J) > work() x 7 (0.5 J), \x1b[31m (4 J) > make (8 J); a hostile name with markup */
static const char tree[] =
	"{\"traces\":[{\"trace\":\"8cc050a1-fc20-4366-8bcb-ba6856b29c57\",\"part\":1,\"last\":false,\"sensor\":\"s\",\"boot_id\":\"b\","
	"\"cgroup\":\"/a/b\",\"domains\":[\"package-0\",\"core-0\"],\"interfaces\":[\"powercap\",\"powercap\"],\"spans\":["
	"{\"id\":\"a\",\"kind\":\"process\",\"end\":\"cut\",\"pid\":10,\"comm\":\"make\",\"start_unix_ns\":1700000000000000000,"
	"\"start_ns\":5000000000,\"duration_ns\":2000000000,\"cpu_ns\":1000,\"energy_uj\":[1000000,7],\"quality\":\"measured\","
	"\"energy_quality\":\"measured\",\"cmdline\":\"make -j2\"},"
	"{\"id\":\"b\",\"parent\":\"a\",\"kind\":\"process\",\"end\":\"exited\",\"exit_code\":3,\"pid\":11,\"comm\":\"sh\","
	"\"start_unix_ns\":1700000000100000000,\"start_ns\":5100000000,\"duration_ns\":1000000000,\"cpu_ns\":1000,"
	"\"energy_uj\":[2000000,7],\"quality\":\"measured\",\"energy_quality\":\"estimated\"},"
	"{\"id\":\"c\",\"parent\":\"b\",\"kind\":\"function\",\"end\":\"exited\",\"pid\":11,\"tid\":11,\"comm\":\"sh\",\"symbol\":\"work\","
	"\"binary\":\"/bin/sh\",\"calls\":7,\"wall_ns\":500000000,\"start_ns\":5100000000,\"duration_ns\":1000000000,\"cpu_ns\":1000,"
	"\"start_unix_ns\":1700000000100000000,\"energy_uj\":[500000,7],\"quality\":\"measured\",\"energy_quality\":\"partial\"},"
	"{\"id\":\"d\",\"parent\":\"a\",\"kind\":\"process\",\"end\":\"signaled\",\"signal\":9,\"pid\":12,\"comm\":\"\\u001b[31m<b>&\","
	"\"start_unix_ns\":1700000000200000000,\"start_ns\":5200000000,\"duration_ns\":1000000000,\"cpu_ns\":1000,"
	"\"energy_uj\":[4000000,7],\"quality\":\"measured\",\"energy_quality\":\"measured\"},"
	"{\"id\":\"e\",\"parent\":\"d\",\"kind\":\"process\",\"end\":\"oom\",\"pid\":13,\"comm\":\"make\",\"start_ns\":5200000000,"
	"\"start_unix_ns\":1700000000200000000,\"duration_ns\":4000000,\"cpu_ns\":1000,\"energy_uj\":[8000000,7],\"quality\":\"measured\","
	"\"energy_quality\":\"measured\"}]}],\"left_out_traces\":4,\"forgotten_traces\":0}";

static struct spans_list load(const char *text)
{
	struct spans_list l = { 0 };
	struct err err = { 0 };

	if (spans_read_json(&l, text, strlen(text), "test", &err) != 0)
		fail_msg("%s", err.text);
	return l;
}

static const char *line(const char *text, const char *part)
{
	static char found[512];
	const char *at = strstr(text, part), *begin = at;

	if (!at)
		fail_msg("no line with %s in:\n%s", part, text);
	while (begin > text && begin[-1] != '\n')
		begin--;
	snprintf(found, sizeof(found), "%.*s", (int)strcspn(begin, "\n"), begin);
	return found;
}

static void test_text(void **state)
{
	struct spans_list l = load(tree);
	struct buf out = { 0 };
	const char *text;

	assert_int_equal(l.n, 1);
	assert_int_equal(l.left_out, 4);
	assert_int_equal(spans_print(&l, NULL, &out), 0);
	buf_add_char(&out, '\0');
	text = (const char *)out.data;
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(line(text, "/a/b"), "part 1, goes on  8cc050a1-fc20-4366-8bcb-ba6856b29c57"));
	/* subtree 1 + 2 + 0.5 + 4 + 8 J; own 1 J in 2 s */
	assert_string_equal(
		line(text, "make -j2"),
		"   15.500000      1.000000       0.500        2.00 s      0.00 ms       10 make -j2  [goes on]");
	assert_string_equal(
		line(text, " sh"),
		"    2.500000~     2.000000~      2.000~       1.00 s      0.00 ms       11   sh  [exit 3]");
	assert_string_equal(
		line(text, "work()"),
		"    0.500000?     0.500000?      1.000?       500 ms      0.00 ms       11     work() x 7");
	assert_non_null(strstr(line(text, "\\x1b[31m<b>&"), "[SIGKILL]"));
	assert_non_null(strstr(line(text, "killed"), "8.000000    2000.000"));
	buf_free(&out);
	spans_list_free(&l);
}

static void test_command(void **state)
{
	struct spans_list l = load(tree);
	struct buf out = { 0 };

	assert_int_equal(spans_print(&l, "s?", &out), 0);
	buf_add_char(&out, '\0');
	assert_null(strstr((char *)out.data, "make"));
	assert_non_null(strstr((char *)out.data, " 11 sh"));
	assert_non_null(strstr((char *)out.data, " 11   work()"));
	buf_reset(&out);
	assert_int_equal(spans_print(&l, "work", &out), 0);
	buf_add_char(&out, '\0');
	assert_null(strstr((char *)out.data, " sh"));
	assert_non_null(strstr((char *)out.data, " 11 work()"));
	buf_free(&out);
	spans_list_free(&l);
}

/* What was read is written again: all that the format has. */
static void test_json(void **state)
{
	struct spans_list l = load(tree), again;
	struct buf out = { 0 }, more = { 0 };

	spans_print_json(&l, &out);
	buf_add_char(&out, '\0');
	again = load((char *)out.data);
	assert_int_equal(again.v[0]->n_spans, 5);
	assert_int_equal(again.v[0]->spans[2].kind, SPAN_FUNCTION);
	assert_int_equal(again.v[0]->spans[2].calls, 7);
	assert_int_equal(again.v[0]->spans[4].end, SPAN_OOM);
	assert_int_equal(again.v[0]->spans[1].exit_code, 3);
	assert_memory_equal(again.v[0]->uuid, l.v[0]->uuid, 16);
	spans_print_json(&again, &more);
	buf_add_char(&more, '\0');
	assert_string_equal((char *)out.data, (char *)more.data);
	buf_free(&out);
	buf_free(&more);
	spans_list_free(&l);
	spans_list_free(&again);
}

static void test_chrome(void **state)
{
	struct spans_list l = load(tree);
	unsigned complete = 0, begun = 0, ended = 0;
	struct buf out = { 0 };
	json_error_t why;
	json_t *doc, *e;
	size_t i;

	assert_int_equal(spans_print_chrome(&l, NULL, &out), 0);
	doc = json_loadb((char *)out.data, out.len, 0, &why);
	json_array_foreach(json_object_get(doc, "traceEvents"), i, e) {
		const char *ph = json_string_value(json_object_get(e, "ph"));

		complete += *ph == 'X';
		begun += *ph == 'b';
		ended += *ph == 'e';
		if (*ph == 'X' && json_integer_value(json_object_get(e, "tid")) == 11) {
			assert_true(json_number_value(json_object_get(e, "ts")) == 100000);
			assert_true(json_number_value(json_object_get(e, "dur")) == 1000000);
		}
		assert_int_equal(json_integer_value(json_object_get(e, "pid")), 10);
	}
	assert_int_equal(complete, 4);
	assert_int_equal(begun, 1); /* the calls that are summed */
	assert_int_equal(ended, 1);
	json_decref(doc);
	buf_free(&out);
	spans_list_free(&l);
}

static void test_flame(void **state)
{
	struct spans_list l = load(tree), none;
	struct buf out = { 0 };
	const char *text;

	assert_int_equal(spans_draw_flame(&l, NULL, 800, &out), 0);
	buf_add_char(&out, '\0');
	text = (const char *)out.data;
	assert_non_null(strstr(text, "<title>all: 15.5 J (100.0 %), estimated, partly lost</title>"));
	assert_non_null(strstr(text, "<title>sh: 2.5 J (16.1 %), own 2 J, 1 spans"));
	assert_null(strstr(text, "<b>"));
	assert_null(strstr(text, "<script"));
	buf_reset(&out);
	assert_int_equal(spans_draw_flame(&l, "nobody", 800, &out), -ENODATA);
	none = load("{\"traces\":[]}");
	assert_int_equal(spans_draw_flame(&none, NULL, 800, &out), -ENODATA);
	buf_free(&out);
	spans_list_free(&l);
	spans_list_free(&none);
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"[]",
		"{",
		"{}",
		"{\"traces\":7}",
		"{\"traces\":[7]}",
		"{\"traces\":[{}]}",
		"{\"traces\":[{\"spans\":[]}]}",
		"{\"traces\":[{\"spans\":[{\"id\":\"0\"}]}]}",
		"{\"traces\":[{\"spans\":[{\"id\":\"x\"}]}]}",
		"{\"traces\":[{\"spans\":[{\"id\":\"1\"},{\"id\":\"2\",\"parent\":\"3\"}]}]}",
		"{\"traces\":[{\"spans\":[{\"id\":\"1\",\"comm\":\"much longer than a name can be\"}]}]}",
		"{\"traces\":[{\"spans\":[{\"id\":\"1\",\"kind\":\"function\",\"calls\":0}]}]}",
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct spans_list l = { 0 };
		struct err err = { 0 };

		if (spans_read_json(&l, wrong[i], strlen(wrong[i]), "it", &err) != -EBADMSG)
			fail_msg("taken: %s", wrong[i]);
		assert_int_equal(strncmp(err.text, "it: ", 4), 0);
		spans_list_free(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),   cmocka_unit_test(test_command), cmocka_unit_test(test_json),
		cmocka_unit_test(test_chrome), cmocka_unit_test(test_flame),   cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
