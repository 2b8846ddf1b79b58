/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that answers EIO, to the spool and to the history: what it did not take is counted, what it took stays, and
 * what it takes again afterwards is whole. */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "history_world.h"
#include "store/spool/spool.h"

#define RECORD 100
#define SPOOL_BYTES 65536

/* Calls that the disk refuses: each counts down to the first call that fails, 0 = none. */
static int fail_write, fail_read, fail_truncate, fail_sync;
static bool stop_between; /* parts of one write: the first is taken, and the rest has to come again */

static bool fails(int *countdown)
{
	return *countdown && (*countdown == 1 || --*countdown == 0);
}

static ssize_t eio(void)
{
	errno = EIO;
	return -1;
}

/* Those of the C library, for the spool; SQLite asks its own table. */
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	return fails(&fail_write) ? eio() : syscall(SYS_pwrite64, fd, p, n, at);
}

/* Part by part: what comes before the one that is refused is taken. */
ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
	ssize_t taken = 0;

	for (int i = 0; i < (stop_between ? 1 : n); i++) {
		ssize_t got = pwrite(fd, v[i].iov_base, v[i].iov_len, at + taken);

		if (got < 0)
			return taken ? taken : got;
		taken += got;
	}
	return taken;
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	return fails(&fail_read) ? eio() : syscall(SYS_pread64, fd, p, n, at);
}

int ftruncate(int fd, off_t size)
{
	return fails(&fail_truncate) ? (int)eio() : (int)syscall(SYS_ftruncate, fd, size);
}

int fdatasync(int fd)
{
	return fails(&fail_sync) ? (int)eio() : (int)syscall(SYS_fdatasync, fd);
}

static struct spool *spool_here(void)
{
	struct spool_options o = { .dir = dir, .max_bytes = SPOOL_BYTES };
	struct spool *s = NULL;
	struct err err = { 0 };

	if (spool_open(&o, &s, &err) != 0)
		fail_msg("%s", err.text);
	return s;
}

static int add(struct spool *s, int n)
{
	char record[RECORD];

	memset(record, 'x', sizeof(record));
	snprintf(record, sizeof(record), "%d", n);
	return spool_append(s, START_NS, record, sizeof(record));
}

static int next(struct spool *s)
{
	struct buf b = { 0 };
	struct spool_mark m;
	int n = -1;

	if (spool_next(s, START_NS, &b, &m) == 0) {
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

/* Fails at the head and at the data of a record, with and without the cut that takes the half back. */
static void spool_writes(void **state)
{
	for (unsigned k = 0; k < 4; k++) {
		struct spool *s = spool_here();

		assert_int_equal(add(s, 1), 0);
		assert_int_equal(add(s, 2), 0);
		fail_write = 1 + (int)(k & 1);
		fail_truncate = k & 2 ? 1 : 0;
		assert_int_equal(add(s, 3), -EIO);
		assert_int_equal(stats(s).dropped_full, 1);
		assert_int_equal(stats(s).error, -EIO);
		assert_int_equal(stats(s).waiting, 2);
		fail_write = fail_truncate = 0;
		assert_int_equal(add(s, 4), 0);
		assert_int_equal(stats(s).dropped_full, 1);
		assert_int_equal(next(s), 1);
		spool_close(s);
		s = spool_here(); /* as after a kill */
		assert_int_equal(next(s), 2);
		assert_int_equal(next(s), 4);
		assert_int_equal(next(s), -1);
		assert_int_equal(stats(s).waiting, 0);
		spool_close(s);
		remove_files();
	}
}

/* A write that takes only a part is no failure. */
static void spool_writes_parts(void **state)
{
	struct spool *s = spool_here();

	stop_between = true;
	assert_int_equal(add(s, 1), 0);
	stop_between = false;
	assert_int_equal(add(s, 2), 0);
	assert_int_equal(stats(s).dropped_full, 0);
	assert_int_equal(next(s), 1);
	assert_int_equal(next(s), 2);
	spool_close(s);
	remove_files();
}

/* Segments that cannot be read are left behind and counted; those behind them come. */
static void spool_reads(void **state)
{
	struct spool *s = spool_here();
	int n = 0, first, last;

	while (stats(s).dropped_full == 0 && n < 400)
		assert_int_equal(add(s, n++), 0);
	assert_true(n > 200);
	first = next(s);
	assert_true(first >= 0);
	fail_read = 1;
	assert_int_equal(next(s), -1);
	assert_int_equal(stats(s).waiting, 0);
	assert_true(stats(s).damaged_bytes >= 100 * RECORD);
	fail_read = 0;
	assert_int_equal(add(s, 1000), 0);
	last = next(s);
	assert_int_equal(last, 1000);
	assert_int_equal(next(s), -1);
	spool_close(s);
	remove_files();
}

static void spool_fsyncs(void **state)
{
	struct spool *s = spool_here();

	assert_int_equal(add(s, 1), 0);
	fail_sync = 1;
	spool_sync(s);
	fail_sync = 0;
	assert_int_equal(stats(s).sync_error, -EIO);
	spool_sync(s);
	assert_int_equal(stats(s).sync_error, 0);
	assert_int_equal(next(s), 1);
	spool_close(s);
	remove_files();
}

/* SQLite's calls of the system, by its own table of them. */
static _Atomic bool history_writes_fail, history_reads_fail;

static ssize_t history_pwrite(int fd, const void *p, size_t n, off_t at)
{
	return history_writes_fail ? eio() : syscall(SYS_pwrite64, fd, p, n, at);
}

static ssize_t history_pread(int fd, void *p, size_t n, off_t at)
{
	return history_reads_fail ? eio() : syscall(SYS_pread64, fd, p, n, at);
}

static void take_sqlite(bool take)
{
	static const char *const writes[] = { "pwrite", "pwrite64" }, *const reads[] = { "pread", "pread64" };
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	unsigned taken = 0;

	for (unsigned i = 0; i < 2; i++) {
		if (vfs->xGetSystemCall(vfs, writes[i]))
			taken += vfs->xSetSystemCall(vfs, writes[i],
						     take ? (sqlite3_syscall_ptr)history_pwrite : NULL) == SQLITE_OK;
		if (vfs->xGetSystemCall(vfs, reads[i]))
			taken += vfs->xSetSystemCall(vfs, reads[i], take ? (sqlite3_syscall_ptr)history_pread : NULL) ==
				 SQLITE_OK;
	}
	assert_true(taken >= 2);
}

static void wait_state(struct world *w, const char *what)
{
	for (int i = 0; i < 60000 && strcmp(figures(w).state, what) != 0; i++)
		pause_ms(1);
	assert_string_equal(figures(w).state, what);
}

/* Writes fail for more intervals than the queue holds: the rest is lost, told as a gap, and nothing else is. */
static void history_write(void **state)
{
	struct history_query q = { .limit = 10 };
	struct history_answer a = { 0 };
	unsigned refused = 0;
	struct world w;

	take_sqlite(true);
	begin(&w);
	open_store(&w, 0);
	for (unsigned i = 0; i < 20; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	history_writes_fail = true;
	for (unsigned i = 0; i < 50; i++) {
		uint64_t before[2][SERIES], measured[2] = { w.measured[0], w.measured[1] }, interval = w.interval_ns;

		memcpy(before, w.sum, sizeof(before));
		make_interval(&w, NS_PER_S);
		if (history_put(w.h, &w.f.snap, NULL, NULL)) {
			w.handed++;
			continue;
		}
		refused++;
		memcpy(w.sum, before, sizeof(before));
		memcpy(w.measured, measured, sizeof(measured));
		w.interval_ns = interval;
	}
	wait_state(&w, "failing");
	assert_true(strstr(figures(&w).reason, "I/O"));
	assert_int_equal(figures(&w).written, 20);
	assert_true(refused > 0);
	assert_int_equal(figures(&w).lost_intervals, refused);
	history_writes_fail = false;
	wait_written(&w);
	hand_over(&w, NS_PER_S);
	check_steps(&w);
	assert_string_equal(figures(&w).state, "ok");
	q.since_ns = START_NS;
	q.until_ns = w.now_ns;
	assert_int_equal(history_read(w.h, &q, &a, NULL), 0);
	assert_int_equal(a.n_lost, 1);
	assert_int_equal(a.lost[0].until_ns - a.lost[0].from_ns, (int64_t)refused * (int64_t)NS_PER_S);
	history_answer_free(&a);
	end(&w);
	take_sqlite(false);
	remove_files();
}

/* A question while reads fail is answered by an error, never by less; afterwards all is there. */
static void history_read_fails(void **state)
{
	struct history_query q = { .limit = 10 };
	struct history_answer a = { 0 };
	struct err err = { 0 };
	struct world w;

	begin(&w);
	open_store(&w, 0);
	for (unsigned i = 0; i < 300; i++)
		hand_over(&w, NS_PER_S);
	wait_written(&w);
	history_close(w.h);
	take_sqlite(true);
	open_store(&w, 0);
	q.since_ns = START_NS;
	q.until_ns = w.now_ns;
	history_reads_fail = true;
	assert_true(history_read(w.h, &q, &a, &err) < 0);
	assert_true(err.text[0]);
	history_reads_fail = false;
	check_steps(&w);
	end(&w);
	take_sqlite(false);
	remove_files();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spool_writes),  cmocka_unit_test(spool_writes_parts),
		cmocka_unit_test(spool_reads),   cmocka_unit_test(spool_fsyncs),
		cmocka_unit_test(history_write), cmocka_unit_test(history_read_fails),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
