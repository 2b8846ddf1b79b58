/* SPDX-License-Identifier: Apache-2.0 */
/* The page of roll-ups: it has no more series than it may, and each has its names as labels. */
#include "rollup_world.h"

#define STORM ROWS_MOST

/* 10,000 pods that live for a moment: the page never has more series than it may, and what is left out is in `other`. */
static void storm(struct grouping by, uint64_t max_series)
{
	uint64_t all[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + 1] = { 0 };
	struct totals_options o = { .keep_ns = 300 * STEP_NS, .by = by };
	struct totals *t, was = { 0 };
	struct err err;

	begin_world(5);
	assert_int_equal(totals_fit(&o, &schema, max_series, 0, &err), 0);
	assert_true(o.top > 0);
	t = totals_new(&schema, &o);
	for (unsigned pod = 0; pod < 10000;) {
		struct names *names[STORM];
		char path[STORM][64];

		interval();
		for (unsigned i = 0; i < STORM; i++, pod++) {
			char name[32];
			struct names_draft d = { .field = { [NAME_NAMESPACE] = "storm", [NAME_POD] = name } };

			snprintf(name, sizeof(name), "pod-%u", pod);
			snprintf(path[i], sizeof(path[i]), "/kubepods/%u", pod);
			names[i] = names_new(&d);
			add_row(path[i], 10 + i, 1 + any(1000))->names = names[i];
			snap.rows[snap.n_rows - 1].generation = pod;
			snap.rows[snap.n_rows - 1].ended = i % 3;
		}
		close_books();
		totals_add(t, &snap, NULL);
		sum_up(t, all);
		assert_closes(t, all);
		assert_true(series(t) <= max_series);
		if (pod % 1000 == 0) {
			assert_no_less(&was, t);
			assert_int_equal(totals_copy(&was, t), 0);
		}
		for (unsigned i = 0; i < STORM; i++)
			names_put(names[i]);
	}
	if (by.kind != GROUP_NAMESPACE)
		assert_true(totals_row(t, ROW_OTHER)[0] > all[0] / 2);
	else
		assert_int_equal(find(t, "other"), ROW_OTHER);
	assert_true(t->n_rows <= TOTALS_ENDED_MAX + TOTAL_FIRST_CGROUP + 2 * STORM);
	totals_free(&was);
	end_world(t);
}

static void test_storm(void **state)
{
	storm((struct grouping){ .kind = GROUP_NONE }, 300);
	storm((struct grouping){ .kind = GROUP_POD }, 300);
	storm((struct grouping){ .kind = GROUP_NAMESPACE }, 300);
}

/* Every row's sockets and disks move something, so that each row has all the series that it can have. */
static void add_traffic(void)
{
	for (unsigned i = 0; i < snap.n_rows; i++)
		snap.rows[i].traffic = (struct traffic){ .rx_bytes = 100, .rx_packets = 1, .write_bytes = 512 };
	memset(snap.uncertainty_ppm, 0, (size_t)snap.n_rows * schema.n_domains * sizeof(*snap.uncertainty_ppm));
}

/* The bound is met exactly: as many rows as fit are shown, and one series less than the least is refused by name. */
static void test_bound_is_exact(void **state)
{
	struct totals_options o = { .keep_ns = UINT64_MAX };
	uint64_t least = 1;
	struct totals *t;
	struct err err;
	char path[20][16];

	begin_world(5);
	while (totals_fit(&o, &schema, least, 0, &err) != 0)
		least++;
	assert_int_equal(o.top, 1);
	for (uint64_t max = least; max < least + 40; max++) {
		o.top = 0;
		assert_int_equal(totals_fit(&o, &schema, max, 0, &err), 0);
		t = totals_new(&schema, &o);
		interval();
		for (unsigned i = 0; i < 20; i++) {
			snprintf(path[i], sizeof(path[i]), "/%u", i);
			add_row(path[i], 10 + i, 5);
		}
		add_traffic();
		close_books();
		totals_add(t, &snap, NULL);
		assert_true(series(t) <= max);
		/* One row more does not fit. Nothing has ended, so `retired` is without those of traffic. */
		assert_true(series(t) + TRAFFIC_VALUES + 2 + TOTAL_FIXED + 2 > max);
		free_totals(t);
	}
	assert_int_equal(totals_fit(&o, &schema, least - 1, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "needs at least"));
	assert_int_equal(totals_fit(&o, &schema, least + 9, 10, &err), -EINVAL);
	o.top = 3;
	assert_int_equal(totals_fit(&o, &schema, 100000, 0, &err), 0);
	assert_int_equal(o.top, 3);
	snapshot_free(&snap);
}

/* Labels: names alone for groups of names, escaped; the path for groups of paths. Names that look like others' do not
 * become one group. */
static void test_labels(void **state)
{
	struct totals_options o = { .keep_ns = UINT64_MAX, .by = { .kind = GROUP_POD } };
	static const char *const pods[][2] = { { "a", "b/c" }, { "a/b", "c" }, { "x\"y", "\\" }, { "", "bare" } };
	static const char *const lines[] = {
		"{namespace=\"a\",pod=\"b/c\",domain=\"dram\"} 0.5\n",
		"{namespace=\"a/b\",pod=\"c\",domain=\"dram\"} 0.5\n",
		"{namespace=\"x\\\"y\",pod=\"\\\\\",domain=\"dram\"} 0.5\n",
		"{pod=\"bare\",domain=\"dram\"} 0.5\n",
		"{cgroup=\"unnamed\",domain=\"dram\"} 0.5\n",
	};
	struct buf out = { 0 }, scratch = { 0 };
	struct totals *t;

	begin_world(3);
	t = totals_new(&schema, &o);
	interval();
	for (unsigned i = 0; i < 4; i++) {
		struct names_draft d = { .field = { [NAME_NAMESPACE] = pods[i][0],
						    [NAME_POD] = pods[i][1],
						    [NAME_CONTAINER] = "never shown",
						    [NAME_UNIT] = "never.shown" } };

		world[i].names = names_new(&d);
		add_row("/p", 10 + i, 1000000)->names = world[i].names;
	}
	add_row("/q", 20, 1000000);
	close_books();
	totals_add(t, &snap, NULL);
	assert_int_equal(openmetrics_write(t, NULL, false, &scratch, &out), 0);
	buf_add(&out, "", 1);
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_non_null(strstr((char *)out.data, lines[i]));
	assert_null(strstr((char *)out.data, "never"));
	buf_free(&out);
	buf_free(&scratch);
	end_world(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_bound_is_exact),
		cmocka_unit_test(test_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
