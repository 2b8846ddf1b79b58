/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings that are cut, damaged, foreign, hostile, or of a later version: each ends in one line or is
 * read, never in half a snapshot. */
#include "recording_fixture.h"

/* Cut at every byte: the whole snapshots before are delivered, then one line says where it ends. */
static void test_cut_anywhere(void **state)
{
	struct buf b = { 0 };
	size_t ends[4];
	struct world w;

	world_init_small(&w);
	recording_encode_header(&w.schema, &b);
	ends[0] = b.len;
	for (unsigned i = 1; i < 4; i++) {
		world_fill(&w, i);
		recording_encode(&w.snap, true, &b);
		ends[i] = b.len;
	}
	for (size_t cut = 0; cut <= b.len; cut++) {
		struct buf part = { .data = b.data, .len = cut };
		struct recording *r = NULL;
		struct snapshot *s = NULL;
		struct err e = { 0 };
		unsigned n = 0;
		char at[40];

		int code = recording_open_fd(file_of(&part), &r, &e);
		while (!code && (code = recording_next(r, &s, &e)) == 1) {
			n++;
			code = 0;
		}
		unsigned whole = cut < ends[0] ? 0 : cut < ends[1] ? 0 : cut < ends[2] ? 1 : cut < ends[3] ? 2 : 3;
		assert_int_equal(n, whole);
		if (cut == ends[whole] && cut >= ends[0]) {
			assert_int_equal(code, 0);
		} else {
			snprintf(at, sizeof(at), "the end of the file at byte %zu;", cut);
			assert_int_equal(code, -EBADMSG);
			if (!strstr(e.text, at) || !strstr(e.text, "expected"))
				fail_msg("cut at %zu: %s", cut, e.text);
			/* And stays so. */
			if (r) {
				assert_int_equal(recording_next(r, &s, &e), -EBADMSG);
				assert_non_null(strstr(e.text, at));
			}
		}
		recording_close(r);
	}
	world_free(&w, true);
	buf_free(&b);
}

/* One byte changed anywhere: read or refused, and nothing else (the sanitizers watch). */
static void test_damaged_anywhere(void **state)
{
	struct buf b = { 0 };
	struct world w;
	unsigned refused = 0;

	world_init_small(&w);
	recording_encode_header(&w.schema, &b);
	world_fill(&w, 1);
	recording_encode(&w.snap, true, &b);
	for (size_t i = 0; i < b.len * 3; i++) {
		struct recording *r = NULL;
		struct snapshot *s;
		struct err e = { 0 };
		uint8_t was = b.data[i / 3], now[] = { 0xff, (uint8_t)(was + 1), (uint8_t)(was ^ 0x60) };

		b.data[i / 3] = now[i % 3];
		int code = recording_open_fd(file_of(&b), &r, &e);
		while (!code && (code = recording_next(r, &s, &e)) == 1)
			code = 0;
		if (code) {
			refused++;
			assert_non_null(strstr(e.text, "; "));
		}
		recording_close(r);
		b.data[i / 3] = was;
	}
	/* Most bytes are digits of numbers, which nothing can tell from others. */
	assert_true(refused > b.len / 2);
	world_free(&w, true);
	buf_free(&b);
}

static void put_junk(struct buf *b)
{
	static const uint8_t junk[] = {
		0x86, /* array of 6 */
		0xbf, 0x61, 'a',  0x5f, 0x41, 'x', 0xff, 0xff, /* open map: "a" -> byte string in pieces */
		0x9f, 0x01, 0x20, 0xff, /* open array: 1, -1 */
		0xc1, 0xfb, 0,    0,    0,    0,   0,    0,    0, 0, /* tag 1 on a double */
		0xf6, 0xf9, 0x7e, 0x00, /* null, half NaN */
		0x78, 0x03, 'l',  'o',  'l', /* text with a longer head than needed */
	};

	buf_add(b, junk, sizeof(junk));
}

/* A snapshot by hand, with things a later version may bring. */
static void put_future_snapshot(struct buf *b, const struct schema *s)
{
	cbw_map(b, 7);
	cbw_str(b, "a key that is longer than any that this version knows, by far");
	put_junk(b);
	cbw_uint(b, 4711);
	put_junk(b);
	cbw_str(b, "schema");
	cbw_uint(b, recording_schema_id(s));
	cbw_str(b, "end_ns");
	cbw_uint(b, 5);
	cbw_str(b, "cpus");
	cbw_array(b, 0);
	cbw_str(b, "domains");
	cbw_array(b, 0);
	cbw_str(b, "rows");
	cbw_array(b, 5);
	for (unsigned i = 0; i < 5; i++) {
		cbw_map(b, i == 4 ? 6 : 3);
		cbw_uint(b, RF_KIND);
		cbw_uint(b, i);
		cbw_uint(b, 99);
		put_junk(b);
		cbw_uint(b, RF_KEY);
		cbw_uint(b, i);
		if (i < 4)
			continue;
		cbw_str(b, "word");
		put_junk(b);
		cbw_uint(b, RF_PATH);
		cbw_str(b, "/x");
		cbw_uint(b, RF_CELLS);
		cbw_array(b, 1);
		cbw_array(b, 8);
		for (unsigned k = 0; k < 4; k++)
			cbw_uint(b, k);
		cbw_array(b, 0);
		cbw_uint(b, 1);
		cbw_uint(b, 1);
		put_junk(b);
	}
}

static void small_schema(struct schema *s, struct cpu_desc cpus[2])
{
	memset(s, 0, sizeof(*s));
	cpus[0] = (struct cpu_desc){ .present = true };
	cpus[1] = (struct cpu_desc){ .cpu = 1, .core = 1, .present = true };
	s->cpus = cpus;
	s->n_cpus = 2;
	s->n_packages = 1;
}

static void test_unknown_keys_are_read_over(void **state)
{
	struct buf b = { 0 };
	struct cpu_desc cpus[2];
	struct schema schema;
	struct snapshot *s = NULL;

	small_schema(&schema, cpus);
	recording_encode_header(&schema, &b);
	/* Map of 15 pairs behind the tag (3 bytes): one more, with a key of the future. */
	assert_int_equal(b.data[3], 0xa0 | 15);
	b.data[3]++;
	cbw_str(&b, "future");
	put_junk(&b);
	put_future_snapshot(&b, &schema);
	struct recording *r = opened(&b);
	assert_int_equal(recording_next(r, &s, NULL), 1);
	assert_int_equal(s->n_rows, 5);
	assert_string_equal(s->rows[4].path, "/x");
	assert_int_equal(s->rows[4].time_ns, 2);
	assert_int_equal(s->rows[4].switches, 3);
	assert_int_equal(recording_next(r, &s, NULL), 0);
	recording_close(r);
	buf_free(&b);
}

/* `edit` spoils one thing; the message must name it. */
static void refused(void (*edit)(struct buf *b, struct snapshot *s), const char *word)
{
	struct buf b = { 0 };
	struct world w;
	struct recording *r = NULL;
	struct snapshot *s = NULL;
	struct err e = { 0 };

	world_init(&w, 3);
	w.max_rows = 8;
	for (uint64_t n = 1; w.snap.n_rows < 6; n++) /* edits take two cgroups */
		world_fill(&w, n);
	recording_encode_header(&w.schema, &b);
	edit(&b, &w.snap);
	int code = recording_open_fd(file_of(&b), &r, &e);
	if (!code)
		code = recording_next(r, &s, &e);
	if (code == 1)
		code = recording_next(r, &s, &e);
	if (code >= 0 || !strstr(e.text, word))
		fail_msg("%d, no \"%s\" in: %s", code, word, e.text);
	assert_null(strchr(e.text, '\n'));
	recording_close(r);
	world_free(&w, true);
	buf_free(&b);
}

static void rows_out_of_order(struct buf *b, struct snapshot *s)
{
	s->rows[1].kind = ROW_IDLE;
	recording_encode(s, false, b);
}

static void same_key(struct buf *b, struct snapshot *s)
{
	s->rows[5].key = s->rows[4].key;
	recording_encode(s, false, b);
}

static void large_key(struct buf *b, struct snapshot *s)
{
	s->rows[5].key = 1u << 20;
	recording_encode(s, false, b);
}

static void large_audit(struct buf *b, struct snapshot *s)
{
	s->domains[0].audit_ppm = SNAP_AUDIT_MOST_PPM + 1;
	recording_encode(s, false, b);
}

static void long_audit_name(struct buf *b, struct snapshot *s)
{
	size_t at;

	snprintf(s->audit.formula, sizeof(s->audit.formula), "%s", "fifteen letters");
	recording_encode(s, false, b);
	for (at = b->len - 15; memcmp(b->data + at, "fifteen letters", 15) != 0; at--)
		;
	b->data[at - 1]++; /* its length: the next key's head becomes a letter of it */
}

static void relative_path(struct buf *b, struct snapshot *s)
{
	s->rows[4].path = "x";
	recording_encode(s, false, b);
}

static void ends_before(struct buf *b, struct snapshot *s)
{
	s->start_ns = s->end_ns + 1;
	recording_encode(s, false, b);
}

static void other_schema(struct buf *b, struct snapshot *s)
{
	((struct schema *)s->schema)->sensor[0] ^= 1;
	recording_encode(s, false, b);
}

static void other_header(struct buf *b, struct snapshot *s)
{
	recording_encode(s, false, b);
	((struct schema *)s->schema)->sensor[0] ^= 1;
	recording_encode_header(s->schema, b);
}

static void endless_array(struct buf *b, struct snapshot *s)
{
	cbw_map(b, 1);
	cbw_str(b, "rows");
	cbw_array(b, UINT64_MAX);
}

static void endless_string(struct buf *b, struct snapshot *s)
{
	static const uint8_t head[] = { 0xa1, 0x61, 'x', 0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	buf_add(b, head, sizeof(head));
}

static void deep(struct buf *b, struct snapshot *s)
{
	cbw_map(b, 1);
	cbw_str(b, "x");
	for (int i = 0; i < 100000; i++)
		cbw_array(b, 1);
}

static void huge_map(struct buf *b, struct snapshot *s)
{
	cbw_map(b, 1);
	cbw_str(b, "x");
	cbw_map(b, UINT64_MAX);
}

static void reserved_byte(struct buf *b, struct snapshot *s)
{
	buf_add_char(b, 0x1c);
}

static void newer(struct buf *b, struct snapshot *s)
{
	uint8_t *v = memmem(b->data, b->len, "version\x01", 8);

	assert_non_null(v);
	v[7] = 2;
}

static void no_cpus(struct buf *b, struct snapshot *s)
{
	struct schema none = *s->schema;

	none.n_cpus = 0;
	buf_reset(b);
	recording_encode_header(&none, b);
}

static void foreign(struct buf *b, struct snapshot *s)
{
	buf_reset(b);
	buf_add_str(b, "{\"timestamp\": 1}\n");
}

static void test_refusals(void **state)
{
	refused(rows_out_of_order, "special rows first");
	refused(same_key, "key of its own");
	refused(large_key, "row's key");
	refused(large_audit, "an uncertainty");
	refused(long_audit_name, "a formula's name");
	refused(relative_path, "slash");
	refused(ends_before, "ends after it begins");
	refused(other_schema, "two recordings");
	refused(other_header, "two recordings");
	refused(endless_array, "end of the file");
	refused(endless_string, "end of the file");
	refused(deep, "16 levels");
	refused(huge_map, "possible size");
	refused(reserved_byte, "0x1c");
	refused(newer, "version 2");
	refused(no_cpus, "header with CPUs");
	refused(foreign, "tag 55799");

	struct recording *r = NULL;
	struct err e = { 0 };
	assert_int_equal(recording_open("/nonexistent/x", &r, &e), -ENOENT);
	assert_non_null(strstr(e.text, "recording \"/nonexistent/x\": No such file"));
	assert_int_equal(recording_open("/tmp", &r, &e), -EISDIR);
	assert_int_equal(recording_open("/dev/null", &r, &e), -EBADMSG);
	assert_null(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_damaged_anywhere),
		cmocka_unit_test(test_unknown_keys_are_read_over),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
