/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl plot: what was measured as columns, the top ones, gaps, axes, and the picture of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "encode_fixture.h"
#include "model/recording/recording.h"
#include "ctl/plot/plot.h"

#define T0 1700000000000000000ll

static struct plot *new_plot(void)
{
	struct plot *p = calloc(1, sizeof(*p));

	plot_init(p);
	return p;
}

static void drop(struct plot *p)
{
	plot_free(p);
	free(p);
}

static struct plot_series *find(struct plot *p, const char *name)
{
	for (unsigned i = 0; i < p->n_series; i++)
		if (strcmp(p->series[i].name, name) == 0)
			return &p->series[i];
	return NULL;
}

/* As docs/query.md shows it: seconds 1, 2 and, after a hole of two seconds, 5; the last one lost in part. */
static const char history[] =
	"{\"since_unix_ns\":1,\"until_unix_ns\":2,\"step_ns\":1000000000,\"domains\":[\"package-0\",\"core-0\",\"dram-0\"],\"series\":["
	"{\"cgroup\":\"/a\",\"row\":\"cgroup\",\"ended\":false,\"points\":["
	"[1700000001000000000,1000000000,\"measured\",[3000000,1000000,500000]],"
	"[1700000002000000000,1000000000,\"measured\",[4000000,1,0]],"
	"[1700000005000000000,1000000000,\"estimated\",[1000000,0,0]]]},"
	"{\"cgroup\":\"/b\",\"row\":\"cgroup\",\"ended\":true,\"points\":[[1700000002000000000,1000000000,\"partial\",[9000000,0,1000000]]]},"
	"{\"cgroup\":\"idle\",\"row\":\"idle\",\"ended\":false,\"points\":[[1700000001000000000,1000000000,\"measured\",[100000,0,0]]]},"
	"{\"cgroup\":\"idle-power\",\"row\":\"idle-power\",\"ended\":false,\"points\":[[1700000001000000000,1000000000,\"measured\",[2000000,0,0]]]},"
	"{\"cgroup\":\"other\",\"row\":\"other\",\"ended\":false,\"points\":[[1700000005000000000,1000000000,\"measured\",[250000,0,0]]]}],"
	"\"lost\":[]}";

static void test_history(void **state)
{
	struct plot *p = new_plot();
	struct err err = { 0 };

	assert_int_equal(plot_read_history(p, history, sizeof(history) - 1, &err), 0);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_string_equal(p->unit_of, "package-0 + dram-0");
	assert_int_equal(p->n_columns, 3);
	assert_false(plot_gap_before(p, 1));
	assert_true(plot_gap_before(p, 2));
	assert_int_equal(p->n_series, 4);
	/* from the bottom up: idle, the largest cgroup, the next, the rest */
	assert_string_equal(p->series[0].name, "idle");
	assert_string_equal(p->series[1].name, "/b");
	assert_string_equal(p->series[2].name, "/a");
	assert_string_equal(p->series[3].name, "other");
	assert_true(fabs(plot_watts(p, find(p, "idle"), 0) - 2.1) < 1e-9);
	assert_true(fabs(plot_watts(p, find(p, "/a"), 0) - 3.5) < 1e-9);
	assert_true(fabs(plot_watts(p, find(p, "/b"), 1) - 10) < 1e-9);
	assert_true(fabs(plot_watts(p, find(p, "/b"), 0)) < 1e-9);
	assert_true(find(p, "/a")->quality == QUALITY_ESTIMATED && !find(p, "/a")->all_estimated);
	assert_int_equal(find(p, "/b")->quality, QUALITY_PARTIAL);
	drop(p);
}

/* Of one cgroup: seconds in which it used nothing are there, and only those in which nothing was measured are a gap. */
static void test_history_of_one(void **state)
{
	static const char one[] =
		"{\"domains\":[\"package-0\"],\"series\":[{\"cgroup\":\"/a\",\"row\":\"cgroup\",\"points\":["
		"[1700000001000000000,1000000000,\"measured\",[3000000]],"
		"[1700000004000000000,1000000000,\"lost\",[0]],"
		"[1700000009000000000,1000000000,\"measured\",[5000000]]]}]}";
	static const char all[] =
		"{\"domains\":[\"package-0\"],\"series\":[{\"cgroup\":\"residual\",\"row\":\"residual\",\"points\":["
		"[1700000001000000000,1000000000,\"measured\",[7]],[1700000002000000000,1000000000,\"measured\",[7]],"
		"[1700000003000000000,1000000000,\"lost\",[0]],[1700000004000000000,1000000000,\"measured\",[7]],"
		"[1700000008000000000,1000000000,\"measured\",[7]]]}]}";
	json_t *machine = json_loads(all, 0, NULL);
	struct plot *p = new_plot();
	struct err err = { 0 };

	p->cgroup = "/a";
	assert_int_equal(plot_read_history_of(p, one, sizeof(one) - 1, machine, &err), 0);
	json_decref(machine);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_int_equal(p->n_columns, 6);
	assert_true(p->columns[1].known && !p->columns[2].known && !p->columns[3].known && p->columns[4].known);
	assert_false(plot_gap_before(p, 1));
	assert_true(plot_gap_before(p, 4));
	assert_false(plot_gap_before(p, 5));
	assert_int_equal(p->n_series, 1);
	assert_true(fabs(find(p, "/a")->uj - 8e6) < 1e-9);
	assert_true(find(p, "/a")->low_w <= 0);
	drop(p);
}

static bool pictured(struct plot *p, const char *text)
{
	struct buf b = { 0 };
	bool found;

	plot_draw(p, 960, &b);
	buf_add_char(&b, '\0');
	found = strstr((char *)b.data, text) != NULL;
	buf_free(&b);
	return found;
}

/* Two packages; the second is lost in the second interval, so that what is drawn is only a part of the energy. */
static void write_half_lost(const char *path)
{
	struct buf b = { 0 };
	struct fixture f;
	FILE *to = fopen(path, "we");

	fixture_init(&f, 2, 2);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(&f, DOMAIN_PACKAGE, 1, "package-1");
	fixture_ready(&f);
	fixture_row(&f, "/a", 1);
	snprintf(f.snap.formula, sizeof(f.snap.formula), "share");
	recording_encode_header(&f.schema, &b);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned d = 0; d < 2; d++) {
			bool lost = i && d;

			*snapshot_energy(&f.snap, READING_SPECIAL_ROWS, d) = lost ? 0 : 3000000;
			f.snap.domains[d].quality = lost ? QUALITY_LOST : 0;
			f.snap.domains[d].energy_uj = lost ? 0 : 5000000;
			f.snap.domains[d].residual_uj = lost ? 0 : 2000000;
			f.snap.domains[d].start_ns = f.snap.start_ns;
			f.snap.domains[d].end_ns = f.snap.end_ns;
		}
		recording_encode(&f.snap, true, &b);
		f.snap.number++;
		f.snap.start_ns = f.snap.end_ns;
		f.snap.end_ns += NS_PER_S;
		f.snap.end_real_ns += (int64_t)NS_PER_S;
	}
	assert_non_null(to);
	assert_int_equal(fwrite(b.data, 1, b.len, to), b.len);
	fclose(to);
	buf_free(&b);
	fixture_free(&f);
}

static void test_half_lost(void **state)
{
	char path[] = "/tmp/jouled-plot-XXXXXX";
	struct plot *p = new_plot();
	struct err err = { 0 };
	int fd = mkstemp(path), rc;

	close(fd);
	write_half_lost(path);
	rc = plot_read_recording(p, path, &err);
	unlink(path);
	if (rc)
		fail_msg("%s", err.text);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_int_equal(p->n_columns, 2);
	assert_true(p->columns[1].known);
	for (unsigned i = 0; i < 2; i++) {
		const struct plot_series *s = find(p, i ? "residual" : "/a");

		assert_non_null(s);
		assert_int_equal(s->cells[0].quality, 0);
		assert_true(s->cells[1].quality & QUALITY_PARTIAL);
	}
	assert_true(pictured(p, "/a (partial)"));
	drop(p);
}

static void test_domains(void **state)
{
	const char *names[] = { "package-0", "package-1-die-1", "psys" }, *const metered[] = { "package-0",
											       "external-0" };
	struct plot *p = new_plot();
	struct err err = { 0 };
	bool shown[3];

	assert_int_equal(plot_choose_domains(p, names, 3, shown, &err), 0);
	assert_true(shown[0] && shown[1] && !shown[2]);
	p->domains = "psys,package-0";
	assert_int_equal(plot_choose_domains(p, names, 3, shown, &err), 0);
	assert_true(shown[0] && !shown[1] && shown[2]);
	p->domains = "package,dram";
	assert_int_equal(plot_choose_domains(p, names, 3, shown, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--domain dram: no such domain; there is package-0, package-1-die-1, psys"));
	p->domains = "pack";
	assert_int_equal(plot_choose_domains(p, names, 3, shown, &err), -EINVAL);
	p->domains = NULL;
	assert_int_equal(plot_choose_domains(p, names + 2, 1, shown, &err), 0);
	assert_true(shown[0]);
	assert_int_equal(plot_choose_domains(p, metered, 2, shown, &err), 0);
	assert_true(shown[0] && !shown[1]);
	assert_string_equal(p->unit_of, "package-0");
	p->domains = "";
	assert_int_equal(plot_choose_domains(p, metered, 2, shown, &err), 0);
	assert_true(shown[0] && !shown[1]);
	assert_int_equal(plot_choose_domains(p, names, 0, shown, &err), -ENODATA);
	drop(p);
}

static void test_top_and_rest(void **state)
{
	struct plot *p = new_plot();
	struct err err = { 0 };
	char name[32];

	p->top = 3;
	assert_true(plot_begin_column(p, T0, T0 + 1000));
	for (int i = 1; i <= 10; i++) {
		snprintf(name, sizeof(name), "/%d", i);
		plot_add(p, name, PLOT_ROW, i * 10, 0);
	}
	plot_add(p, "/0", PLOT_ROW, 0, 0);
	plot_add(p, "other", PLOT_REST, 1, 0);
	plot_add(p, "idle", PLOT_IDLE, 7, 0);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_int_equal(p->n_series, 5);
	assert_string_equal(p->series[1].name, "/10");
	assert_string_equal(p->series[3].name, "/8");
	assert_int_equal(p->n_rest, 7);
	assert_true(fabs(p->series[4].uj - (10 + 20 + 30 + 40 + 50 + 60 + 70 + 1)) < 1e-9);
	drop(p);
}

/* The rest says of how many: those behind the top ones, those that may not be shown, those that the agent had summed. */
static void test_rest_counted(void **state)
{
	static const char answer[] =
		"{\"domains\":[\"package-0\",\"external-0\"],\"other\":{\"cgroups\":300,\"and_more\":%s},\"series\":["
		"{\"row\":\"cgroup\",\"cgroup\":\"/a\",\"points\":[[3000000000,1000000000,\"measured\",[500,7]]]},"
		"{\"row\":\"kernel\",\"cgroup\":\"kernel\",\"points\":[[3000000000,1000000000,\"measured\",[5,7]]]},"
		"{\"row\":\"other\",\"cgroup\":\"other\",\"points\":[[3000000000,1000000000,\"measured\",[900,7]]]}]}";
	struct plot *p = new_plot();
	struct err err = { 0 };
	char text[1000];

	p->top = 1;
	snprintf(text, sizeof(text), answer, "false");
	assert_int_equal(plot_read_history(p, text, strlen(text), &err), 0);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_true(fabs(p->series[p->n_series - 1].uj - 905) < 1e-9);
	assert_true(pictured(p, "other (301 more)"));
	drop(p);
	p = new_plot();
	p->cgroup = "/*";
	snprintf(text, sizeof(text), answer, "true");
	assert_int_equal(plot_read_history(p, text, strlen(text), &err), 0);
	assert_int_equal(p->n_unseen, 300);
	drop(p);
	p = new_plot();
	p->top = 1;
	assert_int_equal(plot_read_history(p, text, strlen(text), &err), 0);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_true(pictured(p, "other (at least 301 more)"));
	drop(p);
	p = new_plot();
	assert_true(plot_begin_column(p, T0, T0 + 1000));
	plot_add(p, "/a", PLOT_ROW, 10, 0);
	plot_add(p, "/left-out", PLOT_HIDDEN, 100, 0);
	plot_add(p, "/left-out-too", PLOT_HIDDEN, 1, 0);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_int_equal(p->n_series, 2);
	assert_true(fabs(p->series[1].uj - 101) < 1e-9);
	assert_int_equal(p->n_rest, 2);
	drop(p);
}

static void test_pattern(void **state)
{
	struct plot *p = new_plot();
	struct err err = { 0 };

	p->cgroup = "/a/**";
	assert_true(plot_begin_column(p, T0, T0 + 1000));
	plot_add(p, "/a/b", PLOT_ROW, 1, 0);
	plot_add(p, "/b", PLOT_ROW, 1, 0);
	plot_add(p, "kernel", PLOT_ROW, 1, 0);
	plot_add(p, "idle", PLOT_IDLE, 1, 0);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_int_equal(p->n_series, 1);
	drop(p);
	p = new_plot();
	p->cgroup = "/nothing";
	plot_begin_column(p, T0, T0 + 1000);
	plot_add(p, "/b", PLOT_ROW, 1, 0);
	assert_int_equal(plot_finish(p, &err), -ENODATA);
	drop(p);
}

/* However many columns: bounded, no energy lost, the hole stays. */
static void test_many_columns(void **state)
{
	struct plot *p = new_plot();
	struct err err = { 0 };
	unsigned gaps = 0;
	double sum = 0;

	for (int64_t i = 0; i < 100000; i++) {
		int64_t at = T0 + (i + (i >= 50000) * 30000) * 1000000;

		assert_true(plot_begin_column(p, at, at + 1000000));
		plot_add(p, i % 2 ? "/odd" : "/even", PLOT_ROW, (double)(i % 7), i % 1000 ? 0 : QUALITY_ESTIMATED);
		sum += (double)(i % 7);
	}
	assert_true(p->n_columns <= PLOT_COLUMNS_MAX);
	for (unsigned i = 1; i < p->n_columns; i++)
		gaps += plot_gap_before(p, i);
	assert_int_equal(gaps, 1);
	assert_int_equal(plot_finish(p, &err), 0);
	assert_true(fabs(p->series[0].uj + p->series[1].uj - sum) < 1e-6);
	drop(p);
}

static void test_only_gaps(void **state)
{
	struct plot *p = new_plot();

	for (int64_t i = 0; i < 20000; i++) {
		assert_true(plot_begin_column(p, T0 + i * 10000, T0 + i * 10000 + 1000));
		plot_add(p, "/a", PLOT_ROW, 1, 0);
	}
	assert_true(p->n_columns <= PLOT_COLUMNS_MAX);
	drop(p);
}

static void test_clock_back(void **state)
{
	struct plot *p = new_plot();

	assert_true(plot_begin_column(p, T0, T0 + 1000));
	assert_false(plot_begin_column(p, T0 - 500, T0 + 500));
	assert_false(plot_begin_column(p, T0 + 2000, T0 + 2000));
	assert_true(plot_begin_column(p, T0 + 900, T0 + 2000));
	assert_int_equal(p->columns[1].start_ns, T0 + 1000);
	assert_int_equal(p->columns[1].covered_ns, 1100);
	drop(p);
}

static void test_odd_history(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"domains\":[],\"series\":[]}",
		"{\"domains\":[1],\"series\":[]}",
		"{\"domains\":[\"package-0\"],\"series\":{}}",
		"{\"domains\":[\"p\"],\"series\":[{\"points\":[1]}]}",
		"{\"domains\":[\"p\"],\"series\":[{\"points\":[[1,0,\"measured\",[1]]]}]}",
		"{\"domains\":[\"p\"],\"series\":[{\"points\":[[5,-1,\"measured\",[1]]]}]}",
		"{\"domains\":[\"p\"],\"series\":[{\"points\":[[5,1,\"measured\",[1,2]]]}]}",
	};
	struct err err = { 0 };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct plot *p = new_plot();

		if (plot_read_history(p, bad[i], strlen(bad[i]), &err) == 0)
			fail_msg("taken: %s", bad[i]);
		assert_true(err.text[0]);
		drop(p);
	}
}

static void test_axes(void **state)
{
	static const struct {
		double top;
		unsigned ticks;
		double step;
		unsigned n;
	} values[] = {
		{ 19.5, 5, 5, 5 },   { 20, 5, 5, 5 },  { 21, 5, 5, 6 }, { 0.0031, 5, 0.001, 5 },
		{ 1000, 4, 250, 5 }, { 0, 5, 0.2, 6 }, { 7, 5, 2, 5 },
	};
	struct plot_axis a;
	char text[32];

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		a = plot_value_axis(values[i].top, values[i].ticks);
		assert_true(fabs(a.step - values[i].step) < 1e-9);
		assert_int_equal(a.n, values[i].n);
		assert_true(a.step * (a.n - 1) >= values[i].top * (1 - 1e-9));
	}
	setenv("TZ", "UTC", 1);
	a = plot_time_axis(T0, T0 + 600 * (int64_t)NS_PER_S, 6); /* 2023-11-14 22:13:20 */
	assert_true(fabs(a.step - 120) < 1e-9 && fabs(a.first - 1700000040) < 1e-3);
	assert_int_equal(a.n, 5);
	plot_time_label(text, sizeof(text), a.first, a.step);
	assert_string_equal(text, "22:14");
	plot_time_label(text, sizeof(text), 1700000000.25, .05);
	assert_string_equal(text, "22:13:20.250");
	plot_time_label(text, sizeof(text), 1700000000, 5);
	assert_string_equal(text, "22:13:20");
	plot_time_label(text, sizeof(text), 1700006400, 86400);
	assert_string_equal(text, "Nov 15");
	a = plot_time_axis(T0, T0 + 1, 4);
	assert_true(a.n <= 1000);
}

static void test_numbers(void **state)
{
	static const struct {
		double v;
		const char *text;
	} numbers[] = {
		{ 0, "0" },        { 0.0123, "0.012" }, { .9996, "1.00" }, { 1.234, "1.23" },
		{ 9.996, "10.0" }, { 12.34, "12.3" },   { 123.4, "123" },
	};
	static const struct {
		double uj;
		const char *text;
	} joules[] = {
		{ 0, "0 \xc2\xb5J" }, { 999, "999 \xc2\xb5J" }, { 1500, "1.50 mJ" },
		{ 2e6, "2.00 J" },    { 27.1e9, "27.1 kJ" },    { 3.6e12, "3.60 MJ" },
	};
	char text[48];

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		plot_number(text, sizeof(text), numbers[i].v);
		assert_string_equal(text, numbers[i].text);
	}
	for (unsigned i = 0; i < sizeof(joules) / sizeof(joules[0]); i++) {
		plot_joules(text, sizeof(text), joules[i].uj);
		assert_string_equal(text, joules[i].text);
	}
}

static void test_picture(void **state)
{
	struct plot *p = new_plot();
	struct buf b = { 0 };
	struct err err = { 0 };
	char *t;

	assert_int_equal(plot_read_history(p, history, sizeof(history) - 1, &err), 0);
	assert_int_equal(plot_finish(p, &err), 0);
	plot_draw(p, 960, &b);
	buf_add_char(&b, '\0');
	assert_false(b.failed);
	t = (char *)b.data;
	assert_non_null(strstr(t, "nothing was measured here"));
	assert_non_null(strstr(t, "hatched: estimated"));
	assert_non_null(strstr(t, "prefers-color-scheme:dark"));
	assert_non_null(strstr(t, "/b (partial)"));
	assert_non_null(strstr(t, "<title>no data</title>"));
	buf_free(&b);
	drop(p);
}

/* Most corners of one path whose class contains `class`. */
static unsigned corners(const char *svg, const char *class)
{
	unsigned most = 0;

	for (const char *path = svg; (path = strstr(path, "<path")) != NULL; path++) {
		const char *end = strchr(path, '>'), *found = strstr(path, class);
		unsigned n = 0;

		for (const char *c = strstr(path, " d="); found && found < end && c < end; c++)
			n += *c == 'M' || *c == 'H' || *c == 'V' || *c == 'L';
		most = n > most ? n : most;
	}
	return most;
}

/* A day of seconds on 360 pixels: no more steps than pixels, the energy is the same, and what a single second had
 * is still there. */
static void test_more_steps_than_pixels(void **state)
{
	struct plot *p = new_plot();
	struct buf b = { 0 };
	struct err err = { 0 };
	double low = 1e9, high = 0, uj = 0;
	char *t;

	for (int64_t i = 0; i < 86400; i++) {
		assert_true(plot_begin_column(p, T0 + i * (int64_t)NS_PER_S, T0 + (i + 1) * (int64_t)NS_PER_S));
		plot_add(p, "/steady", PLOT_ROW, 2e6, 0);
		plot_add(p, "/busy", PLOT_ROW, i == 40000 ? 30e6 : i == 70000 ? 1e6 : 4e6, 0);
	}
	assert_int_equal(plot_finish(p, &err), 0);
	plot_draw(p, 360, &b);
	buf_add_char(&b, '\0');
	assert_false(b.failed);
	t = (char *)b.data;
	assert_true(p->n_columns > 100 && p->n_columns <= 360);
	for (unsigned i = 0; i < p->n_columns; i++) {
		const struct plot_column *c = &p->columns[i];
		double mean = 0;

		for (unsigned k = 0; k < p->n_series; k++) {
			uj += p->series[k].cells[i].uj;
			mean += plot_watts(p, &p->series[k], i);
		}
		assert_true(c->low_w <= mean * (1 + 1e-9) && c->high_w >= mean * (1 - 1e-9));
		low = fmin(low, c->low_w);
		high = fmax(high, c->high_w);
	}
	assert_true(fabs(low - 3) < 1e-9 && fabs(high - 32) < 1e-9);
	assert_true(fabs(uj - (86400 * 6e6 + 26e6 - 3e6)) < 1);
	assert_true(corners(t, "area") > 3 && corners(t, "area") <= 4 * p->n_columns);
	assert_true(corners(t, "\"range\"") > 3 && corners(t, "\"range\"") <= 4 * p->n_columns);
	assert_non_null(strstr(t, "<title>/busy: 346 kJ, 1.00 to 30.0 W</title>"));
	assert_non_null(strstr(t, "lowest to highest"));
	buf_free(&b);
	drop(p);
}

/* Lost readings between good ones do not keep the columns from becoming fewer. */
static void test_lost_between(void **state)
{
	struct plot *p = new_plot();
	struct err err = { 0 };

	for (int64_t i = 0; i < 5000; i++) {
		assert_true(plot_begin_column(p, T0 + i * 1000, T0 + i * 1000 + 1000));
		plot_add(p, "/a", PLOT_ROW, 3, 0);
		if (i % 2)
			plot_lost(p);
	}
	assert_true(p->n_columns <= PLOT_COLUMNS_MAX);
	assert_int_equal(plot_finish(p, &err), 0);
	plot_reduce(p, 300);
	assert_true(p->n_columns <= 300);
	assert_true(fabs(p->series[0].uj - 2500 * 3) < 1e-6);
	for (unsigned i = 0; i < p->n_columns; i++)
		assert_true(p->columns[i].known && fabs(plot_watts(p, &p->series[0], i) - 3) < 1e-9);
	drop(p);
}

/* The axis ends near the maximum, and the key of the hatch has not the colour of a row. */
static void test_axis_end_and_key(void **state)
{
	struct plot *p = new_plot();
	struct buf b = { 0 };
	struct err err = { 0 };
	double top, bottom, y;
	char *t, *path;

	assert_true(plot_begin_column(p, T0, T0 + (int64_t)NS_PER_S));
	plot_add(p, "/a", PLOT_ROW, 15.1e6, QUALITY_ESTIMATED);
	assert_int_equal(plot_finish(p, &err), 0);
	plot_draw(p, 960, &b);
	buf_add_char(&b, '\0');
	t = (char *)b.data;
	assert_null(strstr(t, "class=\"rest\""));
	assert_null(strstr(t, "\"range\""));
	assert_non_null(strstr(t, "class=\"key\""));
	assert_null(strstr(t, ">20</text>"));
	assert_non_null(strstr(t, ">15</text>"));
	path = strstr(t, " d=\"M");
	assert_non_null(path);
	assert_int_equal(sscanf(path, " d=\"M%*f %lf", &top), 1);
	assert_non_null(strstr(t, "<line class=\"axis\""));
	assert_int_equal(sscanf(strstr(strstr(t, "<line class=\"axis\" x1"), "y1"), "y1=\"%lf", &bottom), 1);
	y = 352; /* the height of a picture of 960 pixels: 160 + 960 / 5 */
	assert_true((bottom - top) / y > 0.95 && (bottom - top) / y <= 1);
	buf_free(&b);
	drop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_history_of_one),
		cmocka_unit_test(test_half_lost),
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_top_and_rest),
		cmocka_unit_test(test_rest_counted),
		cmocka_unit_test(test_pattern),
		cmocka_unit_test(test_many_columns),
		cmocka_unit_test(test_only_gaps),
		cmocka_unit_test(test_clock_back),
		cmocka_unit_test(test_odd_history),
		cmocka_unit_test(test_axes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_more_steps_than_pixels),
		cmocka_unit_test(test_lost_between),
		cmocka_unit_test(test_axis_end_and_key),
	};

	return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
