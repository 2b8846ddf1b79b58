/* SPDX-License-Identifier: Apache-2.0 */
/* The thread behind the names, and the way of a name through consumer, totals and their copies to the page:
 * one object, alive as long as anybody has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "encode/metrics/openmetrics.h"
#include "encode/totals/totals.h"
#include "encode/totals/totals.h"
#include "model/cgroup.h"
#include "model/recording/recording.h"
#include "serve/copy.h"
#include "source/names/names.h"
#include "temp_root.h"

#define POD "0d5f1c1e-8f2b-4b7a-9f61-2f1f0a5c7d11"
#define ID "d0f631ca1ddba8db3bcfcb9e057cdc98d0379f1bee00e75a545147a27dadd982"
#define PLACE "/kubepods/pod" POD "/" ID
#define BUNDLE "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json"

static const char *join(const struct names *n)
{
	static const enum name_field fields[] = {
		NAME_RUNTIME, NAME_NAMESPACE, NAME_POD, NAME_CONTAINER, NAME_MACHINE, NAME_UNIT, NAME_USER,
	};
	static char text[2048];
	size_t at = 0;

	for (unsigned i = 0; i < 7; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? "|" : "", names_text(n, fields[i]));
	return n ? text : "";
}

static void put_spec(const struct temp_root *t, const char *container)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"linux\":{\"cgroupsPath\":\"/kubepods/pod" POD "/" ID "\"},\"annotations\":{"
		 "\"io.kubernetes.cri.container-type\":\"container\",\"io.kubernetes.cri.sandbox-name\":\"p\","
		 "\"io.kubernetes.cri.sandbox-namespace\":\"n\",\"io.kubernetes.cri.container-name\":\"%s\"}}",
		 container);
	temp_root_put(t, BUNDLE, text);
}

/* Until the names of id are as expected; false after ten seconds. */
static bool wait_names(struct naming *n, struct cgroup_table *t, uint64_t id, const char *expected)
{
	for (int i = 0; i < 1000; i++) {
		const struct cgroup *cg = cgroup_find(t, id);

		naming_follow(n, t);
		if (cg && strcmp(join(cg->names), expected) == 0)
			return true;
		usleep(10000);
	}
	return false;
}

/* Asked once, answered by the path at first and by the files when they come; a rename asks again; an
 * end changes nothing; a sweep forgets. */
static void test_thread(void **state)
{
	struct temp_root t = temp_root_new();
	struct cgroup_table *table = cgroup_table_new();
	struct naming *n = NULL;

	assert_int_equal(naming_open(t.root, "/sys/fs/cgroup", &n), 0);
	assert_int_equal(naming_start(n), 0);
	assert_non_null(cgroup_add(table, 7, PLACE, 3, 1));
	assert_non_null(cgroup_add(table, 8, "/system.slice/a.service", 2, 1));
	assert_true(wait_names(n, table, 7, "kubernetes||||||"));
	put_spec(&t, "late");
	assert_true(wait_names(n, table, 7, "kubernetes|n|p|late|||"));
	assert_true(wait_names(n, table, 8, "systemd|||||a.service|"));
	cgroup_rename(table, 8, "/system.slice/b.service");
	assert_true(wait_names(n, table, 8, "systemd|||||b.service|"));
	cgroup_end(table, 7, 5);
	naming_follow(n, table);
	assert_string_equal(join(cgroup_find(table, 7)->names), "kubernetes|n|p|late|||");
	assert_int_equal(cgroup_table_sweep(table, 10), 1);
	/* the number comes again for somebody else */
	assert_non_null(cgroup_add(table, 7, "/lxc.payload.new", 1, 20));
	assert_null(cgroup_find(table, 7)->names);
	assert_true(wait_names(n, table, 7, "lxc|||new|||"));
	naming_close(n);
	cgroup_table_free(table);
	temp_root_free(&t);
}

/* What a path alone tells is there without the thread, which may have the lock for a moment. */
static void test_by_path(void **state)
{
	struct temp_root t = temp_root_new();
	struct cgroup_table *table = cgroup_table_new();
	struct naming *n = NULL;
	unsigned at_once = 0;
	char path[64];

	assert_int_equal(naming_open(t.root, "/sys/fs/cgroup", &n), 0);
	assert_int_equal(naming_start(n), 0);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "/user.slice/user-7.slice/%u.service", i);
		assert_non_null(cgroup_add(table, 100 + i, path, 3, 1));
		if (naming_follow(n, table))
			continue;
		snprintf(path, sizeof(path), "systemd|||||%u.service|7", i);
		assert_string_equal(join(cgroup_find(table, 100 + i)->names), path);
		at_once++;
	}
	assert_true(at_once > 0);
	assert_true(wait_names(n, table, 119, "systemd|||||19.service|7"));
	cgroup_rename(table, 119, "/plain");
	assert_true(wait_names(n, table, 119, ""));
	assert_non_null(cgroup_add(table, 7, PLACE, 3, 1));
	assert_true(naming_follow(n, table));
	assert_true(wait_names(n, table, 7, "kubernetes||||||"));
	naming_close(n);
	cgroup_table_free(table);
	temp_root_free(&t);
}

/* More at once than the queue holds: none is lost, and what ended before its answer does no harm. */
static void test_storm(void **state)
{
	struct temp_root t = temp_root_new();
	struct cgroup_table *table = cgroup_table_new();
	struct naming *n = NULL;
	char path[64];

	assert_int_equal(naming_open(t.root, "/sys/fs/cgroup", &n), 0);
	assert_int_equal(naming_start(n), 0);
	for (unsigned i = 1; i <= 10000; i++) {
		snprintf(path, sizeof(path), "/lxc/box-%u", i);
		assert_non_null(cgroup_add(table, i, path, 2, 1));
		if (i % 3 == 0)
			cgroup_end(table, i, 2);
	}
	naming_follow(n, table);
	cgroup_table_sweep(table, 10);
	for (unsigned i = 1; i <= 10000; i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "lxc|||box-%u|||", i);
		if (i % 3 != 0)
			assert_true(wait_names(n, table, i, expected));
		else
			assert_null(cgroup_find(table, i));
	}
	naming_close(n);
	cgroup_table_free(table);
	temp_root_free(&t);
}

/* All below a container have its names, and the very object: its files were read once. */
static void test_inside(void **state)
{
	struct temp_root t = temp_root_new();
	struct cgroup_table *table = cgroup_table_new();
	struct naming *n = NULL;
	char path[256];
	unsigned same = 0;

	put_spec(&t, "one");
	assert_int_equal(naming_open(t.root, "/sys/fs/cgroup", &n), 0);
	assert_int_equal(naming_start(n), 0);
	for (unsigned i = 1; i <= 1000; i++) {
		snprintf(path, sizeof(path), PLACE "/%u", i);
		assert_non_null(cgroup_add(table, i, path, 4, 1));
	}
	for (unsigned i = 1; i <= 1000; i++)
		assert_true(wait_names(n, table, i, "kubernetes|n|p|one|||"));
	for (unsigned i = 2; i <= 1000; i++)
		same += cgroup_find(table, i)->names == cgroup_find(table, i - 1)->names;
	assert_true(same > 900); /* a slow machine may take more than a second */
	naming_close(n);
	cgroup_table_free(table);
	temp_root_free(&t);
}

/* Never started, or stopped with work to do. */
static void test_close(void **state)
{
	struct temp_root t = temp_root_new();
	struct cgroup_table *table = cgroup_table_new();
	struct naming *n = NULL;

	naming_close(NULL);
	naming_follow(NULL, table);
	assert_int_equal(naming_start(NULL), 0);
	assert_int_equal(naming_open(t.root, "/sys/fs/cgroup", &n), 0);
	naming_follow(n, table);
	naming_close(n);
	assert_int_equal(naming_open(t.root, "/sys/fs/cgroup", &n), 0);
	assert_int_equal(naming_start(n), 0);
	for (unsigned i = 1; i < 100; i++)
		assert_non_null(cgroup_add(table, i, PLACE, 2, 1));
	naming_follow(n, table);
	naming_close(n);
	cgroup_table_free(table);
	temp_root_free(&t);
}

static struct names *make(const char *container)
{
	const struct names_draft d = { .field = { [NAME_RUNTIME] = "podman", [NAME_CONTAINER] = container } };

	return names_new(&d);
}

/* One interval of one cgroup with these names. */
static void fill(struct snapshot *s, const struct schema *schema, struct names *names)
{
	s->schema = schema;
	assert_int_equal(snapshot_reserve(s, 5, 1), 0);
	s->n_rows = 5;
	for (unsigned i = 0; i < 5; i++)
		s->rows[i] = (struct snap_row){ .kind = i < 4 ? (enum row_kind)i : ROW_CGROUP,
						.key = i,
						.generation = 1,
						.id = i,
						.path = i < 4 ? "x" : "/a",
						.selected = true,
						.time_ns = 1000000000 };
	s->rows[4].names = names;
}

/* The files of a short life come when nobody knows its cgroup any more, or no reading has it: its final value is named all
 * the same. */
static void late(bool swept, bool in_use)
{
	static struct cpu_desc cpus[1] = { { .present = true } };
	static struct schema schema = { .n_cpus = 1, .cpus = cpus };
	const struct totals_options o = { .keep_ns = UINT64_MAX };
	struct totals *totals = totals_new(&schema, &o);
	struct cgroup_table *table = cgroup_table_new();
	struct temp_root t = temp_root_new();
	struct names *names = NULL;
	struct naming *n = NULL;
	struct snapshot s = { 0 };
	uint64_t id = 0;

	assert_int_equal(naming_open(t.root, "/sys/fs/cgroup", &n), 0);
	assert_int_equal(naming_start(n), 0);
	assert_false(naming_late(NULL, &id, &names));
	assert_non_null(cgroup_add(table, 4, PLACE, 3, 1));
	assert_true(wait_names(n, table, 4, "kubernetes||||||"));
	fill(&s, &schema, cgroup_find(table, 4)->names);
	s.rows[4].ended = true;
	totals_add(totals, &s, NULL);
	cgroup_end(table, 4, 5);
	cgroup_find(table, 4)->in_use = in_use;
	if (swept)
		assert_int_equal(cgroup_table_sweep(table, 10), 1);
	assert_false(naming_late(n, &id, &names));
	put_spec(&t, "late");
	for (int i = 0; i < 1000 && !naming_late(n, &id, &names); i++) {
		usleep(10000);
		naming_follow(n, table);
	}
	assert_int_equal(id, 4);
	totals_name_late(totals, 5, names);
	assert_string_equal(join(totals->rows[TOTAL_FIRST_CGROUP].names), "kubernetes||||||");
	totals_name_late(totals, id, names);
	assert_string_equal(join(totals->rows[TOTAL_FIRST_CGROUP].names), "kubernetes|n|p|late|||");
	names_put(names);
	naming_close(n);
	cgroup_table_free(table);
	temp_root_free(&t);
	snapshot_free(&s);
	totals_free(totals);
	free(totals);
}

static void test_late(void **state)
{
	late(true, false);
	late(false, false);
	late(false, true);
}

/* As many as are looked for again have nothing to be found: one more is looked for all the same. */
static void test_displaced(void **state)
{
	struct temp_root t = temp_root_new();
	struct cgroup_table *table = cgroup_table_new();
	struct naming *n = NULL;
	char path[256];

	assert_int_equal(naming_open(t.root, "/sys/fs/cgroup", &n), 0);
	assert_int_equal(naming_start(n), 0);
	for (unsigned i = 1; i <= 1024; i++) {
		snprintf(path, sizeof(path), "/kubepods/pod" POD "/%064x", i);
		assert_non_null(cgroup_add(table, i, path, 3, 1));
	}
	for (unsigned i = 1; i <= 1024; i++)
		assert_true(wait_names(n, table, i, "kubernetes||||||"));
	assert_non_null(cgroup_add(table, 2000, PLACE, 3, 1));
	assert_true(wait_names(n, table, 2000, "kubernetes||||||"));
	put_spec(&t, "late");
	assert_true(wait_names(n, table, 2000, "kubernetes|n|p|late|||"));
	naming_close(n);
	cgroup_table_free(table);
	temp_root_free(&t);
}

/* The copies keep what they hold when the original goes, and let go of it when they are written anew. */
static void test_outputs(void **state)
{
	static struct cpu_desc cpus[1] = { { .present = true } };
	static struct schema schema = { .n_cpus = 1, .cpus = cpus };
	const struct totals_options o = { .keep_ns = 1 };
	struct totals *t = totals_new(&schema, &o), copy = { 0 };
	struct snapshot_copy held = { 0 };
	struct snapshot s = { 0 };
	struct buf page = { 0 }, labels = { 0 };
	struct names *first = make("we\"b"), *second = make("db");

	fill(&s, &schema, first);
	totals_add(t, &s, NULL);
	assert_int_equal(snapshot_copy(&held, &s), 0);
	assert_int_equal(totals_copy(&copy, t), 0);
	assert_int_equal(first->references, 4);
	fill(&s, &schema, second);
	totals_add(t, &s, NULL);
	assert_int_equal(snapshot_copy(&held, &s), 0);
	assert_int_equal(first->references, 2);
	names_put(first);
	assert_int_equal(openmetrics_write(&copy, NULL, false, &labels, &page), 0);
	buf_add_char(&page, '\0');
	assert_non_null(strstr((char *)page.data, "cpu_seconds_total{cgroup=\"/a\",container=\"we\\\"b\"} 1\n"));
	assert_int_equal(totals_copy(&copy, t), 0);
	buf_reset(&page);
	assert_int_equal(openmetrics_write(&copy, NULL, false, &labels, &page), 0);
	buf_add_char(&page, '\0');
	assert_non_null(strstr((char *)page.data, "cpu_seconds_total{cgroup=\"/a\",container=\"db\"} 2\n"));
	s.n_rows = 4;
	totals_add(t, &s, NULL); /* it ended */
	s.end_ns = 10;
	totals_add(t, &s, NULL); /* and was kept long enough */
	assert_int_equal(totals_copy(&copy, t), 0);
	assert_int_equal(second->references, 2);
	snapshot_copy_free(&held);
	assert_int_equal(second->references, 1);
	names_put(second);
	totals_free(&copy);
	totals_free(t);
	free(t);
	snapshot_free(&s);
	buf_free(&page);
	buf_free(&labels);
}

/* A recording keeps names, but for the ids; rows without any have none. */
static void test_recording(void **state)
{
	static struct cpu_desc cpus[1] = { { .present = true } };
	static struct schema schema = { .n_cpus = 1, .n_packages = 1, .cpus = cpus };
	const struct names_draft d = { .field = { "kubernetes", "n", "p", POD, "c<>\"", ID, NULL, "u.service", "7" } };
	struct names *names = names_new(&d);
	struct snapshot s = { 0 };
	struct snapshot *got;
	struct recording *r = NULL;
	struct buf out = { 0 };
	struct err err = { 0 };
	char path[] = "/tmp/jouled-names-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	fill(&s, &schema, names);
	recording_encode_header(&schema, &out);
	for (int i = 0; i < 2; i++)
		recording_encode(&s, true, &out);
	assert_int_equal(write(fd, out.data, out.len), out.len);
	close(fd);
	assert_int_equal(recording_open(path, &r, &err), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(recording_next(r, &got, &err), 1);
		assert_int_equal(got->n_rows, 5);
		assert_string_equal(join(got->rows[4].names), "kubernetes|n|p|c<>\"||u.service|7");
		assert_string_equal(names_text(got->rows[4].names, NAME_POD_UID), "");
		assert_null(got->rows[3].names);
	}
	recording_close(r);
	unlink(path);
	names_put(names);
	snapshot_free(&s);
	buf_free(&out);
}

static void test_title(void **state)
{
	static const struct {
		const char *space, *pod, *container, *machine, *unit, *title;
	} all[] = {
		{ "n", "p", "c", NULL, NULL, "n/p/c" },
		{ "n", "p", NULL, NULL, NULL, "n/p" },
		{ NULL, NULL, "c", NULL, "u.service", "c" },
		{ NULL, NULL, NULL, "m", NULL, "m" },
		{ NULL, NULL, NULL, NULL, "u.service", "u.service" },
		{ NULL, NULL, NULL, NULL, NULL, "" },
	};
	char title[64];

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct names_draft d = { .field = { [NAME_NAMESPACE] = all[i].space,
							  [NAME_POD] = all[i].pod,
							  [NAME_CONTAINER] = all[i].container,
							  [NAME_MACHINE] = all[i].machine,
							  [NAME_UNIT] = all[i].unit } };
		struct names *n = names_new(&d);

		assert_int_equal(names_title(n, title, sizeof(title)), strlen(all[i].title));
		assert_string_equal(title, all[i].title);
		names_put(n);
	}
	assert_int_equal(names_title(NULL, title, sizeof(title)), 0);
	assert_string_equal(names_text(NULL, NAME_POD), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread), cmocka_unit_test(test_by_path), cmocka_unit_test(test_storm),
		cmocka_unit_test(test_inside), cmocka_unit_test(test_close),   cmocka_unit_test(test_displaced),
		cmocka_unit_test(test_late),   cmocka_unit_test(test_outputs), cmocka_unit_test(test_recording),
		cmocka_unit_test(test_title),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
