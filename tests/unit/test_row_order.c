/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in groups of rows: each one comes out once, the machine's first, a group's families in their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "encode/metrics/row_order.h"

/* Two families of the machine around two of each row: "m0 ", "a0 a1 ...", "m1 ", "b0 b1 ...". Every third row has no b. */
static void fill(struct row_order *o, uint32_t group, uint32_t rows)
{
	row_order_begin(o, group);
	for (unsigned family = 0; family < 2; family++) {
		buf_printf(&o->samples, "m%u ", family);
		for (uint32_t r = 0; r < rows; r++) {
			const size_t at = o->samples.len;

			if (family && r % 3 == 0)
				continue;
			buf_printf(&o->samples, "%c%u ", 'a' + (int)family, r);
			row_order_row(o, r, at);
		}
	}
	buf_add_str(&o->samples, "end ");
}

static void expect(struct row_order *o, uint32_t group, uint32_t rows, const char *text)
{
	struct buf out = { 0 };

	buf_add_str(&out, "head ");
	fill(o, group, rows);
	assert_int_equal(row_order_write(o, rows, &out), 0);
	buf_add_char(&out, '\0');
	assert_string_equal((char *)out.data, text);
	buf_free(&out);
}

static void test_groups(void **state)
{
	struct row_order o = { 0 };

	expect(&o, 1, 4, "head m0 m1 end a0 a1 b1 a2 b2 a3 ");
	expect(&o, 2, 5, "head m0 m1 end a0 a1 b1 a2 a3 b2 a4 b4 ");
	expect(&o, 64, 4, "head m0 m1 end a0 a1 a2 a3 b1 b2 ");
	expect(&o, 4, 4, "head m0 m1 end a0 a1 a2 a3 b1 b2 ");
	expect(&o, 3, 0, "head m0 m1 end ");
	row_order_free(&o);
}

static void test_many(void **state)
{
	struct row_order o = { 0 };
	struct buf out = { 0 };
	char word[16];

	fill(&o, 64, 1000);
	assert_int_equal(row_order_write(&o, 1000, &out), 0);
	assert_int_equal(out.len, o.samples.len);
	buf_add_char(&out, '\0');
	for (unsigned r = 0; r < 1000; r++) {
		snprintf(word, sizeof(word), " a%u ", r);
		assert_non_null(strstr((char *)out.data, word));
		snprintf(word, sizeof(word), " b%u ", r);
		assert_int_equal(strstr((char *)out.data, word) != NULL, r % 3 != 0);
	}
	buf_free(&out);
	row_order_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups), cmocka_unit_test(test_many) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
