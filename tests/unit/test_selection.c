/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of one output, beside a snapshot that others use too. */
#include "encode_fixture.h"
#include "model/selection.h"

static char demo[] = "/demo/*", deep[] = "/x/**", kernel[] = "/kernel";
static char *const globs[] = { demo, deep, kernel };

static void test_beside_the_snapshot(void **state)
{
	static const struct {
		const char *path;
		bool want;
	} rows[] = {
		{ "/", false },     { "/demo", false }, { "/demo/a", true },       { "/demo/a/b", false },
		{ "/x/a/b", true }, { "/xy/a", false }, { "/demo/hidden", false },
	};
	struct selection sel = { 0 };
	struct fixture f;

	fixture_init(&f, 1, 1);
	for (unsigned i = 0; i < 7; i++)
		fixture_row(&f, rows[i].path, i + 1)->selected = i != 6;
	for (unsigned k = 0; k < 3; k++) {
		const bool *shown = selection_of(&sel, &f.snap, globs, 3);

		for (unsigned i = 0; i < 7; i++)
			assert_int_equal(shown[READING_SPECIAL_ROWS + i], rows[i].want);
		assert_true(shown[ROW_IDLE] && shown[ROW_KERNEL]);
		assert_false(shown[ROW_OTHER] || shown[ROW_IRQ_STEAL]);
		for (unsigned i = 0; i < f.snap.n_rows; i++)
			assert_int_equal(selection_shows(NULL, &f.snap, i), i != READING_SPECIAL_ROWS + 6);
	}
	selection_free(&sel);
	fixture_free(&f);
}

/* A cgroup is matched again when its path moves or its key gets another row. */
static void test_moves(void **state)
{
	struct selection sel = { 0 };
	struct fixture f;
	struct snap_row *row;

	fixture_init(&f, 1, 1);
	row = fixture_row(&f, "/demo/a", 1);
	assert_true(selection_of(&sel, &f.snap, globs, 3)[READING_SPECIAL_ROWS]);
	row->path = "/elsewhere";
	row->renamed++;
	assert_false(selection_of(&sel, &f.snap, globs, 3)[READING_SPECIAL_ROWS]);
	row->path = "/x/b";
	row->generation++;
	assert_true(selection_of(&sel, &f.snap, globs, 3)[READING_SPECIAL_ROWS]);
	row->key = 100000; /* keys are not dense for ever */
	assert_true(selection_of(&sel, &f.snap, globs, 3)[READING_SPECIAL_ROWS]);
	selection_free(&sel);
	fixture_free(&f);
}

/* A path that is not known passes where every path does, and only there. */
static void test_rules(void **state)
{
	static char all[] = "/**", a[] = "/a/**", hidden[] = "/**/hidden*", low[] = "/a/low*";
	static char *const every[] = { all }, *const some[] = { a }, *const not [] = { hidden }, *const lows[] = { low };
	static const struct {
		const char *path;
		bool none, all, some, without, output, both;
	} cases[] = {
		{ "/", true, true, false, true, false, false },
		{ "/a/low", true, true, true, true, true, true },
		{ "/a/x/hidden-1", true, true, true, false, false, false },
		{ "/a/lowhidden", true, true, true, true, true, true },
		{ "/?17", true, true, false, false, false, false },
		{ "/a/?17", true, true, false, false, false, false },
		{ "/a/?17/low", true, true, false, false, false, false },
		{ "/a/?x", true, true, true, true, false, false },
		{ "/a/?", true, true, true, true, false, false },
		{ "", true, true, false, false, false, false },
		{ "relative", true, true, false, false, false, false },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *p = cases[i].path;

		assert_int_equal(selection_admits(&(struct selection_rules){ 0 }, p), cases[i].none);
		assert_int_equal(selection_admits(&(struct selection_rules){ .include = every, .n_include = 1 }, p),
				 cases[i].all);
		assert_int_equal(selection_admits(&(struct selection_rules){ .include = some, .n_include = 1 }, p),
				 cases[i].some);
		assert_int_equal(selection_admits(&(struct selection_rules){ .exclude = not, .n_exclude = 1 }, p),
				 cases[i].without);
		assert_int_equal(selection_admits(&(struct selection_rules){ .of_output = lows, .n_of_output = 1 }, p),
				 cases[i].output);
		assert_int_equal(selection_admits(&(struct selection_rules){ .include = some,
									     .n_include = 1,
									     .exclude = not,
									     .n_exclude = 1,
									     .of_output = lows,
									     .n_of_output = 1 },
						  p),
				 cases[i].both);
	}
}

static void test_rules_copy(void **state)
{
	static char one[] = "/a", two[] = "/b/**", three[] = "";
	static char *const some[] = { one, two, three }, *const others[] = { one, two, two };
	const struct selection_rules r = {
		.include = some, .n_include = 3, .exclude = others, .n_exclude = 1, .of_output = some, .n_of_output = 2
	};
	struct selection_rules other = r, *copy = selection_rules_copy(&r);

	assert_true(selection_rules_same(&r, copy));
	assert_true(copy->include != some && copy->include[2] != three);
	other.include = others;
	assert_false(selection_rules_same(&r, &other));
	other.include = some;
	other.n_exclude = 2;
	assert_false(selection_rules_same(&r, &other));
	free(copy);
	copy = selection_rules_copy(&(struct selection_rules){ 0 });
	assert_true(selection_rules_same(copy, &(struct selection_rules){ 0 }));
	free(copy);
}

static void make_rows(struct fixture *f, const bool *selected, unsigned n)
{
	static const char *const paths[] = { "/a", "/b", "/c", "/d" };

	fixture_init(f, 3, 1);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(f, DOMAIN_GPU, 0, "gpu-0");
	fixture_ready(f);
	fixture_cell(f, &f->snap.rows[ROW_KERNEL], 0, 5);
	fixture_cell(f, &f->snap.rows[ROW_OTHER], 1, 7);
	for (unsigned i = 0; i < n; i++) {
		struct snap_row *r = fixture_row(f, paths[i], i + 1);

		r->selected = selected[i];
		fixture_cell(f, r, i % 3, 100 * (i + 1))->counters[0] = 10 * (i + 1);
		fixture_cell(f, r, 2, 1)->quality = i ? 0 : QUALITY_PARTIAL;
		r->counters[0] = 10 * (i + 1);
		r->traffic.rx_bytes = i + 1;
		r->traffic.discard_requests = 10 * (i + 1);
		r->quality = i ? 0 : QUALITY_PARTIAL;
		*snapshot_energy(&f->snap, READING_SPECIAL_ROWS + i, 0) = 1000 * (i + 1);
		*snapshot_uncertainty(&f->snap, READING_SPECIAL_ROWS + i, 0) = i == 2 ? 9 : 5;
	}
	assert_int_equal(snapshot_reserve_uses(&f->snap, 8), 0);
	f->snap.n_uses = 4;
	f->snap.uses[0] = (struct snap_use){ 4, 1, 11 };
	f->snap.uses[1] = (struct snap_use){ 5, 1, 22 };
	f->snap.uses[2] = (struct snap_use){ 6, 1, 44 };
	f->snap.uses[3] = (struct snap_use){ USE_NOBODY, 1, 88 };
}

static uint64_t sum_cells(const struct snapshot *s, const struct snap_row *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->n_cells; i++) {
		assert_true(!i || s->cells[r->first_cell + i].cpu > s->cells[r->first_cell + i - 1].cpu ||
			    r->kind == ROW_CGROUP);
		assert_int_equal(s->cells[r->first_cell + i].row, r - s->rows);
		sum += s->cells[r->first_cell + i].time_ns;
	}
	return sum;
}

/* Hidden rows are in `other`, cell by cell; the other rows are as they were, at their new place. */
static void test_fold(void **state)
{
	static const bool selected[] = { false, true, false, true },
			  shown[] = { true, true, false, true, false, true, false, true };
	struct selection_fold fold = { 0 };
	const struct snapshot *v;
	struct fixture f;

	make_rows(&f, selected, 4);
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < 4 && k == 1; i++)
			f.snap.rows[READING_SPECIAL_ROWS + i].selected = true;
		v = selection_fold(&fold, &f.snap, k == 1 ? shown : NULL); /* of all, then of one output */
		assert_int_equal(v->n_rows, READING_SPECIAL_ROWS + 2);
		assert_string_equal(v->rows[4].path, "/b");
		assert_string_equal(v->rows[5].path, "/d");
		assert_true(v->rows[ROW_KERNEL].selected && v->rows[5].selected);
		assert_int_equal(v->rows[2].selected, k == 0);
		assert_int_equal(v->rows[ROW_OTHER].time_ns, 7 + 101 + 301);
		assert_int_equal(v->rows[ROW_OTHER].counters[0], 10 + 30);
		assert_int_equal(v->rows[ROW_OTHER].traffic.rx_bytes, 1 + 3);
		assert_int_equal(v->rows[ROW_OTHER].traffic.discard_requests, 10 + 30);
		assert_int_equal(v->rows[ROW_OTHER].quality, QUALITY_PARTIAL);
		assert_int_equal(v->rows[ROW_OTHER].n_cells, 3);
		for (unsigned i = 0; i < v->n_rows; i++)
			assert_int_equal(sum_cells(v, &v->rows[i]), v->rows[i].time_ns);
		assert_int_equal(v->cells[v->rows[ROW_OTHER].first_cell].time_ns, 100);
		assert_int_equal(v->cells[v->rows[ROW_OTHER].first_cell + 1].time_ns, 7);
		assert_int_equal(v->cells[v->rows[ROW_OTHER].first_cell + 2].time_ns, 1 + 300 + 1);
		assert_int_equal(*snapshot_energy(v, ROW_OTHER, 0), 1000 + 3000);
		assert_int_equal(*snapshot_uncertainty(v, ROW_OTHER, 0), 8); /* (5 x 1000 + 9 x 3000) / 4000 */
		assert_int_equal(*snapshot_uncertainty(v, ROW_OTHER, 1), SNAPSHOT_UNKNOWN);
		assert_int_equal(*snapshot_energy(v, 4, 0), 2000);
		assert_int_equal(*snapshot_energy(v, 5, 0), 4000);
		assert_int_equal(*snapshot_uncertainty(v, 5, 0), 5);
		assert_int_equal(v->n_uses, 3);
		assert_true(v->uses[0].row == 4 && v->uses[0].ns == 22);
		assert_true(v->uses[1].row == USE_NOBODY && v->uses[1].ns == 88);
		assert_true(v->uses[2].row == ROW_OTHER && v->uses[2].ns == 11 + 44);
	}
	assert_ptr_equal(selection_fold(&fold, &f.snap, NULL), &f.snap);
	*snapshot_uncertainty(&f.snap, READING_SPECIAL_ROWS, 0) = SNAPSHOT_UNKNOWN;
	v = selection_fold(&fold, &f.snap, shown);
	assert_int_equal(*snapshot_uncertainty(v, ROW_OTHER, 0), SNAPSHOT_UNKNOWN); /* a part of it is not known */
	selection_fold_free(&fold);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_beside_the_snapshot), cmocka_unit_test(test_moves),
					    cmocka_unit_test(test_rules), cmocka_unit_test(test_rules_copy),
					    cmocka_unit_test(test_fold) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
