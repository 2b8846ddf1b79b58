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
#include "base/format/varint.h"
#include "ctl/top/hot_functions.h"
#include "encode/pack.h"
#include "profile/chunk_files.h"
#include "profile/pprof_sum_parts.h"
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

/* In OpenTelemetry's form the profiles of energy and of its domains have what the sum has. */
static void otlp_sums(struct pprof_sum *s)
{
	struct varint_reader r, scope, list, of, sample, values;
	struct field f, in, profile, part, v;
	struct buf out = { 0 };
	uint64_t got[16] = { 0 }, want[16] = { 0 };
	unsigned n = 0;

	assert_int_equal(pprof_sum_otlp(s, "here", &out), 0);
	for (r = (struct varint_reader){ out.data, out.data + out.len, false }; next_field(&r, &f);)
		for (scope = inside(&f); f.number == 1 && next_field(&scope, &in);)
			for (list = inside(&in); in.number == 2 && next_field(&list, &profile);) {
				if (profile.number != 2)
					continue;
				for (of = inside(&profile); next_field(&of, &part);)
					for (sample = inside(&part); part.number == 2 && next_field(&sample, &v);)
						for (values = inside(&v); v.number == 4 && values.at < values.end;)
							got[n] += varint_take(&values);
				n++;
			}
	assert_false(r.bad);
	assert_int_equal(n, s->type.n);
	for (uint32_t i = 0; i < s->sample.n; i++)
		for (uint32_t k = 0; k < s->type.n; k++) /* that of energy, the third, comes first */
			want[k == 2 ? 0 : k < 2 ? k + 1 : k] += s->value[(size_t)i * s->stride + k];
	assert_memory_equal(got, want, sizeof(got));
	assert_true(got[0]);
	buf_free(&out);
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
	otlp_sums(s);
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
	/* a label with a zero in it, in the second row: the first one is not taken either */
	for (uint8_t *at = memmem(plain.data, plain.len, "/a/b", 4); at; at = NULL) {
		struct pprof_sum *s = pprof_sum_new(1 << 24);

		at[2] = '\0';
		assert_int_equal(pprof_sum_add(s, plain.data, plain.len, &all), -EBADMSG);
		energies(s, got);
		assert_int_equal(got[0] + got[1] + got[2], 0);
		refused = 0;
		pprof_sum_free(s);
	}
	assert_int_equal(refused, 0);
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

static void number(struct buf *b, unsigned field, uint64_t v)
{
	varint_add(b, field << 3);
	varint_add(b, v);
}

static void bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	varint_add(b, field << 3 | 2);
	varint_add(b, n);
	buf_add(b, p, n);
}

/* An answer of seconds since `begin`, in which function f<i> has uj[i], called by f0; field numbers are those of
 * profile.proto. */
static void answer(struct hot_functions *h, int64_t begin, unsigned seconds, const uint64_t *uj, unsigned n)
{
	static const char *const text[] = { "", "samples", "count", "energy", "microjoules", "f0", "f1", "f2", "f3" };
	struct pprof_sum *s = pprof_sum_new(1 << 20);
	struct buf m = { 0 }, part = { 0 }, in = { 0 };

	for (unsigned i = 0; i < 2; i++) {
		buf_reset(&part);
		number(&part, 1, 1 + 2 * i);
		number(&part, 2, 2 + 2 * i);
		bytes(&m, 1, part.data, part.len);
	}
	for (unsigned i = 0; i < n; i++) {
		buf_reset(&part);
		number(&part, 1, i + 1);
		number(&part, 1, 1); /* locations: f<i>, called by f0 */
		number(&part, 2, uj[i] / 1000);
		number(&part, 2, uj[i]);
		bytes(&m, 2, part.data, part.len);
		buf_reset(&part);
		buf_reset(&in);
		number(&part, 1, i + 1);
		number(&in, 1, i + 1);
		bytes(&part, 4, in.data, in.len);
		bytes(&m, 4, part.data, part.len);
		buf_reset(&part);
		number(&part, 1, i + 1);
		number(&part, 2, 5 + i);
		bytes(&m, 5, part.data, part.len);
	}
	for (unsigned i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		bytes(&m, 6, text[i], strlen(text[i]));
	number(&m, 9, (uint64_t)begin);
	number(&m, 10, seconds * 1000000000ull);
	assert_int_equal(pprof_sum_add(s, m.data, m.len, &(struct pprof_filter){ 0 }), 0);
	assert_int_equal(hot_functions_take(h, s), 0);
	pprof_sum_free(s);
	buf_free(&m);
	buf_free(&part);
	buf_free(&in);
}

static void hot(const struct hot_functions *h, unsigned at, const char *name, uint64_t uj)
{
	const struct hot_list l = hot_functions_list(h);

	assert_true(at < l.n);
	assert_string_equal(l.v[at].name, name);
	assert_int_equal(l.v[at].uj, uj);
	assert_int_equal(l.v[at].samples, uj / 1000);
}

/* Of the last ten seconds: an older answer of the same begin is subtracted. */
static void test_hot(void **state)
{
	struct hot_functions *h = hot_functions_new();

	assert_int_equal(hot_functions_list(h).span_ns, 0);
	answer(h, 7, 20, (const uint64_t[]){ 50000, 9000, 1000 }, 3); /* the first one: all of it */
	assert_int_equal(hot_functions_list(h).span_ns, 20000000000ull);
	assert_int_equal(hot_functions_list(h).uj, 60000);
	hot(h, 0, "f0", 50000);
	answer(h, 7, 29, (const uint64_t[]){ 50000, 9000, 8000 }, 3); /* 9 s are too few */
	assert_int_equal(hot_functions_list(h).span_ns, 29000000000ull);
	answer(h, 7, 31, (const uint64_t[]){ 51000, 9000, 9000, 3000 }, 4); /* against the first */
	assert_int_equal(hot_functions_list(h).span_ns, 11000000000ull);
	assert_int_equal(hot_functions_list(h).n, 3); /* f1 did nothing */
	assert_int_equal(hot_functions_list(h).uj, 12000);
	assert_int_equal(hot_functions_list(h).samples, 12);
	hot(h, 0, "f2", 8000);
	hot(h, 1, "f3", 3000);
	hot(h, 2, "f0", 1000);
	answer(h, 7, 40, (const uint64_t[]){ 50000, 9000, 9000, 5000 },
	       4); /* against the second; f0 went back: no wrap */
	assert_int_equal(hot_functions_list(h).span_ns, 11000000000ull);
	assert_int_equal(hot_functions_list(h).n, 2);
	hot(h, 0, "f3", 5000);
	hot(h, 1, "f2", 1000);
	answer(h, 60, 51, (const uint64_t[]){ 0, 4000 }, 2); /* another minute: all of it */
	assert_int_equal(hot_functions_list(h).span_ns, 51000000000ull);
	assert_int_equal(hot_functions_list(h).n, 1);
	hot(h, 0, "f1", 4000);
	for (unsigned i = 52; i < 90; i++) /* more than are kept */
		answer(h, 60, i, (const uint64_t[]){ 0, 4000 + 1000 * i }, 2);
	assert_in_range(hot_functions_list(h).span_ns, 10000000000ull, 90000000000ull);
	answer(h, 60, 90, (const uint64_t[]){ 0 }, 0);
	assert_int_equal(hot_functions_list(h).n, 0);
	hot_functions_free(h);
	hot_functions_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums), cmocka_unit_test(test_broken),
					    cmocka_unit_test(test_chunks), cmocka_unit_test(test_hot) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
