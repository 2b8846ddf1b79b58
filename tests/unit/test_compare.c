/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a comparison, against values of Python's statistics module and of the same bootstrap written there; and
 * what is said about them. */
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
#include "ctl/compare/paired.h"
#include "ctl/run/private_agent.h"
#include "ctl/run/run_plan.h"
#include "model/schema.h"

static const double a[8] = { 10.2, 9.8, 10.5, 9.9, 10.1, 10.4, 9.7, 10.0 };
static const double b[8] = { 14.3, 13.9, 14.8, 14.1, 14.2, 14.7, 13.6, 14.1 };

static void near(double got, double expected)
{
	if (!(fabs(got - expected) <= 1e-9 * fabs(expected)))
		fail_msg("%.15g instead of %.15g", got, expected);
}

/* The published sequence of splitmix64 for this seed. */
static void test_random(void **state)
{
	struct random r = { 1234567 };
	unsigned order[6] = { 0, 1, 2, 3, 4, 5 }, seen = 0, first[6] = { 0 };

	assert_true(random_next(&r) == 6457827717110365317u);
	assert_true(random_next(&r) == 3203168211198807973u);
	for (unsigned i = 0; i < 6000; i++) {
		random_shuffle(&r, order, 6);
		first[order[0]]++;
	}
	for (unsigned i = 0; i < 6; i++) {
		seen |= 1u << order[i];
		assert_in_range(first[i], 850, 1150); /* 1000 expected, 5 standard deviations */
	}
	assert_int_equal(seen, 63);
}

static void test_summary(void **state)
{
	const double v[] = { 4, NAN, 5, 2, 4, 4 };
	struct summary s = summary_of(a, 8, 42);

	near(s.mean, 10.075);
	near(s.median, 10.05);
	near(s.stddev, 0.2815771906346718);
	near(s.min, 9.7);
	near(s.max, 10.5);
	near(s.interval.low, 9.8625);
	near(s.interval.high, 10.3125);
	s = summary_of(v, 6, 7);
	assert_int_equal(s.n, 5);
	near(s.median, 4);
	s = summary_of(v, 1, 7);
	assert_true(s.n == 1 && s.stddev == 0 && isnan(s.interval.low));
	assert_int_equal(summary_of(v + 1, 1, 7).n, 0);
}

static void test_intervals(void **state)
{
	const double few[] = { 2, 4, 4, 4, 5 }, two[] = { 3, 7 };
	struct interval i = bootstrap_ratio(a, b, 8, 42);

	near(i.low, 1.4049382716049383);
	near(i.high, 1.4176100628930817);
	i = bootstrap_mean(few, 5, 7);
	near(i.low, 2.4);
	near(i.high, 4.8);
	i = bootstrap_mean(two, 2, 1); /* two values say no more than that it is between them */
	assert_true(i.low == 3 && i.high == 7);
}

/* Of more values than are drawn from, the interval is by formula: ten copies of the eight rounds give that of theirs. */
static void test_many_values(void **state)
{
	static double many_a[2000], many_b[2000];
	struct interval i;

	for (unsigned k = 0; k < 2000; k++) {
		many_a[k] = a[k % 8];
		many_b[k] = b[k % 8];
	}
	i = bootstrap_ratio(many_a, many_b, 2000, 1);
	near((i.low + i.high) / 2, 112.7 / 80.6 + (113.7 - 112.7) / 80.6);
	assert_true(i.high - i.low > 0.0003 && i.high - i.low < 0.001);
	i = bootstrap_mean(many_a, 2000, 1);
	near((i.low + i.high) / 2, 10.075);
}

/* The interval of 95 % holds the true mean in 95 of 100 trials; with 8 values it is a little narrow. */
static void test_coverage(void **state)
{
	struct random r = { 99 };
	unsigned held = 0;
	double v[8];

	for (unsigned trial = 0; trial < 60; trial++) {
		struct interval i;

		for (unsigned k = 0; k < 8; k++) {
			v[k] = 0;
			for (unsigned n = 0; n < 12; n++) /* nearly normal, mean 6 */
				v[k] += (double)random_below(&r, 1000000) / 1e6;
		}
		i = bootstrap_mean(v, 8, trial);
		held += i.low <= 6 && i.high >= 6;
	}
	assert_in_range(held, 52, 60);
}

static void two_sides(struct series *s, const double *first, const double *second, unsigned n)
{
	*s = (struct series){ .n_sides = 2, .n_metrics = 2, .seed = 42 };
	s->side[0] = (struct series_side){ .command = "old | x `y`", .runs = n };
	s->side[1] = (struct series_side){ .command = "new\x1b[2J", .runs = n };
	s->metric[0] = (struct series_metric){ "wall_ns", "time", SERIES_NANOSECONDS, true, 0 };
	s->metric[1] = (struct series_metric){ "energy_total_uj", "energy", SERIES_MICROJOULES, true,
					       QUALITY_ESTIMATED };
	assert_int_equal(series_make_room(s, n), 0);
	for (unsigned i = 0; i < n; i++) {
		series_values(s, 0, 1)[i] = first[i];
		series_values(s, 1, 1)[i] = second[i];
	}
}

static const char *text_of(struct buf *out)
{
	buf_add_char(out, '\0');
	assert_false(out->failed);
	return (const char *)out->data;
}

static void test_sentence(void **state)
{
	struct series s;
	struct buf out = { 0 };
	double zero[8] = { 0 };

	two_sides(&s, a, b, 8);
	assert_int_equal(series_judged(&s), 1);
	series_sentence(&s, 1, &out);
	assert_string_equal(text_of(&out), "B uses 1.41 x (1.405 to 1.418) the energy of A (estimated).");
	series_free(&s);
	buf_reset(&out);
	two_sides(&s, a, a, 8);
	series_sentence(&s, 1, &out);
	assert_non_null(strstr(text_of(&out), "1.00 x (1.000 to 1.000)"));
	assert_non_null(strstr((char *)out.data, "8 rounds tell no difference."));
	series_free(&s);
	buf_reset(&out);
	two_sides(&s, zero, b, 8);
	series_sentence(&s, 1, &out);
	assert_non_null(strstr(text_of(&out), "cannot be compared"));
	assert_true(series_width(&s) > 1e9);
	series_free(&s);
	buf_free(&out);
}

/* A round counts where both values are known. */
static void test_pairs(void **state)
{
	struct series s;
	struct series_ratio r;
	double first[8], second[8];

	memcpy(first, a, sizeof(a));
	memcpy(second, b, sizeof(b));
	first[0] = NAN;
	second[7] = NAN;
	two_sides(&s, first, second, 8);
	r = series_ratio(&s, 1, 1);
	assert_int_equal(r.n, 6);
	near(r.ratio, (13.9 + 14.8 + 14.1 + 14.2 + 14.7 + 13.6) / (9.8 + 10.5 + 9.9 + 10.1 + 10.4 + 9.7));
	assert_int_equal(series_ratio(&s, 1, 0).n, 0);
	series_free(&s);
}

static void test_width(void **state)
{
	struct series s;

	two_sides(&s, a, a, 8);
	/* t(7) s / sqrt(8) / mean */
	assert_true(fabs(series_width(&s) - 2.3646 * 0.2815771906346718 / sqrt(8) / 10.075) < 1e-6);
	series_free(&s);
}

static void test_tables(void **state)
{
	struct series s;
	struct buf out = { 0 };

	two_sides(&s, a, b, 8);
	series_write_text(&s, &out);
	assert_non_null(strstr(text_of(&out), " B: new\\x1b[2J\n"));
	assert_non_null(strstr((char *)out.data, " energy, uJ (estimated)\n"));
	assert_non_null(strstr((char *)out.data,
			       "   A      10.075     10.050      9.700     10.500      0.282  9.862 to 10.312\n"));
	assert_non_null(strstr((char *)out.data, "   1.41 x (1.405 to 1.418)\n"));
	buf_reset(&out);
	series_write_markdown(&s, &out);
	assert_non_null(strstr(text_of(&out), "| A | `` old \\| x `y` `` | 8 |"));
	assert_null(strchr((char *)out.data, '\x1b'));
	series_free(&s);
	buf_free(&out);
}

static unsigned times(const char *text, const char *word)
{
	unsigned n = 0;

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		n++;
	return n;
}

/* A point per known value and one per command in the legend. */
static void test_plot(void **state)
{
	struct series s;
	struct buf out = { 0 };
	double some[8];

	memcpy(some, b, sizeof(b));
	some[3] = NAN;
	two_sides(&s, a, some, 8);
	series_write_plot(&s, &out);
	assert_int_equal(times(text_of(&out), "<path"), 8 + 7 + 2);
	assert_int_equal(times((char *)out.data, "class=\"c1\""), 7 + 1);
	assert_non_null(strstr((char *)out.data, "old | x `y`, mean 10.07 uJ<"));
	assert_null(strchr((char *)out.data, '\x1b'));
	assert_null(strstr((char *)out.data, "nan"));
	buf_reset(&out);
	s.judge = "wall_ns"; /* nothing is known of it */
	series_write_plot(&s, &out);
	assert_int_equal(times(text_of(&out), "<path"), 2);
	assert_null(strstr((char *)out.data, "nan"));
	series_free(&s);
	buf_free(&out);
}

static void test_events(void **state)
{
	assert_int_equal(private_agent_event("CYCLES,x"), 6);
	assert_int_equal(private_agent_event("cpu/event=1,umask=2/,x"), 20);
	assert_int_equal(private_agent_event(",x"), 0);
	assert_int_equal(private_agent_event("a/b,c"), 5);
}

static void test_scale(void **state)
{
	struct series_scale s = series_scale_of(1234567, SERIES_MICROJOULES);

	assert_string_equal(s.unit, "J");
	near(1234567 * s.factor, 1.234567);
	assert_string_equal(series_scale_of(0.0129, SERIES_WATTS).unit, "mW");
	assert_string_equal(series_scale_of(2048, SERIES_BYTES).unit, "KiB");
	assert_string_equal(series_scale_of(0, SERIES_NANOSECONDS).unit, "ns");
	assert_string_equal(series_scale_of(1e30, SERIES_NANOSECONDS).unit, "s");
}

static int read_plan(struct run_plan *p, char **argv, struct err *err)
{
	struct verb_call call;
	int argc = 0, rc;
	static const struct verb like_run = {
		.name = "run", .options = run_options, .max_args = 1, .command = true, .goes_on = run_plan_goes_on
	};

	while (argv[argc])
		argc++;
	*p = (struct run_plan){ 0 };
	*err = (struct err){ 0 };
	rc = verb_parse(&like_run, argc, argv, &call, err);
	return rc ? rc : run_plan_read(&call, p, err);
}

/* Options stand before a command, and behind one that is a string; what is a command's own stays its own. */
static void test_command_lines(void **state)
{
	char *behind[] = { "sleep 1", "--vs", "sleep 2", "--vs=a", "-r", "20", NULL };
	char *word[] = { "-w", "2", "true", "--vs", "false", "--until", "2%", NULL };
	char *own[] = { "echo", "-r", "20", "sleep 2", NULL };
	char *dashes[] = { "--vs", "b", "--seed=7", "--", "echo", "--vs", "x", NULL };
	char *wrong[] = { "sleep 1", "more", NULL }, *empty[] = { "true", "--vs", "", NULL };
	struct run_plan p;
	struct err err;

	assert_int_equal(read_plan(&p, behind, &err), 0);
	assert_int_equal(p.n_sides, 3);
	assert_int_equal(p.rounds, 20);
	assert_string_equal(p.side[0].argv[2], "sleep 1");
	assert_string_equal(p.side[1].argv[0], "sh");
	assert_string_equal(p.side[2].argv[0], "a");
	assert_null(p.side[2].argv[1]);
	run_plan_free(&p);
	assert_int_equal(read_plan(&p, word, &err), 0);
	assert_string_equal(p.side[0].argv[0], "true");
	assert_null(p.side[0].argv[1]);
	assert_true(p.n_sides == 2 && p.warmup == 2 && p.until == 0.02 && p.rounds == RUN_ROUNDS_MAX);
	run_plan_free(&p);
	assert_int_equal(read_plan(&p, own, &err), 0);
	assert_true(p.n_sides == 1 && p.rounds == 1);
	assert_string_equal(p.side[0].text, "echo -r 20 sleep 2");
	run_plan_free(&p);
	assert_int_equal(read_plan(&p, dashes, &err), 0);
	assert_true(p.n_sides == 2 && p.seed == 7 && p.rounds == 10);
	assert_string_equal(p.side[0].argv[2], "x");
	run_plan_free(&p);
	assert_int_equal(read_plan(&p, wrong, &err), -EINVAL);
	assert_int_equal(read_plan(&p, empty, &err), -EINVAL);
	assert_non_null(strstr(err.text, "empty"));
	run_plan_free(&p);
}

static void test_refusals(void **state)
{
	static const char *const wrong[][2] = {
		{ "--until=0", "percentage" },   { "--until=x%", "percentage" }, { "-r0", "--repeat" },
		{ "--warmup=9999", "--warmup" }, { "--seed=-1", "--seed" },      { "--idle=none", "--idle" },
		{ "--until=nan", "percentage" },
	};
	struct run_plan p;
	struct err err;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char option[40], *argv[] = { option, "true", NULL };

		snprintf(option, sizeof(option), "%s", wrong[i][0]);
		assert_int_equal(read_plan(&p, argv, &err), -EINVAL);
		assert_non_null(strstr(err.text, wrong[i][1]));
		assert_non_null(strstr(err.text, "; "));
		run_plan_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),        cmocka_unit_test(test_summary),
		cmocka_unit_test(test_intervals),     cmocka_unit_test(test_many_values),
		cmocka_unit_test(test_coverage),      cmocka_unit_test(test_sentence),
		cmocka_unit_test(test_pairs),         cmocka_unit_test(test_width),
		cmocka_unit_test(test_tables),        cmocka_unit_test(test_scale),
		cmocka_unit_test(test_command_lines), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_plot),          cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
