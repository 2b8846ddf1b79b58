/* SPDX-License-Identifier: Apache-2.0 */
/* The words for groups, and the part of a path that is a group's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/grouping.h"

static void test_words(void **state)
{
	static const char *const wrong[] = { "",        "pods",     "depth",   "depth 0",   "depth 33",
					     "depth x", "depth  2", "slice 2", "namespace " };
	static const struct {
		struct grouping g;
		const char *path, *group;
	} paths[] = {
		{ { GROUP_DEPTH, 1 }, "/", "/" },
		{ { GROUP_DEPTH, 1 }, "/a/b/c", "/a" },
		{ { GROUP_DEPTH, 3 }, "/a/b/c", "/a/b/c" },
		{ { GROUP_DEPTH, 9 }, "/a/b/c", "/a/b/c" },
		{ { GROUP_SLICE, 0 }, "/", "/" },
		{ { GROUP_SLICE, 0 }, "/init.scope", "/" },
		{ { GROUP_SLICE, 0 }, "/.slice/x", "/" },
		{ { GROUP_SLICE, 0 }, "/a.slice", "/a.slice" },
		{ { GROUP_SLICE, 0 }, "/a.slice/a-b.slice/c.service", "/a.slice/a-b.slice" },
		/* a container's own slices are not the machine's */
		{ { GROUP_SLICE, 0 }, "/a.slice/b.scope/c.slice/d", "/a.slice" },
		{ { GROUP_SLICE, 0 }, "/docker/b/c.slice", "/" },
	};
	struct grouping g;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(grouping_parse(wrong[i], &g));
	assert_true(grouping_parse("namespace", &g) && g.kind == GROUP_NAMESPACE && grouping_by_names(&g));
	assert_true(grouping_parse("slice", &g) && g.kind == GROUP_SLICE && !grouping_by_names(&g));
	assert_true(grouping_parse("depth 2", &g) && g.kind == GROUP_DEPTH && g.depth == 2);
	assert_true(grouping_parse("job", &g) && g.kind == GROUP_JOB && grouping_by_names(&g));
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t len = grouping_path(&paths[i].g, paths[i].path);

		assert_int_equal(len, strlen(paths[i].group));
		assert_memory_equal(paths[i].path, paths[i].group, len);
	}
}

/* The steps of a job are one group; another user's job of that number, from another cluster, is not in it. */
static void test_jobs(void **state)
{
	static const struct names_draft drafts[] = {
		{ .field = { [NAME_RUNTIME] = "slurm", [NAME_JOB] = "4711", [NAME_STEP] = "0", [NAME_USER] = "1000" } },
		{ .field = { [NAME_RUNTIME] = "slurm", [NAME_JOB] = "4711", [NAME_STEP] = "batch", [NAME_USER] = "1000" } },
		{ .field = { [NAME_RUNTIME] = "slurm", [NAME_JOB] = "4712", [NAME_STEP] = "0", [NAME_USER] = "1000" } },
		{ .field = { [NAME_RUNTIME] = "slurm", [NAME_JOB] = "4711", [NAME_STEP] = "0", [NAME_USER] = "1001" } },
		{ .field = { [NAME_UNIT] = "a.service", [NAME_USER] = "1000" } },
	};
	const struct grouping by = { .kind = GROUP_JOB };
	char keys[5][GROUPING_KEY_MAX];

	for (unsigned i = 0; i < 5; i++) {
		struct names *n = names_new(&drafts[i]);
		struct names_draft d;

		assert_int_equal(grouping_names(&by, n, &d), i < 4);
		assert_null(d.field[NAME_STEP]);
		grouping_key(&d, keys[i]);
		names_put(n);
	}
	assert_string_equal(keys[0], keys[1]);
	assert_string_not_equal(keys[0], keys[2]);
	assert_string_not_equal(keys[0], keys[3]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words), cmocka_unit_test(test_jobs) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
