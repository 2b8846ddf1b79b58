/* SPDX-License-Identifier: Apache-2.0 */
/* The spool where something is against it: a byte changed anywhere, files taken away, a wall clock that moves, a kill at any
 * system call. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "store/spool/spool.h"

#define S 1000000000ll
#define RECORD 40
#define RECORDS 3
#define FILE_HEAD 16
#define HEAD 24

static char dir[64];

static int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/jouled-spool-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int drop(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static int drop_dir(void **state)
{
	return nftw(dir, drop, 8, FTW_DEPTH | FTW_PHYS);
}

static struct spool *open_spool(uint64_t max_bytes, uint64_t max_age_ns)
{
	struct spool_options o = { .dir = dir, .max_bytes = max_bytes, .max_age_ns = max_age_ns };
	struct spool *s = NULL;
	struct err err = { 0 };

	assert_int_equal(spool_open(&o, &s, &err), 0);
	return s;
}

static int add(struct spool *s, int n, size_t size, int64_t real_ns)
{
	char record[2048];

	memset(record, 'x', size);
	snprintf(record, sizeof(record), "%d", n);
	return spool_append(s, real_ns, record, size);
}

/* The number of the next record, which is then done; -1: none. */
static int next(struct spool *s, int64_t now_ns)
{
	struct buf b = { 0 };
	struct spool_mark m;
	int n = -1;

	if (spool_next(s, now_ns, &b, &m) == 0) {
		n = atoi((char *)b.data);
		spool_done(s, &m);
	}
	buf_free(&b);
	return n;
}

static struct spool_stats stats(struct spool *s)
{
	struct spool_stats st;

	spool_get_stats(s, &st);
	return st;
}

static void change(off_t at)
{
	char path[128];
	uint8_t byte;
	int fd;

	snprintf(path, sizeof(path), "%s/0000000000000001.spool", dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x5a;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

/* Only the record that the byte belongs to is lost, whether it was changed before the start or under a running program. */
static void changed_at(off_t at, bool running)
{
	int lost = at < FILE_HEAD ? -1 : (int)(at - FILE_HEAD) / (HEAD + RECORD);
	struct spool *s = open_spool(0, 0);

	for (int i = 0; i < RECORDS; i++)
		add(s, i, RECORD, S);
	if (!running) {
		spool_close(s);
		change(at);
		s = open_spool(0, 0);
		assert_int_equal(stats(s).waiting, RECORDS - (lost >= 0));
	} else {
		change(at);
	}
	assert_int_equal(add(s, RECORDS, RECORD, S), 0);
	for (int i = 0; i <= RECORDS; i++)
		if (i != lost)
			assert_int_equal(next(s, S), i);
	assert_int_equal(next(s, S), -1);
	assert_int_equal(stats(s).waiting, 0);
	assert_int_equal(stats(s).damaged_bytes > 0, lost >= 0);
	spool_close(s);
}

static void test_any_byte(void **state)
{
	for (off_t at = 0; at < FILE_HEAD + RECORDS * (HEAD + RECORD); at++) {
		for (int running = 0; running < 2; running++) {
			changed_at(at, running);
			drop_dir(NULL);
			assert_int_equal(make_dir(NULL), 0);
		}
	}
}

static void test_taken_away(void **state)
{
	struct spool *s = open_spool(0, 0);
	char path[128];

	for (int i = 0; i < 3; i++)
		assert_int_equal(add(s, i, 100, S), 0);
	snprintf(path, sizeof(path), "%s/0000000000000001.spool", dir);
	assert_int_equal(unlink(path), 0);
	alarm(60); /* not for ever */
	assert_int_equal(next(s, S), -1);
	alarm(0);
	assert_int_equal(stats(s).waiting, 0);
	assert_true(stats(s).damaged_bytes >= 300);
	assert_int_equal(add(s, 7, 100, S), 0);
	assert_int_equal(next(s, S), 7);
	spool_close(s);
}

static void cut(off_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/0000000000000001.spool", dir);
	assert_int_equal(truncate(path, size), 0);
}

/* In the midst of a record, under a running program: what comes later does not wait behind it. */
static void test_cut_short(void **state)
{
	struct spool *s = open_spool(0, 0);

	for (int i = 0; i < RECORDS; i++)
		assert_int_equal(add(s, i, RECORD, S), 0);
	cut(FILE_HEAD + HEAD + RECORD + HEAD + 5);
	assert_int_equal(next(s, S), 0);
	assert_int_equal(next(s, S), -1);
	assert_int_equal(stats(s).waiting, 0);
	assert_true(stats(s).damaged_bytes > 0);
	assert_int_equal(add(s, 7, RECORD, S), 0);
	assert_int_equal(next(s, S), 7);
	spool_close(s);
}

/* Shorter than what was taken of it, as after a power failure, down to nothing: what is appended then is not taken for done. */
static void test_behind_the_end(void **state)
{
	for (int left = 0; left <= 2; left++) {
		struct spool *s = open_spool(0, 0);

		for (int i = 0; i < RECORDS; i++)
			assert_int_equal(add(s, i, RECORD, S), 0);
		for (int i = 0; i < RECORDS; i++)
			assert_int_equal(next(s, S), i);
		spool_close(s);
		cut(left ? FILE_HEAD + (left - 1) * (HEAD + RECORD) : 0);
		s = open_spool(0, 0);
		for (int i = 5; i < 7; i++)
			assert_int_equal(add(s, i, RECORD, S), 0);
		spool_close(s);
		s = open_spool(0, 0);
		assert_int_equal(stats(s).waiting, 2);
		assert_int_equal(next(s, S), 5);
		assert_int_equal(next(s, S), 6);
		assert_int_equal(next(s, S), -1);
		assert_int_equal(stats(s).damaged_bytes, 0);
		spool_close(s);
		drop_dir(NULL);
		assert_int_equal(make_dir(NULL), 0);
	}
}

/* Traces that become too old are dropped and counted although no reader takes any. */
static void test_old_untaken(void **state)
{
	struct spool *s = open_spool(0, 16 * S);
	struct spool_stats st;
	int first;

	for (int i = 0; i < 100; i++)
		assert_int_equal(add(s, i, 100, i * S), 0);
	st = stats(s);
	assert_in_range(st.waiting, 16, 20);
	assert_int_equal(st.waiting + st.dropped_old, 100);
	assert_true(st.bytes < 20 * (100 + HEAD) + 20 * FILE_HEAD);
	first = next(s, 99 * S);
	assert_true(first >= 99 - 16);
	for (int i = first + 1; i < 100; i++)
		assert_int_equal(next(s, 99 * S), i);
	assert_int_equal(next(s, 99 * S), -1);
	assert_int_equal(stats(s).dropped_old, first);
	spool_close(s);
}

/* Set back, the clock makes nothing old; a month later there is nothing left. */
static void test_clock_moves(void **state)
{
	struct spool *s = open_spool(0, 35 * 86400 * S);

	for (int i = 0; i < 10; i++)
		assert_int_equal(add(s, i, 100, 1000000 * S), 0);
	assert_int_equal(add(s, 10, 100, 5 * S), 0);
	assert_int_equal(stats(s).dropped_old, 0);
	assert_int_equal(next(s, 0), 0);
	spool_close(s);
	s = open_spool(0, 35 * 86400 * S);
	assert_int_equal(next(s, 1000000 * S + 34 * 86400 * S), 1);
	assert_int_equal(next(s, 1000000 * S + 36 * 86400 * S), -1);
	assert_int_equal(stats(s).dropped_old, 9);
	assert_int_equal(stats(s).waiting, 0);
	spool_close(s);
}

struct told {
	int appended, done;
};

/* Small segments, so that they begin, end and go in between. */
static void work(struct told *told)
{
	struct spool *s;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(77);
	raise(SIGSTOP);
	s = open_spool(64 << 10, 0);
	for (int i = 0; i < 6; i++) {
		add(s, i, 1500, S);
		told->appended = i + 1;
		if (i < 2)
			continue;
		if (next(s, S) == i - 2)
			told->done = i - 1;
		spool_sync(s);
	}
	spool_close(s);
	_exit(0);
}

/* Lets it go as far as the n-th system call stop. False: it came to its end before. */
static bool killed_at(int n, struct told *told)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		work(told);
	waitpid(pid, &status, 0);
	if (WIFEXITED(status)) {
		print_message("SKIP spool-killed-anywhere: ptrace is refused\n");
		skip();
	}
	for (int i = 0; i < n; i++) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		waitpid(pid, &status, 0);
		if (WIFEXITED(status))
			return false;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return true;
}

static void test_killed_anywhere(void **state)
{
	struct told *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int n = 1;

	for (;; n++) {
		struct spool *s;
		int got, want;
		bool more;

		*told = (struct told){ 0 };
		more = killed_at(n, told);
		s = open_spool(64 << 10, 0);
		/* what was done may come again, from one place on; nothing is missing; the kill may have come before it was told */
		got = next(s, S);
		want = got;
		if (told->appended)
			assert_in_range(got, 0, told->done + 1);
		while (got >= 0) {
			assert_int_equal(got, want++);
			got = next(s, S);
		}
		assert_true(!told->appended || want >= told->appended);
		assert_int_equal(stats(s).waiting, 0);
		spool_close(s);
		drop_dir(NULL);
		assert_int_equal(make_dir(NULL), 0);
		if (!more)
			break;
	}
	assert_true(n > 60);
	print_message("killed at each of %d system calls\n", n);
	munmap(told, sizeof(*told));
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)
	const struct CMUnitTest tests[] = {
		IN_DIR(test_any_byte),        IN_DIR(test_taken_away),  IN_DIR(test_cut_short),
		IN_DIR(test_behind_the_end),  IN_DIR(test_old_untaken), IN_DIR(test_clock_moves),
		IN_DIR(test_killed_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
