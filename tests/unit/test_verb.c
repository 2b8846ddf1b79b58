/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of joulectl: options from a table, wrong ones answered with what was meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "ctl/verbs.h"

static const struct verb_option options[] = {
	{ "format", 'f', "FORMAT", "a format" }, { "json", 'j', NULL, "json" }, { "quiet", 'q', NULL, "quiet" },
	{ "diff", 0, "A B", "two words" },       { NULL, 0, NULL, NULL },
};
static const struct verb verb = { .name = "try", .synopsis = "[FILE]", .options = options, .max_args = 1 };

/* Words of a command line; the error's text, "" when it was read. */
static const char *parse(const char *line, struct verb_call *ret)
{
	static char words[200], *argv[20];
	static struct err err;
	int argc = 0;

	err = (struct err){ 0 };
	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	int code = verb_parse(&verb, argc, argv, ret, &err);

	assert_int_equal(code, err.code);
	return err.text;
}

static void test_two_values(void **state)
{
	static const char *const lines[] = { "--diff one two FILE", "--diff=one two -q FILE", "FILE --diff one two" };
	struct verb_call c;

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_string_equal(parse(lines[i], &c), "");
		assert_string_equal(c.option[3], "one");
		assert_string_equal(c.several[0], "one");
		assert_string_equal(c.several[1], "two");
		assert_int_equal(c.n, 1);
		assert_string_equal(c.args[0], "FILE");
	}
	assert_string_equal(parse("--diff one", &c), "try: --diff: needs two values; --diff A B");
	assert_string_equal(parse("--diff=one", &c), "try: --diff: needs two values; --diff A B");
	assert_string_equal(parse("--diff", &c), "try: --diff: needs a value; --diff A B");
}

static void test_forms(void **state)
{
	static const char *const lines[] = {
		"--format zico -j FILE",
		"--format=zico --json FILE",
		"-fzico -j FILE",
		"-f zico FILE -j",
		"FILE -jf zico",
		"-jfzico -- FILE",
		"--format hwpc --json FILE -f zico",
	};
	struct verb_call c;

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_string_equal(parse(lines[i], &c), "");
		assert_string_equal(c.option[0], "zico");
		assert_string_equal(c.option[1], "");
		assert_null(c.option[2]);
		assert_int_equal(c.n, 1);
		assert_string_equal(c.args[0], "FILE");
	}
	assert_string_equal(parse("", &c), "");
	assert_int_equal(c.n, 0);
	assert_string_equal(parse("-", &c), "");
	assert_string_equal(c.args[0], "-");
	assert_string_equal(parse("-- -j", &c), "");
	assert_string_equal(c.args[0], "-j");
	assert_null(c.option[1]);
	assert_string_equal(parse("--format=", &c), "");
	assert_string_equal(c.option[0], "");
}

static void test_refusals(void **state)
{
	struct verb_call c;

	assert_string_equal(parse("--jsn", &c), "try: --jsn: unknown option; did you mean --json?");
	assert_string_equal(parse("--formt=x", &c), "try: --formt=x: unknown option; did you mean --format?");
	assert_string_equal(parse("--elephant", &c), "try: --elephant: unknown option; see joulectl try --help");
	assert_string_equal(parse("-x", &c), "try: -x: unknown option; see joulectl try --help");
	assert_string_equal(parse("--format", &c), "try: --format: needs a value; --format FORMAT");
	assert_string_equal(parse("-jf", &c), "try: -f: needs a value; -f FORMAT");
	assert_string_equal(parse("--json=yes", &c), "try: --json: takes no value; leave =yes out");
	assert_string_equal(parse("a b", &c), "try: b: one argument too many; see joulectl try --help");
	assert_string_equal(parse("--\x1b[2J", &c), "try: --\\x1b[2J: unknown option; see joulectl try --help");
}

static void test_table(void **state)
{
	for (const struct verb *const *v = verbs; *v; v++) {
		int n = 0;

		assert_ptr_equal(verb_find((*v)->name), *v);
		assert_non_null((*v)->run);
		for (const struct verb_option *o = (*v)->options; o->name; o++, n++)
			assert_true(strlen(o->name) + (o->arg ? strlen(o->arg) : 0) < 28);
		assert_true(n <= VERB_OPTIONS_MAX);
	}
	assert_null(verb_find("nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_two_values),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
