/* SPDX-License-Identifier: Apache-2.0 */
/* Experiment trees: times, lines, the window, energies worked out by hand, and findings with their lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ctl/report/report.h"
#include "ctl/experiment/tree_files.h"

#define S 1000000000ll
#define T0 1772366400ll /* 2026-03-01 12:00:00 UTC */

static char root[64];

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/e/b/r/0/%s", root, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int set_up(void **state)
{
	static const char *const below[] = { "/e", "/e/b", "/e/b/r", "/e/b/r/0" };
	char path[256];

	snprintf(root, sizeof(root), "/tmp/jouled-report-XXXXXX");
	assert_non_null(mkdtemp(root));
	for (unsigned i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", root, below[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	put("system_info.json", "{}");
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static struct report read_report(struct report_options o)
{
	struct report r = { .o = o };
	struct err err = { 0 };

	r.o.sources = 31;
	if (report_read(&r, root, &err))
		fail_msg("%s", err.text);
	assert_int_equal(r.n, 1);
	return r;
}

static void assert_near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
		fail_msg("%.12g instead of %.12g", got, want);
}

static const char *value_of(const struct tree_findings *f, const char *trap, unsigned long *ret_line)
{
	for (unsigned i = 0; i < f->n; i++)
		if (strcmp(f->list[i].trap, trap) == 0) {
			*ret_line = f->list[i].line;
			return f->list[i].text;
		}
	return NULL;
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
		unsigned digits;
		bool zoned;
	} good[] = {
		{ "2026-03-01 12:00:00.000001", T0 * S + 1000, 6, false },
		{ "2026-03-01T12:00:01", (T0 + 1) * S, 0, false },
		{ "2026-03-01 12:00:00.123456789", T0 * S + 123456789, 9, false },
		{ "2026-03-01 12:00:00.5Z", T0 * S + 500000000, 1, true },
		{ "2026-03-01 14:00:00+02:00", T0 * S, 0, true },
		{ "1970-01-01 00:00:00", 0, 0, false },
	};
	static const char *const bad[] = { "",
					   "2026",
					   "2026-13-01 12:00:00",
					   "2026-03-01",
					   "2026-03-01 12:00",
					   "2026-03-01 25:00:00",
					   "2026-03-01 12:00:00 ",
					   "2026-03-01 12:00:00.1x",
					   "9999-03-01 12:00:00",
					   "2026-02-30 12:00:00x",
					   "2026-04-31 12:00:00",
					   "1772366400",
					   "2026-03-01 12:00:00+2:00",
					   "-026-03-01 12:00:00" };

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		unsigned digits;
		int64_t ns;
		bool zoned;

		assert_int_equal(tree_parse_time(good[i].text, &ns, &digits, &zoned), 0);
		assert_true(ns == good[i].ns && digits == good[i].digits && zoned == good[i].zoned);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t ns = 77;
		unsigned digits;
		bool zoned;

		assert_int_equal(tree_parse_time(bad[i], &ns, &digits, &zoned), -EINVAL);
		assert_int_equal(ns, 77);
	}
}

static void test_lines(void **state)
{
	struct csv_reader *c;
	struct csv_row row;

	put("x", "\xef\xbb\xbf"
		 "a,\"b \"\"c\"\", d\",\r\n\n,2\n3");
	assert_int_equal(tree_csv_open(AT_FDCWD, path_of("x"), &c), 0);
	assert_int_equal(csv_next(c, &row), 1);
	assert_int_equal(row.n, 3);
	assert_string_equal(row.cell[0], "a");
	assert_string_equal(row.cell[1], "b \"c\", d");
	assert_string_equal(row.cell[2], "");
	assert_int_equal(csv_next(c, &row), 1);
	assert_true(row.line == 3 && row.n == 2 && row.whole);
	assert_int_equal(csv_next(c, &row), 1);
	assert_true(row.line == 4 && row.n == 1 && !row.whole);
	assert_int_equal(csv_next(c, &row), 0);
	csv_close(c);
	put("x", "a,\"b\n");
	assert_int_equal(tree_csv_open(AT_FDCWD, path_of("x"), &c), 0);
	assert_int_equal(csv_next(c, &row), -EBADMSG);
	csv_close(c);
	assert_int_equal(tree_csv_open(AT_FDCWD, path_of("nothing"), &c), -ENOENT);
	assert_int_equal(tree_csv_open(AT_FDCWD, path_of(""), &c), -EINVAL);
}

static void test_long_line(void **state)
{
	char *text = malloc(300001);
	struct csv_reader *c;
	struct csv_row row;

	memset(text, ',', 300000);
	text[300000] = '\0';
	put("x", text);
	assert_int_equal(tree_csv_open(AT_FDCWD, path_of("x"), &c), 0);
	assert_int_equal(csv_next(c, &row), -EFBIG);
	csv_close(c);
	memcpy(text + 1000, "\n", 2);
	put("x", text);
	assert_int_equal(tree_csv_open(AT_FDCWD, path_of("x"), &c), 0);
	assert_int_equal(csv_next(c, &row), -EFBIG);
	csv_close(c);
	free(text);
}

/* Epochs of 2 s from second 0; the window of n of them. */
static void test_window(void **state)
{
	static const struct {
		unsigned epochs;
		int64_t start, end;
	} cases[] = { { 2, 2, 4 }, { 3, 2, 4 }, { 4, 2, 6 }, { 7, 2, 12 } };

	for (unsigned k = 0; k < 4; k++) {
		struct tree_repetition r = { .has_events = true };
		struct tree_event events[16];
		struct tree_window w;

		for (unsigned i = 0; i < cases[k].epochs; i++) {
			events[2 * i] = (struct tree_event){
				.t_ns = 2 * i * S, .data = i, .has_data = true, .name = "epoch_begin"
			};
			events[2 * i + 1] = (struct tree_event){
				.t_ns = (2 * i + 2) * S, .data = i, .has_data = true, .name = "epoch_end"
			};
		}
		r.events = events;
		r.n_events = 2 * cases[k].epochs;
		assert_int_equal(tree_window_of(&r, &w, NULL), 0);
		assert_true(w.by_epochs && w.start_ns == cases[k].start * S && w.end_ns == cases[k].end * S);
		events[2].data = 0;
		assert_int_equal(tree_window_of(&r, &w, NULL), -ENODATA);
	}
}

/* Powers of 100, 200, 100 W a second apart in a window without epochs: its last row does not count. */
static const char samples[] =
	",timestamp,value\n2,1772366402000000,100000\n1,1772366401000000,200000\n0,1772366400000000,100000\n3,1772366403000000,900000\n";
static const char gpu[] = ",timestamp,power,total-energy,util-gpu\n"
			  "0,2026-03-01 12:00:00.000000,100000,1000,50\n1,2026-03-01 12:00:01.000000,200000,151000,70\n"
			  "2,2026-03-01 12:00:02.000000,100000,301000,90\n3,2026-03-01 12:00:03.000000,1,301000,0\n";

static void test_energy(void **state)
{
	struct report r;

	put("total_power_samples.csv", samples);
	put("gpu-power.csv", gpu);
	r = read_report((struct report_options){ 0 });
	assert_near(r.list[0].source[REPORT_HD].value[REPORT_ENERGY], 300);
	assert_near(r.list[0].source[REPORT_HD].value[REPORT_TIME], 2);
	assert_near(r.list[0].source[REPORT_HD].value[REPORT_POWER], 400. / 3);
	assert_near(r.list[0].source[REPORT_SD].value[REPORT_EDP], 600);
	assert_near(r.list[0].source[REPORT_SD].value[REPORT_ED2P], 1200);
	assert_near(r.list[0].mean[REPORT_UTIL_GPU], 70);
	assert_true(isnan(r.list[0].mean[REPORT_CLOCK_GPU]));
	assert_near(r.list[0].counter_j, 300);
	assert_int_equal(r.warnings.n, 0);
	assert_false(r.list[0].source[REPORT_EXTERNAL].known);
	report_free(&r);
}

static void test_external(void **state)
{
	static const char external[] =
		",timestamp,d0c0,d1c1,d12c0,psu\n0,2026-03-01 12:00:00.000000,100000,200000,5000,7\n"
		"1,2026-03-01 12:00:01.000000,100000,200000,5000,7\n2,2026-03-01 12:00:02.000000,100000,,5000,7\n";
	struct report r;

	put("power-external.csv", external);
	r = read_report((struct report_options){ .external_idle_w = 5 }); /* one row in the window: no energy of it */
	assert_true(r.list[0].source[REPORT_EXTERNAL].known);
	assert_near(r.list[0].source[REPORT_EXTERNAL].value[REPORT_ENERGY], 300);
	report_free(&r);
	r = read_report((struct report_options){ .compat = true, .external_idle_w = REPORT_COMPAT_IDLE_W });
	assert_near(r.list[0].source[REPORT_EXTERNAL].value[REPORT_POWER], 3000 - 632.625);
	report_free(&r);
	put("system_info.json", "{\"external_unit\":\"10mW\"}");
	r = read_report((struct report_options){ 0 });
	assert_near(r.list[0].source[REPORT_EXTERNAL].value[REPORT_POWER], 3050);
	report_free(&r);
}

static void test_counters(void **state)
{
	static const char rapl[] =
		",timestamp,package-0,core-0,dram-0,package-0-energy,core-0-energy,dram-0-energy,quality\n"
		"0,2026-03-01 12:00:00.000000,,,,0,0,0,measured\n"
		"1,2026-03-01 12:00:02.000000,50000,9000,10000,100000000,18000000,20000000,estimated\n"
		"2,2026-03-01 12:00:04.000000,100000,9000,10000,300000000,36000000,40000000,measured\n";
	struct report r;
	unsigned long line;

	put("rapl-power.csv", rapl);
	put("timestamps.csv",
	    "timestamp,event,data\n2026-03-01 11:59:59.000000,epoch_begin,0\n2026-03-01 12:00:00.500000,epoch_end,0\n"
	    "2026-03-01 12:00:01.000000,epoch_begin,1\n2026-03-01 12:00:03.000000,epoch_end,1\n");
	r = read_report((struct report_options){ 0 });
	/* half of each interval: 50 + 100 of the package, 10 + 10 of the memory; core is within the package */
	assert_near(r.list[0].source[REPORT_RAPL].value[REPORT_ENERGY], 170);
	assert_near(r.list[0].source[REPORT_RAPL].value[REPORT_TIME], 2);
	assert_near(r.list[0].source[REPORT_RAPL].value[REPORT_POWER], 85);
	assert_string_equal(r.list[0].domains[0], "package-0 + dram-0");
	assert_non_null(strstr(value_of(&r.warnings, "quality", &line), "1 of 3 rows are not measured (estimated)"));
	report_free(&r);
}

static bool says(void (*write)(const struct report *r, struct buf *b), const struct report *r, const char *text)
{
	struct buf b = { 0 };
	bool found;

	write(r, &b);
	buf_add_char(&b, '\0');
	found = strstr((char *)b.data, text) != NULL;
	buf_free(&b);
	return found;
}

/* Energy that is not measured is marked in every form, and only where its domain is among those added up. */
static void test_marks(void **state)
{
	static const char rapl[] =
		",timestamp,package-0,core-0,dram-0,package-0-energy,core-0-energy,dram-0-energy\n"
		"0,2026-03-01 12:00:00.000000,,,,0,0,0\n1,2026-03-01 12:00:02.000000,50000,9000,10000,100000000,18000000,20000000\n";
	struct report r;
	struct buf b = { 0 };
	struct err err = { 0 };

	put("rapl-power.csv", rapl);
	put("cgroup-power.csv", rapl);
	put("total_power_samples.csv",
	    ",timestamp,value\n0,1772366400000000,60000\n1,1772366401000000,60000\n2,1772366402000000,60000\n");
	put("system_info.json",
	    "{\"power_samples_from\":\"rapl\",\"energy_quality\":{\"package-0\":\"measured\",\"core-0\":\"lost\",\"dram-0\":\"estimated\"},"
	    "\"machine_quality\":{\"package-0\":\"wrapped\",\"core-0\":\"lost\",\"dram-0\":\"measured\"}}");
	r = read_report((struct report_options){ 0 });
	assert_int_equal(r.list[0].source[REPORT_RAPL].quality, QUALITY_MEASURED);
	assert_int_equal(r.list[0].source[REPORT_HD].quality, QUALITY_MEASURED);
	assert_int_equal(r.list[0].source[REPORT_CGROUP].quality, QUALITY_ESTIMATED);
	assert_true(
		says(report_write_text, &r, "cgroup~ is power of the run's cgroup (package-0 + dram-0), estimated\n"));
	assert_true(says(report_write_text, &r, "rapl is power of the machine (package-0 + dram-0)\n"));
	assert_true(says(report_write_text, &r, "  cgroup                      120~"));
	assert_true(says(report_write_csv, &r, ",gpu_counter_j,quality\n"));
	assert_true(says(report_write_csv, &r, "e,b,r,0,cgroup,120,2,60,240,480,,,,,,,,estimated\n"));
	assert_true(says(report_write_csv, &r, "e,b,r,mean,cgroup,120,2,60,240,480,,,,,,,,estimated\n"));
	assert_true(says(report_write_csv, &r, "e,b,r,0,rapl,120,2,60,240,480,,,,,,,,measured\n"));
	assert_true(says(report_write_json, &r, "\"quality\":\"estimated\""));
	report_free(&r);
	/* as recorders before wrote it: one word for both files */
	put("system_info.json", "{\"power_samples_from\":\"rapl\",\"energy_quality\":{\"package-0\":\"estimated\"}}");
	r = read_report((struct report_options){ 0 });
	assert_int_equal(r.list[0].source[REPORT_RAPL].quality, QUALITY_ESTIMATED);
	assert_int_equal(r.list[0].source[REPORT_HD].quality, QUALITY_ESTIMATED);
	assert_int_equal(report_plot_power(&r, REPORT_HD, 960, &b, &err), 0);
	assert_int_equal(report_plot_sweep(&r, REPORT_HD, 960, &b, &err), 0);
	buf_add_char(&b, '\0');
	assert_non_null(strstr((char *)b.data, ">power of the machine (package-0 + dram-0), estimated<"));
	assert_non_null(
		strstr((char *)b.data, ">source hd: power of the machine (package-0 + dram-0), estimated; means"));
	buf_free(&b);
	report_free(&r);
}

static const char *advice(const char *trap, struct report_options o, char dst[256])
{
	struct report r = read_report(o);
	unsigned long line;
	const char *text = value_of(&r.warnings, trap, &line);

	snprintf(dst, 256, "%s", text && strrchr(text, ';') ? strrchr(text, ';') : "nothing");
	report_free(&r);
	return dst;
}

/* A unit is suggested only where another one would be nearer. */
static void test_unit_advice(void **state)
{
	char text[256];

	put("gpu-power.csv",
	    ",timestamp,power\n0,2026-03-01 12:00:00.000000,50000\n1,2026-03-01 12:00:01.000000,50000\n2,2026-03-01 12:00:02.000000,50000\n");
	put("power-external.csv",
	    ",timestamp,d0c0\n0,2026-03-01 12:00:00.000000,1000000\n1,2026-03-01 12:00:01.000000,1000000\n2,2026-03-01 12:00:02.000000,1000000\n");
	assert_string_equal(advice("external-tenfold", (struct report_options){ 0 }, text),
			    "; does the meter measure other machines too?");
	assert_string_equal(advice("external-tenfold", (struct report_options){ .external_mw = 10 }, text),
			    "; is a count 1 mW? --external-unit mW");
	assert_string_equal(advice("external-tenfold", (struct report_options){ .compat = true }, text),
			    "; is a count 1 mW? leave out --compat");
	put("system_info.json", "{\"external_unit\":\"mW\"}");
	assert_string_equal(advice("external-tenfold", (struct report_options){ 0 }, text),
			    "; does the meter measure other machines too?");
	put("power-external.csv",
	    ",timestamp,d0c0\n0,2026-03-01 12:00:00.000000,2000\n1,2026-03-01 12:00:01.000000,2000\n2,2026-03-01 12:00:02.000000,2000\n");
	assert_string_equal(advice("external-below-gpu", (struct report_options){ 0 }, text),
			    "; is a count 10 mW? --external-unit 10mW");
	assert_string_equal(advice("external-below-gpu", (struct report_options){ .external_mw = 10 }, text),
			    "; does the meter measure the GPU?");
}

static void test_holes(void **state)
{
	struct report r;
	unsigned long line;

	put("gpu-power.csv",
	    ",timestamp,power\n0,2026-03-01 12:00:00.000000,100000.0\n1,2026-03-01 12:00:01.000000,\n"
	    "2,2026-03-01 12:00:02.000000,200000.0\n3,2026-03-01 12:00:03.000000,ERR\n4,2026-03-01 12:00:04.000000,1\n");
	r = read_report((struct report_options){ 0 });
	assert_near(r.list[0].source[REPORT_SD].value[REPORT_ENERGY], 300);
	assert_non_null(strstr(value_of(&r.warnings, "rows-without-power", &line), "2 rows"));
	assert_non_null(value_of(&r.found, "not-a-number", &line));
	assert_int_equal(line, 5);
	report_free(&r);
	r = read_report((struct report_options){ .compat = true });
	assert_false(r.list[0].source[REPORT_SD].known);
	report_free(&r);
}

/* A name as long and strange as a file system takes it comes out whole or escaped in each form. */
static void test_names(void **state)
{
	struct report r = { .o = { .sources = 31 } };
	struct buf b = { 0 };
	struct err err = { 0 };
	char from[128], to[400];

	put("total_power_samples.csv", samples);
	snprintf(from, sizeof(from), "%s/e/b", root);
	snprintf(to, sizeof(to), "%s/e/a,\"b\x1b[31m<script>&%0200d", root, 1);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(report_read(&r, root, &err), 0);
	report_write_text(&r, &b);
	report_write_csv(&r, &b);
	report_write_json(&r, &b);
	buf_add_char(&b, '\0');
	assert_null(strchr((char *)b.data, '\x1b'));
	assert_non_null(strstr((char *)b.data, "\"a,\"\"b\\x1b[31m"));
	buf_reset(&b);
	assert_int_equal(report_plot_power(&r, REPORT_HD, 360, &b, &err), 0);
	assert_int_equal(report_plot_sweep(&r, REPORT_HD, 360, &b, &err), 0);
	buf_add_char(&b, '\0');
	assert_null(strstr((char *)b.data, "<script"));
	assert_null(strchr((char *)b.data, '\x1b'));
	buf_free(&b);
	report_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_line, set_up, tear_down),
		cmocka_unit_test(test_window),
		cmocka_unit_test_setup_teardown(test_energy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_external, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counters, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_marks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unit_advice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_holes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
