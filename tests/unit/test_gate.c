/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: its test against the e-value that it is made of and by simulation with fixed seeds, saved runs that are
 * hostile, and what is written about a verdict. */
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
#include "ctl/compare/baseline.h"
#include "ctl/compare/gate.h"
#include "model/schema.h"

#define TRIALS 1000
#define ROUNDS 40

static void near(double got, double expected)
{
	if (!(fabs(got - expected) <= 1e-6 * fabs(expected)))
		fail_msg("%.15g instead of %.15g", got, expected);
}

/* The mixture itself, as the header has it. */
static double e_value(const double *d, unsigned n, double m)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < n; i++) {
		sum += d[i] - m;
		squares += (d[i] - m) * (d[i] - m);
	}
	return sqrt(1 / (n + 1.0)) * pow((n + 1) * squares / ((n + 1) * squares - sum * sum), n / 2.0);
}

static void test_interval(void **state)
{
	static const double d[] = { 0.1, 0.3, -0.2, 0.15, 0.25, 0.05, 0.12, 0.2 };
	double a[8], b[8];
	struct judgement j;

	for (unsigned i = 0; i < 8; i++) {
		a[i] = 100 + i;
		b[i] = a[i] * exp(d[i]);
	}
	j = sequential_judge(a, b, 8, 0.02);
	assert_int_equal(j.rounds, 8);
	near(log(j.ratio), 0.12125);
	near(e_value(d, 8, log(j.interval.low)), 100);
	near(e_value(d, 8, log(j.interval.high)), 100);
	assert_true(isinf(sequential_half(1, 1, 0.01)) && isinf(sequential_half(2, 1, 0.01)));
	assert_true(sequential_half(20, 1, 0.01) < sequential_half(19, 1, 0.01));
	near(sequential_half(20, 3, 0.01), 3 * sequential_half(20, 1, 0.01));
}

enum noise { NORMAL, HEAVY, SKEWED };

static double uniform(struct random *r)
{
	return ((double)(random_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct random *r)
{
	double radius = sqrt(-2 * log(uniform(r))); /* Box and Muller; the calls are in a fixed order */

	return radius * cos(2 * M_PI * uniform(r));
}

/* Noise of one run, of standard deviation about 1. HEAVY: one run of ten is disturbed ten times as much. SKEWED: a run
 * is only ever made longer. */
static double noise(struct random *r, enum noise kind)
{
	double z = normal(r);

	if (kind == HEAVY)
		return z * (uniform(r) < 0.1 ? 3 : 0.3);
	return kind == SKEWED ? -log(uniform(r)) : z;
}

/* Runs a gate that looks after every round, as joulectl run does. Returns its verdict. */
static enum verdict trial(struct random *r, enum noise kind, double spread, double change, unsigned rounds)
{
	double a[ROUNDS], b[ROUNDS];

	for (unsigned n = 0; n < rounds; n++) {
		struct judgement j;

		a[n] = 1000 * exp(spread * noise(r, kind));
		b[n] = 1000 * (1 + change) * exp(spread * noise(r, kind));
		j = sequential_judge(a, b, n + 1, 0.02);
		if (j.verdict != VERDICT_CANNOT_TELL)
			return j.verdict;
	}
	return VERDICT_CANNOT_TELL;
}

static unsigned count(enum noise kind, double spread, double change, unsigned rounds, enum verdict v)
{
	struct random r = { 20 + kind };
	unsigned n = 0;

	for (unsigned i = 0; i < TRIALS; i++)
		n += trial(&r, kind, spread, change, rounds) == v;
	return n;
}

/* Alike commands: at most 1 % of the gates end as worse or better, though they look after each of 40 rounds. */
static void test_false_alarms(void **state)
{
	for (enum noise kind = NORMAL; kind <= SKEWED; kind++) {
		static const double spreads[] = { 0.002, 0.014, 0.1 };

		for (unsigned i = 0; i < 3; i++) {
			struct random r = { 7 + i };
			unsigned alarms = 0;

			for (unsigned k = 0; k < TRIALS; k++) {
				enum verdict v = trial(&r, kind, spreads[i], 0, ROUNDS);

				alarms += v == VERDICT_WORSE || v == VERDICT_BETTER;
			}
			if (alarms > TRIALS / 100)
				fail_msg("%u alarms of %d, noise %d, spread %g", alarms, TRIALS, kind, spreads[i]);
		}
	}
}

/* A change of 2 % is found within 20 rounds in 90 % of the gates where a run spreads by 1 % (a round's ratio by 1.4 %).
 * Without a change the same gates say so. */
static void test_power(void **state)
{
	assert_in_range(count(NORMAL, 0.01, 0.02, 20, VERDICT_WORSE), 900, TRIALS);
	assert_in_range(count(NORMAL, 0.01, -0.02, 20, VERDICT_BETTER), 900, TRIALS);
	assert_in_range(count(NORMAL, 0.007, 0, 20, VERDICT_SAME), 900, TRIALS);
	assert_int_equal(count(NORMAL, 0.01, 0.02, 20, VERDICT_BETTER), 0);
}

/* Too much noise: it cannot tell, and names rounds that do. */
static void test_needed(void **state)
{
	struct random r = { 3 };
	double a[4000], b[4000];
	struct judgement j;
	unsigned more;

	for (unsigned i = 0; i < 4000; i++) {
		a[i] = exp(0.05 * normal(&r));
		b[i] = exp(0.05 * normal(&r));
	}
	j = sequential_judge(a, b, 20, 0.02);
	assert_int_equal(j.verdict, VERDICT_CANNOT_TELL);
	assert_in_range(j.needed, 300, 2000);
	more = 2 * j.needed; /* the spread of 20 rounds is not that of all */
	assert_int_equal(sequential_judge(a, b, more, 0.02).verdict, VERDICT_SAME);
	assert_int_equal(sequential_judge(a, b, 1, 0.02).needed, 0);
	b[0] = 0;
	b[1] = NAN;
	assert_int_equal(sequential_judge(a, b, 3, 0.02).rounds, 1);
	assert_true(isnan(sequential_judge(a, b, 2, 0.02).ratio));
}

/* Values without any spread: six rounds are needed all the same. */
static void test_no_spread(void **state)
{
	double a[8], b[8];

	for (unsigned i = 0; i < 8; i++) {
		a[i] = 1000;
		b[i] = 1020.0001;
	}
	assert_int_equal(sequential_judge(a, b, 5, 0.02).verdict, VERDICT_CANNOT_TELL);
	assert_int_equal(sequential_judge(a, b, 7, 0.02).verdict, VERDICT_WORSE);
	assert_int_equal(sequential_judge(b, a, 7, 0.01).verdict, VERDICT_BETTER);
	assert_int_equal(sequential_judge(a, a, 7, 0.02).verdict, VERDICT_SAME);
	assert_int_equal(sequential_judge(a, b, 7, 0.03).verdict, VERDICT_SAME); /* a change, but less than matters */
}

static void test_apart(void **state)
{
	struct random r = { 5 };
	double a[30], b[30], few[2] = { 1, 1.1 };
	struct judgement j;

	for (unsigned i = 0; i < 30; i++) {
		a[i] = exp(0.004 * normal(&r));
		b[i] = 1.02 * exp(0.004 * normal(&r));
	}
	assert_int_equal(sequential_judge_apart(a, 30, b, 30, 0.02).verdict, VERDICT_WORSE);
	assert_int_equal(sequential_judge_apart(b, 30, a, 30, 0.02).verdict, VERDICT_BETTER);
	assert_int_equal(sequential_judge_apart(a, 30, a, 30, 0.02).verdict, VERDICT_SAME);
	j = sequential_judge_apart(few, 2, b, 30, 0.02);
	assert_true(j.verdict == VERDICT_CANNOT_TELL && j.needed == 0 &&
		    j.hopeless); /* nothing that is run now can help */
	assert_int_equal(sequential_judge_apart(a, 0, b, 30, 0.02).verdict, VERDICT_CANNOT_TELL);
}

static struct baseline saved(void)
{
	struct baseline b = { .command = "make \"x\"", .n = 3, .v = calloc(3, sizeof(double)) };

	for (unsigned i = 0; i < BASELINE_TRAITS; i++)
		snprintf(b.trait[i], BASELINE_TEXT_MAX, "trait %u", i);
	b.v[0] = 1.5;
	b.v[1] = 1e15;
	return b;
}

static void test_baseline(void **state)
{
	struct baseline b = saved(), back = { 0 };
	struct buf out = { 0 };
	struct err err = { 0 };

	baseline_write(&b, &out);
	assert_int_equal(baseline_parse("x", (const char *)out.data, out.len, &back, &err), 0);
	assert_string_equal(back.command, b.command);
	assert_int_equal(back.n, 3);
	assert_memory_equal(back.v, b.v, 3 * sizeof(double));
	assert_int_equal(baseline_alike(&b, &back, &err), 0);
	snprintf(back.trait[BASELINE_EVENTS], BASELINE_TEXT_MAX, "CYCLES");
	assert_int_equal(baseline_alike(&b, &back, &err), -EXDEV);
	assert_non_null(strstr(err.text, "events differs: saved with 'trait 4', now 'CYCLES'; "));
	baseline_free(&back);
	baseline_free(&b);
	buf_free(&out);
}

static void test_hostile_baselines(void **state)
{
#define TRAITS \
	"\"command\":\"c\",\"machine\":\"m\",\"frequency\":\"\",\"formula\":\"f\",\"domains\":\"d\",\"events\":\"e\"," \
	"\"figure\":\"g\",\"quality\":\"q\""
#define HEAD "{\"format\":\"jouled run baseline 1\","
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"format\":\"jouled run baseline 2\"," TRAITS ",\"values\":[1]}",
		HEAD TRAITS "}",
		HEAD TRAITS ",\"values\":[]}",
		HEAD TRAITS ",\"values\":[1,\"2\"]}",
		HEAD TRAITS ",\"values\":[1,-2]}",
		HEAD TRAITS ",\"values\":[1e999]}",
		HEAD TRAITS ",\"values\":{\"0\":1}}",
		HEAD "\"command\":3,\"values\":[1]}",
		HEAD "\"command\":\"c\",\"values\":[1]}",
		HEAD TRAITS ",\"values\":[1]} x",
	};
	static const char good[] = HEAD TRAITS ",\"values\":[1,2.5]}";
	struct baseline b = { 0 };
	struct err err;

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		err = (struct err){ 0 };
		assert_int_equal(baseline_parse("base.json", texts[i], strlen(texts[i]), &b, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "base.json: "));
		assert_non_null(strstr(err.text, "; "));
		assert_null(b.v);
	}
	assert_int_equal(baseline_parse("base.json", good, strlen(good), &b, &err), 0);
	assert_int_equal(b.n, 2);
	baseline_free(&b);
	assert_int_equal(baseline_read("/dev/zero", &b, &err), -EINVAL);
	assert_int_equal(baseline_read("/none", &b, &err), -ENOENT);
}

static const char *text_of(struct buf *b)
{
	buf_add_char(b, '\0');
	assert_false(b->failed);
	return (const char *)b->data;
}

static void test_written(void **state)
{
	struct gate g = { .command = "a<b>&\"\x1b",
			  .base = "base.json",
			  .figure = "CPU time",
			  .caution = "",
			  .judgement = { VERDICT_WORSE, 8, 0.02, 1.031, { 1.022, 1.04 }, false, 0 } };
	struct buf b = { 0 };

	assert_int_equal(gate_status(&g), 1);
	gate_write_junit(&g, &b);
	assert_non_null(strstr(text_of(&b), "name=\"a&lt;b&gt;&amp;&quot;\\x1b\""));
	assert_non_null(strstr((char *)b.data,
			       "<failure message=\"worse: it uses 1.031 x (1.022 to 1.040) the CPU time of "
			       "the base; a change of 2 % was looked for in 8 rounds.\"/>"));
	assert_non_null(strstr((char *)b.data, "failures=\"1\" errors=\"0\" skipped=\"0\""));
	buf_reset(&b);
	gate_write_badge(&g, &b);
	assert_non_null(strstr(text_of(&b), ">worse +3.1 %</text>"));
	buf_reset(&b);
	g.judgement.verdict = VERDICT_CANNOT_TELL;
	g.judgement.needed = 77;
	gate_write_sentence(&g, &b);
	assert_non_null(strstr(text_of(&b), "About 77 would tell: -r 77."));
	assert_int_equal(gate_status(&g), 2);
	g.judgement.verdict = VERDICT_REFUSED;
	snprintf(g.reason, sizeof(g.reason), "events differs");
	buf_reset(&b);
	gate_write_junit(&g, &b);
	assert_non_null(strstr(text_of(&b), "<error message=\"refused: events differs\"/>"));
	assert_int_equal(gate_status(&g), 3);
	buf_free(&b);
}

/* The keys that scripts for hyperfine's files read, in seconds. */
static void test_hyperfine(void **state)
{
	struct series s = { .n_sides = 1, .n_metrics = 2, .side = { { "x", 2, 0 } } };
	struct buf b = { 0 };
	json_t *doc, *result;

	s.metric[0] = (struct series_metric){ "wall_ns", "time", SERIES_NANOSECONDS, true, 0 };
	s.metric[1] = (struct series_metric){ "energy_total_uj", "energy", SERIES_MICROJOULES, true, 0 };
	assert_int_equal(series_make_room(&s, 2), 0);
	series_values(&s, 0, 0)[0] = 1e9;
	series_values(&s, 0, 0)[1] = 3e9;
	series_values(&s, 0, 1)[0] = 5e6;
	series_exit_status(&s, 0)[1] = 4;
	gate_write_hyperfine(&s, &b);
	doc = json_loadb((char *)b.data, b.len, 0, NULL);
	result = json_array_get(json_object_get(doc, "results"), 0);
	near(json_number_value(json_object_get(result, "mean")), 2);
	near(json_number_value(json_object_get(result, "stddev")), sqrt(2));
	near(json_number_value(json_array_get(json_object_get(result, "times"), 1)), 3);
	assert_int_equal(json_array_size(json_object_get(result, "energy_joules")), 1);
	assert_int_equal(json_array_size(json_object_get(result, "exit_codes")), 2);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(result, "exit_codes"), 0)), 0);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(result, "exit_codes"), 1)), 4);
	json_decref(doc);
	buf_free(&b);
	series_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interval),  cmocka_unit_test(test_false_alarms),
		cmocka_unit_test(test_power),     cmocka_unit_test(test_needed),
		cmocka_unit_test(test_no_spread), cmocka_unit_test(test_apart),
		cmocka_unit_test(test_baseline),  cmocka_unit_test(test_hostile_baselines),
		cmocka_unit_test(test_written),   cmocka_unit_test(test_hyperfine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
