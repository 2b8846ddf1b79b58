/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a configuration: groups by interval, the formula, and which outputs a reload keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/plan/plan.h"
#include "base/loop.h"

#define SECOND 1000000000ull

static struct schema schema;
static struct loop *loop;
static char dir[] = "/tmp/jouled-plan-XXXXXX", kept[64], other[64], path[64];

static int begin(void **state)
{
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(kept, sizeof(kept), "power=file://%s/kept", dir);
	snprintf(other, sizeof(other), "table=file://%s/other", dir);
	snprintf(path, sizeof(path), "%s/yaml", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	fclose(f);
	snprintf(schema.sensor, sizeof(schema.sensor), "node");
	return loop_start(&loop);
}

static int end(void **state)
{
	static const char *const names[] = { "kept", "other", "yaml" };
	char name[96];

	loop_stop(loop);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", dir, names[i]);
		unlink(name);
	}
	return rmdir(dir);
}

/* Flags up to a NULL. */
static struct plan *plan_of(struct plan *old, const char *const *flags)
{
	char *argv[16] = { "jouled", "-c", path, "--socket", "none" };
	struct plan_options o = { .schema = &schema, .loop = loop, .old = old };
	struct plan *p = NULL;
	struct err err = { 0 };
	enum config_action action;
	int argc = 5;

	while (*flags)
		argv[argc++] = (char *)*flags++;
	assert_int_equal(config_load(argc, argv, &o.config, &action, &err), 0);
	if (plan_new(&o, &p, &err) != 0)
		fail_msg("%s", err.text);
	return p;
}

static unsigned count(const struct plan *p)
{
	unsigned n = 0;

	for (const struct output *o = p->outputs; o; o = o->next)
		n++;
	return n;
}

static void test_groups(void **state)
{
	static const char *const none[] = { NULL }, *const three[] = {
		"-i",        "2s",   "-o", "null:", "-o", "null:?interval=500ms", "-o", "null:?interval=2s",
		"--formula", "none", NULL
	};
	struct plan *p = plan_of(NULL, none);

	assert_int_equal(count(p), 1);
	assert_true(plan_only_stdout(p));
	assert_string_equal(p->formula.ops->name, "share");
	assert_int_equal(plan_free(p), 0);

	p = plan_of(NULL, three);
	assert_int_equal(count(p), 3);
	assert_false(plan_only_stdout(p));
	assert_string_equal(p->formula.ops->name, "none");
	assert_int_equal(p->n_groups, 2);
	assert_int_equal(p->groups[0].tap.interval_ns, 2 * SECOND);
	assert_int_equal(p->groups[0].n, 2);
	assert_int_equal(p->groups[1].tap.interval_ns, SECOND / 2);
	assert_int_equal(p->groups[1].n, 1);
	assert_ptr_equal(p->groups[1].outputs[0], p->outputs->next);
	assert_int_equal(plan_free(p), 0);
}

/* A reload keeps what is written alike, whatever its interval, and closes the rest with the old plan. */
static void test_reload(void **state)
{
	const char *const before[] = { "-o", kept, "-o", other, NULL }, *const after[] = { "-i", "5s", "-o", kept,
											   NULL };
	struct plan *old = plan_of(NULL, before), *new = plan_of(old, after);
	struct sink *sink = old->outputs->parts[0].sink;

	assert_non_null(sink);
	assert_null(new->outputs->parts[0].sink); /* the measuring thread still uses it */
	plan_take(new, old);
	assert_ptr_equal(new->outputs->parts[0].sink, sink);
	assert_int_equal(new->outputs->interval_ns, 5 * SECOND);
	assert_int_equal(count(new), 1);
	assert_int_equal(count(old), 1);
	assert_int_equal(plan_free(old), 0);
	assert_int_equal(plan_free(new), 0);
}

/* What the patterns of a kept output chose goes with the old plan; the leak sanitizer looks at the end. */
static void test_reload_with_patterns(void **state)
{
	static char kept_few[96];
	const char *const flags[] = { "-o", kept_few, NULL };
	struct snapshot snap = { .schema = &schema };
	struct plan *old, *new;

	snprintf(kept_few, sizeof(kept_few), "%s?cgroups=/a", kept);
	old = plan_of(NULL, flags);
	assert_int_equal(snapshot_reserve(&snap, 1, 1), 0);
	snap.n_rows = 1;
	snap.rows[0] = (struct snap_row){ .kind = ROW_CGROUP, .path = "/a", .selected = true };
	for (unsigned i = 0; i < 2; i++) {
		struct str_list *globs = &old->outputs->config.cgroups;

		assert_non_null(selection_of(&old->outputs->selection, &snap, globs->v, globs->n));
		new = plan_of(old, flags);
		plan_take(new, old);
		assert_int_equal(count(old), 0);
		assert_int_equal(plan_free(old), 0);
		old = new;
	}
	assert_int_equal(plan_free(old), 0);
	snapshot_free(&snap);
}

static void test_given_up(void **state)
{
	const char *const before[] = { "-o", kept, NULL }, *const after[] = { "-o", kept, "-o", other, NULL };
	struct plan *old = plan_of(NULL, before), *again;
	struct sink *sink = old->outputs->parts[0].sink;

	plan_give_up(plan_of(old, after));
	assert_null(old->outputs->twin);
	assert_ptr_equal(old->outputs->parts[0].sink, sink);
	again = plan_of(old, after);
	plan_take(again, old);
	assert_ptr_equal(again->outputs->parts[0].sink, sink);
	assert_int_equal(plan_free(old), 0);
	assert_int_equal(plan_free(again), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_reload_with_patterns),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
