/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a document holds its body, and gives the document back: each format, every item. What is damaged on the
 * disk is said to be, and claims no memory. */
#include "agent/output/push_record.h"
#include "encode/otlp_request.h"
#include "unit/encode_fixture.h"

extern const struct encoder_ops encode_otlp, encode_remote_write, encode_influx;
extern const struct push_format push_otlp, push_otlp_traces, push_remote_write, push_influx;

static void metrics(struct fixture *f, const struct encoder_ops *ops)
{
	char path[32];

	fixture_init(f, 2, 2);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(f, DOMAIN_PACKAGE, 1, "package-1");
	fixture_ready(f);
	f->snap.start_ns = f->snap.end_ns - 1000000000;
	f->snap.domains[0].energy_uj = 1500000;
	for (unsigned i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "/kubepods/pod%u", i);
		fixture_row(f, path, 10 + i);
	}
	fixture_create(f, ops, &(struct encode_options){ .sensor = f->schema.sensor });
	fixture_encode(f);
	f->out.len--; /* the NUL behind it */
}

static void spans(struct buf *b)
{
	otlp_make_head(b, "host", NULL, 0);
	otlp_field(b, OTLP_ITEM, "one span", 8);
	otlp_field(b, OTLP_ITEM, "another", 7);
}

/* Cut and changed at each place, in memory of its own size so that a read behind its end is seen. */
static void damage(const struct push_format *f, const struct buf *record)
{
	struct buf scratch = { 0 }, out = { 0 };

	for (size_t n = 4; n < record->len; n++) {
		struct buf cut = { .data = malloc(n), .len = n };

		memcpy(cut.data, record->data, n);
		buf_reset(&out);
		assert_int_equal(push_record_open(f, &cut, &scratch, &out), -EBADMSG);
		free(cut.data);
		record->data[n] ^= 0x55;
		buf_reset(&out);
		push_record_open(f, record, &scratch, &out); /* snappy has no checksum: it may read */
		assert_true(out.cap < record->len * 2000 + 65536);
		record->data[n] ^= 0x55;
	}
	buf_free(&scratch);
	buf_free(&out);
}

static void round_trip(const struct push_format *f, const struct buf *document)
{
	struct push_body b = { 0 };
	struct buf record = { 0 }, again = { 0 }, scratch = { 0 };
	size_t n;

	assert_int_equal(push_record_make(&b, f, document->data, document->len, &record), 0);
	assert_true(push_record_body(&record, &n) == record.data + 4);
	assert_int_equal(n, record.len - 4);
	assert_int_equal(push_record_open(f, &record, &scratch, &again), 0);
	assert_int_equal(again.len, document->len);
	assert_memory_equal(again.data, document->data, again.len);
	damage(f, &record);
	assert_null(push_record_body(document, &n));
	assert_int_equal(push_record_open(f, document, &scratch, &again), -EBADMSG);
	push_body_free(&b);
	buf_free(&record);
	buf_free(&again);
	buf_free(&scratch);
}

static void test_metrics(void **state)
{
	static const struct {
		const struct encoder_ops *ops;
		const struct push_format *format;
	} all[] = { { &encode_otlp, &push_otlp },
		    { &encode_remote_write, &push_remote_write },
		    { &encode_influx, &push_influx } };
	struct fixture f;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		metrics(&f, all[i].ops);
		round_trip(all[i].format, &f.out);
		fixture_free(&f);
	}
}

static void test_spans(void **state)
{
	struct buf b = { 0 };

	spans(&b);
	round_trip(&push_otlp_traces, &b);
	buf_free(&b);
}

/* A run of lines of which one is refused, each in turn: a part of several is always made smaller, whatever their lengths. */
static void test_middle(void **state)
{
	static const unsigned lengths[][3] = { { 1, 300, 2 }, { 300, 1, 2 }, { 1, 1, 300 }, { 2, 300, 300 } };
	const struct push_format *f = &push_influx;

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct buf b = { 0 };
		size_t ends[3], end, at = 0;

		for (unsigned k = 0; k < 3; k++) {
			buf_printf(&b, "%*d\n", lengths[i][k], 1);
			ends[k] = b.len;
		}
		for (end = b.len; end > ends[0]; end = push_middle(f, &b, 0, end))
			assert_true(push_middle(f, &b, 0, end) < end);
		assert_int_equal(end, ends[0]);
		while (at < b.len) {
			end = push_middle(f, &b, at, b.len);
			assert_true(end > at && (end < b.len || at == ends[1]));
			at = end;
		}
		assert_int_equal(push_middle(f, &b, ends[1], b.len), b.len);
		b.len--;
		b.data[b.len] = 'x'; /* the last is no item */
		b.len++;
		assert_int_equal(push_middle(f, &b, ends[1], b.len), b.len);
		buf_free(&b);
	}
}

/* A document without items is kept as it is, and so is one that is none. */
static void test_nothing(void **state)
{
	struct push_body b = { 0 };
	struct buf head = { 0 }, out = { 0 };

	otlp_make_head(&head, "host", NULL, 0);
	assert_int_equal(push_record_make(&b, &push_otlp, head.data, head.len, &out), -ENODATA);
	assert_int_equal(push_record_make(&b, &push_influx, "", 0, &out), -ENODATA);
	buf_add_str(&head, "no item");
	assert_int_equal(push_record_make(&b, &push_otlp, head.data, head.len, &out), -EBADMSG);
	assert_int_equal(out.len, 0);
	push_body_free(&b);
	buf_free(&head);
	buf_free(&out);
}

/* Sizes that a damaged body claims: the last four bytes of a gzip member, the first ones of snappy's. */
static void test_claims(void **state)
{
	struct buf out = { 0 };

	assert_int_equal(unpack(PACK_GZIP, "\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\xff\xff\xff\xff", 20, &out),
			 -EBADMSG);
	assert_int_equal(unpack(PACK_GZIP, "\xff\xff\xff", 3, &out), -EBADMSG);
	assert_int_equal(unpack(PACK_SNAPPY, "\xff\xff\xff\xff\x0f\x00", 6, &out), -EBADMSG);
	assert_int_equal(unpack(PACK_SNAPPY, "", 0, &out), -EBADMSG);
	assert_int_equal(out.cap, 0);
}

/* Unpacked they are the same. Packed they take no more room than bytes that cannot be made smaller. */
static void come_back(struct packer *p, const uint8_t *bytes, size_t n)
{
	struct buf packed = { 0 }, plain = { 0 };

	assert_int_equal(pack(p, PACK_GZIP, bytes, n, &packed), 0);
	assert_true(packed.len <= n + 5 * (n / 65535 + 1) + 18);
	assert_int_equal(unpack(PACK_GZIP, packed.data, packed.len, &plain), 0);
	assert_int_equal(plain.len, n);
	assert_int_equal(memcmp(plain.data, bytes, n), 0);
	/* a byte less is damage; so is more behind it, even where that claims the same size */
	assert_int_equal(unpack(PACK_GZIP, packed.data, packed.len - 1, &plain), -EBADMSG);
	buf_add(&packed, packed.data + packed.len - 4, 4);
	assert_int_equal(unpack(PACK_GZIP, packed.data, packed.len, &plain), -EBADMSG);
	assert_int_equal(plain.len, n);
	buf_free(&packed);
	buf_free(&plain);
}

enum { ZEROS, RANDOM, TEXT, ZEROS_AND_MORE, KINDS };

static void test_any_bytes(void **state)
{
	static const size_t sizes[] = { 0, 1, 5, 100, 65534, 65535, 65536, 131071, 300000 };
	static uint8_t bytes[300000];
	struct packer p = { 0 };
	uint32_t x = 1;

	for (unsigned kind = 0; kind < KINDS; kind++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			x = x * 1664525 + 1013904223;
			bytes[i] = kind == TEXT   ? (uint8_t)("kubepods"[i % 8] + (x >> 31)) :
				   kind == RANDOM ? (uint8_t)(x >> 24) :
				   kind == ZEROS  ? 0 :
						    (uint8_t)(i / 20000 % 2 ? x >> 24 : 0);
		}
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			come_back(&p, bytes, sizes[i]);
	}
	packer_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_metrics), cmocka_unit_test(test_spans),
					    cmocka_unit_test(test_middle),  cmocka_unit_test(test_nothing),
					    cmocka_unit_test(test_claims),  cmocka_unit_test(test_any_bytes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
