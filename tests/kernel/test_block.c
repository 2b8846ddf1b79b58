/* SPDX-License-Identifier: Apache-2.0 */
/* Work of block devices per cgroup on the running kernel, on a loop device over memory of our own, so that its
 * statistics and the sizes that were asked for say what is right. */
#include "kernel/tree.h"

#include <linux/loop.h>
#include <linux/types.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <block.h> /* include/ */

#include "model/reading.h"
#include "source/counters/block.h"

#define DEVICE_BYTES (16u << 20)
#define PIECE 65536u

struct device {
	char path[32], name[16];
	int fd;
};

struct books {
	struct tree x;
	struct block *b;
	struct schema schema;
	struct reading r;
	struct device d;
};

/* A loop device over memory. False where this kernel has none. */
static bool device_open(struct device *d)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), memory = memfd_create("jouled-test", MFD_CLOEXEC),
	    n;

	assert_true(memory >= 0);
	assert_int_equal(ftruncate(memory, DEVICE_BYTES), 0);
	for (unsigned tries = 0; control >= 0 && tries < 20; tries++) {
		n = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(d->name, sizeof(d->name), "loop%d", n);
		snprintf(d->path, sizeof(d->path), "/dev/%s", d->name);
		d->fd = n < 0 ? -1 : open(d->path, O_RDWR | O_CLOEXEC);
		if (d->fd >= 0 && ioctl(d->fd, LOOP_SET_FD, memory) == 0) {
			/* it goes with its last descriptor, even when this process is killed */
			struct loop_info64 info = { .lo_flags = LO_FLAGS_AUTOCLEAR };

			assert_int_equal(ioctl(d->fd, LOOP_SET_STATUS64, &info), 0);
			close(memory);
			close(control);
			return true;
		}
		if (d->fd >= 0)
			close(d->fd);
	}
	close(memory);
	if (control >= 0)
		close(control);
	return false;
}

/* Values of the device's own statistics (Documentation/block/stat.rst), in the order of struct traffic: bytes and
 * requests read, written, discarded. */
static void device_statistics(const struct device *d, uint64_t v[TRAFFIC_BLOCK])
{
	unsigned long long s[15] = { 0 };
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/block/%s/stat", d->name);
	f = fopen(path, "r");
	assert_non_null(f);
	for (unsigned i = 0; i < 15 && fscanf(f, "%llu", &s[i]) == 1; i++)
		;
	fclose(f);
	v[0] = s[2] * 512;
	v[1] = s[0];
	v[2] = s[6] * 512;
	v[3] = s[4];
	v[4] = s[13] * 512;
	v[5] = s[11];
}

static void books_open(struct books *w, unsigned max_cgroups)
{
	struct err err = { 0 };
	struct fsroot *root;

	memset(w, 0, sizeof(*w));
	assert_true(device_open(&w->d));
	tree_open(&w->x, true);
	w->schema.n_cpus = 1;
	w->schema.cpus = calloc(1, sizeof(*w->schema.cpus));
	assert_int_equal(reading_init(&w->r, &w->schema), 0);
	assert_int_equal(fsroot_open("/", &root), 0);
	if (block_open(root, &w->x.h, NULL, max_cgroups, &w->b, &err))
		fail_msg("%s", err.text);
	fsroot_close(root);
}

static void books_close(struct books *w)
{
	block_close(w->b);
	reading_free(&w->r);
	free(w->schema.cpus);
	tree_close(&w->x);
	close(w->d.fd);
}

static uint32_t add_row(struct books *w, const char *name)
{
	uint64_t id = tree_mkdir(&w->x, name);
	int64_t row;

	tree_poll(&w->x);
	row = reading_add_row(&w->r, cgroup_find(w->x.table, id));
	assert_true(row >= READING_SPECIAL_ROWS);
	return (uint32_t)row;
}

/* Runs in a child of the cgroup: so many pieces, past the cache. */
static int move_pieces(const char *path, bool out, unsigned n, unsigned size)
{
	int fd = open(path, (out ? O_WRONLY : O_RDONLY) | O_DIRECT | O_CLOEXEC);
	void *room;

	if (fd < 0 || posix_memalign(&room, 4096, size))
		return 1;
	memset(room, 1, size);
	for (unsigned i = 0; i < n; i++) {
		ssize_t done = out ? pwrite(fd, room, size, (off_t)i * size) : pread(fd, room, size, (off_t)i * size);

		if (done != (ssize_t)size)
			return 1;
	}
	return 0;
}

static void in_cgroup(struct books *w, const char *name, bool out, unsigned n, unsigned size)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		char path[128];
		int fd, rc;

		snprintf(path, sizeof(path), "%s/cgroup.procs", name);
		fd = openat(w->x.top_fd, path, O_WRONLY | O_CLOEXEC);
		rc = fd < 0 || write(fd, "0", 1) != 1;
		_exit(rc ? 1 : move_pieces(w->d.path, out, n, size));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* All of it, but for requests that the kernel kept a program from seeing (docs/block.md): a completion that interrupts another one of the
 * same CPU, of any device of this machine. */
static void assert_count(const struct books *w, uint64_t got, uint64_t want, uint64_t each)
{
	const uint64_t lost = block_lost(w->b);

	if (got > want || want - got > lost * each)
		fail_msg("%llu, not %llu; %llu requests were lost", (unsigned long long)got, (unsigned long long)want,
			 (unsigned long long)lost);
}

static void assert_moved(const struct books *w, uint32_t row, uint64_t read_bytes, uint64_t read_requests,
			 uint64_t write_bytes, uint64_t write_requests)
{
	const struct traffic *t = &w->r.rows[row].traffic;

	assert_count(w, t->read_bytes, read_bytes, PIECE);
	assert_count(w, t->read_requests, read_requests, 1);
	assert_count(w, t->write_bytes, write_bytes, PIECE);
	assert_count(w, t->write_requests, write_requests, 1);
	assert_int_equal(t->rx_bytes | t->tx_bytes | t->rx_packets | t->tx_packets, 0);
}

/* The device has moved since `before` what the two rows have. It counts a request after it has woken the task. */
static void assert_as_device(const struct books *w, const uint64_t before[TRAFFIC_BLOCK], uint32_t a, uint32_t b)
{
	uint64_t sum[TRAFFIC_BLOCK], after[TRAFFIC_BLOCK];

	for (unsigned i = 0; i < TRAFFIC_BLOCK; i++)
		sum[i] = before[i] + traffic_const(&w->r.rows[a].traffic)[TRAFFIC_NETWORK + i] +
			 traffic_const(&w->r.rows[b].traffic)[TRAFFIC_NETWORK + i];
	for (unsigned tries = 0; tries < 1000; tries++) {
		device_statistics(&w->d, after);
		if (memcmp(after, sum, sizeof(sum)) == 0)
			return;
		usleep(5000);
	}
	for (unsigned i = 0; i < TRAFFIC_BLOCK; i++)
		assert_int_equal(after[i], sum[i]);
}

/* Each cgroup has what it asked for, and all of them what the device says it did. */
static void test_direct(void **state)
{
	uint64_t before[TRAFFIC_BLOCK];
	struct books w;
	uint32_t a, b;

	books_open(&w, 64);
	a = add_row(&w, "a");
	b = add_row(&w, "b");
	device_statistics(&w.d, before);
	in_cgroup(&w, "a", true, 40, PIECE);
	in_cgroup(&w, "b", false, 7, 4096);
	in_cgroup(&w, "b", true, 3, 512 * 3);
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 0, 0, 40 * PIECE, 40);
	assert_moved(&w, b, 7 * 4096, 7, 3 * 512 * 3, 3);
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 0, 0, 40 * PIECE, 40);
	if (!block_lost(w.b))
		assert_as_device(&w, before, a, b);
	books_close(&w);
}

/* The device's address of a request is used again by another cgroup: nothing of the one before sticks to it. */
static void test_turns(void **state)
{
	struct books w;
	uint32_t a, b;

	books_open(&w, 64);
	a = add_row(&w, "a");
	b = add_row(&w, "b");
	for (unsigned i = 0; i < 10; i++) {
		in_cgroup(&w, i % 2 ? "b" : "a", true, 1 + i, 4096);
		in_cgroup(&w, i % 2 ? "a" : "b", false, 1 + i, 4096);
	}
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, (2 + 4 + 6 + 8 + 10) * 4096, 30, (1 + 3 + 5 + 7 + 9) * 4096, 25);
	assert_moved(&w, b, (1 + 3 + 5 + 7 + 9) * 4096, 25, (2 + 4 + 6 + 8 + 10) * 4096, 30);
	books_close(&w);
}

/* A cgroup that is gone leaves its work in its row, or in `other` when the row is gone too. Nothing is lost. */
static void test_ended(void **state)
{
	struct books w;
	uint64_t id, other;
	uint32_t a;

	books_open(&w, 64);
	a = add_row(&w, "a");
	id = w.r.rows[a].id;
	assert_int_equal(block_read(w.b, &w.r), 0);
	other = w.r.rows[ROW_OTHER].traffic.write_bytes;
	in_cgroup(&w, "a", true, 5, 4096);
	tree_rmdir(&w.x, "a");
	tree_poll(&w.x);
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 0, 0, 5 * 4096, 5);
	tree_mkdir(&w.x, "b");
	in_cgroup(&w, "b", true, 6, 4096); /* no row */
	block_forget(w.b, id);
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 0, 0, 5 * 4096, 5);
	assert_true(w.r.rows[ROW_OTHER].traffic.write_bytes - other >= 6 * 4096);
	books_close(&w);
}

/* More cgroups than fit: what found no entry is with `other`, and said to be folded. */
static void test_full_table(void **state)
{
	uint64_t own = 0, other;
	uint32_t rows[12];
	char name[16];
	struct books w;

	books_open(&w, 4);
	for (unsigned i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "from%u", i);
		rows[i] = add_row(&w, name);
		in_cgroup(&w, name, true, 3, 4096);
	}
	assert_int_equal(block_read(w.b, &w.r), 0);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t bytes = w.r.rows[rows[i]].traffic.write_bytes;

		assert_true(bytes == 0 || bytes == 3 * 4096);
		own += bytes != 0;
	}
	other = w.r.rows[ROW_OTHER].traffic.write_bytes;
	assert_true(own <= 4);
	assert_true(other >= (12 - own) * 3 * 4096);
	assert_true(w.r.losses.folded >= (12 - own) * 3);
	books_close(&w);
}

/* Of the map of hot rows: requests written in rows that have the id, and how many rows that are. */
static unsigned hot_rows(uint64_t id, uint64_t *ret_requests)
{
	static struct jd_block_rows rows;
	unsigned n = 0;

	*ret_requests = 0;
	for (int fd = 0; fd < 1024; fd++) {
		struct bpf_map_info info = { 0 };
		__u32 len = sizeof(info);

		if (bpf_obj_get_info_by_fd(fd, &info, &len) || strcmp(info.name, "hot") != 0 ||
		    info.value_size != sizeof(rows))
			continue;
		for (__u32 cpu = 0; cpu < info.max_entries; cpu++) {
			assert_int_equal(bpf_map_lookup_elem(fd, &cpu, &rows), 0);
			for (unsigned i = 0; i < JD_BLOCK_HOT; i++) {
				if (rows.row[i].id != id)
					continue;
				n++;
				*ret_requests += rows.row[i].work.kind[JD_BLOCK_WRITE].requests;
			}
		}
	}
	return n;
}

/* Opens the books; a cgroup has written three requests of 4 KiB, and no reading was taken yet. Returns its row. */
static uint32_t begin_with_three(struct books *w)
{
	uint32_t a;

	books_open(w, 64);
	a = add_row(w, "a");
	in_cgroup(w, "a", true, 3, 4096);
	return a;
}

/* A cgroup that works has a row on each CPU from the next reading on, and what it does then is there. Without work the row
 * is taken back, rests, and is given again. Each request counts once, whatever it went through. */
static void test_hot_row(void **state)
{
	unsigned cpus = (unsigned)libbpf_num_possible_cpus();
	uint64_t id, requests;
	struct books w;
	uint32_t a;

	a = begin_with_three(&w);
	id = w.r.rows[a].id;
	assert_int_equal(hot_rows(id, &requests), 0);
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_int_equal(hot_rows(id, &requests), cpus);
	assert_int_equal(requests, 0);
	for (unsigned i = 1; i <= 5; i++) {
		in_cgroup(&w, "a", true, 10, 4096);
		assert_int_equal(hot_rows(id, &requests), cpus);
		assert_int_equal(requests, i * 10);
		assert_int_equal(block_read(w.b, &w.r), 0);
		assert_moved(&w, a, 0, 0, (3 + i * 10) * 4096, 3 + i * 10);
	}
	for (unsigned i = 0; i < 80; i++)
		assert_int_equal(block_read(w.b, &w.r), 0);
	assert_int_equal(hot_rows(id, &requests), 0);
	in_cgroup(&w, "a", true, 4, 4096); /* in the table: the row rests */
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 0, 0, 57 * 4096, 57);
	assert_int_equal(hot_rows(id, &requests), cpus);
	in_cgroup(&w, "a", false, 5, 4096);
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 5 * 4096, 5, 57 * 4096, 57);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 5 * 4096, 5, 57 * 4096, 57);
	books_close(&w);
}

/* What a cgroup's row had when the cgroup was forgotten is `other`'s, and the next one to have the place begins at nothing. */
static void test_hot_row_ended(void **state)
{
	uint64_t requests, other, id;
	struct books w;
	uint32_t a;

	a = begin_with_three(&w);
	id = w.r.rows[a].id;
	assert_int_equal(block_read(w.b, &w.r), 0);
	other = w.r.rows[ROW_OTHER].traffic.write_requests;
	in_cgroup(&w, "a", true, 6, 4096);
	block_forget(w.b, id);
	block_forget(w.b, id);
	assert_int_equal(hot_rows(id, &requests), 0);
	assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 0, 0, 3 * 4096, 3);
	assert_true(w.r.rows[ROW_OTHER].traffic.write_requests - other >= 6);
	in_cgroup(&w, "a", true, 7, 4096); /* it was forgotten too soon */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(block_read(w.b, &w.r), 0);
	assert_moved(&w, a, 0, 0, 10 * 4096, 10);
	books_close(&w);
}

static uint64_t missing_writes(const struct books *w, uint32_t row, uint64_t all)
{
	const uint64_t got = w->r.rows[row].traffic.write_requests;

	return got < all ? all - got : 0;
}

/* More cgroups than places for rows: each has its own requests, from wherever they were counted. Those that the kernel did not report may be
 * missing; block_lost() counts them. One more may be, whose cgroup the program forgot: other programs of this machine have requests too, and
 * two CPUs that enter one in the same set at the same moment may take the same way. */
static void test_more_than_rows(void **state)
{
	enum { GROUPS = JD_BLOCK_HOT + JD_BLOCK_HOT / 2, FORGOTTEN = 1 };
	uint64_t with = 0, lost = 0, requests;
	uint32_t rows[GROUPS];
	char name[16], about[512];
	struct books w;

	books_open(&w, 2 * GROUPS);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < GROUPS; i++) {
			snprintf(name, sizeof(name), "from%u", i);
			if (!round)
				rows[i] = add_row(&w, name);
			in_cgroup(&w, name, true, 1 + i % 3, 4096);
		}
		assert_int_equal(block_read(w.b, &w.r), 0);
		lost = 0;
		for (unsigned i = 0; i < GROUPS; i++) {
			const uint64_t all = (round + 1) * (1 + i % 3), missing = missing_writes(&w, rows[i], all);

			assert_moved(&w, rows[i], 0, 0, (all - missing) * 4096, all - missing);
			lost += missing;
		}
	}
	if (lost > block_lost(w.b) + FORGOTTEN) {
		block_describe(w.b, about, sizeof(about));
		fail_msg("%llu requests missing, %llu known to be lost, %llu of others; %s", (unsigned long long)lost,
			 (unsigned long long)block_lost(w.b),
			 (unsigned long long)w.r.rows[ROW_OTHER].traffic.write_requests, about);
	}
	for (unsigned i = 0; i < GROUPS; i++)
		with += hot_rows(w.r.rows[rows[i]].id, &requests) != 0;
	assert_in_range(with, JD_BLOCK_HOT / 4, JD_BLOCK_HOT);
	books_close(&w);
}

static void test_refusal(void **state)
{
	struct err err = { 0 };
	struct fsroot *root;
	struct block *b;
	struct tree x;
	int status;
	pid_t pid;

	tree_open(&x, false);
	assert_int_equal(fsroot_open("/", &root), 0);
	pid = fork();
	if (!pid) {
		int r = setgid(65534) || setuid(65534) ? 0 : block_open(root, &x.h, NULL, 64, &b, &err);

		printf("  %s\n", err.text);
		fflush(stdout);
		_exit(r != -EPERM || !strstr(err.text, "CAP_BPF"));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	fsroot_close(root);
	tree_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direct),         cmocka_unit_test(test_turns),
		cmocka_unit_test(test_ended),          cmocka_unit_test(test_full_table),
		cmocka_unit_test(test_hot_row),        cmocka_unit_test(test_hot_row_ended),
		cmocka_unit_test(test_more_than_rows), cmocka_unit_test(test_refusal),
	};
	struct device d;

	if (!device_open(&d)) {
		printf("SKIP kernel/test_block: no loop devices; load the module loop\n");
		return 0;
	}
	close(d.fd);
	alarm(850);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
