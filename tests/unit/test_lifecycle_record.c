/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the ring into the table, without a kernel: what a record says about paths, levels and
 * order, and records that no kernel would write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "source/cgroup/walk.h"

static unsigned moved_calls, moved_cpu;

static void on_moved(void *ctx, unsigned cpu)
{
	moved_calls++;
	moved_cpu = cpu;
}

/* No mount: a path that does not fit cannot be asked for. */
static void start(struct lifecycle *l)
{
	memset(l, 0, sizeof(*l));
	l->mount_fd = l->self_fd = -1;
	l->table = cgroup_table_new();
	l->hooks.task_moved = on_moved;
	moved_calls = 0;
}

static void give(struct lifecycle *l, uint32_t kind, uint64_t id, const char *path, uint32_t level,
		 uint32_t mount_level)
{
	struct jd_lifecycle_event e = { .kind = kind,
					.cgroup_id = id,
					.mono_ns = 1000 + id,
					.level = level,
					.mount_level = mount_level,
					.path_len = (uint32_t)strlen(path) };

	memcpy(e.path, path, e.path_len + 1);
	if (e.path_len == JD_PATH_MAX - 1)
		e.flags = JD_PATH_TRUNCATED;
	assert_int_equal(lifecycle_record(l, &e, offsetof(struct jd_lifecycle_event, path) + e.path_len + 1), 0);
}

static void expect(const struct lifecycle *l, uint64_t id, const char *path, unsigned level, bool ended)
{
	const struct cgroup *cg = cgroup_find(l->table, id);

	assert_non_null(cg);
	assert_string_equal(cg->path, path);
	assert_int_equal(cg->level, level);
	assert_int_equal(cg->ended, ended);
}

static void test_order(void **state)
{
	struct lifecycle l;

	start(&l);
	give(&l, JD_CGROUP_MKDIR, 5, "/a", 1, 0);
	give(&l, JD_CGROUP_MKDIR, 6, "/a/b", 2, 0);
	give(&l, JD_CGROUP_RENAME, 5, "/z", 1, 0);
	expect(&l, 6, "/z/b", 2, false);
	assert_int_equal(cgroup_find(l.table, 6)->born_ns, 1006);
	/* older than the walk that saw the new name: says nothing about the path */
	give(&l, JD_CGROUP_MKDIR, 6, "/a/b", 2, 0);
	expect(&l, 6, "/z/b", 2, false);
	give(&l, JD_CGROUP_RMDIR, 6, "/z/b", 2, 0);
	expect(&l, 6, "/z/b", 2, true);
	/* births that were lost: the end and the rename still name it */
	give(&l, JD_CGROUP_RMDIR, 7, "/gone", 1, 0);
	expect(&l, 7, "/gone", 1, true);
	assert_int_equal(cgroup_find(l.table, 7)->ended_ns, 1007);
	give(&l, JD_CGROUP_RENAME, 8, "/new", 1, 0);
	expect(&l, 8, "/new", 1, false);
	assert_int_equal(l.taken, 7);
	assert_int_equal(l.renames, 2);
	cgroup_table_free(l.table);
}

static void test_part_of_the_tree(void **state)
{
	struct lifecycle l;

	start(&l);
	give(&l, JD_CGROUP_MKDIR, 1, "/kubepods/pod", 2, 2);
	give(&l, JD_CGROUP_MKDIR, 2, "/kubepods/pod/c/d", 4, 2);
	give(&l, JD_CGROUP_MKDIR, 3, "/system", 1, JD_OUTSIDE);
	expect(&l, 1, "/", 0, false);
	expect(&l, 2, "/c/d", 2, false);
	expect(&l, 3, "/system", 1, false);
	/* more components above the mount than the path has */
	give(&l, JD_CGROUP_MKDIR, 4, "/x", 1, 60);
	expect(&l, 4, "/", 1, false);
	cgroup_table_free(l.table);
}

static void test_cut_paths(void **state)
{
	char cut[JD_PATH_MAX], want[JD_PATH_MAX + 32];
	struct lifecycle l;

	memset(cut, 'n', sizeof(cut));
	cut[0] = cut[200] = cut[400] = '/';
	cut[JD_PATH_MAX - 1] = '\0';
	start(&l);
	give(&l, JD_CGROUP_MKDIR, 77, cut, 9, 0);
	snprintf(want, sizeof(want), "%.400s/?77", cut);
	expect(&l, 77, want, 9, false);
	assert_false(cgroup_find(l.table, 77)->resolved);
	assert_int_equal(l.n_pending, 1);
	give(&l, JD_CGROUP_MKDIR, 77, cut, 9, 0);
	assert_int_equal(l.n_pending, 1);
	give(&l, JD_CGROUP_RMDIR, 77, cut, 9, 0);
	assert_true(cgroup_find(l.table, 77)->ended);
	lifecycle_settle_pending(&l);
	assert_int_equal(l.n_pending, 0);
	/* more of them than are asked for one by one: a walk */
	for (unsigned i = 0; i < LIFECYCLE_PENDING + 1; i++)
		give(&l, JD_CGROUP_MKDIR, 100 + i, cut, 9, 0);
	assert_int_equal(l.n_pending, LIFECYCLE_PENDING);
	assert_true(l.walk_wanted);
	cgroup_table_free(l.table);
}

static void test_moves(void **state)
{
	struct jd_lifecycle_event e = { .kind = JD_TASK_MOVED, .cpu = 3 };
	size_t n = offsetof(struct jd_lifecycle_event, path) + 1;
	struct lifecycle l;

	start(&l);
	lifecycle_record(&l, &e, n);
	assert_int_equal(moved_calls, 1);
	assert_int_equal(moved_cpu, 3);
	l.resolving = true; /* in the middle of a reading: later */
	lifecycle_record(&l, &e, n);
	assert_int_equal(moved_calls, 1);
	assert_true(l.moves_owed);
	l.resolving = false;
	e.cpu = JD_EVERY_CPU;
	lifecycle_record(&l, &e, n);
	assert_true(moved_calls >= 2);
	l.hooks.task_moved = NULL;
	lifecycle_record(&l, &e, n);
	cgroup_table_free(l.table);
}

/* Lengths that do not fit together, a missing end, unknown kinds: dropped whole. */
static void test_broken_records(void **state)
{
	struct jd_lifecycle_event e = { .kind = JD_CGROUP_MKDIR, .cgroup_id = 1, .path_len = 4, .path = "/abc" };
	size_t head = offsetof(struct jd_lifecycle_event, path);
	struct lifecycle l;

	start(&l);
	for (size_t n = 0; n < head + 5; n++) {
		void *exact = malloc(n ? n : 1); /* reading beyond it is seen by the sanitizer */

		memcpy(exact, &e, n);
		lifecycle_record(&l, exact, n);
		free(exact);
	}
	e.path_len = 3; /* no NUL there */
	lifecycle_record(&l, &e, head + 5);
	e.path_len = UINT32_MAX;
	lifecycle_record(&l, &e, sizeof(e));
	lifecycle_record(&l, &e, sizeof(e) + 1);
	assert_int_equal(l.taken, 0);
	assert_int_equal(cgroup_table_count(l.table), 0);
	e.path_len = 4;
	e.kind = 99;
	lifecycle_record(&l, &e, head + 5);
	assert_int_equal(cgroup_table_count(l.table), 0);
	cgroup_table_free(l.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order), cmocka_unit_test(test_part_of_the_tree), cmocka_unit_test(test_cut_paths),
		cmocka_unit_test(test_moves), cmocka_unit_test(test_broken_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
