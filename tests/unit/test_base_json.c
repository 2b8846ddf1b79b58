/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer and the JSON writer, numbers against printf, strings against the rules of RFC 8259. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"

static const char *text(struct buf *b)
{
	buf_add_char(b, '\0');
	b->len--;
	return (const char *)b->data;
}

static uint64_t next_random(uint64_t *x)
{
	*x = *x * 6364136223846793005ull + 1442695040888963407ull;
	return *x ^ *x >> 29;
}

static void test_numbers(void **state)
{
	struct buf b = { 0 };
	uint64_t x = 1;
	char want[32];

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint64_t v = next_random(&x) >> (i % 64);

		buf_reset(&b);
		buf_add_u64(&b, v);
		snprintf(want, sizeof(want), "%" PRIu64, v);
		if (strcmp(text(&b), want) != 0)
			fail_msg("%s for %s", text(&b), want);
		buf_reset(&b);
		buf_add_i64(&b, (int64_t)next_random(&x) >> (i % 64));
	}
	buf_reset(&b);
	buf_add_i64(&b, INT64_MIN);
	buf_add_char(&b, ' ');
	buf_add_u64(&b, UINT64_MAX);
	for (uint64_t p = 1; p < 1000000; p *= 10) {
		buf_printf(&b, " %d ", 7);
		buf_add_u64(&b, p - 1);
	}
	assert_string_equal(text(&b), "-9223372036854775808 18446744073709551615 7 0 7 9 7 99 7 999 7 9999 7 99999");
	buf_free(&b);
	buf_free(NULL);
}

static void test_limit(void **state)
{
	struct buf b = { .limit = 300 };
	char big[400];

	(void)state;
	memset(big, 'x', sizeof(big));
	buf_add(&b, big, 200);
	buf_add(&b, big, 200);
	assert_true(b.failed);
	assert_int_equal(b.len, 200);
	buf_reset(&b);
	buf_printf(&b, "%.*s", 250, big);
	assert_false(b.failed);
	assert_int_equal(b.len, 250);
	buf_printf(&b, "%.*s", 250, big);
	assert_true(b.failed);
	assert_null(buf_reserve(&b, 1));
	buf_free(&b);
	assert_non_null(buf_reserve(&b, 0));
	buf_free(&b);
}

static void string_is(const char *s, const char *want)
{
	struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	json_str(&j, s);
	assert_string_equal(text(&b), want);
	buf_free(&b);
}

static void test_strings(void **state)
{
	char plain[100], want[140];

	(void)state;
	string_is("", "\"\"");
	string_is("/sys/a b", "\"/sys/a b\"");
	string_is("\"\\\b\f\n\r\t\x01\x1f\x7f", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
	string_is("\xc3\xa4\xff\xf0\x9f\x98\x80\xed\xa0\x80",
		  "\"\xc3\xa4\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	/* a special sign at every place of the word-wise scan */
	for (unsigned at = 0; at < 40; at++)
		for (unsigned kind = 0; kind < 4; kind++) {
			static const char *const signs[] = { "\"", "\\", "\x1f", "\xe9" };
			static const char *const out[] = { "\\\"", "\\\\", "\\u001f", "\xef\xbf\xbd" };

			snprintf(plain, sizeof(plain), "%.*s%s%s", (int)at,
				 "0123456789abcdefghijklmnopqrstuvwxyz !#[]^~", signs[kind], "tail of it");
			snprintf(want, sizeof(want), "\"%.*s%s%s\"", (int)at,
				 "0123456789abcdefghijklmnopqrstuvwxyz !#[]^~", out[kind], "tail of it");
			string_is(plain, want);
		}
}

static void test_nesting(void **state)
{
	struct buf b = { 0 };
	struct json j;

	(void)state;
	json_init(&j, &b);
	json_object_begin(&j);
	json_key_u64(&j, "a", 1);
	json_key(&j, "b");
	json_array_begin(&j);
	json_i64(&j, -2);
	json_array_begin(&j);
	json_array_end(&j);
	json_object_begin(&j);
	json_object_end(&j);
	json_bool(&j, true);
	json_array_end(&j);
	json_key_str(&j, "c", "x");
	json_object_end(&j);
	assert_string_equal(text(&b), "{\"a\":1,\"b\":[-2,[],{},true],\"c\":\"x\"}");
	buf_reset(&b);
	json_init(&j, &b);
	for (int i = 0; i < 40; i++)
		json_array_begin(&j);
	assert_true(b.failed);
	buf_free(&b);
}

static void test_doubles(void **state)
{
	static const double values[] = { 0.1, 1.0 / 3, 1e300, 5e-324, 123456789012345678.0, -0.5, 100 };
	struct buf b = { 0 };
	struct json j;

	(void)state;
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		buf_reset(&b);
		json_init(&j, &b);
		json_double(&j, values[i]);
		assert_true(strtod(text(&b), NULL) == values[i]);
	}
	buf_reset(&b);
	json_init(&j, &b);
	json_array_begin(&j);
	json_double(&j, 0.1);
	json_double(&j, NAN);
	json_double(&j, -INFINITY);
	json_array_end(&j);
	assert_string_equal(text(&b), "[0.1,null,null]");
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_limit),   cmocka_unit_test(test_strings),
		cmocka_unit_test(test_nesting), cmocka_unit_test(test_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
