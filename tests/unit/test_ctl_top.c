/* SPDX-License-Identifier: Apache-2.0 */
/* Names and numbers of top: safe, and as wide as the terminal will take them. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "ctl/top/top_history.h"
#include "ctl/top/top_procs.h"
#include "encode/table.h"

static void test_clean(void **state)
{
	static const struct {
		const char *path, *name;
	} cases[] = {
		{ "/a/b", "/a/b" },
		{ "/a\033[2J", "/a\\x1b[2J" },
		{ "/\xff", "/\\xff" },
		{ "/漢字", "/漢字" },
		{ "/a\u202eb", "/a\\xe2\\x80\\xaeb" },
		{ "/a\u200bb", "/a?b" },
		{ "/\xc2\x85", "/\\xc2\\x85" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *name = top_clean(cases[i].path);

		assert_string_equal(name, cases[i].name);
		free(name);
	}
}

static void test_fit(void **state)
{
	static const char *const names[] = { "/system.slice/a-long-name.service", "/漢字漢字漢字漢字漢字",
					     "/e\u0301e\u0301e\u0301e\u0301e\u0301" };
	char text[256];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (unsigned columns = 1; columns < 40; columns++) {
			top_fit(text, sizeof(text), names[i], columns);
			assert_true(top_columns(text) <= columns);
			if (top_columns(names[i]) <= columns)
				assert_string_equal(text, names[i]);
		}
	top_fit(text, sizeof(text), names[0], 0);
	assert_string_equal(text, names[0]);
	assert_int_equal(top_columns("漢字e\u0301"), 5);
}

static void test_fit_path(void **state)
{
	static const char path[] = "/kubepods.slice/pod12/cri-containerd-0123456789abcdef.scope";
	static const struct {
		unsigned columns;
		const char *want;
	} cases[] = {
		{ 60, path },
		{ 50, "/kubepods.s…/cri-containerd-0123456789abcdef.scope" },
		{ 40, "/…/cri-containerd-0123456789abcdef.scope" },
		{ 39, "…/cri-containerd-0123456789abcdef.scope" },
		{ 38, "cri-containerd-0123456789abcdef.scope" },
		{ 20, "cri-co…9abcdef.scope" },
	};
	char text[256];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		top_fit_path(text, sizeof(text), path, cases[i].columns);
		assert_string_equal(text, cases[i].want);
	}
	for (unsigned columns = 1; columns < 70; columns++) {
		top_fit_path(text, sizeof(text), path, columns);
		assert_true(top_columns(text) <= columns);
	}
	top_fit_path(text, sizeof(text), "/", 1);
	assert_string_equal(text, "/");
}

static void test_numbers(void **state)
{
	char text[16];

	top_joules(text, 1);
	assert_string_equal(text, "0.000");
	top_joules(text, 12345678);
	assert_string_equal(text, "12.35");
	top_joules(text, 9999400000);
	assert_string_equal(text, "9999");
	top_joules(text, 99990000000);
	assert_string_equal(text, "99.99k");
	top_seconds(text, 59990000000);
	assert_string_equal(text, "59.99");
	top_seconds(text, 3661000000000);
	assert_string_equal(text, "1h01");
}

static void put_line(void *arg, enum top_style style, const char *text)
{
	strncat(arg, text, 511 - strlen(arg));
}

static void no_end(void *arg)
{
}

static void assert_row(struct top_view *v, const struct top_row *r, unsigned width, const char *want)
{
	char line[512] = "";
	struct top_paint p = { .width = width, .put = put_line, .end_line = no_end, .arg = line };

	top_draw_row(v, r, &p, false);
	if (!strstr(line, want))
		fail_msg("no '%s' in '%s'", want, line);
	assert_true(!width || top_columns(line) <= width);
}

/* A container or a job goes by its name, with the path behind it where there is room; a unit by its path. */
static void test_names(void **state)
{
	static const char path[] = "/kubepods.slice/cri-containerd-0123456789abcdef.scope";
	struct names *pod = names_new(&(struct names_draft){
		.field = { [NAME_NAMESPACE] = "shop", [NAME_POD] = "front-7", [NAME_CONTAINER] = "w\u200beb" } });
	struct names *unit = names_new(&(struct names_draft){ .field = { [NAME_UNIT] = "ssh.service" } });
	struct names *job = names_new(&(struct names_draft){ .field = { [NAME_JOB] = "4711", [NAME_STEP] = "0" } });
	struct top_view v = { .domain = -1, .all = true };
	struct top_row *r = top_row_get(&v, path, ROW_CGROUP),
		       *step = top_row_get(&v, "/slurm/job_4711/step_0", ROW_CGROUP),
		       *other = top_row_get(&v, "/system.slice/ssh.service", ROW_CGROUP);

	assert_int_equal(top_row_entitle(&v, r, NULL), 0);
	assert_row(&v, r, 0, path);
	assert_int_equal(top_row_entitle(&v, r, pod), 0);
	assert_int_equal(top_row_entitle(&v, r, pod), 0);
	assert_int_equal(top_row_entitle(&v, other, unit), 0);
	assert_int_equal(top_row_entitle(&v, step, job), 0);
	assert_row(&v, step, 0, "job 4711.0  /slurm/job_4711/step_0");
	assert_row(&v, r, 0, "shop/front-7/w?eb  /kubepods.slice/cri-containerd-0123456789abcdef.scope");
	assert_row(&v, r, 200, "shop/front-7/w?eb  /kubepods.slice/");
	assert_row(&v, r, 60, "shop/front-7/w?eb");
	assert_row(&v, other, 0, "  /system.slice/ssh.service");
	r->id = other->id = step->id = 1;
	strcpy(v.filter, "FRONT-7");
	assert_int_equal(top_view_arrange(&v), 0);
	assert_int_equal(v.n_order, 1);
	assert_ptr_equal(v.order[0], r);
	top_view_free(&v);
	names_put(pod);
	names_put(unit);
	names_put(job);
}

/* /proc/PID/stat of a program that chose its name to confuse. */
static void test_stat(void **state)
{
	static const char tail[] = " R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 7 18 12345 20 21";
	static const char *const bad[] = { "", "1", "1 (x", "1 (x)", "1 (x) R", "1 )x( R 1 2 3", "1 (x) R 1 2 3 a" };
	struct top_process p = { 0 };
	char text[256];

	snprintf(text, sizeof(text), "77 (a) R 1 (b))%s", tail);
	assert_true(top_read_stat(text, &p));
	assert_int_equal(p.threads, 7);
	assert_int_equal(p.start_ticks, 12345);
	assert_int_equal(p.state, 'R');
	assert_string_equal(p.command, "[a) R 1 (b)]");
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(top_read_stat(bad[i], &p));
}

static const char answer[] =
	"{\"domains\":[\"package-0\",\"dram-0\"],\"series\":["
	"{\"cgroup\":\"/a\",\"row\":\"cgroup\",\"ended\":true,\"names\":{\"namespace\":\"shop\",\"pod\":\"web-1\"},"
	"\"points\":[[2000000000,1000000000,\"estimated\",[3000000,1]],[3000000000,1000000000,\"measured\",[4000000,0]]]},"
	"{\"cgroup\":\"kernel\",\"row\":\"kernel\",\"points\":[[3000000000,1000000000,\"measured\",[500000,0]]]},"
	"{\"cgroup\":\"idle-power\",\"row\":\"idle-power\",\"points\":[[3000000000,1000000000,\"measured\",[1000000,2]]]},"
	"{\"cgroup\":\"residual\",\"row\":\"residual\",\"points\":[[3000000000,1000000000,\"partial\",[100,0]]]}]}";

/* The history becomes intervals, in the order of time. */
static void test_history(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"domains\":[\"x\"],\"series\":[]}",
		"{\"domains\":[],\"series\":[]}",
		"{\"domains\":[\"psys\"],\"series\":[{\"cgroup\":\"/a\",\"row\":\"cgroup\",\"points\":[[2,1,\"measured\",[-1]]]}]}",
		"{\"domains\":[\"psys\"],\"series\":[{\"cgroup\":\"/a\",\"row\":\"cgroup\",\"points\":[[1,2,\"measured\",[1]]]}]}",
	};
	struct top_view v = { .domain = -1 };
	struct top_history *h = NULL;
	struct snapshot *s;
	struct err err = { 0 };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(top_history_parse(bad[i], strlen(bad[i]), &h, &err) < 0);
		assert_true(err.text[0]);
	}
	assert_int_equal(top_history_parse(answer, sizeof(answer) - 1, &h, &err), 0);
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(top_history_next(h, &s), 1);
		assert_int_equal(s->end_real_ns, 2000000000);
		assert_int_equal(s->n_rows, 1);
		assert_int_equal(top_view_take(&v, s), 0);
		assert_true(v.machine.past && v.machine.split);
		assert_string_equal(v.order[0]->title, "shop/web-1");
		assert_int_equal(v.order[0]->shown[TOP_OWN].energy_quality[DOMAIN_PACKAGE], QUALITY_ESTIMATED);
		assert_row(&v, v.order[0], 80, "   3.000~   3.000      -~     -     -     -");
		assert_int_equal(top_history_next(h, &s), 1);
		assert_int_equal(s->domains[0].energy_uj, 5500100);
		assert_int_equal(s->domains[0].idle_uj, 1000000);
		assert_int_equal(s->domains[0].quality, QUALITY_PARTIAL);
		assert_int_equal(top_view_take(&v, s), 0);
		assert_int_equal(v.n_order, 2);
		assert_int_equal(v.order[0]->shown_total[TOP_OWN].uj[DOMAIN_PACKAGE], 7000000);
		assert_int_equal(top_history_next(h, &s), 0);
		top_history_rewind(h);
		top_view_forget(&v);
		assert_int_equal(v.samples, 0);
	}
	top_history_close(h);
	top_view_free(&v);
}

/* A cgroup that used nothing for an interval is in no snapshot of it, and goes on afterwards. */
static void test_history_of_a_rest(void **state)
{
	static const char rests[] =
		"{\"domains\":[\"package-0\"],\"series\":["
		"{\"cgroup\":\"/b\",\"row\":\"cgroup\",\"points\":[[2000000000,1000000000,\"measured\",[3000000]],"
		"[4000000000,1000000000,\"measured\",[5000000]]]},"
		"{\"cgroup\":\"residual\",\"row\":\"residual\",\"points\":[[2000000000,1000000000,\"measured\",[1]],"
		"[3000000000,1000000000,\"measured\",[1]],[4000000000,1000000000,\"measured\",[1]]]}]}";
	static const float watts[] = { 3, 0, 5 };
	struct top_view v = { .domain = -1 };
	struct top_history *h = NULL;
	struct top_row *r;
	struct snapshot *s;
	struct err err = { 0 };

	assert_int_equal(top_history_parse(rests, sizeof(rests) - 1, &h, &err), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(top_history_next(h, &s), 1);
		assert_int_equal(top_view_take(&v, s), 0);
		assert_int_equal(v.n_order, i != 1); /* as long as it rests it is not shown */
	}
	r = top_row_find(&v, "/b");
	assert_non_null(r);
	assert_int_equal(r->shown_total[TOP_OWN].uj[DOMAIN_PACKAGE], 8000000);
	for (unsigned i = 0; i < 3; i++)
		assert_true(r->history[TOP_OWN][i] >= watts[i] && r->history[TOP_OWN][i] <= watts[i]);
	top_history_close(h);
	top_view_free(&v);
}

static char *whole(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

/* One table of marks: docs/query.md and the page have its rows and no others. */
static void test_marks(void **state)
{
	char *docs = whole("docs/query.md"), *page = whole("user/serve/page.html"), line[64],
	     want[256] = "const MARKS = {";
	unsigned seen = 0;

	for (unsigned i = 0; i < TABLE_MARKS; i++) {
		const char *word = quality_name(table_marks[i].quality);

		assert_int_equal(table_mark(table_marks[i].quality), table_marks[i].mark);
		snprintf(line, sizeof(line), "| `%c` | `%s` |", table_marks[i].mark, word);
		if (!strstr(docs, line))
			fail_msg("docs/query.md has no %s", line);
		snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s %s: \"%c\"", i ? "," : "", word,
			 table_marks[i].mark);
	}
	strcat(want, " };");
	if (!strstr(page, want))
		fail_msg("page.html has no %s", want);
	for (const char *at = strstr(docs, "| mark | word |"); at && strncmp(at, "\n\n", 2) != 0; at++)
		seen += strncmp(at, "\n| `", 4) == 0;
	assert_int_equal(seen, TABLE_MARKS);
	assert_int_equal(table_mark(QUALITY_LOST | QUALITY_ESTIMATED), '!');
	assert_int_equal(table_mark(QUALITY_MULTIPLEXED | QUALITY_WRAPPED | QUALITY_PARTIAL), '?');
	assert_int_equal(table_mark(QUALITY_WRAPPED), ' ');
	free(docs);
	free(page);
}

static void assert_heading(struct top_view *v, bool live, const char *want)
{
	char line[512] = "";
	struct top_paint p = { .width = 80, .put = put_line, .end_line = no_end, .arg = line, .live = live };

	top_draw_columns(v, &p);
	if (!strstr(line, want))
		fail_msg("no '%s' in '%s'", want, line);
	assert_int_equal(top_columns(line), 80);
}

static void test_headings(void **state)
{
	struct top_view v = { .domain = -1, .machine = { .split = true } };

	assert_heading(&v, true, "  ▼WATTS   JOULES   CPU%   TIME");
	assert_heading(&v, false, "   WATTS   JOULES");
	v.reverse = true;
	assert_heading(&v, true, "  ▲WATTS");
	v.domain = DOMAIN_DRAM;
	assert_heading(&v, true, " ▲dram W   JOULES");
	v.domain = DOMAIN_EXTERNAL;
	assert_heading(&v, true, "▲external  JOULES");
	v.sort = TOP_BY_NAME;
	v.domain = DOMAIN_PACKAGE;
	assert_heading(&v, true, "package W  JOULES");
	assert_heading(&v, true, "  ▼CGROUP");
	v.reverse = false;
	assert_heading(&v, true, "  ▲CGROUP");
	v.machine.split = false;
	v.sort = TOP_BY_JOULES;
	assert_heading(&v, true, "  JOULES  ▼CPU%");
}

/* Names keep their room below many ancestors, and histories of a screen have one scale. */
static void test_depth_and_scale(void **state)
{
	struct top_view v = { .domain = -1, .all = true, .tree = true, .samples = 1, .machine = { .split = true } };
	struct top_row *deep = top_row_get(&v, "/a/b/c/d/e/f/g/h/i/j/k/l/name-of-the-leaf", ROW_CGROUP);

	deep->history[TOP_SUBTREE][0] = 1;
	for (struct top_row *up = deep->parent; up; up = up->parent)
		up->history[TOP_SUBTREE][0] = 4;
	assert_int_equal(top_view_arrange(&v), 0);
	assert_int_equal(deep->depth, 13);
	assert_null(deep->child);
	assert_ptr_equal(deep->parent->child, deep);
	assert_row(&v, deep, 60, "…        └─name-of-the-leaf");
	assert_row(&v, deep, 44, "…└─na…-leaf");
	assert_heading(&v, true, " to 4.000 W ");
	assert_row(&v, deep, 80, " ▂  …");
	v.own_scale = true;
	assert_heading(&v, true, " own scale ");
	assert_row(&v, deep, 80, " █  …");
	top_view_free(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_fit_path),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_headings),
		cmocka_unit_test(test_depth_and_scale),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_history_of_a_rest),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	top_text_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
