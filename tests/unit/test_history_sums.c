/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of an answer of /v1/history, and what energy costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ctl/history/history_clock.h"
#include "ctl/history/sums.h"
#include "model/schema.h"

/* Two hours, the second in another day of a zone 9 h east. The core domain is in the package. */
#define H14 "1769868000000000000" /* 2026-01-31T14:00:00Z */
#define H15 "1769871600000000000"
#define POINTS(first, second) \
	"[[" H14 ",3600000000000,\"measured\"," first "],[" H15 ",3600000000000,\"estimated\"," second "]]"
static const char answer[] =
	"{\"domains\":[\"package-0\",\"core-0\"],\"series\":["
	"{\"cgroup\":\"/a.slice/x.service/main\",\"row\":\"cgroup\",\"points\":" POINTS(
		"[1000,900]",
		"[2000,0]") "},"
			    "{\"cgroup\":\"/system.slice/slurmstepd.scope/job_4711/step_0/user\",\"row\":\"cgroup\",\"points\":" POINTS(
				    "[10,0]",
				    "[20,0]") "},"
					      "{\"cgroup\":\"/k/pod1/c1\",\"row\":\"cgroup\",\"names\":{\"namespace\":\"shop\",\"pod\":\"front\",\"container\":\"web\"},"
					      "\"points\":" POINTS(
						      "[100,0]",
						      "[200,0]") "},"
								 "{\"cgroup\":\"other\",\"row\":\"other\",\"points\":" POINTS(
									 "[5,0]",
									 "[5,0]") "},"
										  "{\"cgroup\":\"residual\",\"row\":\"residual\",\"points\":" POINTS(
											  "[0,0]", "[3,0]") "}]}";

static const struct sums_line *line(const struct sums *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->v[i].name, name) == 0)
			return &s->v[i];
	fail_msg("no line %s", name);
	return NULL;
}

static void make(enum sums_by by, const struct cost *c, struct sums *ret)
{
	json_t *doc = json_loads(answer, 0, NULL);
	double sum = 0;

	assert_non_null(doc);
	assert_int_equal(sums_make(doc, by, c, ret), 0);
	for (size_t i = 0; i < ret->n; i++)
		sum += ret->v[i].uj;
	assert_true(sum == ret->all.uj && sum == 3343); /* the parts are the whole; core is not added to its package */
	assert_int_equal(ret->all.ns, 7200000000000);
	json_decref(doc);
}

static void test_names(void **state)
{
	struct cost c;
	struct sums s;

	cost_init(&c);
	make(SUMS_UNIT, &c, &s);
	assert_string_equal(s.v[0].name, "x.service"); /* most first */
	assert_true(s.v[0].uj == 3000 && s.v[0].quality == QUALITY_ESTIMATED);
	assert_true(line(&s, "slurmstepd.scope")->uj == 30);
	assert_true(line(&s, "(no unit)")->uj == 300 && line(&s, "(other cgroups)")->uj == 10);
	sums_free(&s);
	make(SUMS_SLICE, &c, &s);
	assert_true(line(&s, "a.slice")->uj == 3000 && line(&s, "(no slice)")->uj == 300);
	sums_free(&s);
	make(SUMS_JOB, &c, &s);
	assert_true(line(&s, "4711")->uj == 30 && line(&s, "(no job)")->uj == 3300);
	sums_free(&s);
	make(SUMS_NAMESPACE, &c, &s);
	assert_true(line(&s, "shop")->uj == 300 && line(&s, "(no namespace)")->uj == 3030);
	sums_free(&s);
	make(SUMS_POD, &c, &s);
	assert_true(line(&s, "shop/front")->uj == 300);
	sums_free(&s);
	make(SUMS_CONTAINER, &c, &s);
	assert_true(line(&s, "shop/front/web")->uj == 300 && line(&s, "(residual)")->uj == 3);
	sums_free(&s);
}

static void test_times(void **state)
{
	struct cost c;
	struct sums s;

	cost_init(&c);
	setenv("TZ", "UTC", 1);
	tzset();
	make(SUMS_DAY, &c, &s);
	assert_int_equal(s.n, 1);
	assert_string_equal(s.v[0].name, "2026-01-31");
	assert_int_equal(s.v[0].ns, 7200000000000);
	sums_free(&s);
	make(SUMS_HOUR, &c, &s);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.v[0].name, "2026-01-31 13:00 +0000");
	assert_true(s.v[0].uj == 1115 && s.v[1].uj == 2228);
	sums_free(&s);
	setenv("TZ", "XST-10", 1); /* the second hour begins a day there */
	tzset();
	make(SUMS_DAY, &c, &s);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.v[1].name, "2026-02-01");
	assert_true(s.v[0].uj == 1115);
	sums_free(&s);
	setenv("TZ", "UTC", 1);
	tzset();
}

/* A cgroup that used nothing in the second hour: the hour counts as measured, and has no line of its own where names have lines. */
static void test_clock(void **state)
{
	json_t *machine = json_loads(answer, 0, NULL),
	       *doc = json_loads(
		       "{\"domains\":[\"package-0\",\"core-0\"],\"series\":[{\"cgroup\":\"/a.slice/x.service/main\",\"row\":\"cgroup\","
		       "\"points\":[[" H14 ",3600000000000,\"measured\",[1000,900]]]}]}",
		       0, NULL);
	struct cost c;
	struct sums s;

	cost_init(&c);
	assert_int_equal(history_add_clock(doc, machine), 0);
	assert_int_equal(sums_make(doc, SUMS_HOUR, &c, &s), 0);
	assert_int_equal(s.n, 2);
	assert_true(s.v[0].uj == 1000 && s.v[1].uj == 0);
	assert_int_equal(s.v[1].ns, 3600000000000);
	assert_int_equal(s.all.ns, 7200000000000);
	sums_free(&s);
	assert_int_equal(sums_make(doc, SUMS_UNIT, &c, &s), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.all.ns, 7200000000000);
	sums_free(&s);
	json_decref(machine);
	json_decref(doc);
}

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_cost(void **state)
{
	char path[] = "/tmp/jouled-carbon-XXXXXX";
	struct err err = { 0 };
	struct cost c;
	struct sums s;

	close(mkstemp(path));
	cost_init(&c);
	assert_false(cost_has_price(&c) || cost_has_carbon(&c));
	assert_int_equal(cost_set_price(&c, "0.5", &err), 0);
	assert_true(cost_money(&c, 3.6e12) == 0.5);
	assert_int_equal(cost_set_price(&c, "-1", &err), -EINVAL);
	assert_int_equal(cost_set_price(&c, "cheap", &err), -EINVAL);
	assert_int_equal(cost_set_carbon(&c, "400", &err), 0);
	assert_true(cost_grams(&c, 3.6e12, 0, 1) == 400);
	cost_free(&c);
	/* 100 g until 13:30, then 300 g: the first hour has 200 g per kWh, the second 300 */
	put_file(path, "time,grams\n# of a test\n2026-01-31T12:00:00Z,100\n1769866200,300\n");
	assert_int_equal(cost_set_carbon(&c, path, &err), 0);
	assert_int_equal(c.n, 2);
	make(SUMS_UNIT, &c, &s);
	assert_true(fabs(s.all.g * 3.6e12 - (1115 * 200.0 + 2228 * 300.0)) < 1e-3);
	assert_true(s.all.unknown_uj == 0);
	sums_free(&s);
	cost_free(&c);
	/* what was before the first line is not known, and not 0 */
	put_file(path, "2026-01-31T14:00:00Z,100\n");
	assert_int_equal(cost_set_carbon(&c, path, &err), 0);
	assert_true(isnan(cost_grams(&c, 1, 1769868000000000000 - 1, 1769868000000000000)));
	make(SUMS_UNIT, &c, &s);
	assert_true(s.all.unknown_uj == 1115 && fabs(s.all.g * 3.6e12 - 2228 * 100.0) < 1e-3);
	sums_free(&s);
	cost_free(&c);
	static const char *const bad[] = { "",           "time,grams\n", "2026-01-31T14:00:00Z,x\n1,2\n2,x\n",
					   "5,1\n5,2\n", "-1h,3\n",      "5,-1\n",
					   "5\n6\n" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_file(path, bad[i]);
		err = (struct err){ 0 };
		assert_int_equal(cost_set_carbon(&c, path, &err), -EINVAL);
		assert_non_null(strstr(err.text, path));
		assert_false(cost_has_carbon(&c));
	}
	unlink(path);
	assert_int_equal(cost_set_carbon(&c, path, &err), -ENOENT);
	cost_free(&c);
}

/* The file of a running agent: read again when it is another; while it is bad, what was read before holds. */
static void test_cost_watch(void **state)
{
	char path[] = "/tmp/jouled-carbon-XXXXXX";
	struct cost_watch w;

	close(mkstemp(path));
	cost_watch_start(&w, "0.5", "400");
	assert_false(cost_watch_look(&w));
	assert_true(w.cost.price == 0.5 && cost_intensity(&w.cost, 0) == 400);
	assert_false(cost_watch_look(&w));
	cost_watch_stop(&w);
	put_file(path, "# names come behind a remark\ntime,grams\n10,100\n20,300\n");
	cost_watch_start(&w, NULL, path);
	assert_false(cost_watch_look(&w));
	assert_true(isnan(cost_intensity(&w.cost, 9999999999)));
	assert_true(cost_intensity(&w.cost, 10000000000) == 100 && cost_intensity(&w.cost, 20000000001) == 300);
	put_file(path, "10,100\n20,300\n30,7\n");
	assert_false(cost_watch_look(&w));
	assert_true(cost_intensity(&w.cost, 30000000000) == 7 && !*w.error);
	put_file(path, "10,100\nno line\n");
	assert_true(cost_watch_look(&w)); /* told once */
	assert_non_null(strstr(w.error, ":2: no line TIME,GRAMS"));
	assert_false(cost_watch_look(&w));
	assert_true(cost_intensity(&w.cost, 30000000000) == 7);
	unlink(path);
	assert_true(cost_watch_look(&w)); /* another error */
	assert_true(cost_intensity(&w.cost, 30000000000) == 7);
	put_file(path, "10,1\n");
	assert_false(cost_watch_look(&w));
	assert_true(cost_intensity(&w.cost, 30000000000) == 1 && !*w.error);
	unlink(path);
	cost_watch_stop(&w);
	cost_watch_start(&w, NULL, NULL);
	assert_false(cost_watch_look(&w) || cost_has_price(&w.cost) || cost_has_carbon(&w.cost));
	cost_watch_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_times),      cmocka_unit_test(test_clock),
		cmocka_unit_test(test_cost),  cmocka_unit_test(test_cost_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
