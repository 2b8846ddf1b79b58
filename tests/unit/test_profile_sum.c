// SPDX-License-Identifier: Apache-2.0
/* Profiles are added up to the microjoule, and what does not read is left out whole. The chunks on disk keep their bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "encode/pack.h"
#include "profile/chunk_files.h"
#include "profile/pprof_sum.h"
#include "profile/profile_data.h"

#define DOMAINS 3

/* Rows "/a", "/a/b" and "/c", with samples in the first two. seed: other energies and stacks. */
static void make(unsigned seed, struct buf *plain, uint64_t sum[3])
{
	static const char *const row[] = { "/a", "/a/b", "/c" }, *const domain[] = { "package-0", "core-0", "dram-0" };
	struct profile p = {
		.rate_hz = 19, .began_ns = 5, .ended_ns = 1000000005, .ended_real_ns = 1000000000ll * (seed + 100)
	};
	const struct profile_report r = { &p, PROFILE_ALL_DOMAINS };
	uint32_t process;
	uint64_t frame[2];

	assert_int_equal(code_open(&p.code), 0);
	process = code_process(&p.code, getpid());
	p.shares.n_domains = p.n_domains = DOMAINS;
	for (unsigned d = 0; d < DOMAINS; d++) {
		snprintf(p.domain[d].name, sizeof(p.domain[d].name), "%s", domain[(d + seed / 100) % DOMAINS]);
		p.domain[d].summed = d != 1;
	}
	for (unsigned k = 0; k < 40; k++) {
		const struct stack st = { .cgroup = 1 + k % 2, .process = process, .n = 2 };

		assert_true(code_frame(&p.code, process, (uintptr_t)make + k % (3 + seed % 4), &frame[0]));
		assert_true(code_frame(&p.code, process, (uintptr_t)profile_folded, &frame[1]));
		stacks_add(&p.stacks, &st, frame, &(struct stack_sample){ STACK_TIME, 52631578 });
	}
	for (unsigned i = 0; i < 3; i++)
		for (unsigned d = 0; d < DOMAINS; d++) {
			struct share_row *at = row_shares_row(&p.shares, row[i], i + 1);

			at->step_uj[d] = 1000003 * (seed + 1) / (i + d + 1);
			sum[i] += p.domain[d].summed ? at->step_uj[d] : 0;
		}
	assert_int_equal(row_shares_split(&p.shares, &p.stacks), 0);
	assert_int_equal(frame_names_fill(&p.names, &p.code, &p.stacks), 0);
	assert_int_equal(profile_pprof_plain(&r, "test", plain), 0);
	profile_free(&p);
}

static int add_energy(void *arg, const struct pprof_sample *s)
{
	uint64_t *sum = arg;

	sum[strcmp(s->cgroup, "/a") == 0 ? 0 : strcmp(s->cgroup, "/a/b") == 0 ? 1 : 2] += s->energy_uj;
	assert_true(s->n >= 1);
	return 0;
}

static void energies(const struct pprof_sum *s, uint64_t ret[3])
{
	memset(ret, 0, 3 * sizeof(*ret));
	assert_int_equal(pprof_sum_each(s, add_energy, ret), 0);
}

static uint64_t folded(const struct pprof_sum *s)
{
	struct buf out = { 0 };
	uint64_t sum = 0;
	char *line, *rest;

	assert_int_equal(pprof_sum_folded(s, &out), 0);
	buf_add_char(&out, '\0');
	for (line = strtok_r((char *)out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		sum += strtoull(strrchr(line, ' '), NULL, 10);
	buf_free(&out);
	return sum;
}

/* Several profiles, with domains in another order, and the sum of the sum. */
static void test_sums(void **state)
{
	static const unsigned seeds[] = { 1, 2, 101, 1 };
	const struct pprof_filter all = { 0 }, below = { .cgroup = "/a" };
	struct pprof_sum *s = pprof_sum_new(1 << 24), *again = pprof_sum_new(1 << 24), *part = pprof_sum_new(1 << 24),
			 *small = pprof_sum_new(1);
	uint64_t want[3] = { 0 }, got[3];
	struct buf out = { 0 };

	for (unsigned i = 0; i < 4; i++) {
		struct buf plain = { 0 };

		make(seeds[i], &plain, want);
		assert_int_equal(pprof_sum_add(s, plain.data, plain.len, &all), 0);
		assert_int_equal(pprof_sum_add(part, plain.data, plain.len, &below), 0);
		assert_int_equal(pprof_sum_add(small, plain.data, plain.len, &all), 0);
		buf_free(&plain);
	}
	energies(s, got);
	assert_memory_equal(got, want, sizeof(got));
	assert_int_equal(folded(s), want[0] + want[1] + want[2]);
	assert_int_equal(pprof_sum_time_ns(s), 100 * 1000000000ll);
	assert_int_equal(pprof_sum_duration_ns(s), 4 * 1000000000ull);
	assert_int_equal(pprof_sum_write(s, &out), 0);
	assert_int_equal(pprof_sum_add(again, out.data, out.len, &all), 0);
	energies(again, got);
	assert_memory_equal(got, want, sizeof(got));
	energies(small, got); /* without room the sums still hold */
	assert_memory_equal(got, want, sizeof(got));
	energies(part, got);
	want[2] = 0;
	assert_memory_equal(got, want, sizeof(got));
	buf_free(&out);
	pprof_sum_free(s);
	pprof_sum_free(again);
	pprof_sum_free(part);
	pprof_sum_free(small);
}

/* Cut off anywhere it is taken whole or not at all: then the sum has no energy. */
static void test_broken(void **state)
{
	const struct pprof_filter all = { 0 };
	uint64_t want[3] = { 0 }, got[3];
	struct buf plain = { 0 };
	unsigned refused = 0;

	make(3, &plain, want);
	for (size_t n = 0; n < plain.len; n += 7) {
		struct pprof_sum *s = pprof_sum_new(1 << 24);
		int rc = pprof_sum_add(s, plain.data, n, &all);

		energies(s, got);
		if (rc)
			assert_int_equal(got[0] + got[1] + got[2], 0);
		refused += rc == -EBADMSG;
		pprof_sum_free(s);
	}
	assert_true(refused > 10);
	buf_free(&plain);
}

static void add(struct chunk_files *f, int64_t minute, size_t n, int want)
{
	const struct chunk_file c = { minute * 60000000000ll, (minute + 1) * 60000000000ll, n };
	uint8_t *data = calloc(1, n);
	struct err err = { 0 };

	assert_int_equal(chunk_files_add(f, &c, data, &err), want);
	assert_true(!want || err.text[0]);
	free(data);
}

static unsigned count(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	for (const struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void test_chunks(void **state)
{
	char dir[] = "/tmp/jouled-chunks.XXXXXX", path[128];
	struct chunk_files f = { .keep_ns = 3600000000000ull, .bytes_max = 100000 };
	struct packer packer = { 0 };
	struct buf packed = { 0 }, plain = { 0 };
	struct err err = { 0 };
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chunk_files_open(&f, dir, &err), 0);
	for (int64_t m = 0; m < 70; m++)
		add(&f, m, 100, 0);
	assert_in_range(f.n, 60, 61); /* of the last hour */
	assert_int_equal(count(dir), f.n);
	add(&f, 70, 99000, 0); /* and no more bytes than are allowed */
	assert_true(f.bytes <= 100000 && f.n <= 11);
	assert_int_equal(count(dir), f.n);
	add(&f, 71, 100001, -EFBIG);
	assert_int_equal(chunk_files_read(&f, 0, &plain), -EBADMSG); /* zeros are no gzip */
	chunk_files_close(&f);
	/* what a kill left half written goes, and foreign files stay */
	snprintf(path, sizeof(path), "%s/1-2.pb.gz.part", dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	snprintf(path, sizeof(path), "%s/README", dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	f = (struct chunk_files){ .keep_ns = 3600000000000ull, .bytes_max = 1000000 };
	assert_int_equal(chunk_files_open(&f, dir, &err), 0);
	assert_true(f.n >= 1 && f.n <= 11 && f.v[f.n - 1].bytes == 99000);
	assert_int_equal(count(dir), f.n + 1);
	assert_int_equal(pack(&packer, PACK_GZIP, "hello", 5, &packed), 0);
	assert_int_equal(chunk_files_add(&f, &(struct chunk_file){ 80 * 60000000000ll, 81 * 60000000000ll, packed.len },
					 packed.data, &err),
			 0);
	assert_int_equal(chunk_files_read(&f, f.n - 1, &plain), 0);
	assert_int_equal(plain.len, 5);
	f.keep_ns = 0; /* all of them are old now */
	add(&f, 1000, 1, 0);
	assert_int_equal(f.n, 1);
	chunk_files_close(&f);
	packer_fini(&packer);
	buf_free(&packed);
	buf_free(&plain);
	snprintf(path, sizeof(path), "rm -r %s", dir);
	assert_int_equal(system(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums), cmocka_unit_test(test_broken),
					    cmocka_unit_test(test_chunks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
