/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of one output on a snapshot that others use, too. */
#include "encode_fixture.h"
#include "model/selection.h"

static char demo[] = "/demo/*", deep[] = "/x/**", kernel[] = "/kernel";
static char *const globs[] = { demo, deep, kernel };

static void test_put_and_take_off(void **state)
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
		assert_int_equal(selection_put(&sel, &f.snap, globs, 3), 0);
		for (unsigned i = 0; i < 7; i++)
			assert_int_equal(f.snap.rows[READING_SPECIAL_ROWS + i].selected, rows[i].want);
		assert_true(f.snap.rows[ROW_IDLE].selected && f.snap.rows[ROW_KERNEL].selected);
		assert_false(f.snap.rows[ROW_OTHER].selected || f.snap.rows[ROW_IRQ_STEAL].selected);
		selection_take_off(&sel, &f.snap);
		for (unsigned i = 0; i < f.snap.n_rows; i++)
			assert_int_equal(f.snap.rows[i].selected, i != READING_SPECIAL_ROWS + 6);
	}
	selection_free(&sel);
	fixture_free(&f);
}

/* What was matched is matched again when the path moves or the key gets another row. */
static void test_moves(void **state)
{
	struct selection sel = { 0 };
	struct fixture f;
	struct snap_row *row;

	fixture_init(&f, 1, 1);
	row = fixture_row(&f, "/demo/a", 1);
	assert_int_equal(selection_put(&sel, &f.snap, globs, 3), 0);
	assert_true(row->selected);
	selection_take_off(&sel, &f.snap);
	row->path = "/elsewhere";
	row->renamed++;
	assert_int_equal(selection_put(&sel, &f.snap, globs, 3), 0);
	assert_false(row->selected);
	selection_take_off(&sel, &f.snap);
	row->path = "/x/b";
	row->generation++;
	assert_int_equal(selection_put(&sel, &f.snap, globs, 3), 0);
	assert_true(row->selected);
	selection_take_off(&sel, &f.snap);
	row->key = 100000; /* keys are not dense for ever */
	assert_int_equal(selection_put(&sel, &f.snap, globs, 3), 0);
	assert_true(row->selected);
	selection_free(&sel);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_put_and_take_off), cmocka_unit_test(test_moves) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
