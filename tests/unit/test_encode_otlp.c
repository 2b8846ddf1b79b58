/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP: a series by its bytes, laid out by hand from the published field numbers; starts that stay when the clock moves;
 * points of one metric together in what is sent; answers and damaged documents. tests/e2e/push.py decodes whole documents
 * with what protoc makes. */
#include "encode/otlp_request.h"
#include "encode/push.h"
#include "unit/encode_fixture.h"

extern const struct encoder_ops encode_otlp;
extern const struct push_format push_otlp;

#define BEGIN "\x80\xc3\x69\xd9\x7f\xd5\x39\x17" /* 1673603481630000000, little endian */
#define END "\x80\x8d\x04\x15\x80\xd5\x39\x17" /* 1673603482630000000 */
#define LATER "\x80\x57\x9f\x50\x80\xd5\x39\x17" /* a second later */

static void document(struct fixture *f)
{
	fixture_init(f, 1, 1);
	fixture_domain(f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(f, DOMAIN_PACKAGE, 1, "package-1");
	fixture_ready(f);
	f->snap.start_ns = f->snap.end_ns - 1000000000;
	f->snap.domains[0].energy_uj = 1500000;
	f->snap.domains[1].energy_uj = 250000;
	fixture_row(f, "/a", 10);
	*snapshot_energy(&f->snap, 4, 0) = 1500000;
	fixture_create(f, &encode_otlp, &(struct encode_options){ .sensor = f->schema.sensor });
	fixture_encode(f);
	f->out.len--; /* the NUL behind it */
}

#define PACKAGE(N) \
	"\x3a\x13\x0a\x06" \
	"domain\x12\x09\x0a\x07package" \
	"\x3a\x0e\x0a\x07package\x12\x03\x0a\x01" N
#define METRIC "\x0a\x0djouled.energy\x1a\x01J"
/* {domain="package", package="0"} 1.5 J */
#define FIRST "\x0a\x40" PACKAGE("0") "\x11" BEGIN "\x19" END "\x21\x00\x00\x00\x00\x00\x00\xf8\x3f"
#define SECOND "\x0a\x40" PACKAGE("1") "\x11" BEGIN "\x19" END "\x21\x00\x00\x00\x00\x00\x00\xd0\x3f"
static const char energy[] = "\x12\x5a" METRIC "\x3a\x46" FIRST "\x10\x02\x18\x01";
static const char together[] = "\x12\x9d\x01" METRIC "\x3a\x88\x01" FIRST SECOND "\x10\x02\x18\x01";

static bool has(const struct buf *b, const char *text, size_t n)
{
	return memmem(b->data, b->len, text, n);
}

static void test_bytes(void **state)
{
	static const char scope[] = "\x0a\x06jouled\x12";
	struct push_part part;
	struct buf body = { 0 };
	struct fixture f;

	document(&f);
	assert_true(has(&f.out, energy, sizeof(energy) - 1));
	assert_false(has(&f.out, together, sizeof(together) - 1));
	part.head = f.out.data;
	part.n_head = push_otlp.head(f.out.data, f.out.len);
	part.items = f.out.data + part.n_head;
	part.n_items = f.out.len - part.n_head;
	assert_int_equal(push_otlp.wrap(&part, &body), 0);
	assert_true(has(&body, together, sizeof(together) - 1));
	assert_true(has(&body, scope, sizeof(scope) - 1));
	buf_free(&body);
	fixture_free(&f);
}

/* A text in the attribute k: quotes, line feeds and characters are what they were, a byte that is none becomes U+FFFD. */
static void test_texts(void **state)
{
	static const char mixed[] =
		"\x3a\x1e\x0a\x01k\x12\x19\x0a\x17plain text, \"\xc3\xa9\"\n\xef\xbf\xbd\xef\xbf\xbd";
	static const char plain[] = "\x3a\x16\x0a\x01k\x12\x11\x0a\x0fno other letter";
	struct buf b = { 0 };

	otlp_text(&b, 0x3a, "k", "plain text, \"\xc3\xa9\"\n\xff\xc3");
	assert_int_equal(b.len, sizeof(mixed) - 1);
	assert_memory_equal(b.data, mixed, b.len);
	buf_reset(&b);
	otlp_text(&b, 0x3a, "k", "no other letter");
	assert_int_equal(b.len, sizeof(plain) - 1);
	assert_memory_equal(b.data, plain, b.len);
	buf_reset(&b);
	otlp_text(&b, 0x3a, "k", "");
	assert_int_equal(b.len, 0);
	buf_free(&b);
}

static unsigned count_items(const struct buf *b)
{
	unsigned items = 0;

	for (size_t at = push_otlp.head(b->data, b->len), len;
	     at < b->len && (len = push_otlp.item(b->data + at, b->len - at)); at += len)
		items++;
	return items;
}

static unsigned count(const struct buf *b, const char *text, size_t n)
{
	const uint8_t *p = b->data, *end = b->data + b->len;
	unsigned found = 0;

	for (; (p = memmem(p, (size_t)(end - p), text, n)); p += n)
		found++;
	return found;
}

static void test_items(void **state)
{
	char name[200];
	struct fixture f;
	size_t at, len, items = 0;

	document(&f);
	for (at = push_otlp.head(f.out.data, f.out.len);
	     at < f.out.len && (len = push_otlp.item(f.out.data + at, f.out.len - at)); at += len)
		items++;
	assert_int_equal(at, f.out.len);
	assert_true(items > 20);
	push_otlp.name(energy, sizeof(energy) - 1, name, sizeof(name));
	assert_string_equal(name, "jouled.energy{domain=\"package\", package=\"0\"}");
	for (size_t n = 0; n < sizeof(energy) - 1; n++) {
		struct buf body = { 0 };
		char *cut = malloc(n + 1); /* so that a read behind its end is seen */

		memcpy(cut, energy, n);
		assert_int_equal(push_otlp.item(cut, n), 0);
		assert_int_equal(push_otlp.head(cut, n), 0);
		push_otlp.name(cut, n, name, sizeof(name));
		assert_int_equal(
			push_otlp.wrap(&(struct push_part){ f.out.data, cut, push_otlp.head(f.out.data, f.out.len), n },
				       &body),
			-EBADMSG);
		buf_free(&body);
		free(cut);
	}
	fixture_free(&f);
}

/* The clock is put forward by an hour, and then back by two: a start stays, but is never after the time of the point. */
static void test_starts(void **state)
{
	static const char begin[] = "\x11" BEGIN;
	const int64_t hour_ns = 3600 * INT64_C(1000000000);
	struct fixture f;

	document(&f);
	f.snap.start_ns += 1000000000;
	f.snap.end_ns += 1000000000;
	f.snap.end_real_ns += hour_ns;
	f.out.len = 0;
	fixture_encode(&f);
	assert_true(count_items(&f.out) > 20);
	assert_int_equal(count(&f.out, begin, sizeof(begin) - 1), count_items(&f.out));
	f.snap.end_real_ns -= 2 * hour_ns;
	f.out.len = 0;
	fixture_encode(&f);
	assert_int_equal(count(&f.out, begin, sizeof(begin) - 1), 0);
	fixture_free(&f);
}

static void test_answer(void **state)
{
	static const char partial[] = "\x0a\x09\x08\x83\x01\x12\x04"
				      "a\x1b[z",
			  huge[] = "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", html[] = "<html>";
	struct push_answer a = { 0 };

	assert_int_equal(push_otlp.answer("", 0, &a), 0);
	assert_int_equal(a.rejected, 0);
	assert_int_equal(push_otlp.answer(partial, sizeof(partial) - 1, &a), 0);
	assert_int_equal(a.rejected, 131);
	assert_null(strchr(a.why, 0x1b));
	assert_non_null(strstr(a.why, "[z"));
	assert_int_equal(push_otlp.answer(huge, sizeof(huge) - 1, &a), -EBADMSG);
	assert_int_equal(push_otlp.answer(html, sizeof(html) - 1, &a), -EBADMSG);
	for (size_t n = 1; n < sizeof(partial) - 1; n++) {
		char *cut = malloc(n);

		memcpy(cut, partial, n);
		assert_int_equal(push_otlp.answer(cut, n, &a), -EBADMSG);
		free(cut);
	}
}

/* The document of a second later, in which the last row has ended. */
static void encode_without_last(struct fixture *f)
{
	f->snap.n_rows--;
	f->snap.start_ns += 1000000000;
	f->snap.end_ns += 1000000000;
	f->snap.end_real_ns += 1000000000;
	fixture_encode(f);
}

/* A cgroup that is not kept any more: each of its points has the flag and no value, and is an item as all are. */
static void test_ends(void **state)
{
	static const char ended[] = "\x11" BEGIN "\x19" LATER "\x40\x01"; /* with the start that they had */
	unsigned items;
	struct fixture f;

	document(&f);
	items = count_items(&f.out);
	f.ops->destroy(f.encoder);
	fixture_create(&f, &encode_otlp, &(struct encode_options){ .sensor = f.schema.sensor, .keep_ns = 1 });
	fixture_encode(&f);
	encode_without_last(&f);
	assert_int_equal(count(&f.out, ended, sizeof(ended) - 1), 0);
	f.snap.end_ns += 1000000000;
	fixture_encode(&f);
	f.out.len--; /* the NUL behind it */
	assert_int_equal(count_items(&f.out), items);
	assert_int_equal(count(&f.out, ended, sizeof(ended) - 1), 3);
	fixture_encode(&f);
	f.out.len--;
	assert_int_equal(count_items(&f.out), items - 3);
	assert_int_equal(count(&f.out, ended, sizeof(ended) - 1), 0);
	fixture_free(&f);
}

/* With keep 0 a cgroup ends in the document of the interval in which it ended. */
static void test_ends_at_once(void **state)
{
	static const char ended[] = "\x11" BEGIN "\x19" LATER "\x40\x01";
	struct fixture f;

	document(&f);
	f.ops->destroy(f.encoder);
	fixture_create(&f, &encode_otlp, &(struct encode_options){ .sensor = f.schema.sensor, .keep_ns = 0 });
	fixture_encode(&f);
	encode_without_last(&f);
	assert_int_equal(count(&f.out, ended, sizeof(ended) - 1), 3);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes),       cmocka_unit_test(test_texts),
					    cmocka_unit_test(test_items),       cmocka_unit_test(test_starts),
					    cmocka_unit_test(test_answer),      cmocka_unit_test(test_ends),
					    cmocka_unit_test(test_ends_at_once) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
