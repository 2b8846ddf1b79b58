/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from outside: UTF-8 by the table of RFC 3629, escapes, globs, distance, the error line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"

/* Decodes and encodes again: a sequence is right when it is the shortest form of a scalar value. */
static size_t reference_len(const unsigned char *s, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
	uint32_t c;

	if (!len || len > n)
		return 0;
	c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 63);
	}
	return c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : len;
}

static void test_utf8(void **state)
{
	static const unsigned char edge[] = { 0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff };

	(void)state;
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++)
			for (unsigned i = 0; i < sizeof(edge) * sizeof(edge); i++) {
				unsigned char s[4] = { (unsigned char)a, (unsigned char)b, edge[i / sizeof(edge)],
						       edge[i % sizeof(edge)] };

				for (size_t n = 1; n <= 4; n++)
					if (text_utf8_len(s, n) != reference_len(s, n))
						fail_msg("%02x %02x %02x %02x of %zu", s[0], s[1], s[2], s[3], n);
			}
	assert_int_equal(text_utf8_len((const unsigned char *)"", 0), 0);
}

static void escaped(const char *from, size_t size, const char *want)
{
	char to[64];

	memset(to, 'Z', sizeof(to));
	assert_ptr_equal(text_escape(to, size, from), to);
	assert_string_equal(to, want);
}

static void test_escape(void **state)
{
	char to[64];

	(void)state;
	escaped("plain \xc3\xa4", 64, "plain \xc3\xa4");
	escaped("a\x1b[31m\n\\", 64, "a\\x1b[31m\\x0a\\x5c");
	escaped("\x7f\xff\xc2\x9b", 64, "\\x7f\\xff\\xc2\\x9b");
	escaped("a\xe2\x80\xae"
		"b\xe2\x81\xa6"
		"c\xe2\x80\xa8",
		64,
		"a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6"
		"c\xe2\x80\xa8"); /* reads backwards */
	escaped("abc", 3, "ab");
	escaped("ab\n", 6, "ab"); /* an escape is not cut */
	escaped("a\xc3\xa4", 3, "a"); /* nor is a letter */
	escaped("x", 1, "");
	assert_string_equal(text_clean(to, sizeof(to), "a\\b\n"), "a\\b\\x0a");
}

static void test_err(void **state)
{
	struct err e = { 0 };
	char big[2000];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(err_set(&e, -EINVAL, "file: %s; remedy", "a\nb"), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_string_equal(e.text, "file: a\\x0ab; remedy");
	assert_int_equal(err_set(NULL, -ENOENT, "nobody reads"), -ENOENT);
	err_set(&e, -EIO, "%s", big);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static void glob(const char *pattern, const char *s, int want)
{
	if (text_glob(pattern, s) != want)
		fail_msg("text_glob(\"%s\", \"%s\") is not %d", pattern, s, want);
}

static void test_glob(void **state)
{
	(void)state;
	glob("/**", "/", 1);
	glob("/**", "/a/b", 1);
	glob("/*", "/a", 1);
	glob("/*", "/a/b", 0);
	glob("/a/*/c", "/a/b/c", 1);
	glob("/a/*/c", "/a/b/b/c", 0);
	glob("/a/**/c", "/a/b/b/c", 1);
	glob("**/x*y", "/a/xb/xzy", 1);
	glob("**/x*y", "/a/xb/xzyz", 0);
	glob("/?", "/a", 1);
	glob("/?", "//", 0);
	glob("/a?c", "/a/c", 0);
	glob("*ab", "aab", 1);
	glob("/*.slice/*.service", "/system.slice/a.b.service", 1);
	glob("/*.slice/*.service", "/x/system.slice/a.service", 0);
	glob("", "", 1);
	glob("", "a", 0);
	glob("a*", "a", 1);
	glob("**", "", 1);
	glob("[a]", "a", 0);
}

/* All patterns and texts of up to five signs against a matcher that tries everything. */
static int slow_glob(const char *p, const char *s)
{
	if (!*p)
		return !*s;
	if (p[0] == '*' && p[1] == '*')
		return slow_glob(p + 2, s) || (*s && slow_glob(p, s + 1));
	if (*p == '*')
		return slow_glob(p + 1, s) || (*s && *s != '/' && slow_glob(p, s + 1));
	return *s && (*p == *s || (*p == '?' && *s != '/')) && slow_glob(p + 1, s + 1);
}

static void spell(char *to, unsigned n, const char *signs, unsigned kinds)
{
	for (; n; n /= kinds)
		*to++ = signs[--n % kinds];
	*to = '\0';
}

static void test_glob_all(void **state)
{
	char p[8], s[8];

	(void)state;
	for (unsigned i = 0; i < 1365; i++) {
		spell(p, i, "*a/?", 4);
		for (unsigned j = 0; j < 364; j++) {
			spell(s, j, "a/b", 3);
			if (text_glob(p, s) != slow_glob(p, s))
				fail_msg("\"%s\" on \"%s\"", p, s);
		}
	}
}

/* Every way a write fails has a remedy of its own; a full disk says it as everywhere. */
static void test_err_write(void **state)
{
	static const int known[] = {
		-ENOSPC, -EFBIG, -EROFS, -EACCES, -ENOENT, -EISDIR, -EPIPE, -EMFILE, -ENOMEM, -EIO
	};
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC), rc;
	struct err err;

	(void)state;
	assert_true(fd >= 0);
	rc = write(fd, "x", 1) == 1 ? 0 : -errno;
	close(fd);
	assert_int_equal(err_write(&err, rc, "/a\n", "the figures are lost"), -ENOSPC);
	assert_int_equal(err.code, -ENOSPC);
	assert_string_equal(err.text,
			    "/a\\x0a: No space left on device: the figures are lost; make room there, or write "
			    "elsewhere");
	assert_int_equal(err_write(&err, -EDQUOT, "/a", NULL), -EDQUOT);
	assert_string_equal(err.text, "/a: Disk quota exceeded; make room there, or write elsewhere");
	err_write(&err, 0, "stdout", NULL);
	assert_string_equal(err.text, "stdout: a write failed; make room there, or write elsewhere");
	assert_int_equal(err_write(NULL, -EIO, "/a", NULL), -EIO);
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(err_write_remedy(known[i]), err_write_remedy(known[k]));
}

static void test_subject(void **state)
{
	char line[64];

	(void)state;
	snprintf(line, sizeof(line), "output %.*s: up", TEXT_SUBJECT("stdout:"));
	assert_string_equal(line, "output stdout: up");
	snprintf(line, sizeof(line), "%.*s|%.*s", TEXT_SUBJECT("file:///x"), TEXT_SUBJECT(""));
	assert_string_equal(line, "file:///x|");
}

static void test_distance(void **state)
{
	(void)state;
	assert_int_equal(text_distance("kitten", "sitting"), 3);
	assert_int_equal(text_distance("", "abc"), 3);
	assert_int_equal(text_distance("Interval", "interval"), 0);
	assert_int_equal(text_distance("flaw", "lawn"), 2);
}

static void test_iso(void **state)
{
	char text[24];

	(void)state;
	clock_iso_ms(1673603482630000000ll, text); /* date -u -d 2023-01-13T09:51:22.630 +%s%3N */
	assert_string_equal(text, "2023-01-13T09:51:22.630");
	clock_iso_ms(1709164800999999999ll, text);
	assert_string_equal(text, "2024-02-29T00:00:00.999");
	clock_iso_ms(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999");
	clock_iso_ms(INT64_MAX, text);
	assert_string_equal(text, "2262-04-11T23:47:16.854");
}

/* People read their own time with the zone that held then, not that of now. */
static void test_local(void **state)
{
	char text[CLOCK_LOCAL_BYTES];

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	clock_local(1673603482630000000ll, text);
	assert_string_equal(text, "2023-01-13 10:51:22 CET");
	clock_local(1689241882000000000ll, text);
	assert_string_equal(text, "2023-07-13 11:51:22 CEST");
	clock_local(-1, text);
	assert_string_equal(text, "1970-01-01 00:59:59 CET");
	unsetenv("TZ");
	tzset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8),  cmocka_unit_test(test_escape),    cmocka_unit_test(test_err),
		cmocka_unit_test(test_glob),  cmocka_unit_test(test_glob_all),  cmocka_unit_test(test_distance),
		cmocka_unit_test(test_iso),   cmocka_unit_test(test_err_write), cmocka_unit_test(test_subject),
		cmocka_unit_test(test_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
