/* SPDX-License-Identifier: Apache-2.0 */
/* Roll-ups: whatever cgroups come, go, move, get their names late or are pushed out, the books of groups close, and no value
 * that stays on the page goes back. */
#include "rollup_world.h"

static void run_world(const struct totals_options *o, uint64_t seed)
{
	uint64_t all[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + 1] = { 0 };
	struct totals *t, was = { 0 };

	begin_world(seed);
	t = totals_new(&schema, o);
	for (unsigned step = 0; step < 150; step++) {
		unsigned shown = 0;

		if (step % 50 == 49)
			restart(&t, o);
		live(t);
		sum_up(t, all);
		assert_closes(t, all);
		assert_no_less(&was, t);
		for (unsigned i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++)
			shown += t->rows[i].used && t->rows[i].shown;
		if (o->top)
			assert_true(shown <= o->top);
		assert_int_equal(totals_copy(&was, t), 0);
	}
	totals_free(&was);
	end_world(t);
}

static const struct grouping groupings[] = {
	{ GROUP_NONE, 0 }, { GROUP_NAMESPACE, 0 }, { GROUP_POD, 0 },   { GROUP_CONTAINER, 0 },
	{ GROUP_UNIT, 0 }, { GROUP_SLICE, 0 },     { GROUP_DEPTH, 1 }, { GROUP_DEPTH, 2 },
};
#define N_GROUPINGS (sizeof(groupings) / sizeof(groupings[0]))

static void test_closes(void **state)
{
	for (unsigned g = 0; g < N_GROUPINGS; g++)
		for (unsigned top = 0; top < 6; top += 2)
			for (unsigned keep = 1; keep < 40; keep += 19) {
				const struct totals_options o = { .keep_ns = keep * STEP_NS,
								  .top = top,
								  .by = groupings[g] };

				run_world(&o, 1 + g * 100 + top * 10 + keep);
			}
}

/* The text by which the test knows the group of a cgroup. */
static void group_of(const struct snap_row *r, const struct grouping *g, char *dst, size_t size)
{
	const struct one *c = &world[r->key - 10];
	bool pod = (r->key - 10) % 2;

	switch (g->kind) {
	case GROUP_NAMESPACE:
		snprintf(dst, size, "%s", r->names && pod ? c->space : "unnamed");
		return;
	case GROUP_POD:
	case GROUP_CONTAINER:
		snprintf(dst, size, "%s %s", r->names && pod ? c->space : "unnamed", r->names && pod ? c->pod : "");
		return;
	case GROUP_UNIT:
		snprintf(dst, size, "%s", !r->names ? "unnamed" : pod ? "kubelet.service" : c->unit);
		return;
	case GROUP_SLICE:
		snprintf(dst, size, "%s", c->slice);
		return;
	default:
		snprintf(dst, size, "%s", r->path);
		if (strchr(dst + 1, '/'))
			*strchr(dst + 1, '/') = '\0';
	}
}

static void name_of(const struct total_row *r, const struct grouping *g, char *dst, size_t size)
{
	if (!total_row_named(r))
		snprintf(dst, size, "%s%s", r->name, g->kind == GROUP_POD || g->kind == GROUP_CONTAINER ? " " : "");
	else if (g->kind == GROUP_NAMESPACE)
		snprintf(dst, size, "%s", names_text(r->names, NAME_NAMESPACE));
	else if (g->kind == GROUP_UNIT)
		snprintf(dst, size, "%s", names_text(r->names, NAME_UNIT));
	else
		snprintf(dst, size, "%s %s", names_text(r->names, NAME_NAMESPACE), names_text(r->names, NAME_POD));
}

/* Each group has what its cgroups used while they were in it, those that ended too, and nothing else. */
static void test_groups_are_right(void **state)
{
	for (unsigned g = 1; g < N_GROUPINGS - 1; g++) {
		const struct totals_options o = { .keep_ns = UINT64_MAX, .by = groupings[g] };
		struct {
			char name[64];
			uint64_t uj;
		} want[400] = { 0 };
		unsigned n = 0, seen = 0;
		struct totals *t;
		char name[64];

		begin_world(77 + g);
		t = totals_new(&schema, &o);
		for (unsigned step = 0; step < 100; step++) {
			live(t);
			for (unsigned i = READING_SPECIAL_ROWS; i < snap.n_rows; i++) {
				unsigned k = 0;

				group_of(&snap.rows[i], &o.by, name, sizeof(name));
				while (k < n && strcmp(want[k].name, name) != 0)
					k++;
				assert_true(k < 400);
				snprintf(want[k].name, sizeof(want[k].name), "%s", name);
				want[k].uj += *snapshot_energy(&snap, i, 0);
				n = k == n ? n + 1 : n;
			}
		}
		for (unsigned i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
			unsigned k = 0;

			name_of(&t->rows[i], &o.by, name, sizeof(name));
			while (k < n && strcmp(want[k].name, name) != 0)
				k++;
			assert_true(k < n);
			assert_int_equal(totals_row(t, i)[0], want[k].uj);
			seen++;
		}
		assert_int_equal(seen, n);
		assert_true(n > 2 && n < 20);
		end_world(t);
	}
}

static const struct totals_options own = { .keep_ns = 5 * STEP_NS },
				   by_space = { .keep_ns = 5 * STEP_NS, .by = { .kind = GROUP_NAMESPACE } },
				   by_slice = { .keep_ns = 5 * STEP_NS, .top = 2, .by = { .kind = GROUP_SLICE } };

static struct totals *with_view(const struct totals_options *view)
{
	struct totals *t = totals_new(&schema, &own);

	assert_non_null(t);
	assert_int_equal(totals_view(t, view), 0);
	return t;
}

/* Totals with a view, from two texts: all, and what changed since. */
static struct totals *loaded(const struct totals_options *view, const struct buf *text, const struct buf *change)
{
	struct totals *t = with_view(view);

	assert_int_equal(totals_load(t, text->data, text->len), 0);
	assert_int_equal(totals_load(t, change->data, change->len), 0);
	assert_int_equal(totals_loaded(t), 0);
	return t;
}

/* A view goes along: the page in groups, the list by cgroup, both with the same machine, also after restarts. A view
 * with another grouping begins anew, and the totals beside it go on. */
static void test_view(void **state)
{
	uint64_t all[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + 1] = { 0 };
	struct totals *t, *next, copy = { 0 };
	struct buf text = { 0 }, change = { 0 };
	uint32_t adds;

	begin_world(9);
	t = with_view(&by_space);
	for (unsigned step = 0; step < 60; step++) {
		live(t);
		sum_up(t, all);
		assert_closes(t, all);
		assert_closes(t->view, all);
		assert_int_equal(totals_copy(&copy, t), 0);
		assert_closes(copy.view, all);
		if (step == 30)
			totals_save(t, 0, &text);
	}
	totals_save(t, 31, &change);
	next = loaded(&by_space, &text, &change);
	assert_closes(next, all);
	assert_closes(next->view, all);
	assert_no_less(t->view, next->view);
	assert_int_equal(next->view->adds, 60);
	free_totals(next);
	free_totals(t);

	next = loaded(&by_slice, &text, &change);
	assert_closes(next, all);
	adds = next->adds;
	assert_int_equal(next->view->adds, 0);
	live(next);
	assert_int_equal(next->view->adds, 1);
	/* texts of both go on from there */
	buf_reset(&text);
	buf_reset(&change);
	totals_save(next, 0, &text);
	live(next);
	totals_save(next, adds + 1, &change);
	t = loaded(&by_slice, &text, &change);
	assert_int_equal(t->adds, adds + 2);
	assert_int_equal(t->view->adds, 2);
	assert_int_equal(t->view->domains[0].energy_uj, next->view->domains[0].energy_uj);
	free_totals(next);
	totals_free(&copy);
	buf_free(&text);
	buf_free(&change);
	end_world(t);
}

/* A bound that was lowered holds at once after a restart. */
static void test_restart_with_less(void **state)
{
	struct totals_options o = { .keep_ns = UINT64_MAX, .top = 20 };
	uint64_t all[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + 1] = { 0 };
	struct totals *t;

	begin_world(3);
	t = totals_new(&schema, &o);
	for (unsigned step = 0; step < 20; step++) {
		live(t);
		sum_up(t, all);
	}
	assert_int_equal(t->n_shown, 20);
	o.top = 4;
	restart(&t, &o);
	assert_int_equal(t->n_shown, 4);
	assert_closes(t, all);
	live(t);
	sum_up(t, all);
	assert_closes(t, all);
	end_world(t);
}

/* A selection that changes takes the groups without a cgroup off the page at once, and the others go on. */
static void test_reselected(void **state)
{
	const struct totals_options o = { .keep_ns = UINT64_MAX, .by = { .kind = GROUP_DEPTH, .depth = 1 } };
	const struct selection_rules rules = { 0 };
	struct totals *t;

	begin_world(3);
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 4; i++) {
		interval();
		add_row("/a/1", 10, 100);
		add_row("/a/2", 11, 10)->selected = i < 2;
		add_row("/b/1", 12, 50)->selected = i < 2;
		close_books();
		if (i == 2)
			totals_select(t, &rules);
		totals_add(t, &snap, NULL);
	}
	assert_int_equal(totals_row(t, (unsigned)find(t, "/a"))[0], 420);
	assert_int_equal(find(t, "/b"), -1);
	assert_int_equal(t->retired[0], 100);
	assert_int_equal(totals_row(t, TOTAL_UNSELECTED)[0], 120);
	end_world(t);
}

/* A group of cgroups that are shorter than an interval ends anew with each of them, not with the first. */
static void test_short_jobs(void **state)
{
	const struct totals_options o = { .keep_ns = 5 * STEP_NS, .by = { .kind = GROUP_DEPTH, .depth = 1 } };
	struct totals *t;

	begin_world(3);
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 30; i++) {
		interval();
		if (i % 3 == 0) {
			struct snap_row *r = add_row("/jobs/one", 10, 100);

			r->generation = i;
			r->ended = true;
		}
		close_books();
		totals_add(t, &snap, NULL);
		assert_true(find(t, "/jobs") >= 0);
		assert_int_equal(totals_row(t, (unsigned)find(t, "/jobs"))[0], 100 * (1 + i / 3));
	}
	end_world(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closes),     cmocka_unit_test(test_groups_are_right),
		cmocka_unit_test(test_view),       cmocka_unit_test(test_restart_with_less),
		cmocka_unit_test(test_reselected), cmocka_unit_test(test_short_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
