/* SPDX-License-Identifier: Apache-2.0 */
/* The table of cgroups against a plain array that does the same the slow way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/cgroup.h"

static void test_add_find_update(void **state)
{
	struct cgroup_table *t = cgroup_table_new();
	struct cgroup *cg = cgroup_add(t, 7, "/a", 1, 0);

	assert_non_null(cg);
	assert_string_equal(cg->path, "/a");
	assert_int_equal(cg->level, 1);
	assert_true(cg->resolved);
	assert_false(cg->ended);
	assert_ptr_equal(cgroup_find(t, 7), cg);
	assert_null(cgroup_find(t, 8));
	/* the same again changes nothing; another path is a rename; a birth becomes known once */
	assert_ptr_equal(cgroup_add(t, 7, "/a", 1, 0), cg);
	assert_int_equal(cg->renamed, 0);
	assert_ptr_equal(cgroup_add(t, 7, "/b", 1, 55), cg);
	assert_int_equal(cg->renamed, 1);
	assert_int_equal(cg->born_ns, 55);
	cgroup_add(t, 7, "/b", 1, 66);
	assert_int_equal(cg->born_ns, 55);
	assert_int_equal(cgroup_table_count(t), 1);
	cgroup_table_free(t);
	cgroup_table_free(NULL);
}

static void test_end_and_sweep(void **state)
{
	struct cgroup_table *t = cgroup_table_new();
	struct cgroup *kept = cgroup_add(t, 1, "/kept", 1, 0);

	cgroup_add(t, 2, "/gone", 1, 0);
	kept->in_use = true;
	cgroup_end(t, 1, 100);
	cgroup_end(t, 1, 200);
	cgroup_end(t, 2, 100);
	cgroup_end(t, 3, 100);
	assert_int_equal(kept->ended_ns, 100);
	assert_int_equal(cgroup_table_ended(t), 2);
	assert_ptr_equal(cgroup_next_ended(t, NULL), kept);
	assert_int_equal(cgroup_next_ended(t, kept)->id, 2);
	assert_null(cgroup_next_ended(t, cgroup_next_ended(t, kept)));
	cgroup_add(t, 1, "/kept", 1, 0); /* it is there after all */
	assert_int_equal(cgroup_next_ended(t, NULL)->id, 2);
	cgroup_end(t, 1, 150);
	assert_ptr_equal(cgroup_next_ended(t, cgroup_next_ended(t, NULL)), kept);
	assert_int_equal(cgroup_table_sweep(t, UINT64_MAX), 1);
	assert_null(cgroup_find(t, 2));
	assert_ptr_equal(cgroup_find(t, 1), kept);
	kept->in_use = false;
	assert_int_equal(cgroup_table_sweep(t, UINT64_MAX), 1);
	assert_int_equal(cgroup_table_count(t), 0);
	cgroup_table_free(t);
}

/* A directory of the same name that died earlier is not below the one that is renamed now. */
static void test_rename_below(void **state)
{
	struct cgroup_table *t = cgroup_table_new();
	const char *old;

	cgroup_add(t, 1, "/", 0, 0);
	cgroup_add(t, 2, "/a", 1, 0);
	cgroup_add(t, 3, "/a/x", 2, 0);
	cgroup_add(t, 4, "/a/x/y", 3, 0);
	cgroup_add(t, 5, "/ab", 1, 0);
	cgroup_add(t, 6, "/a/dead", 2, 0);
	cgroup_end(t, 6, 1);
	old = cgroup_find(t, 4)->path;
	cgroup_rename(t, 2, "/longer name");
	assert_string_equal(cgroup_find(t, 1)->path, "/");
	assert_string_equal(cgroup_find(t, 2)->path, "/longer name");
	assert_string_equal(cgroup_find(t, 3)->path, "/longer name/x");
	assert_string_equal(cgroup_find(t, 4)->path, "/longer name/x/y");
	assert_string_equal(cgroup_find(t, 5)->path, "/ab");
	assert_string_equal(cgroup_find(t, 6)->path, "/a/dead");
	assert_int_equal(cgroup_find(t, 4)->renamed, 1);
	assert_int_equal(cgroup_find(t, 5)->renamed, 0);
	assert_string_equal(old, "/a/x/y"); /* readable until the sweep */
	cgroup_rename(t, 99, "/nobody");
	cgroup_table_sweep(t, UINT64_MAX);
	cgroup_table_free(t);
}

/* Names are any bytes; a path the kernel cannot show either (PATH_MAX) is unresolved, and comes back. */
static void test_paths(void **state)
{
	struct cgroup_table *t = cgroup_table_new();
	char longest[CGROUP_PATH_MAX], name[300];
	struct cgroup *cg;

	assert_string_equal(cgroup_add(t, 1, "/\"q'\\,\xff\x01\xc3 *", 1, 0)->path, "/\"q'\\,\xff\x01\xc3 *");
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[CGROUP_PATH_MAX - 1] = '\0';
	cg = cgroup_add(t, 2, longest, 1, 0);
	assert_true(cg->resolved);
	assert_int_equal(strlen(cg->path), CGROUP_PATH_MAX - 1);
	cgroup_add(t, 3, "/dir", 1, 0);
	longest[3000] = '\0';
	memcpy(name, "/dir/", 5);
	memset(name + 5, 'n', 255);
	name[260] = '\0';
	cgroup_add(t, 4, name, 2, 0);
	longest[CGROUP_PATH_MAX - 100] = '\0';
	memset(longest + 1, 'b', CGROUP_PATH_MAX - 101);
	cgroup_rename(t, 3, longest);
	assert_false(cgroup_find(t, 4)->resolved);
	assert_string_equal(cgroup_find(t, 4)->path, "/?4");
	cgroup_add(t, 4, "/short", 1, 0);
	assert_true(cgroup_find(t, 4)->resolved);
	cgroup_table_free(t);
}

/* A record may hold anything: what is no path is kept by its number, and a rename of the root reads no further than it. */
static void test_no_paths(void **state)
{
	struct cgroup_table *t = cgroup_table_new();

	assert_non_null(cgroup_add(t, 1, "/", 0, 0));
	assert_string_equal(cgroup_add(t, 2, "", 1, 0)->path, "/?2");
	assert_string_equal(cgroup_add(t, 3, "a/b", 1, 0)->path, "/?3");
	assert_false(cgroup_find(t, 3)->resolved);
	cgroup_rename(t, 3, "");
	assert_string_equal(cgroup_find(t, 3)->path, "/?3");
	cgroup_rename(t, 1, "/r");
	assert_string_equal(cgroup_find(t, 2)->path, "/r/?2");
	cgroup_table_free(t);
}

static void test_select(void **state)
{
	char *include[] = { "/kubepods/**", "/user" }, *exclude[] = { "/kubepods/secret*" };
	const struct selection_rules rules = { .include = include, .n_include = 2, .exclude = exclude, .n_exclude = 1 };
	struct cgroup_table *t = cgroup_table_new();

	cgroup_add(t, 1, "/kubepods/pod1", 2, 0);
	cgroup_add(t, 2, "/system", 1, 0);
	assert_true(cgroup_find(t, 2)->selected); /* nothing configured: everything */
	cgroup_table_select(t, &rules);
	assert_true(cgroup_find(t, 1)->selected);
	assert_false(cgroup_find(t, 2)->selected);
	assert_false(cgroup_add(t, 3, "/kubepods/secret1", 2, 0)->selected);
	assert_true(cgroup_add(t, 4, "/user", 1, 0)->selected);
	cgroup_rename(t, 2, "/user");
	assert_true(cgroup_find(t, 2)->selected);
	cgroup_table_free(t);
}

#define MODEL 3000
struct model {
	bool known, ended, in_use;
};

static unsigned check_model(const struct cgroup_table *t, const struct model *m)
{
	unsigned n = 0, seen = 0, pos = 0;
	struct cgroup *cg;
	char path[32];

	for (unsigned i = 0; i < MODEL; i++) {
		cg = cgroup_find(t, i + 1);
		assert_int_equal(cg != NULL, m[i].known);
		if (!cg)
			continue;
		n++;
		snprintf(path, sizeof(path), "/c%u", i);
		assert_string_equal(cg->path, path);
		assert_int_equal(cg->ended, m[i].ended);
	}
	while ((cg = cgroup_next(t, &pos)))
		seen++;
	assert_int_equal(seen, n);
	assert_int_equal(cgroup_table_count(t), n);
	return n;
}

static void sweep_model(struct cgroup_table *t, struct model *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MODEL; i++) {
		if (m[i].known && m[i].ended && !m[i].in_use) {
			m[i] = (struct model){ 0 };
			n++;
		}
	}
	assert_int_equal(cgroup_table_sweep(t, UINT64_MAX), n);
}

static void test_random(void **state)
{
	struct model *m = calloc(MODEL, sizeof(*m));
	struct cgroup_table *t = cgroup_table_new();
	unsigned short seed[3] = { 1, 2, 3 };
	char path[32];

	for (unsigned step = 0; step < 200000; step++) {
		unsigned i = (unsigned)nrand48(seed) % MODEL, what = (unsigned)nrand48(seed) % 10;

		snprintf(path, sizeof(path), "/c%u", i);
		if (what < 4) {
			assert_non_null(cgroup_add(t, i + 1, path, 1, 0));
			m[i].known = true;
			m[i].ended = false;
		} else if (what < 7) {
			cgroup_end(t, i + 1, 1);
			m[i].ended = m[i].known;
		} else if (m[i].known) {
			cgroup_find(t, i + 1)->in_use = m[i].in_use = !m[i].in_use;
		}
		if (step % 1000 == 0)
			sweep_model(t, m);
		if (step % 5000 == 0)
			check_model(t, m);
	}
	assert_true(check_model(t, m) > 0);
	cgroup_table_free(t);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add_find_update), cmocka_unit_test(test_end_and_sweep),
		cmocka_unit_test(test_rename_below),    cmocka_unit_test(test_paths),
		cmocka_unit_test(test_no_paths),        cmocka_unit_test(test_select),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
