/* SPDX-License-Identifier: Apache-2.0 */
/* Which hierarchy is accounted: every captured machine with an expect-hierarchy file, and mount
 * tables made to mislead. A line of expect-hierarchy: MODE KIND ID MOUNT SUBDIR whole|part, or
 * MODE error TEXT (part of the message). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>

#include "source/cgroup/hierarchy.h"
#include "temp_root.h"

#define SYSROOT "tests/sysroot"
#define MOUNTINFO "/proc/self/mountinfo"

static enum hierarchy_mode mode_of(const char *name)
{
	if (strcmp(name, "auto") == 0)
		return HIERARCHY_AUTO;
	assert_true(strcmp(name, "v1") == 0 || strcmp(name, "v2") == 0);
	return strcmp(name, "v1") == 0 ? HIERARCHY_V1 : HIERARCHY_V2;
}

static void check_line(const struct fsroot *root, const char *line)
{
	char mode[8], kind[8], mount[128], subdir[128], extent[8];
	struct hierarchy h = { .id = 77 };
	struct err err = { 0 };
	unsigned id;
	int text = 0, rc;

	assert_true(sscanf(line, "%7s error %n", mode, &text) == 1);
	rc = hierarchy_detect(root, mode_of(mode), &h, &err);
	if (text) {
		assert_int_equal(rc, -ENOENT);
		assert_int_equal(err.code, -ENOENT);
		assert_non_null(strstr(err.text, line + text));
		assert_int_equal(h.id, 77);
		return;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(sscanf(line, "%7s %7s %u %127s %127s %7s", mode, kind, &id, mount, subdir, extent), 6);
	assert_int_equal(h.v2, strcmp(kind, "v2") == 0);
	assert_int_equal(h.id, id);
	assert_string_equal(h.mount, mount);
	assert_string_equal(h.subdir, subdir);
	assert_int_equal(h.private_namespace, strcmp(extent, "part") == 0);
	assert_true(h.reason[0] != '\0');
}

static unsigned check_machine(const char *name)
{
	char path[512], text[4096], *line, *save = NULL;
	struct fsroot *root;
	unsigned n = 0;
	int rc;

	snprintf(path, sizeof(path), SYSROOT "/%s", name);
	rc = fsroot_open(path, &root);
	if (rc == -ENOTDIR)
		return 0;
	assert_int_equal(rc, 0);
	if (fsroot_read(root, "/expect-hierarchy", text, sizeof(text)) > 0) {
		assert_true(fsroot_exists(root, "/source"));
		for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save), n++) {
			print_message("%s: %s\n", name, line);
			check_line(root, line);
		}
	}
	fsroot_close(root);
	return n;
}

static void test_captured_machines(void **state)
{
	DIR *d = opendir(SYSROOT);
	const struct dirent *e;
	unsigned lines = 0;

	(void)state;
	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			lines += check_machine(e->d_name);
	closedir(d);
	assert_true(lines >= 18);
}

static struct hierarchy detect(const struct temp_root *t, const char *mountinfo, enum hierarchy_mode mode)
{
	struct hierarchy h = { 0 };
	struct err err = { 0 };

	temp_root_put(t, MOUNTINFO, mountinfo);
	assert_int_equal(hierarchy_detect(t->root, mode, &h, &err), 0);
	return h;
}

/* proc_pid_mountinfo(5): blank, tab, newline and backslash are \040 \011 \012 \134; any number of
 * optional fields stands before the dash, none included. */
static void test_escapes_and_optional_fields(void **state)
{
	struct temp_root t = temp_root_new();
	struct hierarchy h;

	(void)state;
	h = detect(&t, "1 0 0:1 / /a\\040b\\134040\\011c rw - cgroup2 none rw\n", HIERARCHY_AUTO);
	assert_string_equal(h.mount, "/a b\\040\tc");
	h = detect(&t, "1 0 0:1 / /x rw shared:1 master:2 propagate_from:3 unbindable - cgroup2 none rw",
		   HIERARCHY_AUTO);
	assert_string_equal(h.mount, "/x");
	h = detect(&t, "1 0 0:1 /\\412\\08 /\\12 rw - cgroup2 none rw\n", HIERARCHY_AUTO);
	assert_string_equal(h.mount, "/\\12");
	assert_string_equal(h.subdir, "/\\412\\08");
	temp_root_free(&t);
}

static void test_words_that_only_look_alike(void **state)
{
	struct temp_root t = temp_root_new();
	struct hierarchy h;

	(void)state;
	/* perf_event as a part of another word, as a path, as the source of a cgroup2 */
	h = detect(&t,
		   "1 0 0:1 / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,name=perf_event\n"
		   "2 0 0:2 / /c2 rw - cgroup perf_event rw,perf_event_x,xperf_event\n"
		   "3 0 0:3 / /c3 rw - cgroup2 perf_event rw\n"
		   "4 0 0:4 / /c4 rw - tmpfs cgroup2 rw,perf_event\n"
		   "5 0 0:5 / /c5 rw - cgroup2\n"
		   "6 0 0:6 / /c6 rw cgroup2 none rw\n"
		   "\n7 0\n",
		   HIERARCHY_AUTO);
	assert_true(h.v2);
	assert_string_equal(h.mount, "/c3");
	temp_root_free(&t);
}

static void test_hidden_mounts(void **state)
{
	struct temp_root t = temp_root_new();
	struct hierarchy h = { 0 };
	struct err err = { 0 };

	(void)state;
	h = detect(&t,
		   "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n"
		   "2 0 0:2 / /sys/fs/cgroup-not rw - tmpfs none rw\n"
		   "3 0 0:3 / /sys/fs/cgroup/below rw - tmpfs none rw\n",
		   HIERARCHY_AUTO);
	assert_string_equal(h.mount, "/sys/fs/cgroup");
	temp_root_put(&t, MOUNTINFO,
		      "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n2 0 0:2 / /sys rw - sysfs none rw\n");
	assert_int_equal(hierarchy_detect(t.root, HIERARCHY_AUTO, &h, &err), -ENOENT);
	assert_non_null(strstr(err.text, "mount -t cgroup2"));
	temp_root_put(&t, MOUNTINFO, "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n2 0 0:2 / / rw - tmpfs none rw\n");
	assert_int_equal(hierarchy_detect(t.root, HIERARCHY_AUTO, &h, &err), -ENOENT);
	temp_root_free(&t);
}

/* In a container the host's tree may be bind-mounted beside its own part; its root field is then
 * relative to the namespace. The directory without cgroup.events is the real root. */
static void test_host_tree_beside_own(void **state)
{
	static const char own[] = "1 0 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
	static const char host[] = "2 0 0:30 /../../.. /host/cgroup rw - cgroup2 cgroup rw\n";
	struct temp_root t = temp_root_new();
	char both[512];
	struct hierarchy h;

	(void)state;
	temp_root_put(&t, "/sys/fs/cgroup/cgroup.procs", "");
	temp_root_put(&t, "/sys/fs/cgroup/cgroup.events", "populated 1\n");
	temp_root_put(&t, "/host/cgroup/cgroup.procs", "");
	for (int i = 0; i < 2; i++) {
		snprintf(both, sizeof(both), "%s%s", i ? own : host, i ? host : own);
		h = detect(&t, both, HIERARCHY_AUTO);
		assert_string_equal(h.mount, "/host/cgroup");
		assert_string_equal(h.subdir, "/");
		assert_false(h.private_namespace);
	}
	h = detect(&t, own, HIERARCHY_AUTO);
	assert_true(h.private_namespace);
	assert_non_null(strstr(h.reason, "only a part"));
	temp_root_free(&t);
}

/* Docker on v1: the container's own directory of each controller, bind-mounted. */
static void test_v1_container(void **state)
{
	struct temp_root t = temp_root_new();
	struct hierarchy h;

	(void)state;
	temp_root_put(&t, "/sys/fs/cgroup/perf_event/cgroup.procs", "1\n");
	temp_root_put(&t, "/proc/self/cgroup",
		      "12:pids:/docker/c33988ec\n9:net_cls,perf_event:/docker/c33988ec\n0::/x\n");
	h = detect(
		&t,
		"521 516 0:34 /docker/c33988ec /sys/fs/cgroup/perf_event ro,relatime master:18 - cgroup cgroup rw,net_cls,perf_event\n",
		HIERARCHY_AUTO);
	assert_false(h.v2);
	assert_int_equal(h.id, 9);
	assert_string_equal(h.subdir, "/docker/c33988ec");
	assert_true(h.private_namespace);
	temp_root_put(&t, "/proc/cgroups",
		      "#subsys_name\thierarchy\tnum_cgroups\tenabled\nnet_cls\t3\t1\t1\nperf_event\t3\t1\t1\n");
	h = detect(
		&t,
		"521 516 0:34 /docker/c33988ec /sys/fs/cgroup/perf_event ro,relatime master:18 - cgroup cgroup rw,net_cls,perf_event\n",
		HIERARCHY_V1);
	assert_int_equal(h.id, 3);
	assert_string_equal(h.reason, "configured; only a part of the tree is visible from here");
	temp_root_free(&t);
}

/* A line longer than any of the kernel's is skipped whole, the ones around it are read; two paths
 * of the longest kind fit. */
static void test_long_lines(void **state)
{
	struct temp_root t = temp_root_new();
	char *text = malloc(200000), *p = text;
	struct hierarchy h;

	(void)state;
	assert_non_null(text);
	p += sprintf(p, "1 0 0:1 / /");
	memset(p, 'x', 40000);
	p += 40000;
	p += sprintf(p, " rw - cgroup2 none rw\n2 0 0:2 / /");
	for (int i = 0; i < 4000; i++)
		p += sprintf(p, "\\040");
	p += sprintf(p, " rw - ext4 none rw\n3 0 0:3 / /");
	memset(p, 'y', 4094);
	p += 4094;
	strcpy(p, " rw - cgroup2 none rw");
	h = detect(&t, text, HIERARCHY_AUTO);
	assert_int_equal(strlen(h.mount), 4095);
	assert_int_equal(h.mount[4094], 'y');
	strcpy(p, "y rw - cgroup2 none rw\n4 0 0:4 / /z rw - cgroup2 none rw\n");
	h = detect(&t, text, HIERARCHY_AUTO);
	assert_string_equal(h.mount, "/z");
	free(text);
	temp_root_free(&t);
}

static void test_no_mount_table(void **state)
{
	struct temp_root t = temp_root_new();
	struct hierarchy h = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(hierarchy_detect(t.root, HIERARCHY_AUTO, &h, &err), -ENOENT);
	assert_non_null(strstr(err.text, "mount proc at /proc"));
	temp_root_put(&t, MOUNTINFO, "");
	assert_int_equal(hierarchy_detect(t.root, HIERARCHY_AUTO, &h, &err), -ENOENT);
	assert_int_equal(hierarchy_detect(t.root, HIERARCHY_V1, &h, &err), -ENOENT);
	assert_non_null(strstr(err.text, "mount -t cgroup -o perf_event"));
	temp_root_free(&t);
}

/* On this machine the answer agrees with /proc/cgroups: v1 exactly where perf_event has a hierarchy there. */
static void test_this_machine(void **state)
{
	struct fsroot *root;
	struct hierarchy h = { 0 };
	struct err err = { 0 };
	FILE *f = fopen("/proc/cgroups", "re");
	char line[256];
	unsigned id = 0;
	int rc;

	(void)state;
	assert_int_equal(fsroot_open("/", &root), 0);
	rc = hierarchy_detect(root, HIERARCHY_AUTO, &h, &err);
	fsroot_close(root);
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "perf_event %u", &id);
	if (f)
		fclose(f);
	if (rc == -ENOENT) {
		printf("SKIP hierarchy_live: %s\n", err.text);
		return;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(h.id, h.v2 ? 0 : id);
	snprintf(line, sizeof(line), "%.200s/cgroup.procs", h.mount);
	f = fopen(line, "re");
	assert_non_null(f);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captured_machines),
		cmocka_unit_test(test_escapes_and_optional_fields),
		cmocka_unit_test(test_words_that_only_look_alike),
		cmocka_unit_test(test_hidden_mounts),
		cmocka_unit_test(test_host_tree_beside_own),
		cmocka_unit_test(test_v1_container),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_no_mount_table),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
