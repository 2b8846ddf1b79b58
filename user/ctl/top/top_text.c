/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a terminal: names made safe and cut to columns as the terminal counts them, numbers, sparklines. */
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "base/text.h"
#include "top.h"

static bool unicode;

void top_text_init(void)
{
	unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool top_text_unicode(void)
{
	return unicode;
}

/* Decodes one character of valid UTF-8, of len bytes (RFC 3629). */
static wchar_t decode(const unsigned char *s, size_t len)
{
	uint32_t c = len > 1 ? s[0] & (0xffu >> (len + 1)) : s[0];

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return (wchar_t)c;
}

/* Characters without width that can hide or reverse the text beside them: zero-width characters, bidirectional controls
 * (UAX 9), tags. */
static bool deceives(wchar_t c)
{
	return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
	       c == 0xfeff || c == 0x061c || c >= 0xe0000;
}

char *top_clean(const char *path)
{
	size_t size = 4 * strlen(path) + 1, n;
	char *safe = malloc(size), *out = malloc(size), *to = out;

	if (safe && out) {
		text_escape(safe, size, path);
		for (const unsigned char *s = (const unsigned char *)safe; *s; s += n) {
			n = text_utf8_len(s, strnlen((const char *)s, 4));
			n = n ? n : 1;
			if (n > 1 && (!unicode || wcwidth(decode(s, n)) < 0 || deceives(decode(s, n)))) {
				*to++ = '?';
				continue;
			}
			memcpy(to, s, n);
			to += n;
		}
		*to = 0;
	}
	free(safe);
	if (!safe) {
		free(out);
		out = NULL;
	}
	return out;
}

static unsigned width_of(const unsigned char *s, size_t n)
{
	int w = n > 1 ? wcwidth(decode(s, n)) : 1;

	return w < 0 ? 1 : (unsigned)w;
}

static size_t step(const char *s)
{
	size_t n = *s & 0x80 ? text_utf8_len((const unsigned char *)s, strnlen(s, 4)) : 1;

	return n ? n : 1;
}

unsigned top_columns(const char *text)
{
	unsigned n = 0;

	for (size_t len; *text; text += len) {
		len = step(text);
		n += width_of((const unsigned char *)text, len);
	}
	return n;
}

size_t top_head(const char *text, unsigned columns)
{
	const char *s = text;

	for (size_t n; *s; s += n) {
		unsigned w = width_of((const unsigned char *)s, n = step(s));

		if (w > columns)
			break;
		columns -= w;
	}
	return (size_t)(s - text);
}

void top_fit(char *dst, size_t size, const char *text, unsigned columns)
{
	unsigned all = columns ? top_columns(text) : 0, head = columns / 3, tail, at;
	const char *s;

	if (all <= columns) {
		snprintf(dst, size, "%s", text);
		return;
	}
	tail = columns - 1 - head;
	snprintf(dst, size, "%.*s%s", (int)top_head(text, head), text, unicode ? "\u2026" : "~");
	for (at = all, s = text; at > tail;) {
		size_t n = step(s);

		at -= width_of((const unsigned char *)s, n);
		s += n;
	}
	while (*s && !width_of((const unsigned char *)s, step(s))) /* combining marks of a letter that was cut off */
		s += step(s);
	snprintf(dst + strlen(dst), size - strlen(dst), "%s", s);
}

void top_fit_path(char *dst, size_t size, const char *path, unsigned columns)
{
	const char *leaf = strrchr(path, '/');
	unsigned tail = leaf ? top_columns(leaf) : 0;

	if (!columns || !leaf || !leaf[1] || top_columns(path) <= columns)
		top_fit(dst, size, path, columns);
	else if (tail + 1 > columns)
		top_fit(dst, size, leaf + 1, columns);
	else
		snprintf(dst, size, "%.*s%s%s", (int)top_head(path, columns - 1 - tail), path, unicode ? "\u2026" : "~",
			 leaf);
}

/* Eighths of a cell, from what is below it on. A value above zero is always visible on the lowest line. */
static const char *block(double eighths, bool lowest)
{
	static const char *const blocks[] = { " ",      "\u2581", "\u2582", "\u2583", "\u2584",
					      "\u2585", "\u2586", "\u2587", "\u2588" };
	static const char *const ascii[] = { " ", ".", ".", ":", ":", "+", "+", "#", "#" };
	int step8 = eighths > 8 ? 8 : eighths > 0 ? (int)(eighths + 0.5) : 0;

	if (lowest && eighths > 0 && step8 < 1)
		step8 = 1;
	return (unicode ? blocks : ascii)[step8];
}

static double value_at(const struct top_curve *c, unsigned back)
{
	return back < c->samples && back < TOP_HISTORY ? (double)c->ring[(c->samples - 1 - back) % TOP_HISTORY] : 0;
}

void top_spark(char *dst, size_t size, const struct top_curve *c, unsigned n)
{
	size_t at = 0;

	for (unsigned i = n; i-- > 0 && at + 4 < size;) {
		double f = value_at(c, i);
		double eighths = f > 0 ? c->max > 0 ? f / c->max * 8 : 0.1 : 0;

		at += (size_t)snprintf(dst + at, size - at, "%s", block(eighths, true));
	}
	dst[at] = 0;
}

void top_chart(char dst[TOP_HISTORY * 4 + 1], const struct top_curve *c, unsigned lines, unsigned line)
{
	size_t at = 0;

	for (unsigned i = TOP_HISTORY; i-- > 0;) {
		double f = c->max > 0 ? value_at(c, i) / c->max * 8 * lines - 8 * line : 0;

		at += (size_t)snprintf(dst + at, TOP_HISTORY * 4 + 1 - at, "%s", block(f, line == 0));
	}
}

void top_joules(char dst[16], uint64_t uj)
{
	static const char units[] = " kMGT";
	double j = (double)uj / 1e6;
	unsigned u = 0;

	while (j >= 9999.5 && u < 4) {
		j /= 1000;
		u++;
	}
	snprintf(dst, 16, "%.*f%.*s", j < 9.9995 ? 3 : j < 99.995 ? 2 : j < 999.95 ? 1 : 0, j, u ? 1 : 0, units + u);
}

void top_seconds(char dst[16], uint64_t ns)
{
	uint64_t s = ns / 1000000000u;

	if (s < 60)
		snprintf(dst, 16, "%llu.%02llu", (unsigned long long)s, (unsigned long long)(ns / 10000000u % 100));
	else if (s < 3600)
		snprintf(dst, 16, "%llu:%02llu", (unsigned long long)(s / 60), (unsigned long long)(s % 60));
	else
		snprintf(dst, 16, "%lluh%02llu", (unsigned long long)(s / 3600), (unsigned long long)(s / 60 % 60));
}
