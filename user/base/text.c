/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "text.h"

/* RFC 3629: second byte ranges keep overlong forms, surrogates and > U+10FFFF out. */
size_t text_utf8_len(const unsigned char *s, size_t n)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (!n)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (n < len)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* True for U+202A..202E and U+2066..2069. They are invisible and turn the direction of the text after them, so that it
 * reads as something else. */
static bool turns(const unsigned char *s)
{
	return s[0] == 0xe2 &&
	       ((s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae) || (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

/* Bytes at s that may be shown as they are; 0 = the first byte must be escaped. */
static size_t shown_len(const unsigned char *s, size_t n, bool backslash)
{
	size_t len;

	if (s[0] < 0x20 || s[0] == 0x7f || (s[0] == '\\' && !backslash))
		return 0;
	len = text_utf8_len(s, n);
	if (len == 2 && s[0] == 0xc2 && s[1] < 0xa0) /* C1: terminals obey them like ESC [ */
		return 0;
	return len == 3 && turns(s) ? 0 : len;
}

static const char *escape(char *dst, size_t size, const char *text, bool backslash)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text), at = 0;

	if (!size)
		return dst;
	while (left) {
		size_t n = shown_len(s, left, backslash);

		if (at + (n ? n : 4) >= size)
			break;
		if (n) {
			memcpy(dst + at, s, n);
			at += n;
		} else {
			dst[at++] = '\\';
			dst[at++] = 'x';
			dst[at++] = hex[s[0] >> 4];
			dst[at++] = hex[s[0] & 15];
			n = 1;
		}
		s += n;
		left -= n;
	}
	dst[at] = '\0';
	return dst;
}

const char *text_escape(char *dst, size_t size, const char *s)
{
	return escape(dst, size, s, false);
}

const char *text_clean(char *dst, size_t size, const char *s)
{
	return escape(dst, size, s, true);
}

/* Levenshtein's distance, one row of the table at a time. */
unsigned text_distance(const char *a, const char *b)
{
	size_t na = strnlen(a, 63), nb = strnlen(b, 63);
	unsigned row[64];

	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
			unsigned best = diagonal + !same;

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[nb];
}

/* Only the last "*" and the last "**" are remembered. The later one can match all that an earlier one could match
 * differently ("*" stops at a slash, but a slash between two of them fixes the first). */
int text_glob(const char *pattern, const char *s)
{
	const char *star = NULL, *star_s = NULL, *deep = NULL, *deep_s = NULL;

	while (*s || *pattern) {
		if (pattern[0] == '*' && pattern[1] == '*') {
			pattern += 2;
			deep = pattern;
			deep_s = s;
			star = NULL;
		} else if (*pattern == '*') {
			star = ++pattern;
			star_s = s;
		} else if (*s && (*pattern == *s || (*pattern == '?' && *s != '/'))) {
			pattern++;
			s++;
		} else if (star && *star_s && *star_s != '/') {
			pattern = star;
			s = ++star_s;
		} else if (deep && *deep_s) {
			pattern = deep;
			s = ++deep_s;
			star = NULL;
		} else {
			return 0;
		}
	}
	return 1;
}

/* Tests eight bytes at a time; the tests for "a byte below n" and "a zero byte" are the usual word tricks. */
size_t text_plain_run(const unsigned char *s, size_t n)
{
	const uint64_t ones = 0x0101010101010101ull, high = 0x8080808080808080ull;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		uint64_t w, quote, slash;

		memcpy(&w, s + i, 8);
		quote = w ^ (ones * '"');
		slash = w ^ (ones * '\\');
		if ((w | (w - ones * 0x20) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & high)
			break;
	}
	while (i < n && s[i] >= 0x20 && s[i] < 0x80 && s[i] != '"' && s[i] != '\\')
		i++;
	return i;
}

int text_subject_len(const char *s)
{
	const size_t len = strlen(s);

	return (int)(len && s[len - 1] == ':' ? len - 1 : len);
}
