/* SPDX-License-Identifier: Apache-2.0 */
/* varint: every number comes back, in as few bytes as it needs; a number that is cut, too long or too large is bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/format/varint.h"

static uint64_t take(const void *data, size_t size, struct varint_reader *r)
{
	*r = (struct varint_reader){ .at = data, .end = (const uint8_t *)data + size };
	return varint_take(r);
}

static void comes_back(void **state)
{
	struct varint_reader r;
	struct buf b = { 0 };

	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t around[] = { (1ull << bit) - 1, 1ull << bit, (1ull << bit) + 1, UINT64_MAX >> (63 - bit) };

		for (unsigned i = 0; i < 4; i++) {
			uint64_t v = around[i];
			unsigned bits = v ? 64 - (unsigned)__builtin_clzll(v) : 1;

			b.len = 0;
			varint_add(&b, v);
			assert_int_equal(b.len, (bits + 6) / 7);
			assert_int_equal(take(b.data, b.len, &r), v);
			assert_false(r.bad);
			assert_ptr_equal(r.at, r.end);
			for (size_t cut = 0; cut < b.len; cut++) {
				assert_int_equal(take(b.data, cut, &r), 0);
				assert_true(r.bad);
			}
		}
	}
	buf_free(&b);
}

/* Ten bytes carry 70 bits: what is above the 64th is no number of ours, nor is an eleventh byte. */
static void too_long(void **state)
{
	static const uint8_t most[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 };
	static const uint8_t bit64[] = { 128, 128, 128, 128, 128, 128, 128, 128, 128, 2 };
	static const uint8_t bits[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 127 };
	static const uint8_t goes_on[] = { 128, 128, 128, 128, 128, 128, 128, 128, 128, 129, 0 };
	static const uint8_t eleven[] = { 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1 };
	struct varint_reader r;

	assert_true(take(most, sizeof(most), &r) == UINT64_MAX && !r.bad);
	assert_true(take(bit64, sizeof(bit64), &r) == 0 && r.bad);
	assert_true(take(bits, sizeof(bits), &r) == 0 && r.bad);
	assert_true(take(goes_on, sizeof(goes_on), &r) == 0 && r.bad);
	assert_true(take(eleven, sizeof(eleven), &r) == 0 && r.bad);
	assert_int_equal(varint_take(&r), 0);
	assert_ptr_equal(r.at, r.end);
}

static void bytes(void **state)
{
	static const uint8_t data[] = { 3, 'a', 'b', 'c', 9 };
	struct varint_reader r;

	assert_int_equal(take(data, sizeof(data), &r), 3);
	assert_ptr_equal(varint_bytes(&r, 3), data + 1);
	assert_null(varint_bytes(&r, 2));
	assert_true(r.bad);
	assert_null(varint_bytes(&r, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back),
		cmocka_unit_test(too_long),
		cmocka_unit_test(bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
