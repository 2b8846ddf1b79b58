/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of fields: every type goes to CBOR and JSON and comes back, what does not fit is refused, and the tables of
 * arrays have each key once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/format/cbor.h"
#include "model/snapshot_fields.h"
#include "model/span.h"

struct thing {
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64, start, end, id;
	int sign;
	int64_t i64;
	bool yes, digit;
	double real;
	char chars[8];
	const char *text;
	unsigned color, quality;
};

static const char *color_name(unsigned v)
{
	static const char *const names[] = { "red", "green", "blue" };

	return v < 3 ? names[v] : "none";
}

static const struct field_words colors = { color_name, 3, false };
static const struct field rows[] = {
	FIELD(thing, u8),
	FIELD(thing, u16, .max = 1000),
	FIELD(thing, u32, .how = FIELD_SOME),
	FIELD(thing, u64),
	FIELD(thing, start),
	FIELD(thing, end, .in = 1),
	FIELD_LENGTH_OF("length", thing, start, end, .in = 2),
	FIELD(thing, id, .how = FIELD_HEX),
	FIELD(thing, sign),
	FIELD(thing, i64),
	FIELD(thing, yes),
	FIELD(thing, digit, .how = FIELD_DIGIT),
	FIELD(thing, real, .how = FIELD_SOME),
	FIELD(thing, chars, .how = FIELD_SOME),
	FIELD(thing, text, .in = 2),
	FIELD(thing, color, .words = &colors, .how = FIELD_SPELLED),
	FIELD(thing, quality, .words = &quality_words),
};
static const struct fields table = FIELDS(rows);

static const struct thing whole = {
	.u8 = 255,
	.u16 = 1000,
	.u32 = UINT32_MAX,
	.u64 = (uint64_t)1 << 60,
	.start = 1000,
	.end = 5000,
	.id = UINT64_MAX,
	.sign = -5,
	.i64 = INT64_MIN + 1,
	.yes = true,
	.digit = true,
	.real = 0.1,
	.chars = "seven 7",
	.text = "a \"text\"",
	.color = 2,
	.quality = QUALITY_ESTIMATED,
};

struct source {
	const uint8_t *p;
	size_t left;
};

static ssize_t give(void *arg, void *dst, size_t n)
{
	struct source *s = arg;

	n = n < s->left ? n : s->left;
	memcpy(dst, s->p, n);
	s->p += n;
	s->left -= n;
	return (ssize_t)n;
}

/* Takes the pairs of b into ret; the first error. */
static int take(const struct buf *b, struct thing *ret)
{
	struct source s = { b->data, b->len };
	struct cbr *in = cbr_new_from(give, &s, "test");
	char key[16];
	int rc = 0, end;

	while (!rc && !(end = cbr_at_end(in))) {
		rc = cbr_key(in, key, sizeof(key));
		if (!rc)
			rc = fields_cbor_read(in, &table, 1, key, ret);
	}
	cbr_free(in);
	return rc;
}

static void test_cbor(void **state)
{
	struct thing got = { .text = whole.text }, little = { .real = (double)NAN };
	struct buf b = { 0 };

	(void)state;
	fields_cbor(&b, &table, &whole, 1);
	assert_int_equal(fields_count(&table, &whole, 1), table.n - 2);
	assert_int_equal(take(&b, &got), 0);
	assert_memory_equal(&got, &whole, sizeof(got));
	/* zero, no number and no text are left out */
	assert_int_equal(fields_count(&table, &little, 1), table.n - 5);
	buf_free(&b);
}

static void refuse(const char *key, void (*put)(struct buf *b))
{
	struct thing got = { .u8 = 1, .color = 1 };
	struct buf b = { 0 };

	cbw_str(&b, key);
	put(&b);
	assert_int_equal(take(&b, &got), -EBADMSG);
	assert_int_equal(got.u8, 1);
	assert_int_equal(got.color, 1);
	buf_free(&b);
}

static void put_256(struct buf *b)
{
	cbw_uint(b, 256);
}

static void put_large(struct buf *b)
{
	cbw_int(b, (int64_t)INT32_MIN - 1);
}

static void put_pink(struct buf *b)
{
	cbw_str(b, "pink");
}

static void put_long(struct buf *b)
{
	cbw_str(b, "eight ch");
}

static void put_many(struct buf *b)
{
	cbw_uint(b, 1001);
}

static void test_refused(void **state)
{
	struct thing got = { 0 };
	struct buf b = { 0 };

	(void)state;
	refuse("u8", put_256);
	refuse("u16", put_many);
	refuse("sign", put_large);
	refuse("color", put_pink);
	refuse("chars", put_long);
	refuse("digit", put_many);
	cbw_str(&b, "unknown");
	assert_int_equal(take(&b, &got), 1);
	buf_free(&b);
}

static void test_json(void **state)
{
	struct thing got = { .color = 1, .quality = 1 };
	struct buf b = { 0 };
	struct json j;
	json_t *doc;

	(void)state;
	json_init(&j, &b);
	json_object_begin(&j);
	fields_json(&j, &table, &whole, 2);
	json_object_end(&j);
	doc = json_loadb((const char *)b.data, b.len, 0, NULL);
	assert_non_null(doc);
	assert_string_equal(json_string_value(json_object_get(doc, "id")), "ffffffffffffffff");
	assert_string_equal(json_string_value(json_object_get(doc, "color")), "blue");
	fields_json_read(doc, &table, &got, 2);
	assert_string_equal(got.text, whole.text);
	got.text = whole.text;
	assert_memory_equal(&got, &whole, sizeof(got));
	json_decref(doc);

	/* what is of another type, or below 0 where nothing is, changes nothing */
	doc = json_loads("{\"u8\":-1,\"color\":\"pink\",\"id\":\"12x\",\"text\":5,\"length\":\"1\"}", 0, NULL);
	fields_json_read(doc, &table, &got, 2);
	assert_memory_equal(&got, &whole, sizeof(got));
	json_decref(doc);
	buf_free(&b);
}

/* Of n keys those of the bits in `but` are written by hand; the table has the others, each once. */
static void check_keys(const struct fields *t, unsigned in, unsigned n, uint64_t but)
{
	unsigned times[64] = { 0 };

	for (unsigned i = 0; i < t->n; i++)
		if (t->list[i].in & in) {
			assert_in_range(t->list[i].key, 0, n - 1);
			times[t->list[i].key]++;
		}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(times[i], !(but >> i & 1));
}

static void test_keys(void **state)
{
	(void)state;
	check_keys(&span_fields, SPAN_RECORD, SPAN_RECORD_FIELDS, 0);
	check_keys(&trace_fields, TRACE_RECORD, TRACE_RECORD_FIELDS, 0);
	check_keys(&snap_cpu_fields, IN_RECORDING, CPU_KEYS, 1 << CPU_KEY_CPU | 1 << CPU_KEY_FLAGS | 1 << CPU_KEY_MSR);
	check_keys(&snap_row_fields, IN_RECORDING, ROW_FIELDS,
		   1 << RF_PATH_SHARED | 1 << RF_PATH | 1 << RF_FLAGS | 1 << RF_COUNTERS | 1 << RF_TRAFFIC |
			   1 << RF_CELLS | 1 << RF_ENERGY_UJ | 1 << RF_UNCERTAINTY_PPM | 1 << RF_NAMES | 1 << RF_BLOCK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cbor),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
