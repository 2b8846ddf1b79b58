// SPDX-License-Identifier: Apache-2.0
/* The forms of a profile say the same sums, to the microjoule: pprof and speedscope by domain, folded stacks, and the rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>
#include <zlib.h>
#include <cmocka.h>
#include "base/format/varint.h"
#include "ctl/profile/profile_report.h"

#define DOMAINS 3
#define SAMPLES 40

static struct profile session;

/* A run of 4 intervals in 3 rows: one of them has no samples in half of them, and one has none at all. */
static int open_session(void **state)
{
	static const char *const row[] = { "/a", "/b;c\x01", "/never" }, *const domain[] = { "package-0", "core-0",
											     "dram-0" };
	struct profile *s = &session;
	uint64_t total = 0, frame[2];
	uint32_t process;

	*s = (struct profile){ .rate_hz = 100, .began_ns = 5, .ended_ns = 4000000005ull };
	assert_int_equal(code_open(&s->code), 0);
	process = code_process(&s->code, getpid());
	assert_true(process > 0);
	s->shares.n_domains = s->n_domains = DOMAINS;
	for (unsigned d = 0; d < DOMAINS; d++) {
		snprintf(s->domain[d].name, sizeof(s->domain[d].name), "%s", domain[d]);
		s->domain[d].summed = d != 1;
	}
	for (unsigned step = 0; step < 4; step++) {
		for (unsigned k = 0; k < SAMPLES; k++) {
			const struct stack st = { .cgroup = 1 + (k % 3 == 0 && step % 2), .process = process, .n = 2 };

			assert_true(code_frame(&s->code, process, (uintptr_t)open_session + k % 5, &frame[0]));
			assert_true(code_frame(&s->code, process, (uintptr_t)profile_folded, &frame[1]));
			stacks_add(&s->stacks, &st, frame, &(struct stack_sample){ STACK_TIME, 10000000 });
		}
		total += 1000003 * (step + 1);
		for (unsigned i = 0; i < 3; i++)
			for (unsigned d = 0; d < DOMAINS; d++)
				row_shares_total(row_shares_row(&s->shares, row[i], i + 1), d, total / (i + d + 1),
						 true);
		assert_int_equal(row_shares_split(&s->shares, &s->stacks), 0);
	}
	assert_int_equal(frame_names_fill(&s->names, &s->code, &s->stacks), 0);
	return 0;
}

static int close_session(void **state)
{
	profile_free(&session);
	return 0;
}

static void unzip(const struct buf *from, struct buf *to)
{
	z_stream z = { .next_in = from->data, .avail_in = (uInt)from->len };
	int rc = Z_OK;

	assert_int_equal(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
	while (rc == Z_OK) {
		z.next_out = buf_reserve(to, 65536);
		z.avail_out = 65536;
		assert_non_null(z.next_out);
		rc = inflate(&z, Z_NO_FLUSH);
		to->len = z.total_out;
	}
	assert_int_equal(rc, Z_STREAM_END);
	inflateEnd(&z);
}

/* Adds the values of one Sample (field 2, packed) to sum. Returns their number. */
static unsigned add_values(struct varint_reader sample, uint64_t *sum)
{
	unsigned n = 0;

	while (sample.at < sample.end && !sample.bad) {
		const uint64_t tag = varint_take(&sample), len = varint_take(&sample);
		const uint8_t *p = varint_bytes(&sample, len);
		struct varint_reader list = { p, p + len, false };

		assert_int_equal(tag & 7, 2);
		while (p && tag >> 3 == 2 && list.at < list.end)
			sum[n++] += varint_take(&list);
	}
	assert_false(sample.bad);
	return n;
}

/* sum[samples, cpu, energy, domain...] of all samples of a pprof file. Returns the number of values of each. */
static unsigned pprof_sums(const struct profile_report *r, uint64_t *sum)
{
	struct buf zipped = { 0 }, plain = { 0 };
	struct varint_reader in;
	unsigned n = 0;

	assert_int_equal(profile_pprof(r, "test", &zipped), 0);
	unzip(&zipped, &plain);
	in = (struct varint_reader){ plain.data, plain.data + plain.len, false };
	while (in.at < in.end && !in.bad) {
		const uint64_t tag = varint_take(&in), value = varint_take(&in);
		const uint8_t *p = (tag & 7) == 2 ? varint_bytes(&in, value) : NULL;

		assert_true((tag & 7) == 2 || (tag & 7) == 0);
		if (tag >> 3 == 2)
			n = add_values((struct varint_reader){ p, p + value, false }, sum);
	}
	assert_false(in.bad);
	buf_free(&zipped);
	buf_free(&plain);
	return n;
}

static uint64_t folded_sum(const struct profile_report *r)
{
	struct buf out = { 0 };
	uint64_t sum = 0;
	char *line, *rest;

	assert_int_equal(profile_folded(r, &out), 0);
	buf_add_char(&out, '\0');
	for (line = strtok_r((char *)out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		sum += strtoull(strrchr(line, ' '), NULL, 10);
	buf_free(&out);
	return sum;
}

/* sum[energy, domain...] of the profiles of a speedscope file. Returns their number. */
static unsigned speedscope_sums(const struct profile_report *r, uint64_t *sum)
{
	struct buf out = { 0 };
	const json_t *profiles, *p, *w;
	size_t n, i;
	json_t *doc;

	assert_int_equal(profile_speedscope(r, &out), 0);
	doc = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	profiles = json_object_get(doc, "profiles");
	assert_true(json_is_array(profiles));
	json_array_foreach(profiles, n, p)
		json_array_foreach(json_object_get(p, "weights"), i, w)
			sum[n] += (uint64_t)json_integer_value(w);
	n = json_array_size(profiles);
	json_decref(doc);
	buf_free(&out);
	return (unsigned)n;
}

static uint64_t row_sum(unsigned d)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < session.shares.n_rows; i++)
		sum += session.shares.rows[i].sum_uj[d];
	return sum;
}

static void test_sums(void **state)
{
	const struct profile_report all = { &session, PROFILE_ALL_DOMAINS };
	uint64_t sum[16] = { 0 }, drawn[16] = { 0 };

	assert_int_equal(pprof_sums(&all, sum), 3 + DOMAINS);
	assert_int_equal(sum[0], 4 * SAMPLES);
	assert_int_equal(sum[1], 4 * SAMPLES * 10000000ull);
	assert_int_equal(sum[2], row_sum(0) + row_sum(2));
	assert_int_equal(sum[2], folded_sum(&all));
	assert_int_equal(speedscope_sums(&all, drawn), 1 + DOMAINS);
	assert_int_equal(drawn[0], sum[2]);
	for (unsigned d = 0; d < DOMAINS; d++) {
		const struct profile_report one = { &session, (int)d };
		uint64_t of[16] = { 0 };

		assert_int_equal(sum[3 + d], row_sum(d));
		assert_int_equal(drawn[1 + d], row_sum(d));
		assert_int_equal(pprof_sums(&one, of), 4);
		assert_int_equal(of[2], row_sum(d));
		assert_int_equal(of[3], folded_sum(&one));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums) };

	return cmocka_run_group_tests(tests, open_session, close_session);
}
