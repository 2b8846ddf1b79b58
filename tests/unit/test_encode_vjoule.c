/* SPDX-License-Identifier: Apache-2.0 */
/* What a snapshot becomes: identifiers, energies, sums, special rows, stand-ins. */
#include "vjoule_fixture.h"

static const struct encode_options document = { 0 }, v02 = { .dialect_v02 = true };

static bool has_note(const struct fixture *f, const char *words)
{
	const char *note;

	for (unsigned i = 0; (note = f->ops->note(f->encoder, i)); i++)
		if (strstr(note, words))
			return true;
	return false;
}

static void test_identifiers(void **state)
{
	struct fixture f;

	fixture_init(&f, 2, 1);
	fixture_event(&f.schema.msr, "TSC", EVENT_PERF);
	fixture_event(&f.schema.msr, "APERF", EVENT_PERF);
	three_events(&f);
	fixture_domain(&f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_ready(&f);
	fixture_create(&f, &encode_vjoule, &document);
	assert_string_equal(header_names(&f, false), "RAPL_ENERGY_PKG TSC APERF CYCLES LLC_MISSES TASK_CLOCK");
	f.ops->destroy(f.encoder);
	fixture_create(&f, &encode_vjoule, &v02);
	assert_string_equal(header_names(&f, true), "PERF_COUNT_HW_CPU_CYCLES LLC_MISSES");
	assert_true(has_note(&f, "PERF_COUNT_HW_CPU_CYCLES: CYCLES stands in"));
	assert_false(has_note(&f, "LLC_MISSES"));
	fixture_free(&f);
}

/* What was added for the formula is no metric, unless it is asked for. */
static void test_added_events(void **state)
{
	static char exits[] = "IDLE_EXITS";
	char *metrics[] = { exits };
	struct fixture f;

	fixture_init(&f, 2, 1);
	fixture_event(&f.schema.core, "SIBLING_BUSY", EVENT_SIBLING_BUSY);
	fixture_event(&f.schema.core, "CYCLES", EVENT_PERF);
	fixture_event(&f.schema.core, "IDLE_EXITS", EVENT_IDLE_EXITS);
	f.schema.core.ev[0].added = f.schema.core.ev[2].added = true;
	fixture_ready(&f);
	fixture_create(&f, &encode_vjoule, &document);
	assert_string_equal(header_names(&f, false), "CYCLES");
	f.ops->destroy(f.encoder);
	fixture_create(&f, &encode_vjoule, &(struct encode_options){ .metrics = metrics, .n_metrics = 1 });
	assert_string_equal(header_names(&f, false), "IDLE_EXITS");
	fixture_free(&f);
}

/* Without energy and without events of the machine, the time is sent. */
static void test_bare_machine(void **state)
{
	struct fixture f;
	struct report r = { 0 };

	fixture_init(&f, 2, 1);
	fixture_ready(&f);
	counted_row(&f, "/a", 7, 5);
	fixture_create(&f, &encode_vjoule, &document);
	assert_string_equal(header_names(&f, false), "TASK_CLOCK");
	assert_true(has_note(&f, "no core, uncore, package, dram, psys; 0.0 is sent"));
	report_of(&r, &f, false);
	for (unsigned i = 0; i < 5; i++)
		assert_true(r.energy[i] == 0.0f);
	assert_int_equal(report_find(&r, "/a")[0], 5000);
	f.ops->destroy(f.encoder);
	fixture_create(&f, &encode_vjoule, &v02);
	assert_true(has_note(&f, "LLC_MISSES: TASK_CLOCK stands in"));
	free(r.cgroups);
	fixture_free(&f);
}

static void test_metrics_option(void **state)
{
	static char a[] = "PERF_COUNT_HW_CPU_CYCLES=CYCLES", b[] = "LLC_MISSES", c[] = "WORK=TASK_CLOCK",
		    d[] = "INSTRUCTIONS";
	static char twice[] = "WORK=CYCLES", none[] = "=CYCLES", no_event[] = "X=";
	char *good[] = { a, b, c, d }, *wrong[][2] = { { c, twice }, { a, none }, { a, no_event } };
	struct encode_options o = { .metrics = good, .n_metrics = 4 };
	struct fixture f;
	struct report r = { 0 };

	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_ready(&f);
	counted_row(&f, "/a", 7, 5);
	fixture_create(&f, &encode_vjoule, &o);
	assert_string_equal(header_names(&f, false), "PERF_COUNT_HW_CPU_CYCLES LLC_MISSES WORK INSTRUCTIONS");
	assert_true(has_note(&f, "INSTRUCTIONS: CYCLES stands in"));
	assert_false(has_note(&f, "WORK"));
	report_of(&r, &f, false);
	assert_int_equal(report_find(&r, "/a")[0], 5);
	assert_int_equal(report_find(&r, "/a")[1], 10);
	assert_int_equal(report_find(&r, "/a")[2], 5000);
	assert_int_equal(report_find(&r, "/a")[3], 5);
	for (unsigned i = 0; i < 3; i++) {
		struct encode_options bad = { .metrics = wrong[i], .n_metrics = 2 };
		struct encoder *e = NULL;
		struct err err = { 0 };

		assert_int_equal(encode_vjoule.create(&bad, &f.schema, &e, &err), -EINVAL);
		assert_non_null(strstr(err.text, "metrics:"));
		assert_null(e);
	}
	free(r.cgroups);
	fixture_free(&f);
}

/* One identifier where a metric is of both lists. */
static void test_shared_name(void **state)
{
	struct fixture f;

	fixture_init(&f, 1, 1);
	fixture_event(&f.schema.msr, "TSC", EVENT_PERF);
	fixture_event(&f.schema.core, "TSC", EVENT_PERF);
	fixture_ready(&f);
	fixture_create(&f, &encode_vjoule, &document);
	assert_string_equal(header_names(&f, false), "TSC");
	fixture_free(&f);
}

/* Time is always there: nothing stands in for it. */
static void test_time_is_no_stand_in(void **state)
{
	static char time[] = "WORK=task_clock";
	char *metrics[] = { time };
	struct encode_options o = { .metrics = metrics, .n_metrics = 1 };
	struct fixture f;
	struct report r = { 0 };

	fixture_init(&f, 1, 1);
	fixture_event(&f.schema.core, "CYCLES", EVENT_PERF);
	fixture_ready(&f);
	counted_row(&f, "/a", 1, 5);
	fixture_create(&f, &encode_vjoule, &o);
	assert_false(has_note(&f, "WORK"));
	report_of(&r, &f, false);
	assert_int_equal(report_find(&r, "/a")[0], 5000);
	free(r.cgroups);
	fixture_free(&f);
}

static void test_energies(void **state)
{
	struct fixture f;
	struct report r = { 0 };
	unsigned d;

	fixture_init(&f, 2, 2);
	for (unsigned p = 0; p < 2; p++) {
		d = fixture_domain(&f, DOMAIN_PACKAGE, p, "package");
		f.snap.domains[d].energy_uj = 10500001;
		f.snap.domains[d].energy_q32 = 1ull << 40;
		d = fixture_domain(&f, DOMAIN_DRAM, p, "dram");
		f.snap.domains[d].energy_uj = 250000;
		d = fixture_domain(&f, DOMAIN_PSYS, p, "psys");
		f.snap.domains[d].energy_uj = 70000000;
	}
	f.schema.domains[0].interface = f.schema.domains[3].interface = ENERGY_ESTIMATE;
	fixture_ready(&f);
	fixture_create(&f, &encode_vjoule, &document);
	assert_true(has_note(&f, "no core, uncore; 0.0 is sent"));
	assert_true(has_note(&f, "package is an estimate"));
	report_of(&r, &f, false);
	assert_true(r.energy[0] == 0.0f && r.energy[1] == 0.0f);
	assert_true(r.energy[2] == (float)21.000002);
	assert_true(r.energy[3] == 0.5f);
	assert_true(r.energy[4] == 70.0f); /* the platform once */
	assert_int_equal(r.system[0], 2ull << 40);
	free(r.cgroups);
	fixture_free(&f);
}

static void test_sums_of_all_rows(void **state)
{
	struct fixture f;
	struct report r = { 0 };

	fixture_init(&f, 2, 1);
	fixture_event(&f.schema.msr, "TSC", EVENT_PERF);
	f.snap.cpus[0].msr[0] = 1000;
	f.snap.cpus[1].msr[0] = 234;
	three_events(&f);
	fixture_ready(&f);
	for (unsigned i = 0; i < READING_SPECIAL_ROWS; i++) {
		f.snap.rows[i].time_ns = 100;
		f.snap.rows[i].counters[0] = 1;
	}
	counted_row(&f, "/a", 1, 10);
	counted_row(&f, "/hidden", 2, 1000)->selected = false;
	counted_row(&f, "/", 3, 100);
	fixture_create(&f, &encode_vjoule, &document);
	report_of(&r, &f, false);
	assert_int_equal(r.n_system, 4);
	assert_int_equal(r.system[0], 1234);
	assert_int_equal(r.system[1], 4 + 1110); /* all four special rows */
	assert_int_equal(r.system[3], 200 + 1110000); /* time: without idle and interrupts */
	assert_int_equal(r.n_cgroups, 4);
	assert_null(report_find(&r, "/hidden"));
	assert_int_equal(report_find(&r, "/")[1], 100);
	assert_int_equal(report_find(&r, "/kernel")[1], 1);
	assert_int_equal(report_find(&r, "/kernel")[3], 100);
	assert_int_equal(report_find(&r, "/other")[1], 1);
	free(r.cgroups);
	fixture_free(&f);
}

/* `/other` from its first count on; a cgroup of a special name is added to it. */
static void test_special_names(void **state)
{
	struct fixture f;
	struct report r = { 0 };

	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_ready(&f);
	fixture_create(&f, &encode_vjoule, &document);
	report_of(&r, &f, false);
	assert_null(report_find(&r, "/other"));
	assert_non_null(report_find(&r, "/kernel"));
	f.snap.rows[ROW_OTHER].time_ns = 5;
	report_of(&r, &f, false);
	assert_int_equal(report_find(&r, "/other")[2], 5);
	f.snap.rows[ROW_OTHER].time_ns = 0;
	f.snap.rows[ROW_KERNEL].counters[0] = 3;
	counted_row(&f, "/kernel", 1, 10);
	counted_row(&f, "/other", 2, 20);
	report_of(&r, &f, false);
	assert_int_equal(r.n_cgroups, 2);
	assert_int_equal(report_find(&r, "/kernel")[0], 13);
	assert_int_equal(report_find(&r, "/other")[0], 20);
	f.snap.rows[ROW_KERNEL].selected = f.snap.rows[ROW_OTHER].selected = false; /* an output's own patterns */
	f.snap.n_rows = READING_SPECIAL_ROWS;
	report_of(&r, &f, false);
	assert_int_equal(r.n_cgroups, 0);
	free(r.cgroups);
	fixture_free(&f);
}

static void test_gauges(void **state)
{
	static const uint32_t khz[] = { 2600000, 0, 3100000, 1 };
	struct fixture f;
	struct report r = { 0 };

	fixture_init(&f, 4, 1);
	f.schema.n_online = 3;
	f.schema.cpufreq = true;
	fixture_ready(&f);
	fixture_create(&f, &encode_vjoule, &v02);
	report_of(&r, &f, true);
	assert_int_equal(r.n_khz, 3); /* the count of the header, whether anybody reads them or not */
	assert_int_equal(r.khz[0], 0);
	f.snap.khz = khz;
	f.snap.package_mc = 45000;
	report_of(&r, &f, true);
	assert_int_equal(r.n_khz, 3);
	assert_int_equal(r.khz[0], 2600000);
	assert_int_equal(r.khz[1], 0);
	assert_int_equal(r.khz[2], 3100000);
	assert_int_equal(r.temperature, 45000);
	free(r.cgroups);
	fixture_free(&f);
}

/* Numbers that only a recording can hold stay numbers, and the machine's sum is not below a part. */
static void test_huge_values(void **state)
{
	struct fixture f;
	struct report r = { 0 };

	fixture_init(&f, 1, 1);
	three_events(&f);
	fixture_ready(&f);
	counted_row(&f, "/a", 1, 0)->counters[0] = UINT64_MAX;
	counted_row(&f, "/b", 2, 0)->counters[0] = INT64_MAX;
	counted_row(&f, "/c", 3, 0)->counters[1] = 1ull << 45;
	fixture_create(&f, &encode_vjoule, &document);
	report_of(&r, &f, false);
	assert_int_equal(report_find(&r, "/a")[0], INT64_MAX);
	assert_int_equal(r.system[0], INT64_MAX);
	assert_int_equal(r.system[1], 1ull << 45);
	free(r.cgroups);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identifiers),   cmocka_unit_test(test_added_events),
		cmocka_unit_test(test_bare_machine),  cmocka_unit_test(test_metrics_option),
		cmocka_unit_test(test_shared_name),   cmocka_unit_test(test_time_is_no_stand_in),
		cmocka_unit_test(test_energies),      cmocka_unit_test(test_sums_of_all_rows),
		cmocka_unit_test(test_special_names), cmocka_unit_test(test_gauges),
		cmocka_unit_test(test_huge_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
