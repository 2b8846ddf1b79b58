/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroup of a process by its file in /proc: the line of the right hierarchy, below the right mount. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include "source/cgroup/process_cgroup.h"
#include "temp_root.h"

static void check(const char *file, bool v2, const char *subdir, const char *want)
{
	struct hierarchy h = { .v2 = v2 };
	struct temp_root t = temp_root_new();
	char path[256] = "";
	int rc;

	strcpy(h.subdir, subdir);
	temp_root_put(&t, "/proc/7/cgroup", file);
	rc = process_cgroup_path(t.root, &h, 7, path, sizeof(path));
	assert_int_equal(rc, want ? 0 : -ENOENT);
	if (want)
		assert_string_equal(path, want);
	temp_root_free(&t);
}

static void test_line(void **state)
{
	static const char v1[] =
		"12:memory:/perf_event/a\n11:cpu,cpuacct:/b\n4:perf_event:/c/d\n1:name=systemd:/e\n0::/f\n";

	check(v1, false, "/", "/c/d");
	check(v1, true, "/", "/f");
	check("4:cpu,perf_event:/c\n", false, "/", "/c");
	check("4:cpu,perf_events:/c\n", false, "/", NULL);
	check("4:perf_event\n", false, "/", NULL);
	check("nonsense\n", false, "/", NULL);
}

/* A mount of a part of the hierarchy. */
static void test_part(void **state)
{
	check("0::/kubepods/x\n", true, "/kubepods", "/x");
	check("0::/kubepods\n", true, "/kubepods", "/");
	check("0::/kubepods-other/x\n", true, "/kubepods", "/kubepods-other/x");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_line), cmocka_unit_test(test_part) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
