/* SPDX-License-Identifier: Apache-2.0 */
/* Totals and the metrics page: sums that close, never go back, and survive ends, renames and rankings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "encode/metrics/openmetrics.h"
#include "encode/totals/totals.h"

#define ROWS 40
#define UJ 1000000ull

static struct schema schema;
static struct snapshot snap;
static uint64_t now_ns;

static void begin_world(void)
{
	static struct cpu_desc cpus[2] = { { .cpu = 0, .present = true }, { .cpu = 1, .present = true } };

	memset(&schema, 0, sizeof(schema));
	snprintf(schema.sensor, sizeof(schema.sensor), "node \"7\"");
	schema.cpus = cpus;
	schema.n_cpus = 2;
	schema.n_domains = 2;
	schema.domains[0] = (struct domain_desc){ .kind = DOMAIN_PACKAGE, .name = "package-0" };
	schema.domains[1] = (struct domain_desc){ .kind = DOMAIN_DRAM, .name = "dram-0" };
	schema.core.n = 1;
	snprintf(schema.core.ev[0].name, sizeof(schema.core.ev[0].name), "CYCLES");
	memset(&snap, 0, sizeof(snap));
	snap.schema = &schema;
	assert_int_equal(snapshot_reserve(&snap, ROWS, 1), 0);
	now_ns = 1000;
}

static void end_world(struct totals *t)
{
	totals_free(t);
	free(t);
	snapshot_free(&snap);
}

static struct snap_row *add_row(const char *path, uint32_t key, uint64_t uj)
{
	unsigned i = snap.n_rows++;

	snap.rows[i] = (struct snap_row){
		.kind = ROW_CGROUP,
		.key = key,
		.generation = 1,
		.id = 100 + key,
		.path = path,
		.selected = true,
		.time_ns = uj * 10,
		.counters = { uj * 3 },
		.traffic = { uj, 1, uj * 2, 1 },
	};
	*snapshot_energy(&snap, i, 0) = uj;
	*snapshot_energy(&snap, i, 1) = uj / 2;
	return &snap.rows[i];
}

/* An interval with its special rows; the cgroups follow by add_row. */
static void interval(uint64_t ns)
{
	snap.n_rows = READING_SPECIAL_ROWS;
	memset(snap.rows, 0, ROWS * sizeof(*snap.rows));
	memset(snap.energy_uj, 0, ROWS * 2 * sizeof(*snap.energy_uj));
	for (unsigned i = 0; i < READING_SPECIAL_ROWS; i++) {
		snap.rows[i].kind = (enum row_kind)i;
		snap.rows[i].path = row_kind_name((enum row_kind)i);
	}
	snap.start_ns = now_ns;
	now_ns += ns;
	snap.end_ns = now_ns;
}

/* The measured energy is the sum of the rows, 7 of idle and 3 of residual. */
static void finish(struct totals *t)
{
	for (unsigned d = 0; d < 2; d++) {
		snap.domains[d].idle_uj = 7;
		snap.domains[d].residual_uj = 3;
		snap.domains[d].energy_uj = 10;
		for (unsigned i = 0; i < snap.n_rows; i++)
			snap.domains[d].energy_uj += *snapshot_energy(&snap, i, d);
	}
	totals_add(t, &snap, NULL);
}

/* The sum that must hold at every instant, as it is shown. */
static void assert_closes(const struct totals *t)
{
	for (unsigned d = 0; d < 2; d++) {
		uint64_t sum = t->domains[d].idle_uj + t->domains[d].residual_uj + t->retired[d];

		for (unsigned i = ROW_KERNEL; i < t->n_rows; i++)
			if (t->rows[i].shown)
				sum += totals_shown(t, i, d);
		assert_int_equal(sum, t->domains[d].energy_uj);
	}
}

static int find(const struct totals *t, const char *name)
{
	for (unsigned i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++)
		if (t->rows[i].used && strcmp(t->rows[i].name, name) == 0)
			return (int)i;
	return -1;
}

static uint64_t energy(const struct totals *t, const char *name)
{
	int row = find(t, name);

	assert_true(row >= 0);
	return totals_row(t, (unsigned)row)[0];
}

/* Not selected any more: no name stays, not even as that of one that has ended, and sums hold. */
static void test_deselected(void **state)
{
	static char hidden[] = "/b*";
	static char *const exclude[] = { hidden };
	const struct selection_rules rules = { .exclude = exclude, .n_exclude = 1 };
	const struct totals_options o = { .keep_ns = 1000000 };
	struct totals *t;

	begin_world();
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 6; i++) {
		interval(1000);
		add_row("/a", 10, 100);
		add_row("/c", 12, 30)->selected = i < 3;
		if (i < 2)
			add_row("/b-ended", 13, 7)->ended = i;
		add_row("/b", 11, 50)->selected = i < 4;
		finish(t);
		assert_closes(t);
		assert_int_equal(find(t, "/c") >= 0, i < 3);
		if (i == 3) {
			assert_true(find(t, "/b") >= 0 && find(t, "/b-ended") >= 0);
			totals_select(t, &rules);
			assert_closes(t);
		}
		assert_int_equal(find(t, "/b") >= 0 || find(t, "/b-ended") >= 0, i < 3);
	}
	assert_int_equal(energy(t, "/a"), 600);
	assert_int_equal(t->retired[0], 3 * 30 + 4 * 50 + 2 * 7);
	assert_int_equal(totals_row(t, TOTAL_UNSELECTED)[0], 3 * 30 + 2 * 50);
	/* and selected again: from 0 */
	interval(1000);
	add_row("/b", 11, 50);
	finish(t);
	assert_closes(t);
	assert_int_equal(energy(t, "/b"), 50);
	end_world(t);
}

static void test_sums(void **state)
{
	const struct totals_options o = { .keep_ns = 1000000 };
	struct totals *t;

	begin_world();
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 50; i++) {
		interval(1000);
		add_row("/a", 10, 1001);
		add_row("/b", 11, i);
		add_row("/c", 12, 5)->selected = false;
		*snapshot_energy(&snap, ROW_IDLE, 0) = 2;
		*snapshot_energy(&snap, ROW_KERNEL, 0) = 4;
		finish(t);
		assert_closes(t);
	}
	assert_int_equal(energy(t, "/a"), 50 * 1001);
	assert_int_equal(energy(t, "/b"), 49 * 50 / 2);
	assert_int_equal(totals_row(t, TOTAL_UNSELECTED)[0], 250);
	assert_int_equal(t->domains[0].idle_uj, 50 * 9);
	assert_int_equal(find(t, "/c"), -1);
	end_world(t);
}

/* An end keeps its value until its time is over, then it is retired: nothing goes back, nothing is lost. */
static void test_end_and_return(void **state)
{
	const struct totals_options o = { .keep_ns = 5000 };
	struct totals *t;

	begin_world();
	t = totals_new(&schema, &o);
	interval(1000);
	add_row("/a", 10, 100);
	add_row("/b", 11, 1);
	finish(t);
	interval(1000);
	add_row("/a", 10, 20)->ended = true;
	add_row("/b", 11, 1);
	finish(t);
	assert_int_equal(energy(t, "/a"), 120);
	assert_true(t->rows[find(t, "/a")].ended);
	/* made again under the same name, with another key: goes on counting */
	interval(1000);
	add_row("/a", 12, 3);
	finish(t);
	assert_int_equal(energy(t, "/a"), 123);
	assert_false(t->rows[find(t, "/a")].ended);
	assert_closes(t);
	for (unsigned i = 0; i < 8; i++) {
		interval(1000);
		finish(t);
		assert_closes(t);
	}
	assert_int_equal(find(t, "/a"), -1);
	assert_int_equal(t->retired[0], 123 + 2);
	end_world(t);
}

/* An ended cgroup may be named later still; one that lives under its path at that time stays who it is. */
static void test_named_late(void **state)
{
	const struct totals_options o = { .keep_ns = 5000 };
	const struct names_draft drafts[2] = { { .field = { [NAME_POD] = "old" } },
					       { .field = { [NAME_POD] = "new" } } };
	struct names *old = names_new(&drafts[0]), *new = names_new(&drafts[1]);
	struct totals *t;

	begin_world();
	t = totals_new(&schema, &o);
	interval(1000);
	add_row("/a", 10, 100)->names = old;
	finish(t);
	for (int living = 0; living < 2; living++) {
		interval(1000);
		if (living)
			add_row("/a", 12, 1)->names = new;
		add_row("/a", 10, 0)->names = living ? old : new;
		snap.rows[snap.n_rows - 1].ended = true;
		finish(t);
		assert_string_equal(names_text(t->rows[find(t, "/a")].names, NAME_POD), "new");
		assert_closes(t);
	}
	end_world(t);
	names_put(old);
	names_put(new);
}

static void test_rename(void **state)
{
	const struct totals_options o = { .keep_ns = 5000 };
	struct totals *t;

	begin_world();
	t = totals_new(&schema, &o);
	interval(1000);
	add_row("/a", 10, 100);
	finish(t);
	interval(1000);
	add_row("/z", 10, 1)->renamed = 1;
	finish(t);
	assert_int_equal(find(t, "/a"), -1);
	assert_int_equal(energy(t, "/z"), 101);
	assert_closes(t);
	end_world(t);
}

/* More ends than are kept: the oldest go first, memory stays, the sum holds. */
static void test_churn_is_bounded(void **state)
{
	const struct totals_options o = { .keep_ns = UINT64_MAX };
	struct totals *t;
	char path[64];

	begin_world();
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 3000; i++) {
		interval(1000);
		snprintf(path, sizeof(path), "/job-%u", i);
		add_row(path, 10 + i % 7, 9)->generation = i;
		snap.rows[snap.n_rows - 1].ended = true;
		finish(t);
	}
	assert_closes(t);
	assert_int_equal(t->n_ended, TOTALS_ENDED_MAX);
	assert_true(t->n_rows <= TOTALS_ENDED_MAX + TOTAL_FIRST_CGROUP + 2);
	assert_int_equal(t->retired[0], (3000 - TOTALS_ENDED_MAX) * 9);
	end_world(t);
}

/* One container makes thousands: what others ended with stays until its time is over. */
static void test_churn_of_one(void **state)
{
	const struct totals_options o = { .keep_ns = UINT64_MAX };
	struct totals *t;
	char path[64];

	begin_world();
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 3030; i++) {
		interval(1000);
		snprintf(path, sizeof(path), i < 30 ? "/kubepods/pod-%u/work" : "/kubepods/evil/work/%u", i);
		add_row(path, 10 + i % 7, 9)->generation = i;
		snap.rows[snap.n_rows - 1].ended = true;
		finish(t);
	}
	assert_closes(t);
	assert_int_equal(t->n_ended, TOTALS_ENDED_MAX);
	for (unsigned i = 0; i < 30; i++) {
		snprintf(path, sizeof(path), "/kubepods/pod-%u/work", i);
		assert_int_equal(energy(t, path), 9);
	}
	assert_true(find(t, "/kubepods/evil/work/3029") >= 0);
	assert_int_equal(find(t, "/kubepods/evil/work/30"), -1);
	assert_int_equal(t->retired[0], (3030 - TOTALS_ENDED_MAX) * 9);
	end_world(t);
}

/* With top, what is shown plus `other` is still everything, and no row ever goes back. */
static void test_top(void **state)
{
	const struct totals_options o = { .keep_ns = 5000, .top = 3 };
	uint64_t other = 0;
	struct totals *t;
	char path[ROWS][16];

	begin_world();
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 100; i++) {
		unsigned shown = 0;

		interval(1000);
		for (unsigned k = 0; k < 10; k++) {
			snprintf(path[k], sizeof(path[k]), "/%u", k);
			add_row(path[k], 10 + k, 1 + k * i);
		}
		finish(t);
		assert_closes(t);
		for (unsigned k = TOTAL_FIRST_CGROUP; k < t->n_rows; k++)
			shown += t->rows[k].shown;
		assert_int_equal(shown, 3);
		assert_true(totals_row(t, ROW_OTHER)[0] >= other);
		other = totals_row(t, ROW_OTHER)[0];
	}
	assert_true(t->rows[find(t, "/9")].shown && t->rows[find(t, "/8")].shown);
	assert_false(t->rows[find(t, "/0")].shown);
	end_world(t);
}

static void test_copy(void **state)
{
	const struct totals_options o = { .keep_ns = 2000, .top = 2 };
	struct totals copy = { 0 }, *t;

	begin_world();
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 20; i++) {
		interval(1000);
		add_row(i & 1 ? "/odd" : "/even", 10 + i % 5, 10)->generation = i;
		add_row("/steady", 30, 1);
		add_row("/also", 31, 1);
		finish(t);
		assert_int_equal(totals_copy(&copy, t), 0);
		assert_closes(&copy);
		assert_int_equal(energy(&copy, "/steady"), i + 1);
	}
	totals_free(&copy);
	end_world(t);
}

static char *page(const struct totals *t, bool version_1)
{
	struct buf out = { 0 }, scratch = { 0 };

	assert_int_equal(openmetrics_write(t, NULL, version_1, &scratch, &out), 0);
	buf_add(&out, "", 1);
	buf_free(&scratch);
	return (char *)out.data;
}

/* Names, units and forms as Prometheus 0.0.4 and OpenMetrics 1.0 want them; labels escaped. */
static void test_page(void **state)
{
	const struct totals_options o = { .keep_ns = 5000 };
	struct totals *t;
	char *text;

	begin_world();
	t = totals_new(&schema, &o);
	interval(1000);
	add_row("/a\"\\\n", 10, 2 * UJ + 500000);
	finish(t);
	text = page(t, false);
	assert_non_null(strstr(text, "# TYPE jouled_cgroup_energy_joules_total counter\n"));
	assert_non_null(
		strstr(text, "jouled_cgroup_energy_joules_total{cgroup=\"/a\\\"\\\\\\n\",domain=\"package\"} 2.5\n"));
	assert_non_null(strstr(text, "jouled_cgroup_cpu_seconds_total{cgroup=\"/a\\\"\\\\\\n\"} 0.025\n"));
	assert_non_null(strstr(text, "jouled_energy_joules_total{domain=\"package\",package=\"0\"} 2.50001\n"));
	assert_non_null(
		strstr(text, "jouled_build_info{version=\"" JOULED_VERSION "\",sensor=\"node \\\"7\\\"\"} 1\n"));
	assert_null(strstr(text, "# EOF"));
	assert_null(strstr(text, "# UNIT"));
	assert_null(strstr(text, "cgroup=\"idle\""));
	assert_null(strstr(text, "jouled_cgroup_energy_error_ratio")); /* not known: no series and no family */
	free(text);
	text = page(t, true);
	assert_non_null(strstr(
		text, "# TYPE jouled_cgroup_energy_joules counter\n# UNIT jouled_cgroup_energy_joules joules\n"));
	assert_string_equal(text + strlen(text) - 7, "\n# EOF\n" + 0);
	assert_non_null(strstr(text, "# TYPE jouled_build info\n"));
	free(text);
	end_world(t);
}

static struct snap_row *add_known(const char *path, uint32_t key, uint64_t uj, uint32_t ppm)
{
	struct snap_row *r = add_row(path, key, uj);

	*snapshot_uncertainty(&snap, snap.n_rows - 1, 0) = ppm;
	*snapshot_uncertainty(&snap, snap.n_rows - 1, 1) = 5 * ppm;
	return r;
}

/* A recording of a stranger may hold any numbers: a range that does not fit into its counter is cut, not turned around. */
static void test_range_of_any_number(void **state)
{
	const struct totals_options o = { .keep_ns = 5000 };
	struct totals *t;

	begin_world();
	t = totals_new(&schema, &o);
	interval(1000);
	add_known("/a", 10, (uint64_t)1 << 62, SNAPSHOT_UNKNOWN - 1);
	*snapshot_uncertainty(&snap, snap.n_rows - 1, 1) = SNAPSHOT_UNKNOWN;
	finish(t);
	assert_int_equal(total_row_range_uj(&t->rows[TOTAL_FIRST_CGROUP]), (((uint64_t)1 << 62) + 500) / 1000);
	end_world(t);
}

/* The range of a cgroup's energy: one series each, of the domains that add up, of the last interval, where it is known. */
static void test_ranges(void **state)
{
	const struct totals_options o = { .keep_ns = 5000 },
				    by = { .keep_ns = 5000, .by = { .kind = GROUP_DEPTH, .depth = 1 } };
	struct totals *t, *groups;
	char *text;

	begin_world();
	t = totals_new(&schema, &o);
	groups = totals_new(&schema, &by);
	interval(1000);
	add_known("/a", 10, 1000, 10000);
	add_known("/a/b", 11, 3000, 50000);
	add_row("/c", 12, 500);
	add_known("/gone", 13, 500, 1000);
	*snapshot_uncertainty(&snap, READING_SPECIAL_ROWS + 2, 1) = 1000; /* and of package it is not known */
	finish(t);
	totals_add(groups, &snap, NULL);
	assert_true(fabs(totals_range(t, TOTAL_FIRST_CGROUP) - (1000 * 0.01 + 500 * 0.05) / 1500) < 1e-12);
	assert_true(isnan(totals_range(t, TOTAL_FIRST_CGROUP + 2)));
	assert_true(fabs(totals_range(groups, TOTAL_FIRST_CGROUP) -
			 (1500 * 0.25 + 3000 * 0.05 + 500 * 0.05 + 1000 * 0.01) / 6000) < 1e-12);
	interval(1000);
	add_known("/a", 10, 0, 10000);
	add_known("/a/b", 11, 2000, 50000);
	finish(t);
	assert_int_equal(t->rows[TOTAL_FIRST_CGROUP + 1].ranged_uj, 4500 + 3000);
	assert_int_equal(total_row_range_uj(&t->rows[TOTAL_FIRST_CGROUP + 1]), 150 + 375 + 100 + 250);
	assert_int_equal(t->rows[TOTAL_FIRST_CGROUP + 2].ranged_uj, 250); /* not all of it */
	text = page(t, true);
	assert_non_null(strstr(text, "# TYPE jouled_cgroup_energy_error_ratio gauge\n"
				     "# UNIT jouled_cgroup_energy_error_ratio ratio\n"));
	assert_non_null(strstr(text, "\njouled_cgroup_energy_error_ratio{cgroup=\"/a/b\"} 0.116667\n"));
	assert_null(strstr(text, "jouled_cgroup_energy_error_ratio{cgroup=\"/a\"}"));
	assert_null(strstr(text, "jouled_cgroup_energy_error_ratio{cgroup=\"/c\"}"));
	assert_null(strstr(text, "jouled_cgroup_energy_error_ratio{cgroup=\"/gone\"}"));
	free(text);
	totals_free(groups);
	free(groups);
	end_world(t);
}

/* Rows that are not selected are one row: what is wrong with one of them is said of all. */
static void test_quality_of_unselected(void **state)
{
	const struct totals_options o = { .keep_ns = 5000 };
	struct totals *t;

	begin_world();
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 2; i++) {
		interval(1000);
		for (unsigned k = 0; k < 3; k++) {
			struct snap_row *r = add_row("/hidden", 10 + k, 100);

			r->selected = false;
			r->quality = i || k ? QUALITY_MEASURED : QUALITY_PARTIAL;
			r->quality |= !i && k == 1 ? QUALITY_MULTIPLEXED : 0;
		}
		finish(t);
		assert_int_equal(t->rows[TOTAL_UNSELECTED].quality, i ? 0 : QUALITY_PARTIAL | QUALITY_MULTIPLEXED);
	}
	assert_int_equal(t->rows[TOTAL_UNSELECTED].ever, QUALITY_PARTIAL | QUALITY_MULTIPLEXED);
	end_world(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_deselected),
		cmocka_unit_test(test_end_and_return),
		cmocka_unit_test(test_named_late),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_churn_is_bounded),
		cmocka_unit_test(test_churn_of_one),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_range_of_any_number),
		cmocka_unit_test(test_quality_of_unselected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
