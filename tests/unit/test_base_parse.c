/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers: what is taken, what is refused, and that a refusal leaves the result alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/parse.h"

static void u64(const char *s, int rc, uint64_t want)
{
	uint64_t v = 77;

	if (parse_u64(s, &v) != rc || v != (rc ? 77 : want))
		fail_msg("parse_u64(\"%s\") gave %d, %llu", s, parse_u64(s, &v), (unsigned long long)v);
}

static void test_u64(void **state)
{
	(void)state;
	u64("0", 0, 0);
	u64("18446744073709551615", 0, UINT64_MAX);
	u64("18446744073709551616", -ERANGE, 0);
	u64("0xffffffffffffffff", 0, UINT64_MAX);
	u64("0X1f", 0, 31);
	u64("0x10000000000000000", -ERANGE, 0);
	u64("007", 0, 7);
	u64("", -EINVAL, 0);
	u64("0x", -EINVAL, 0);
	u64(" 1", -EINVAL, 0);
	u64("1 ", -EINVAL, 0);
	u64("+1", -EINVAL, 0);
	u64("-1", -EINVAL, 0);
	u64("1e3", -EINVAL, 0);
	u64("12a", -EINVAL, 0);
}

static void test_i64(void **state)
{
	int64_t v = 5;

	(void)state;
	assert_int_equal(parse_i64("-9223372036854775808", &v), 0);
	assert_true(v == INT64_MIN);
	assert_int_equal(parse_i64("9223372036854775807", &v), 0);
	assert_true(v == INT64_MAX);
	assert_int_equal(parse_i64("9223372036854775808", &v), -ERANGE);
	assert_int_equal(parse_i64("-9223372036854775809", &v), -ERANGE);
	assert_int_equal(parse_i64("--1", &v), -EINVAL);
	assert_int_equal(parse_i64("-", &v), -EINVAL);
	assert_true(v == INT64_MAX);
}

static void test_double(void **state)
{
	static const char *const bad[] = { "", "nan", "inf", "0x1p3", " 1", "1 ", "1,5", "--1", "e5", ".", "1e" };
	double v = 3;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse_double(bad[i], &v) != -EINVAL)
			fail_msg("parse_double took \"%s\"", bad[i]);
	assert_int_equal(parse_double("1e999", &v), -ERANGE);
	assert_true(v == 3);
	assert_int_equal(parse_double("-2.5e-1", &v), 0);
	assert_true(v == -0.25);
}

static void duration(const char *s, int rc, uint64_t want)
{
	uint64_t v = 77;

	if (parse_duration_ns(s, &v) != rc || v != (rc ? 77 : want))
		fail_msg("parse_duration_ns(\"%s\") gave %llu", s, (unsigned long long)v);
}

static void test_duration(void **state)
{
	(void)state;
	duration("10ms", 0, 10000000);
	duration("1s", 0, 1000000000);
	duration("1.5s", 0, 1500000000);
	duration("0.000000001s", 0, 1);
	duration("250us", 0, 250000);
	duration("3ns", 0, 3);
	duration("2m", 0, 120000000000ull);
	duration("1h", 0, 3600000000000ull);
	duration("7d", 0, 604800000000000ull);
	duration("18446744073709551615ns", 0, UINT64_MAX);
	duration("18446744073709551616ns", -ERANGE, 0);
	duration("18446744074s", -ERANGE, 0);
	duration("0.0000000001s", -EINVAL, 0);
	duration("1", -EINVAL, 0);
	duration("s", -EINVAL, 0);
	duration("1.s", -EINVAL, 0);
	duration(".5s", -EINVAL, 0);
	duration("-1s", -EINVAL, 0);
	duration("1 s", -EINVAL, 0);
	duration("1S", -EINVAL, 0);
	duration("1sec", -EINVAL, 0);
}

static void test_bytes(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_int_equal(parse_bytes("4096", &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(parse_bytes("64KiB", &v), 0);
	assert_int_equal(v, 65536);
	assert_int_equal(parse_bytes("16MiB", &v), 0);
	assert_int_equal(v, 16777216);
	assert_int_equal(parse_bytes("10MB", &v), 0);
	assert_int_equal(v, 10000000);
	assert_int_equal(parse_bytes("1GiB", &v), 0);
	assert_int_equal(v, 1073741824);
	assert_int_equal(parse_bytes("16777216TiB", &v), -ERANGE);
	assert_int_equal(parse_bytes("10M", &v), -EINVAL);
	assert_int_equal(parse_bytes("", &v), -EINVAL);
	assert_int_equal(v, 1073741824);
}

static void test_cpulist(void **state)
{
	uint8_t bits[2] = { 0xff, 0xff };

	(void)state;
	assert_int_equal(parse_cpulist("", bits, 16), 0);
	assert_int_equal(bits[0] | bits[1], 0);
	assert_int_equal(parse_cpulist("0-3,8,10-11", bits, 16), 7);
	assert_int_equal(bits[0], 0x0f);
	assert_int_equal(bits[1], 0x0d);
	assert_int_equal(parse_cpulist("1-2,2-3", bits, 16), 3);
	assert_int_equal(bits[0], 0x0e);
	assert_int_equal(parse_cpulist("16", bits, 16), -ERANGE);
	assert_int_equal(parse_cpulist("0-99999999999999999999", bits, 16), -ERANGE);
	assert_int_equal(parse_cpulist("3-1", bits, 16), -EINVAL);
	assert_int_equal(parse_cpulist("1,", bits, 16), -EINVAL);
	assert_int_equal(parse_cpulist(",1", bits, 16), -EINVAL);
	assert_int_equal(parse_cpulist("1-", bits, 16), -EINVAL);
	assert_int_equal(parse_cpulist("1\n", bits, 16), -EINVAL);
	assert_int_equal(bits[0], 0x0e);
}

static void test_bool(void **state)
{
	bool v = false;

	(void)state;
	assert_true(parse_bool("on", &v) && v);
	assert_true(parse_bool("no", &v) && !v);
	assert_true(parse_bool("true", &v) && v);
	assert_false(parse_bool("True", &v));
	assert_false(parse_bool("1", &v));
	assert_true(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),      cmocka_unit_test(test_i64),   cmocka_unit_test(test_double),
		cmocka_unit_test(test_duration), cmocka_unit_test(test_bytes), cmocka_unit_test(test_cpulist),
		cmocka_unit_test(test_bool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
