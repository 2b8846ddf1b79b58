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
	make_link("sys/loop", "loop");
	make_link("sys/back", "/../sys/./../../sys//value");
	snprintf(path, sizeof(path), "%s/sys/fifo", dir);
	return mkfifo(path, 0600);
}

static int teardown(void **state)
{
	static const char *const names[] = { "sys/value",    "sys/bad",    "sys/empty", "sys/two",  "sys/inside",
					     "sys/absolute", "sys/escape", "sys/etc",   "sys/loop", "sys/back",
					     "sys/fifo",     "sys",        "" };
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

/* A container's file system, as its processes find things in it, and as nobody is led out of it. Number of what is wrong. */
static int inside(void)
{
	static const struct {
		const char *path, *is;
		int rc;
	} cases[] = {
		{ "/sys/value", "sys/value", 0 },     { "/sys/inside", "sys/value", 0 },
		{ "/sys/absolute", "sys/value", 0 },  { "/../../sys/../sys/value", "sys/value", 0 },
		{ "/up/../value", "value", -ENOENT }, { "/sys/back", "sys/value", 0 },
		{ "/sys/escape", NULL, -ENOENT },     { "/sys/etc/passwd", NULL, -ENOENT },
		{ "/sys/loop", NULL, -ELOOP },        { "/sys/value/", NULL, -ENOTDIR },
		{ "/sys/value/x", NULL, -ENOTDIR },   { "/", "", 0 },
	};
	struct fsroot *live;
	int wrong = 0;

	if (fsroot_open("/", &live) != 0)
		return -1;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = fsroot_find_inside(live, dir, cases[i].path), want = cases[i].rc;
		struct stat is = { 0 }, has = { 0 };
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", dir, cases[i].is ? cases[i].is : "");
		if (fd >= 0 &&
		    (want || fstat(fd, &is) || stat(path, &has) || is.st_ino != has.st_ino || is.st_dev != has.st_dev))
			fprintf(stderr, "%s: leads elsewhere\n", cases[i].path), wrong++;
		else if (fd < 0 && fd != want)
			fprintf(stderr, "%s: %s\n", cases[i].path, strerror(-fd)), wrong++;
		if (fd >= 0)
			close(fd);
	}
	fsroot_close(live);
	return wrong;
}

static void test_inside(void **state)
{
	struct fsroot *live;
	char path[256];
	int found;

	(void)state;
	assert_int_equal(inside(), 0);
	assert_int_equal(fsroot_open("/", &live), 0);
	/* a link of /proc leads from who follows it, not from whose it is */
	assert_int_equal(fsroot_find_inside(live, "/", "/proc/self/root/etc/passwd"), -ELOOP);
	assert_int_equal(fsroot_find_inside(live, "/none", "/x"), -ENOENT);
	found = fsroot_find_inside(live, dir, "/sys/fifo");
	assert_true(found >= 0);
	assert_int_equal(fsroot_open_plain(found), -EINVAL);
	close(found);
	found = fsroot_find_inside(live, dir, "/sys/absolute");
	assert_true(found >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fsroot_open_plain(found));
	assert_int_equal(access(path, R_OK), 0);
	close(found);
	fsroot_close(live);
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
		bad |= fsroot_read_u64(r, "/sys/inside", &v) != 0 ||
		       fsroot_read_u64(r, "/sys/../../sys/absolute", &v) != 0;
		bad |= fsroot_openat(r, "/sys/loop", O_PATH) != -ELOOP ||
		       fsroot_openat(r, "/sys/value/", O_PATH | O_DIRECTORY) != -ENOTDIR;
		bad |= inside() != 0;
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
		cmocka_unit_test(test_captured),        cmocka_unit_test(test_no_way_out),
		cmocka_unit_test(test_without_openat2), cmocka_unit_test(test_live),
		cmocka_unit_test(test_inside),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
