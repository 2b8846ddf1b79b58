/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles against each other: every energy of both files is in each form, work scales it, and what is no file of
 * folded stacks is said by its line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "ctl/profile/profile_diff.h"

static char dir[] = "/tmp/jouled-diff-XXXXXX", path[2][64];

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	for (unsigned k = 0; k < 2; k++)
		snprintf(path[k], sizeof(path[k]), "%s/%u.folded", dir, k);
	return 0;
}

static int remove_dir(void **state)
{
	for (unsigned k = 0; k < 2; k++)
		unlink(path[k]);
	return rmdir(dir);
}

static void write_file(unsigned k, const char *text, size_t n)
{
	FILE *f = fopen(path[k], "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void write_both(void)
{
	static const char a[] = "/a;prog;main;parse;lex 3000000\n"
				"/a;prog;main;eval;main 500000\n"
				"/a;prog;main;old 1500000\n"
				"/a;[no sample] 20000\n"
				"/b;prog;main;parse;lex 1\n";
	static const char b[] = "/r;prog;main;parse;lex 1000000\n"
				"/r;prog;main;cache;get 300000\n"
				"/r;[no sample] 20000\n";

	write_file(0, a, sizeof(a) - 1);
	write_file(1, b, sizeof(b) - 1);
}

static char *compare(enum profile_diff_form form, double before, double after, struct buf *out)
{
	const struct profile_diff d = { { path[0], path[1] }, { before, after }, form, 3 };
	struct err err = { 0 };

	buf_reset(out);
	assert_int_equal(profile_diff(&d, out, &err), 0);
	buf_add_char(out, '\0');
	return (char *)out->data;
}

/* The numbers of the row of a function. */
static void row(const char *table, const char *function, double own[2], double all[2], char change[16])
{
	char end[64];
	const char *at;
	double by;

	snprintf(end, sizeof(end), "  %s\n", function);
	at = strstr(table, end);
	assert_non_null(at);
	while (at > table && at[-1] != '\n')
		at--;
	if (sscanf(at, "%lf %lf %lf %15s %% %lf %lf", &own[0], &own[1], &by, change, &all[0], &all[1]) != 6)
		assert_int_equal(
			sscanf(at, "%lf %lf %lf %15s %lf %lf", &own[0], &own[1], &by, change, &all[0], &all[1]), 6);
	assert_float_equal(by, own[1] - own[0], 1.5e-4);
}

static void test_table(void **state)
{
	struct buf out = { 0 };
	double own[2], all[2];
	char change[16], *text;

	write_both();
	text = compare(PROFILE_DIFF_TABLE, 0, 0, &out);
	assert_non_null(strstr(text, "A: 5.020001 J"));
	assert_non_null(strstr(text, "B: 1.320000 J"));
	row(text, "lex", own, all, change);
	assert_float_equal(own[0], 3, 1e-4);
	assert_float_equal(own[1], 1, 1e-4);
	assert_string_equal(change, "-66.7");
	row(text, "old", own, all, change);
	assert_string_equal(change, "gone");
	assert_float_equal(all[1], 0, 1e-9);
	row(text, "main", own, all, change); /* a recursive call counts once */
	assert_float_equal(own[0], 0.5, 1e-4);
	assert_float_equal(all[0], 5, 1e-4);
	assert_float_equal(all[1], 1.3, 1e-4);
	assert_null(strstr(text, "  get\n")); /* the fourth */
	assert_non_null(strstr(text, "5 more functions"));
	buf_free(&out);
}

static void test_work(void **state)
{
	struct buf out = { 0 };
	double own[2], all[2];
	char change[16], *text;

	write_both();
	text = compare(PROFILE_DIFF_TABLE, 3000, 500, &out);
	assert_non_null(strstr(text, "for one unit of work: 2.64 mJ against 1.67333 mJ, +57.8 %"));
	row(text, "lex", own, all, change);
	assert_float_equal(own[0], 1, 1e-4);
	assert_float_equal(own[1], 2, 1e-4);
	buf_free(&out);
}

static void test_folded(void **state)
{
	struct buf out = { 0 };

	write_both();
	assert_string_equal(compare(PROFILE_DIFF_FOLDED, 0, 0, &out), "prog;main;parse;lex 3000001 1000000\n"
								      "prog;main;eval;main 500000 0\n"
								      "prog;main;old 1500000 0\n"
								      "[no sample] 20000 20000\n"
								      "prog;main;cache;get 0 300000\n");
	buf_free(&out);
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		n++;
	return n;
}

static void test_flame(void **state)
{
	struct buf out = { 0 };
	char *text;

	write_both();
	text = compare(PROFILE_DIFF_FLAME, 0, 0, &out);
	assert_int_equal(count(text, "class=\"more\""), 2); /* cache, get */
	assert_int_equal(count(text, "class=\"less\""), 5); /* all, prog, main, parse, lex */
	assert_int_equal(count(text, "class=\"idle\""), 1); /* [no sample] */
	assert_non_null(strstr(text, "lex: 1 J (75.8 %), before 3 J (-66.7 %)"));
	assert_non_null(strstr(text, "get: 0.3 J (22.7 %), new"));
	assert_non_null(strstr(text, "2 J were used before by code that does not run now"));
	text = compare(PROFILE_DIFF_FLAME, 3000, 500, &out); /* six times the work: a sixth of the energy before */
	assert_non_null(strstr(text, "lex: 1 J (75.8 %), before 0.5 J (+100.0 %)"));
	buf_free(&out);
}

static void refused(const char *text, size_t n, const char *why)
{
	const struct profile_diff d = { { path[0], path[1] }, { 0 }, PROFILE_DIFF_TABLE, 3 };
	struct buf out = { 0 };
	struct err err = { 0 };

	write_both();
	write_file(1, text, n);
	assert_int_not_equal(profile_diff(&d, &out, &err), 0);
	assert_non_null(strstr(err.text, path[1]));
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
	assert_int_equal(out.len, 0);
	buf_free(&out);
}

static void test_refused(void **state)
{
	const struct profile_diff none = { { path[0], "/nonexistent" }, { 0 }, PROFILE_DIFF_TABLE, 3 };
	char deep[9004] = "/a;p 1\n";
	struct buf out = { 0 };
	struct err err = { 0 };

	refused("", 0, "no energy is in it");
	refused("/a;p;f 0\n", 9, "no energy is in it");
	refused("/a;p;f 1\n/a;p;f 1", 17, "line 2 is cut off");
	refused("/a;p;f\n", 7, "line 1: no whole number");
	refused("/a;p;f -1\n", 10, "line 1: no whole number");
	refused("/a;p;f 1.5\n", 11, "line 1: no whole number");
	refused("/a;p;f 1 2\n", 11, "line 1: two numbers");
	refused(" 1\n", 3, "line 1: no whole number");
	refused("\n", 1, "line 1: no whole number");
	refused("/a;p;\x1b[31m 1\n", 14, "line 1: a byte that is no text");
	refused("/a;p;\xff 1\n", 9, "line 1: a byte that is no text");
	refused("/a;p;\0 1\n", 9, "line 1: a byte that is no text");
	refused("/a;p;f 18446744073709551615\n/a;p;f 1\n", 37, "more energy than 64 bits hold");
	memset(deep, ';', 9000);
	memcpy(deep + 9000, " 1\n", 3);
	refused(deep, 9003, "line 1: more than 8192 frames");
	write_both();
	assert_int_equal(profile_diff(&none, &out, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent: No such file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_work),
					    cmocka_unit_test(test_folded), cmocka_unit_test(test_flame),
					    cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
