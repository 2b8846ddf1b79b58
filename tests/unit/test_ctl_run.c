/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl run without an agent: statistics, answers read, figures written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/statistics.h"
#include "ctl/run/child.h"
#include "ctl/run/run_beside.h"
#include "ctl/run/run_outliers.h"
#include "ctl/run/run_reading.h"
#include "ctl/run/result.h"
#include "ctl/verbs.h"

/* NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.975 */
static void test_student_t(void **state)
{
	static const struct {
		unsigned freedom;
		double t;
	} known[] = {
		{ 1, 12.706 }, { 2, 4.303 },  { 3, 3.182 },  { 4, 2.776 },  { 5, 2.571 },
		{ 9, 2.262 },  { 10, 2.228 }, { 11, 2.201 }, { 12, 2.179 }, { 15, 2.131 },
		{ 20, 2.086 }, { 29, 2.045 }, { 30, 2.042 }, { 60, 2.000 }, { 100, 1.984 },
	};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_true(fabs(student_t(known[i].freedom) - known[i].t) < 0.0006);
}

static void test_stats(void **state)
{
	/* 2 4 4 4 5 5 7 9: mean 5, squares 32, so s = sqrt(32 / 7); t(7) = 2.365 */
	static const double v[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	struct statistics s = statistics_of(v, 8);

	assert_true(fabs(s.mean - 5) < 1e-12);
	assert_true(fabs(s.stddev - 2.138090) < 1e-6);
	assert_true(fabs(s.ci95 - 2.365 * 2.138090 / 2.828427) < 1e-3);
	s = statistics_of(v, 1);
	assert_true(s.mean == 2 && s.stddev == 0 && s.ci95 == 0);
}

/* By hand: median 10, distances 0 0 0 1 1 1 2 90, their median 1, so 3.5 / 0.6745 = 5.1891 on each side. */
static void test_bounds(void **state)
{
	static const double v[] = { 10, 11, 9, 10, 100, 8, 10, 11 }, same[] = { 7, 7, 7, 7, 7, 7, 19 };
	double room[8];
	struct statistics_bounds b = statistics_bounds_of(v, 8, room);

	assert_true(b.median == 10 && fabs(b.high - 15.1891) < 1e-3 && fabs(b.low - 4.8109) < 1e-3);
	b = statistics_bounds_of(v, 4, room); /* too few */
	assert_true(b.median == 10 && isinf(b.low) && isinf(b.high));
	b = statistics_bounds_of(same, 7, room); /* by the mean distance, 12 / 7 */
	assert_true(b.median == 7 && fabs(b.high - 7 - 3.5 * 1.253314 * 12 / 7) < 1e-6);
	b = statistics_bounds_of(same, 6, room); /* all the same: none lies apart */
	assert_true(b.low == 7 && b.high == 7);
}

/* Differences of two readings, most energy first; what is new or began anew counts whole. */
static void test_beside(void **state)
{
	struct run_beside before = { 0 }, after = { 0 };
	struct run_other other[RUN_OTHERS_MAX];
	char deep[300];

	memset(deep, 'd', sizeof(deep) - 1);
	memcpy(deep + sizeof(deep) - 6, "/leaf", 6);
	assert_int_equal(run_beside_add(&before, "/s", 100, 1000), 0);
	assert_int_equal(run_beside_add(&before, "/idle", 50, 10), 0);
	assert_int_equal(run_beside_add(&before, "/again", 500, 900), 0);
	assert_int_equal(run_beside_add(&before, "/a", 1, 1), 0);
	assert_int_equal(run_beside_add(&after, "/a", 3, 2), 0);
	assert_int_equal(run_beside_add(&after, "/idle", 50, 10), 0);
	assert_int_equal(run_beside_add(&after, deep, 40, 5), 0);
	assert_int_equal(run_beside_add(&after, "/again", 20, 30), 0);
	assert_int_equal(run_beside_add(&after, "/s", 130, 1007), 0);
	assert_int_equal(run_beside_most(&before, &after, other), 3);
	assert_int_equal(other[0].energy_uj, 40);
	assert_int_equal(strlen(other[0].name), sizeof(other[0].name) - 1);
	assert_string_equal(other[0].name + strlen(other[0].name) - 6, "d/leaf");
	assert_string_equal(other[1].name, "/s");
	assert_int_equal(other[1].energy_uj, 30);
	assert_int_equal(other[1].cpu_ns, 7);
	assert_string_equal(other[2].name, "/again");
	assert_int_equal(other[2].cpu_ns, 30);
	run_beside_free(&before);
	assert_int_equal(run_beside_most(&before, &before, other), 0);
	run_beside_free(&after);
}

/* A run is named once: for its energy, or for its time if only that lies apart. */
static void test_outliers(void **state)
{
	struct run_facts f = { .n_domains = 1, .domain[0].summed = true, .split = true };
	struct run_result runs[8];
	const struct run_report r = { .facts = &f, .runs = runs, .n = 8 };
	struct run_outlier *list;

	memset(runs, 0, sizeof(runs));
	for (unsigned i = 0; i < 8; i++) {
		runs[i].started = runs[i].measured = true;
		runs[i].value[0] = 1000 + i;
		runs[i].value[1 + RUN_CPU] = runs[i].user_ns = 2000 + i;
		runs[i].wall_ns = 3000 + i;
	}
	assert_int_equal(run_outliers_find(&r, &list), 0);
	free(list);
	runs[2].value[0] = runs[2].wall_ns = 9000;
	runs[5].wall_ns = 10;
	runs[6].measured = false; /* no energy is known of it, its time is as usual */
	runs[6].value[0] = 0;
	assert_int_equal(run_outliers_find(&r, &list), 2);
	assert_int_equal(list[0].run, 2);
	assert_int_equal(list[0].of, OUTLIER_ENERGY);
	assert_true(list[0].value == 9000 && list[0].median == 1004);
	assert_int_equal(list[1].run, 5);
	assert_int_equal(list[1].of, OUTLIER_WALL);
	free(list);
	f.split = false;
	runs[4].value[1 + RUN_CPU] = 77000;
	assert_int_equal(run_outliers_find(&r, &list), 3);
	assert_int_equal(list[1].of, OUTLIER_CPU);
	free(list);
}

#define ROW(name, cpu, energy, cycles, quality) \
	"{\"name\":\"" name "\",\"worst_quality\":\"" quality "\",\"energy_uj\":{\"package-0\":" #energy \
	",\"dram-0\":7},\"cpu_ns\":" #cpu ",\"switches\":3,\"counters\":{\"CYCLES\":" #cycles \
	"},\"rx_bytes\":1,\"rx_packets\":2,\"tx_bytes\":3,\"tx_packets\":4,\"write_bytes\":5}"
#define READING(mono, energy, estimated, lost, rows) \
	"{\"monotonic_ns\":" #mono \
	",\"formula\":\"share\",\"idle\":\"own\",\"losses\":{\"folded\":0,\"counter_reads\":" #lost "}," \
	"\"domains\":[{\"name\":\"package-0\",\"kind\":\"package\",\"energy_uj\":" #energy \
	",\"idle_uj\":10,\"idle_power_uw\":3000000," \
	"\"idle_quality\":\"measured\",\"rows_quality\":\"measured\",\"intervals\":{\"measured\":5,\"estimated\":" #estimated \
	"}}," \
	"{\"name\":\"dram-0\",\"kind\":\"dram\",\"energy_uj\":50,\"idle_uj\":0,\"idle_quality\":\"estimated\"," \
	"\"rows_quality\":\"estimated\",\"intervals\":{}}],\"rows\":[" ROW("idle", 1, 0, 0, "measured") rows "]}"

static int parse(const char *text, struct run_facts *f, struct run_machine *m, struct run_rows *rows)
{
	return run_reading_parse(text, strlen(text), &(struct run_reading){ .facts = f, .machine = m, .rows = rows },
				 NULL);
}

/* A child cgroup that the agent forgot, and one of the same name after it: both count. */
static void test_rows_of_the_gone(void **state)
{
	struct run_facts f = { 0 };
	struct run_machine a, b;
	struct run_rows rows = { 0 };
	struct run_result r = { 0 };

	assert_int_equal(parse(READING(1000, 100, 0, 0, ), &f, &a, &rows), 0);
	assert_int_equal(f.n_domains, 2);
	assert_int_equal(f.n_counters, 1);
	assert_int_equal(rows.n, 0);
	assert_int_equal(parse(READING(2000, 200, 0, 0,
				       "," ROW("/r", 10, 1, 5, "measured") "," ROW(
					       "/r/a", 100, 20, 50, "measured") "," ROW("/r/b", 7, 2, 1, "measured")),
			       &f, &b, &rows),
			 0);
	assert_int_equal(parse(READING(3000, 300, 1, 0,
				       "," ROW("/r", 12, 3, 6, "measured") "," ROW("/r/a", 40, 4, 2, "measured")),
			       &f, &b, &rows),
			 0);
	run_result_fill(&r, &f, &rows, &a, &b);
	assert_int_equal(run_fixed(&f, &r, RUN_CPU), 12 + 100 + 40 + 7);
	assert_int_equal(r.value[0], 3 + 20 + 4 + 2);
	assert_int_equal(run_counter(&f, &r, 0), 6 + 50 + 2 + 1);
	assert_int_equal(run_fixed(&f, &r, RUN_TX_PACKETS), 4 * 4);
	assert_int_equal(run_fixed(&f, &r, RUN_WRITE_BYTES), 4 * 5);
	assert_int_equal(run_fixed(&f, &r, RUN_READ_BYTES), 0);
	assert_int_equal(r.machine_uj[0], 200);
	assert_int_equal(r.window_ns, 2000);
	assert_int_equal(r.energy_quality[0], QUALITY_ESTIMATED); /* one interval between the readings was */
	assert_int_equal(r.energy_quality[1], QUALITY_ESTIMATED); /* its split is */
	assert_int_equal(r.quality, QUALITY_MEASURED);
	run_rows_free(&rows);
}

#define RANGED(name, cpu, energy, ranged, range) \
	"{\"name\":\"" name "\",\"energy_uj\":{\"package-0\":" #energy ",\"dram-0\":1000},\"cpu_ns\":" #cpu \
	",\"ranged_uj\":" #ranged ",\"range_uj\":" #range "}"

/* How far the energy of a run may be off: of all of it, or not told. */
static void test_range_of_a_run(void **state)
{
	struct run_facts f = { 0 };
	struct run_machine a, b;
	struct run_rows rows = { 0 };
	struct run_result r = { .started = true };
	struct run_report report = { .facts = &f, .runs = &r, .n = 1 };
	struct buf text = { 0 };

	assert_int_equal(parse(READING(1000, 100, 0, 0, "," RANGED("/r", 10, 5000, 6000, 100)), &f, &a, &rows), 0);
	run_rows_start(&rows);
	assert_int_equal(parse(READING(2000, 200, 0, 0,
				       "," RANGED("/r", 20, 13000, 14000, 420) "," RANGED("/r/a", 7, 1000, 2000, 80)),
			       &f, &b, &rows),
			 0);
	run_result_fill(&r, &f, &rows, &a, &b);
	assert_int_equal(run_total_uj(&f, &r), 10000);
	assert_true(fabs(run_total_range(&f, &r) - 0.04) < 1e-12);
	run_write_notes(&report, true, &text);
	buf_add_char(&text, '\0');
	assert_non_null(strstr((char *)text.data, "right within 4.0 %, nine times in ten"));
	r.value[RUN_RANGED]--; /* of a part it is not known */
	assert_true(isnan(run_total_range(&f, &r)));
	buf_reset(&text);
	run_write_notes(&report, true, &text);
	buf_add_char(&text, '\0');
	assert_null(strstr((char *)text.data, "right within"));
	buf_free(&text);
	run_rows_free(&rows);
}

/* Rows that are not the command's go beside, without the idle one. */
static void test_rows_of_others(void **state)
{
	struct run_facts f = { 0 };
	struct run_machine m;
	struct run_rows rows = { 0 };
	struct run_beside beside = { 0 }, none = { 0 };
	struct run_other other[RUN_OTHERS_MAX];
	const char *text = READING(1000, 100, 0, 0,
				   "," ROW("kernel", 4, 1, 5, "measured") "," ROW("/r", 10, 2, 5, "measured") "," ROW(
					   "/r/a", 20, 3, 5, "measured") "," ROW("/rest", 30, 4, 5, "measured"));

	assert_int_equal(
		run_reading_parse(text, strlen(text),
				  &(struct run_reading){
					  .facts = &f, .machine = &m, .rows = &rows, .beside = &beside, .below = "/r" },
				  NULL),
		0);
	assert_int_equal(rows.n, 2);
	assert_int_equal(beside.n, 2);
	assert_int_equal(run_beside_most(&none, &beside, other), 2);
	assert_string_equal(other[0].name, "/rest");
	assert_int_equal(other[0].energy_uj, 4 + 7); /* dram is added up with the package */
	assert_string_equal(other[1].name, "kernel");
	run_rows_free(&rows);
	run_beside_free(&beside);
}

/* The fork and the move into the cgroup were joulectl's: energy, counters and CPU time alike begin where the exec does. */
static void test_what_was_before_is_not_counted(void **state)
{
	struct run_facts f = { 0 };
	struct run_machine a, b;
	struct run_rows rows = { 0 };
	struct run_result r = { 0 };

	assert_int_equal(parse(READING(1000, 100, 0, 0, "," ROW("/r", 10, 1, 5, "measured")), &f, &a, &rows), 0);
	run_rows_start(&rows);
	assert_int_equal(parse(READING(2000, 200, 0, 0,
				       "," ROW("/r", 30, 9, 11, "measured") "," ROW("/r/a", 100, 20, 50, "measured")),
			       &f, &b, &rows),
			 0);
	run_result_fill(&r, &f, &rows, &a, &b);
	assert_int_equal(run_fixed(&f, &r, RUN_CPU), 20 + 100);
	assert_int_equal(r.value[0], 8 + 20);
	assert_int_equal(run_counter(&f, &r, 0), 6 + 50);
	assert_int_equal(run_fixed(&f, &r, RUN_SWITCHES), 3);
	assert_int_equal(run_fixed(&f, &r, RUN_RX_BYTES), 1);
	run_rows_free(&rows);
}

/* Intervals without a value of a slow meter are made up for by the next value; without one the end is missing. */
static void test_slow_meter(void **state)
{
	const struct run_facts f = { .n_domains = 1, .domain = { { .name = "external-0" } } };
	struct run_machine a = { .mono_ns = 1 }, b = { .mono_ns = 9, .energy_uj = { 700 } };
	struct run_rows rows = { 0 };
	struct run_result r = { 0 };

	b.intervals[0][0] = 4;
	b.intervals[0][4] = 4; /* stale */
	run_result_fill(&r, &f, &rows, &a, &b);
	assert_int_equal(r.machine_quality[0], QUALITY_MEASURED);
	assert_int_equal(r.energy_quality[0], QUALITY_MEASURED);
	b.rows_quality[0] = QUALITY_STALE | QUALITY_ESTIMATED;
	run_result_fill(&r, &f, &rows, &a, &b);
	assert_int_equal(r.machine_quality[0], QUALITY_STALE);
	b.intervals[0][5] = 1; /* it was away: partial */
	b.rows_quality[0] = QUALITY_MEASURED;
	run_result_fill(&r, &f, &rows, &a, &b);
	assert_int_equal(r.machine_quality[0], QUALITY_PARTIAL);
}

static void test_losses_are_said(void **state)
{
	struct run_facts f = { 0 };
	struct run_machine a, b;
	struct run_rows rows = { 0 };
	struct run_result r = { 0 };

	assert_int_equal(parse(READING(1, 1, 0, 4, ), &f, &a, NULL), 0);
	assert_int_equal(parse(READING(2, 2, 0, 5, "," ROW("/r", 1, 1, 1, "measured")), &f, &b, &rows), 0);
	run_result_fill(&r, &f, &rows, &a, &b);
	assert_int_equal(r.quality, QUALITY_PARTIAL);
	assert_string_equal(quality_name(run_quality(&f, &r)), "partial");
	run_rows_free(&rows);
}

static void test_not_an_answer(void **state)
{
	static const char *const texts[] = {
		"",  "{}", "[]", "{\"domains\":[]}", "{\"domains\":[],\"rows\":[]}", "{\"domains\":3,\"rows\":[{}]}",
		"\0"
	};
	struct run_machine m;
	struct run_facts f;
	struct err err = { 0 };

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		f = (struct run_facts){ 0 };
		assert_int_equal(parse(texts[i], &f, &m, NULL), -EBADMSG);
	}
	assert_int_equal(run_facts_parse_status("{}", 2, &f, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "; "));
}

static void fill(struct run_facts *f, struct run_result r[2])
{
	static const uint64_t values[2][2 + RUN_FIXED + 1] = {
		{ 1500000, 70, 500000000, 4, [2 + RUN_FIXED] = 900 },
		{ 2500000, 70, 700000000, 4, [2 + RUN_FIXED] = 1100 },
	};

	*f = (struct run_facts){ .n_domains = 2,
				 .n_counters = 1,
				 .split = true,
				 .switches = true,
				 .formula = "share",
				 .idle = "own",
				 .counter = { "cpu/event=1,umask=2/" } };
	snprintf(f->domain[0].name, sizeof(f->domain[0].name), "package-0");
	snprintf(f->domain[1].name, sizeof(f->domain[1].name), "psys");
	f->domain[1].kind = DOMAIN_PSYS;
	for (unsigned i = 0; i < 2; i++) {
		r[i] = (struct run_result){
			.started = true, .measured = true, .wall_ns = 1000000000, .user_ns = 1, .window_ns = 1
		};
		memcpy(r[i].value, values[i], sizeof(values[i]));
	}
}

static char *const command[] = { "a\x1b[2J", "b", NULL };

static void test_json(void **state)
{
	struct run_facts f;
	struct run_result r[2];
	struct run_report report = { .command = command, .facts = &f, .runs = r, .n = 2, .exit_status = 3 };
	struct buf b = { 0 };
	json_t *doc, *energy;

	fill(&f, r);
	run_write_json(&report, &b);
	doc = json_loadb((char *)b.data, b.len, 0, NULL);
	assert_non_null(doc);
	assert_int_equal(json_integer_value(json_object_get(doc, "exit_status")), 3);
	assert_int_equal(json_array_size(json_object_get(doc, "runs")), 2);
	energy = json_object_get(json_object_get(json_object_get(doc, "statistics"), "energy_uj"), "package-0");
	assert_true(fabs(json_number_value(json_object_get(energy, "mean")) - 2e6) < 1e-6);
	assert_true(fabs(json_number_value(json_object_get(energy, "stddev")) - 707106.78) < 0.01);
	assert_true(fabs(json_number_value(json_object_get(energy, "ci95")) - 12.7062 * 500000) < 50);
	/* no network here: no zeros about it */
	assert_null(json_object_get(json_array_get(json_object_get(doc, "runs"), 0), "network"));
	assert_null(json_object_get(json_array_get(json_object_get(doc, "runs"), 0), "block"));
	json_decref(doc);
	buf_free(&b);
}

static void test_csv(void **state)
{
	struct run_facts f;
	struct run_result r[2];
	struct run_report report = { .command = command, .facts = &f, .runs = r, .n = 2 };
	struct buf b = { 0 };

	fill(&f, r);
	r[1].measured = false;
	run_write_csv(&report, &b);
	buf_add_char(&b, '\0');
	assert_string_equal(
		(char *)b.data,
		"run,exit_status,quality,wall_ns,cpu_ns,user_ns,system_ns,memory_peak_bytes,energy_uj:package-0,energy_uj:psys,"
		"\"cpu/event=1,umask=2/\",switches,rx_bytes,rx_packets,tx_bytes,tx_packets,"
		"read_bytes,read_requests,write_bytes,write_requests,discard_bytes,discard_requests\n"
		"1,0,measured,1000000000,500000000,1,0,0,1500000,70,900,4,,,,,,,,,,\n"
		"2,0,lost,1000000000,1,1,0,0,,,,,,,,,,,,,,\n");
	buf_free(&b);
}

static void test_text(void **state)
{
	struct run_facts f;
	struct run_result r[2];
	struct run_report report = { .command = command, .facts = &f, .runs = r, .n = 1 };
	struct buf b = { 0 };
	const char *text;

	fill(&f, r);
	r[0].quality = QUALITY_LOST;
	r[0].value[2 + RUN_FIXED] = 0;
	run_write_text(&report, &b);
	buf_add_char(&b, '\0');
	text = (char *)b.data;
	assert_non_null(strstr(text, "a\\x1b[2J b"));
	assert_non_null(strstr(text, "1.500 J   package-0            1.500 W\n"));
	assert_null(strstr(text, "event=1")); /* lost, not zero */
	assert_null(strstr(text, "network"));
	assert_null(strstr(text, "in all")); /* psys holds the package */
	assert_non_null(strstr(text, "not included (idle: own"));
	buf_free(&b);
}

static void test_command_line(void **state)
{
	char *argv[] = { "-r", "3", "ls", "--json", "--help", "--", NULL };
	char *dashes[] = { "--json", "--", "-x", "--", NULL }, *help[] = { "-r", "3", "-h", NULL };
	struct verb_call c;

	assert_int_equal(verb_parse(verb_find("run"), 6, argv, &c, NULL), 0);
	assert_int_equal(c.n, 4);
	assert_string_equal(c.args[0], "ls");
	assert_string_equal(c.args[3], "--");
	assert_false(c.help);
	assert_int_equal(verb_parse(verb_find("run"), 4, dashes, &c, NULL), 0);
	assert_int_equal(c.n, 2);
	assert_string_equal(c.args[0], "-x");
	assert_null(c.args[2]);
	assert_int_equal(verb_parse(verb_find("run"), 3, help, &c, NULL), 0);
	assert_true(c.help);
}

static void test_exit_status(void **state)
{
	assert_int_equal(run_exit_status(&(struct run_end){ .status = 3 << 8 }), 3);
	assert_int_equal(run_exit_status(&(struct run_end){ .status = SIGKILL }), 137);
	assert_int_equal(run_exit_status(&(struct run_end){ .status = SIGSEGV | 0x80 }), 139);
	assert_int_equal(run_exit_status(&(struct run_end){ .not_started = ENOENT }), 127);
	assert_int_equal(run_exit_status(&(struct run_end){ .not_started = EACCES }), 126);
	assert_int_equal(run_exit_status(&(struct run_end){ .not_started = ENOEXEC }), 126);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_student_t),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_outliers),
		cmocka_unit_test(test_rows_of_the_gone),
		cmocka_unit_test(test_range_of_a_run),
		cmocka_unit_test(test_rows_of_others),
		cmocka_unit_test(test_what_was_before_is_not_counted),
		cmocka_unit_test(test_slow_meter),
		cmocka_unit_test(test_losses_are_said),
		cmocka_unit_test(test_not_an_answer),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_exit_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
