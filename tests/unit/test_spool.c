/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: order, restarts, torn and changed files, bounds, a killed writer, a full disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include "zico_fixture.h"
#include "store/spool/segment.h"
#include "store/trace_record.h"

#define S 1000000000ll

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

static int add(struct spool *s, unsigned n, size_t size)
{
	static char record[1 << 20];

	memset(record, 'x', size);
	snprintf(record, sizeof(record), "%u", n);
	return spool_append(s, S, record, size);
}

/* The number of the next record; -1: none. */
static int next(struct spool *s, bool done)
{
	struct buf b = { 0 };
	struct spool_mark m;
	int err = spool_next(s, 2 * S, &b, &m), n = -1;

	if (!err) {
		n = atoi((char *)b.data);
		if (done)
			spool_done(s, &m);
	} else {
		assert_int_equal(err, -ENOENT);
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

static void test_order_and_restart(void **state)
{
	struct spool *s = open_spool(0, 0);

	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(add(s, i, 5000), 0);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(next(s, false), i);
		assert_int_equal(next(s, true), i);
	}
	spool_close(s);
	s = open_spool(0, 0);
	assert_int_equal(stats(s).waiting, 70);
	for (int i = 30; i < 100; i++)
		assert_int_equal(next(s, true), i);
	assert_int_equal(next(s, true), -1);
	assert_int_equal(add(s, 100, 10), 0);
	assert_int_equal(next(s, true), 100);
	spool_close(s);
	s = open_spool(0, 0);
	assert_int_equal(stats(s).waiting, 0);
	assert_int_equal(next(s, true), -1);
	assert_int_equal(stats(s).damaged_bytes, 0);
	spool_close(s);
}

static void test_one_owner(void **state)
{
	struct spool *s = open_spool(0, 0), *other = NULL;
	struct spool_options o = { .dir = dir };
	struct err err = { 0 };

	assert_int_equal(spool_open(&o, &other, &err), -EBUSY);
	assert_non_null(strstr(err.text, "in use"));
	spool_close(s);
}

static void test_oldest_go_first(void **state)
{
	struct spool *s = open_spool(1 << 20, 0);
	struct spool_stats st;
	int first, n = 0;

	for (unsigned i = 0; i < 400; i++)
		assert_int_equal(add(s, i, 10000), 0);
	st = stats(s);
	assert_true(st.bytes <= 1 << 20);
	assert_true(st.dropped_full > 250);
	assert_int_equal(st.error, 0);
	assert_int_equal(st.waiting + st.dropped_full, 400);
	first = next(s, true);
	assert_int_equal(first, st.dropped_full);
	for (n = first + 1; n < 400; n++)
		assert_int_equal(next(s, true), n);
	assert_int_equal(next(s, true), -1);
	assert_int_equal(add(s, 1, 600000), -EMSGSIZE);
	spool_close(s);
}

static void test_age(void **state)
{
	struct spool *s = open_spool(0, 10 * S);
	struct buf b = { 0 };
	struct spool_mark m;

	spool_append(s, 0, "old", 3);
	spool_append(s, 15 * S, "new", 3);
	assert_int_equal(spool_next(s, 20 * S, &b, &m), 0);
	assert_memory_equal(b.data, "new", 3);
	assert_int_equal(stats(s).dropped_old, 1);
	buf_free(&b);
	spool_close(s);
}

/* The only segment of a small spool. */
static int segment(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/0000000000000001.spool", dir);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void test_torn_end(void **state)
{
	for (off_t cut = 1; cut < 1024 + 24; cut += 37) {
		struct spool *s = open_spool(0, 0);
		struct stat st;
		int fd;

		for (unsigned i = 0; i < 3; i++)
			add(s, i, 1024);
		spool_close(s);
		fd = segment();
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(ftruncate(fd, st.st_size - cut), 0);
		close(fd);
		s = open_spool(0, 0);
		assert_int_equal(stats(s).waiting, 2);
		add(s, 7, 1024);
		assert_int_equal(next(s, true), 0);
		assert_int_equal(next(s, true), 1);
		assert_int_equal(next(s, true), 7);
		assert_int_equal(next(s, true), -1);
		spool_close(s);
		drop_dir(NULL);
		make_dir(NULL);
	}
}

static void test_changed_bytes(void **state)
{
	for (off_t at = 16; at < 16 + 1048; at += 41) {
		struct spool *s = open_spool(0, 0);
		int fd;

		for (unsigned i = 0; i < 3; i++)
			add(s, i, 1024);
		spool_close(s);
		fd = segment();
		assert_int_equal(pwrite(fd, "\xa5\x5a", 2, at), 2);
		close(fd);
		s = open_spool(0, 0);
		/* one of the two may be the boundary to the next record */
		assert_in_range(next(s, true), 1, 2);
		while (next(s, true) >= 0)
			;
		assert_true(stats(s).damaged_bytes > 0);
		assert_int_equal(stats(s).waiting, 0);
		spool_close(s);
		drop_dir(NULL);
		make_dir(NULL);
	}
}

/* Traces appended before the kill are there afterwards, in order and once. */
static void test_killed(void **state)
{
	int pipefd[2], last = -1, n, want = 0;

	for (int round = 0; round < 10; round++) {
		struct spool *s;
		pid_t pid;

		assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
		pid = fork();
		if (!pid) {
			s = open_spool(0, 0);
			for (int i = want;; i++) {
				add(s, (unsigned)i, 3000);
				if (write(pipefd[1], &i, sizeof(i)) != sizeof(i))
					_exit(1);
			}
		}
		close(pipefd[1]);
		for (int i = 0; i < 20 + round; i++)
			assert_int_equal(read(pipefd[0], &last, sizeof(last)), sizeof(last));
		kill(pid, SIGKILL);
		while (read(pipefd[0], &n, sizeof(n)) == sizeof(n))
			last = n;
		waitpid(pid, NULL, 0);
		close(pipefd[0]);
		s = open_spool(0, 0);
		for (; want <= last; want++)
			assert_int_equal(next(s, true), want);
		n = next(s, true); /* one may have been written and not yet told */
		if (n >= 0)
			assert_int_equal(n, want++);
		assert_int_equal(next(s, true), -1);
		spool_close(s);
	}
}

static void test_full_disk(void **state)
{
	struct spool_stats st;
	struct spool *s;
	char options[] = "size=1m,mode=700";

	if (mount("jouled-test", dir, "tmpfs", 0, options) != 0) {
		print_message("SKIP spool-full-disk: a file system cannot be mounted\n");
		skip();
	}
	s = open_spool(16 << 20, 0);
	for (unsigned i = 0; i < 300; i++)
		add(s, i, 10000);
	st = stats(s);
	assert_int_equal(st.waiting + st.dropped_full, 300);
	assert_true(st.waiting > 0);
	/* what is there is the newest, without a hole */
	for (int i = 300 - (int)st.waiting; i < 300; i++)
		assert_int_equal(next(s, true), i);
	assert_int_equal(next(s, true), -1);
	spool_close(s);
	assert_int_equal(umount(dir), 0);
}

/* By others: there is room for the head of a file and for no record. What waits is not given up for one more. */
static void test_disk_full_of_others(void **state)
{
	static const char page[4096];
	char path[128];
	struct spool *s;
	off_t size = 0;
	int fd;

	if (mount("jouled-test", dir, "tmpfs", 0, "size=256k,mode=700") != 0) {
		print_message("SKIP spool-full-disk: a file system cannot be mounted\n");
		skip();
	}
	s = open_spool(16 << 20, 0);
	assert_int_equal(add(s, 7, 10000), 0);
	snprintf(path, sizeof(path), "%s/filler", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, page, sizeof(page)) == sizeof(page))
		size += sizeof(page);
	assert_int_equal(ftruncate(fd, size - (off_t)sizeof(page)), 0);
	alarm(60); /* not for ever */
	assert_int_equal(add(s, 0, 10000), -ENOSPC);
	assert_int_equal(add(s, 1, 10000), -ENOSPC);
	alarm(0);
	assert_int_equal(stats(s).dropped_full, 2);
	assert_int_equal(stats(s).error, -ENOSPC);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	assert_int_equal(add(s, 2, 10000), 0);
	assert_int_equal(next(s, true), 7);
	assert_int_equal(next(s, true), 2);
	assert_int_equal(next(s, true), -1);
	spool_close(s);
	assert_int_equal(umount(dir), 0);
}

static void test_trace_record(void **state)
{
	struct world w;
	struct buf b = { 0 }, again = { 0 };
	struct trace *t = NULL;
	struct err err = { 0 };

	fixture_begin(&w);
	w.t.sensor = "node";
	w.t.part = 3;
	w.t.last = false;
	w.t.n_domains = 2;
	w.t.domains = fixture_domains;
	w.t.interfaces = fixture_interfaces;
	fixture_add(&w, 0, "a", 5, 10)->exit_code = -1;
	fixture_add(&w, 0, "b", 6, 9)->n_domains = 2;
	w.spans[1].energy_uj[1] = 77;
	w.spans[1].cmdline = "b \xff\xfe";
	w.spans[1].wall_ns = 5;
	assert_int_equal(trace_record_write(&w.t, &b), 0);
	assert_int_equal(trace_record_read(b.data, b.len, &t, &err), 0);
	assert_memory_equal(t->uuid, w.t.uuid, 16);
	assert_string_equal(t->sensor, "node");
	assert_string_equal(t->domains[1], "dram-0");
	assert_int_equal(t->n_spans, 2);
	assert_int_equal(t->part, 3);
	assert_false(t->last);
	assert_int_equal(t->spans[0].exit_code, -1);
	assert_int_equal(t->spans[1].energy_uj[1], 77);
	assert_string_equal(t->spans[1].cmdline, "b \xff\xfe");
	assert_int_equal(t->spans[1].parent, t->spans[0].id);
	assert_int_equal(t->spans[1].wall_ns, 5);
	assert_int_equal(trace_record_write(t, &again), 0);
	assert_int_equal(again.len, b.len);
	assert_memory_equal(again.data, b.data, b.len);
	trace_record_free(t);
	for (size_t n = 0; n < b.len; n++)
		assert_int_not_equal(trace_record_read(b.data, n, &t, &err), 0);
	buf_free(&b);
	buf_free(&again);
}

/* Takes one record and returns its weight; 0: none. */
static uint32_t take_weight(struct spool *s)
{
	struct spool_mark m = { 0 };
	struct buf b = { 0 };

	if (spool_next(s, 2 * S, &b, &m) == 0)
		spool_done(s, &m);
	buf_free(&b);
	return m.weight;
}

/* Every weight is taken or dropped, once, also over a restart with records that were taken and records that wait. */
static void test_weights(void **state)
{
	static const char record[10000] = "x";
	struct spool *s = open_spool(1 << 20, 0);
	uint64_t sum = 0, taken = 0, dropped;
	uint32_t w;

	for (unsigned i = 1; i <= 200; i++, sum += i - 1)
		assert_int_equal(spool_append_weighed(s, S, i, record, sizeof(record)), 0);
	for (unsigned i = 0; i < 10; i++)
		taken += take_weight(s);
	dropped = stats(s).dropped_weight;
	assert_true(taken > 0 && dropped > 0);
	spool_close(s);
	s = open_spool(1 << 20, 0);
	for (unsigned i = 201; i <= 300; i++, sum += i - 1)
		assert_int_equal(spool_append_weighed(s, S, i, record, sizeof(record)), 0);
	while ((w = take_weight(s)))
		taken += w;
	assert_int_equal(taken + dropped + stats(s).dropped_weight, sum);
	spool_close(s);
}

/* A record that is on its way while its segment goes for want of room is delivered or dropped, not both. */
static void test_dropped_on_its_way(void **state)
{
	for (int delivered = 0; delivered < 2; delivered++) {
		struct spool *s = open_spool(1 << 20, 0);
		struct buf b = { 0 };
		struct spool_mark m;
		uint64_t there = 0;
		unsigned n = 0;

		while (n < 10)
			assert_int_equal(add(s, n++, 10000), 0);
		assert_int_equal(spool_next(s, 2 * S, &b, &m), 0);
		while (!stats(s).dropped_full)
			assert_int_equal(add(s, n++, 10000), 0);
		if (delivered)
			spool_done(s, &m);
		while (next(s, true) >= 0)
			there++;
		assert_int_equal(there + stats(s).dropped_full + (unsigned)delivered, n);
		assert_int_equal(stats(s).waiting, 0);
		buf_free(&b);
		spool_close(s);
	}
}

/* Spools of other builds are read: the checksum is CRC-32 as zlib has it (segment.h). */
static void test_checksum(void **state)
{
	static uint8_t data[70000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	for (uint32_t len = 0; len < sizeof(data); len += 1 + len / 3) {
		const struct spool_head h = { .len = len, .real_ns = S + len, .weight = len % 2 * 99 };
		uLong crc = crc32(crc32(0, (const Bytef *)&h.len, 4), (const Bytef *)&h.real_ns, 8);

		if (h.weight)
			crc = crc32(crc, (const Bytef *)&h.weight, 4);
		assert_int_equal(spool_crc(&h, data), crc32(crc, data, len));
	}
}

/* Before any thread: a mount namespace belongs to the thread that asked. Who may mount may do this too. */
static int own_mounts(void **state)
{
	if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -1;
	return 0;
}

int main(void)
{
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)
	const struct CMUnitTest tests[] = {
		IN_DIR(test_order_and_restart),
		IN_DIR(test_one_owner),
		IN_DIR(test_oldest_go_first),
		IN_DIR(test_age),
		IN_DIR(test_torn_end),
		IN_DIR(test_changed_bytes),
		IN_DIR(test_killed),
		IN_DIR(test_weights),
		IN_DIR(test_dropped_on_its_way),
		IN_DIR(test_full_disk),
		IN_DIR(test_disk_full_of_others),
		cmocka_unit_test(test_trace_record),
		cmocka_unit_test(test_checksum),
	};

	return cmocka_run_group_tests(tests, own_mounts, NULL);
}
