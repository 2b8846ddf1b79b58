// SPDX-License-Identifier: Apache-2.0
/* The forms of a profile say the same sums, to the microjoule: pprof, speedscope and the Firefox
 * Profiler's by domain, folded stacks, and the rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jansson.h>
#include <zlib.h>
#include <cmocka.h>
#include "base/format/varint.h"
#include "ctl/profile/profile_report.h"
#include "profile/moments.h"

#define DOMAINS 3
#define SAMPLES 40

#define STEPS 4

static struct profile session;
static struct moments moments;

/* A run of 4 intervals in 3 rows: one of them has no samples in half of them, and one has none at all. Names are not text. */
static int open_session(void **state)
{
	static const char *const row[] = { "/a", "/b;c\x01\"\\\xff\xc3(\x7f", "/never" }, *const domain[] = {
		"package-0", "core-0", "dram-0"
	};
	struct profile *s = &session;
	uint64_t total = 0, frame[2];
	uint32_t process;

	*s = (struct profile){ .rate_hz = 100, .began_ns = 5, .ended_ns = 5, .moments = &moments };
	moments.of = (struct profile_report){ s, PROFILE_ALL_DOMAINS };
	prctl(PR_SET_NAME, "x\"\\\xff\x01;");
	assert_int_equal(code_open(&s->code), 0);
	process = code_process(&s->code, getpid());
	assert_true(process > 0);
	s->shares.n_domains = s->n_domains = DOMAINS;
	for (unsigned d = 0; d < DOMAINS; d++) {
		snprintf(s->domain[d].name, sizeof(s->domain[d].name), "%s", domain[d]);
		s->domain[d].summed = d != 1;
	}
	for (unsigned step = 0; step < STEPS; step++) {
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
		s->ended_ns += 1000000001;
		assert_int_equal(moments_take(&moments), 0);
	}
	assert_int_equal(frame_names_fill(&s->names, &s->code, &s->stacks), 0);
	return 0;
}

static int close_session(void **state)
{
	moments_free(&moments);
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

static json_t *firefox(const struct profile_report *r)
{
	struct buf out = { 0 };
	json_t *doc;

	assert_int_equal(profile_firefox(r, &out), 0);
	doc = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(doc);
	buf_free(&out);
	return doc;
}

static uint64_t added(const json_t *list)
{
	const json_t *v;
	uint64_t sum = 0;
	size_t i;

	assert_true(json_is_array(list));
	json_array_foreach(list, i, v) {
		assert_true(json_is_integer(v));
		sum += (uint64_t)json_integer_value(v);
	}
	return sum;
}

/* Of the weights of all threads. */
static uint64_t firefox_sum(const json_t *doc)
{
	const json_t *t;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(json_object_get(doc, "threads"), i, t)
		sum += added(json_object_get(json_object_get(t, "samples"), "weight"));
	return sum;
}

/* Picowatt-hours of a counter. */
static uint64_t counted(const json_t *doc, unsigned counter)
{
	const json_t *c = json_array_get(json_object_get(doc, "counters"), counter);

	return added(json_object_get(json_object_get(c, "samples"), "count"));
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

static uint64_t watt_hours(uint64_t uj)
{
	return uj * 1000000 / 3600;
}

/* Weights are the microjoules of the other forms, counters the rows; also those of a domain alone. */
static void test_firefox_sums(void **state)
{
	const struct profile_report all = { &session, PROFILE_ALL_DOMAINS };
	json_t *doc = firefox(&all);

	assert_int_equal(firefox_sum(doc), row_sum(0) + row_sum(2));
	assert_int_equal(json_array_size(json_object_get(doc, "counters")), DOMAINS);
	for (unsigned d = 0; d < DOMAINS; d++)
		assert_int_equal(counted(doc, d), watt_hours(row_sum(d)));
	assert_int_equal(moments.late_uj, 0);
	json_decref(doc);
	for (unsigned d = 0; d < DOMAINS; d++) {
		struct moments one = { .of = { &session, (int)d } };

		session.moments = &one; /* its energy is all of the last interval: nothing was told before */
		doc = firefox(&one.of);
		assert_int_equal(firefox_sum(doc), row_sum(d));
		assert_int_equal(json_array_size(json_object_get(doc, "counters")), 1);
		assert_int_equal(counted(doc, 0), watt_hours(row_sum(d)));
		assert_int_equal(one.late_uj, row_sum(d));
		json_decref(doc);
		moments_free(&one);
	}
	session.moments = &moments;
}

/* Each interval has its own energy: the k-th has k times the first's, in the counters and in the samples that began in it. */
static void test_firefox_times(void **state)
{
	const struct profile_report all = { &session, PROFILE_ALL_DOMAINS };
	json_t *doc = firefox(&all);
	const json_t *c = json_object_get(json_array_get(json_object_get(doc, "counters"), 0), "samples"), *t, *v;
	uint64_t in[STEPS] = { 0 };
	size_t i, k;

	assert_int_equal(json_array_size(json_object_get(c, "time")), 1 + STEPS);
	for (k = 1; k <= STEPS; k++) {
		const double uj = 1000003.0 * (double)k * (1 + 1 / 2.0 + 1 / 3.0);

		v = json_array_get(json_object_get(c, "time"), k);
		assert_float_equal(json_number_value(v), (double)k * 1000.000001, 1e-6);
		v = json_array_get(json_object_get(c, "count"), k);
		assert_float_equal(json_number_value(v), uj / 3600 * 1e6, 1500);
	}
	json_array_foreach(json_object_get(doc, "threads"), i, t) {
		const json_t *s = json_object_get(t, "samples");

		json_array_foreach(json_object_get(s, "time"), k, v)
			in[(unsigned)((json_number_value(v) + 1e-6) / 1000.000001)] += (uint64_t)json_integer_value(
				json_array_get(json_object_get(s, "weight"), k));
	}
	for (k = 0; k < STEPS; k++)
		assert_float_equal((double)in[k], 1000003.0 * (double)(k + 1) * (11 / 6.0 + 47 / 60.0), 16);
	json_decref(doc);
}

/* What has no room is told at the end, and the sums are the same. */
static void test_firefox_late(void **state)
{
	struct moments few = { .of = { &session, PROFILE_ALL_DOMAINS }, .n_shares = MOMENT_SHARES_MAX };
	json_t *doc;

	few.shares = calloc(MOMENT_SHARES_MAX, sizeof(*few.shares));
	few.shares_cap = MOMENT_SHARES_MAX;
	assert_non_null(few.shares);
	assert_int_equal(moments_take(&few), 0);
	assert_int_equal(few.n_shares, MOMENT_SHARES_MAX);
	few.n_shares = 0; /* the shares of the test are none of the session's */
	session.moments = &few;
	doc = firefox(&few.of);
	assert_int_equal(firefox_sum(doc), row_sum(0) + row_sum(2));
	assert_int_equal(few.late_uj, row_sum(0) + row_sum(2));
	json_decref(doc);
	moments_free(&few);
	session.moments = &moments;
}

/* Beyond the limit the last interval grows. */
static void test_firefox_long(void **state)
{
	struct moments many = { .of = { &session, PROFILE_ALL_DOMAINS } };
	const uint64_t ended_ns = session.ended_ns;

	for (unsigned i = 0; i < MOMENTS_MAX + 3; i++) {
		session.ended_ns = session.began_ns + 1 + i;
		assert_int_equal(moments_take(&many), 0);
	}
	assert_int_equal(many.n, MOMENTS_MAX);
	assert_int_equal(many.end_ns[MOMENTS_MAX - 1], session.ended_ns);
	assert_int_equal(many.end_ns[MOMENTS_MAX - 2], session.began_ns + MOMENTS_MAX - 1);
	session.ended_ns = ended_ns;
	moments_free(&many);
}

static void test_firefox_schema(void **state)
{
	const struct profile_report all = { &session, PROFILE_ALL_DOMAINS };
	const char *tree = getenv("JOULED_TREE");
	struct buf out = { 0 };
	char command[512];
	FILE *to;
	int status;

	assert_int_equal(profile_firefox(&all, &out), 0);
	snprintf(command, sizeof(command), "python3 '%s/tests/golden/check_firefox.py'", tree ? tree : ".");
	to = popen(command, "w");
	assert_non_null(to);
	assert_int_equal(fwrite(out.data, 1, out.len, to), out.len);
	status = pclose(to);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("SKIP test_profile_forms.firefox_schema: no python3 with jsonschema\n");
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),          cmocka_unit_test(test_firefox_sums),
		cmocka_unit_test(test_firefox_times), cmocka_unit_test(test_firefox_late),
		cmocka_unit_test(test_firefox_long),  cmocka_unit_test(test_firefox_schema)
	};

	return cmocka_run_group_tests(tests, open_session, close_session);
}
