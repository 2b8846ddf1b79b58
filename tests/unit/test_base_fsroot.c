/* SPDX-License-Identifier: Apache-2.0 */
/* The rooted view of a machine: nothing leads out of a captured directory, with openat2 and without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fsroot.h"

static char dir[] = "/tmp/jouled-fsroot-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void make_link(const char *name, const char *target)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(symlink(target, path), 0);
}

static int setup(void **state)
{
	char path[256];

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/sys", dir);
	mkdir(path, 0755);
	put("sys/value", "4095\n");
	put("sys/bad", "12x\n");
	put("sys/empty", "");
	put("sys/two", "a\nb\n\n");
	make_link("sys/inside", "value");
	make_link("sys/absolute", "/sys/value");
	make_link("sys/escape", "../../../../../../etc/passwd");
	make_link("sys/etc", "/etc");
	snprintf(path, sizeof(path), "%s/sys/fifo", dir);
	return mkfifo(path, 0600);
}

static int teardown(void **state)
{
	static const char *const names[] = {
		"sys/value", "sys/bad",  "sys/empty", "sys/two", "sys/inside", "sys/absolute", "sys/escape",
		"sys/etc",   "sys/fifo", "sys",       ""
	};
	char path[256];

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (remove(path) != 0)
			return -1;
	}
	return 0;
}

static void test_captured(void **state)
{
	struct fsroot *r;
	char text[64];
	uint64_t v = 9;

	(void)state;
	assert_int_equal(fsroot_open(dir, &r), 0);
	assert_false(fsroot_is_live(r));
	assert_string_equal(fsroot_dir(r), dir);
	assert_int_equal(fsroot_read_u64(r, "/sys/value", &v), 0);
	assert_int_equal(v, 4095);
	assert_int_equal(fsroot_read_u64(r, "/sys/bad", &v), -EINVAL);
	assert_int_equal(v, 4095);
	assert_int_equal(fsroot_read_u64(r, "/sys/absolute", &v), 0);
	assert_int_equal(fsroot_read(r, "sys/inside", text, sizeof(text)), 4);
	assert_int_equal(fsroot_read(r, "/sys/empty", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(fsroot_read(r, "/sys/two", text, sizeof(text)), 4);
	assert_string_equal(text, "a\nb\n");
	assert_int_equal(fsroot_read(r, "/sys/value", text, 5), -EFBIG);
	assert_int_equal(fsroot_read(r, "/sys/value", text, 6), 4);
	assert_int_equal(fsroot_read(r, "/sys/fifo", text, sizeof(text)), 0); /* does not block */
	assert_true(fsroot_exists(r, "/sys/value"));
	assert_false(fsroot_exists(r, "/sys/none"));
	fsroot_close(r);
	fsroot_close(NULL);
}

static void leads_nowhere(const struct fsroot *r)
{
	static const char *const out[] = { "/sys/escape", "/sys/etc/passwd", "/etc/passwd", "../../etc/passwd",
					   "/sys/../../../../etc/passwd" };

	for (unsigned i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		int fd = fsroot_openat(r, out[i], O_RDONLY);

		if (fd >= 0)
			fail_msg("%s was opened", out[i]);
	}
}

static void test_no_way_out(void **state)
{
	struct fsroot *r;

	(void)state;
	assert_int_equal(fsroot_open(dir, &r), 0);
	leads_nowhere(r);
	fsroot_close(r);
	assert_int_equal(fsroot_open("/nonexistent-root", &r), -ENOENT);
}

/* A process for which openat2 does not exist, as before Linux 5.6. */
static void forget_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = 4, .filter = code };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static void test_without_openat2(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct fsroot *r;
		uint64_t v = 0;
		int bad = 0;

		forget_openat2();
		if (fsroot_open(dir, &r) != 0)
			_exit(9);
		leads_nowhere(r);
		bad |= fsroot_read_u64(r, "/sys/value", &v) != 0 || v != 4095;
		bad |= fsroot_openat(r, "/sys/inside", O_RDONLY) != -ELOOP;
		bad |= fsroot_openat(r, "/sys/../sys/value", O_RDONLY) != -EXDEV;
		bad |= !fsroot_exists(r, "/");
		fsroot_close(r);
		_exit(bad);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_live(void **state)
{
	struct fsroot *r;
	char text[64];
	struct dirent *e;
	bool found = false;
	DIR *d;

	(void)state;
	assert_int_equal(fsroot_open("/", &r), 0);
	assert_true(fsroot_is_live(r));
	assert_true(fsroot_read(r, "proc/self/comm", text, sizeof(text)) > 0);
	assert_string_equal(text, "test_base_fsroo"); /* the kernel keeps 15 bytes */
	d = fsroot_opendir(r, "/proc/self");
	assert_non_null(d);
	while ((e = readdir(d)))
		found |= strcmp(e->d_name, "comm") == 0;
	closedir(d);
	assert_true(found);
	assert_null(fsroot_opendir(r, "/proc/none"));
	assert_int_equal(errno, ENOENT);
	fsroot_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captured),
		cmocka_unit_test(test_no_way_out),
		cmocka_unit_test(test_without_openat2),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
