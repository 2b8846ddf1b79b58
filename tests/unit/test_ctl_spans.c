/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl spans and flame turn traces into text, JSON, trace events and SVG, and refuse what is no trace. */
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
#include "ctl/spans/ctl_spans.h"

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
	"\"energy_quality\":\"measured\"}]}],\"left_out_traces\":4,\"left_out_spans\":70,\"left_out_energy_uj\":5420000000,"
	"\"forgotten_traces\":0,\"forgotten_energy_uj\":0,\"open\":{\"trees\":1,\"spans\":9,\"energy_uj\":2500000},\"unread_records\":2,"
	"\"lost\":{\"records\":0,\"processes\":0,\"ends\":0,\"calls\":0,\"spans\":3}}";

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
	assert_int_equal(l.missing.left_out, 4);
	assert_int_equal(spans_print(&l, NULL, 0, &out), 0);
	buf_add_char(&out, '\0');
	text = (const char *)out.data;
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(line(text, "/a/b"), "part 1, goes on  8cc050a1-fc20-4366-8bcb-ba6856b29c57"));
	/* subtree 1 + 2 + 0.5 + 4 + 8 J; own 1 J in 2 s */
	assert_string_equal(line(text, "make -j2"),
			    "     15.5       1.00      0.500        2.00 s      0.00 ms       10 make -j2  [goes on]");
	assert_string_equal(line(text, " sh"),
			    "     2.50~      2.00~      2.00~       1.00 s      0.00 ms       11   sh  [exit 3]");
	assert_string_equal(line(text, "work()"),
			    "    0.500?     0.500?      1.00?       500 ms      0.00 ms       11     work() x 7");
	assert_non_null(strstr(line(text, "\\x1b[31m<b>&"), "[SIGKILL]"));
	assert_non_null(strstr(line(text, "killed"), "8.00       2000"));
	assert_string_equal(line(text, "--limit"),
			    "not shown: 4 older traces with 70 spans and 5420 J are left out; raise --limit");
	assert_non_null(strstr(line(text, "no room"), "not shown: 3 spans, 0 processes"));
	assert_non_null(strstr(line(text, "goes on, with"),
			       "not shown: 1 tree of processes that goes on, with 9 spans and 2.5 J so far"));
	assert_non_null(strstr(line(text, "of the spool"), "not shown: 2 records"));
	buf_free(&out);
	spans_list_free(&l);
}

/* On a terminal a command line is cut, and what became of the process stays. */
static void test_narrow(void **state)
{
	struct spans_list l = load(tree);
	struct buf out = { 0 };

	assert_int_equal(spans_print(&l, NULL, 87, &out), 0);
	buf_add_char(&out, '\0');
	assert_int_equal(strlen(line((char *)out.data, " make")), 87);
	assert_non_null(strstr(line((char *)out.data, " make"), " 10 make -j2  [goes on]"));
	buf_reset(&out);
	assert_int_equal(spans_print(&l, NULL, 40, &out), 0);
	buf_add_char(&out, '\0');
	assert_non_null(strstr((char *)out.data, " 10 make -j2  [goes on]\n"));
	assert_non_null(strstr(line((char *)out.data, "SIGKILL"), ">  [SIGKILL]"));
	buf_free(&out);
	spans_list_free(&l);
}

static void test_command(void **state)
{
	struct spans_list l = load(tree);
	struct buf out = { 0 };

	assert_int_equal(spans_print(&l, "s?", 0, &out), 0);
	buf_add_char(&out, '\0');
	assert_null(strstr((char *)out.data, "make"));
	assert_non_null(strstr((char *)out.data, " 11 sh"));
	assert_non_null(strstr((char *)out.data, " 11   work()"));
	buf_reset(&out);
	assert_int_equal(spans_print(&l, "work", 0, &out), 0);
	buf_add_char(&out, '\0');
	assert_null(strstr((char *)out.data, " 11 sh"));
	assert_non_null(strstr((char *)out.data, " 11 work()"));
	buf_free(&out);
	spans_list_free(&l);
}

/* Traces that were read are written again with everything that the format has. */
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
	assert_non_null(strstr(json_string_value(json_object_get(json_object_get(doc, "otherData"), "missing 1")),
			       "5420 J are left out"));
	json_decref(doc);
	buf_free(&out);
	spans_list_free(&l);
}

static int flame(const struct spans_list *l, const char *command, unsigned width, struct buf *out)
{
	struct flame *f = spans_flame_new(command);
	int rc = spans_flame_add(f, l);

	if (!rc)
		rc = spans_flame_draw(f, &l->missing, width, out);
	spans_flame_free(f);
	return rc;
}

static void test_flame(void **state)
{
	struct spans_list l = load(tree), none;
	struct buf out = { 0 };
	const char *text;

	assert_int_equal(flame(&l, NULL, 800, &out), 0);
	buf_add_char(&out, '\0');
	text = (const char *)out.data;
	assert_non_null(strstr(text, "<title>all: 15.5 J (100.0 %), estimated, partly lost</title>"));
	assert_non_null(strstr(text, "<title>sh: 2.5 J (16.1 %), own 2 J, 1 spans"));
	/* the whole name, with the total where there is room */
	assert_non_null(strstr(text, ">all  15.5 J</text>"));
	assert_non_null(strstr(text, ">sh  2.50 J</text>"));
	assert_null(strstr(text, "\xe2\x80\xa6"));
	assert_null(strstr(text, "<b>"));
	assert_non_null(strstr(text, "<script>"));
	assert_null(strstr(strstr(text, "<script>") + 1, "<script")); /* ours alone; names are text */
	assert_non_null(strstr(text, "Not shown: 4 older traces with 70 spans and 5420 J are left out; raise --limit"));
	assert_null(strstr(text, "too narrow"));
	buf_reset(&out);
	assert_int_equal(flame(&l, "nobody", 800, &out), -ENODATA);
	none = load("{\"traces\":[]}");
	assert_int_equal(flame(&none, NULL, 800, &out), -ENODATA);
	buf_free(&out);
	spans_list_free(&l);
	spans_list_free(&none);
}

/* As many parts as there may be, in one picture; what is too narrow in it is told. */
static void test_flame_parts(void **state)
{
	struct spans_missing nothing = { 0 };
	struct flame *f = spans_flame_new(NULL);
	struct buf out = { 0 };
	char text[1024];

	for (unsigned i = 0; i < 3000; i++) {
		struct spans_list l;

		snprintf(
			text, sizeof(text),
			"{\"traces\":[{\"trace\":\"8cc050a1-fc20-4366-8bcb-ba6856b29c57\",\"sensor\":\"s\",\"boot_id\":\"b\","
			"\"cgroup\":\"/c\",\"domains\":[\"package-0\"],\"interfaces\":[\"powercap\"],\"spans\":[{\"id\":\"a\",\"kind\":\"process\","
			"\"end\":\"exited\",\"pid\":10,\"comm\":\"n%u\",\"start_ns\":5,\"duration_ns\":2,\"cpu_ns\":1000,\"energy_uj\":[%u],"
			"\"quality\":\"measured\",\"energy_quality\":\"measured\"}]}]}",
			i, i < 2000 ? 1 : 1000000);
		l = load(text);
		assert_int_equal(spans_flame_add(f, &l), 0);
		spans_list_free(&l);
	}
	assert_int_equal(spans_flame_draw(f, &nothing, 8000, &out), 0);
	buf_add_char(&out, '\0');
	assert_non_null(strstr((char *)out.data, "1000 J in 3000 traces."));
	assert_non_null(strstr((char *)out.data, "<title>n2999: 1 J (0.1 %)"));
	assert_non_null(strstr((char *)out.data,
			       "Not shown: 2000 frames with 0.002 J are too narrow to be drawn; raise --width"));
	spans_flame_free(f);
	buf_free(&out);
}

/* A remedy for narrow frames is one that the verb has: joulectl profile has no --width. */
static void test_flame_narrow_stack(void **state)
{
	const char *const wide[] = { "/a", "wide" }, *const narrow[] = { "/a", "narrow" };
	const struct spans_missing nothing = { 0 };
	struct flame *f = spans_flame_new(NULL);
	struct buf out = { 0 };

	assert_non_null(f);
	assert_int_equal(spans_flame_add_stack(f, &(struct flame_stack){ .label = wide, .n = 2, .own_uj = 100000000 }),
			 0);
	assert_int_equal(spans_flame_add_stack(f, &(struct flame_stack){ .label = narrow, .n = 2, .own_uj = 7 }), 0);
	assert_int_equal(spans_flame_draw(f, &nothing, 800, &out), 0);
	buf_add_char(&out, '\0');
	assert_non_null(strstr((char *)out.data, "1 frames with 7e-06 J are too narrow to be drawn; -o x.folded has"));
	assert_null(strstr((char *)out.data, "--width"));
	buf_free(&out);
	spans_flame_free(f);
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
		cmocka_unit_test(test_text),        cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_command),     cmocka_unit_test(test_json),
		cmocka_unit_test(test_chrome),      cmocka_unit_test(test_flame),
		cmocka_unit_test(test_flame_parts), cmocka_unit_test(test_flame_narrow_stack),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
