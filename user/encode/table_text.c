/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "../base/text.h"
#include "table.h"

char table_mark(unsigned quality)
{
	if (quality & QUALITY_LOST)
		return '!';
	if (quality & QUALITY_STALE)
		return '=';
	if (quality & QUALITY_PARTIAL)
		return '?';
	if (quality & QUALITY_ESTIMATED)
		return '~';
	if (quality & QUALITY_MULTIPLEXED)
		return '%';
	return ' ';
}

void table_watts(char dst[16], double watts)
{
	int decimals = watts < 9.9995 ? 3 : watts < 99.995 ? 2 : watts < 999.95 ? 1 : 0;

	snprintf(dst, 16, "%.*f", decimals, watts);
}

void table_rate(char dst[16], double bytes_per_s)
{
	static const char units[] = " kMGT";
	unsigned u = 0;

	while (bytes_per_s >= 999.5 && u < 4) {
		bytes_per_s /= 1000;
		u++;
	}
	if (u == 0)
		snprintf(dst, 16, "%.0f", bytes_per_s);
	else
		snprintf(dst, 16, "%.*f%c", bytes_per_s < 9.95 ? 1 : 0, bytes_per_s, units[u]);
}

/* Terminal columns of a character: East Asian wide ones, emoji and all beyond take two. Marks that
 * combine with the letter before count as one: a line may come out short, never long. */
static unsigned columns_of(const unsigned char *s, size_t len)
{
	uint32_t c = len > 1 ? s[0] & (0xffu >> (len + 1)) : s[0]; /* RFC 3629: payload of the first byte */

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return (c >= 0x1100 && c < 0x2000) || c >= 0x2e80 ? 2 : 1;
}

static unsigned text_columns(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text);
	unsigned n = 0;

	while (left) {
		size_t len = text_utf8_len(s, left);

		if (!len)
			break;
		n += columns_of(s, len);
		s += len;
		left -= len;
	}
	return n;
}

/* Bytes at the start of text that fill at most `columns`; *columns is what is left. */
static size_t head_bytes(const char *text, unsigned *columns)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text), at = 0;

	while (left > at) {
		size_t len = text_utf8_len(s + at, left - at);
		unsigned n = len ? columns_of(s + at, len) : 0;

		if (!len || n > *columns)
			break;
		*columns -= n;
		at += len;
	}
	return at;
}

void table_name(char *dst, size_t size, const char *path, unsigned columns)
{
	char text[4 * CGROUP_SHOWN_MAX + 1];
	unsigned all, head = columns / 3, tail;
	size_t at, skip = 0;

	text_escape(text, sizeof(text), path);
	all = text_columns(text);
	if (all <= columns) {
		snprintf(dst, size, "%s", text);
		return;
	}
	tail = columns - 1 - head;
	at = head_bytes(text, &head);
	/* the tail begins where at most `tail` columns are left */
	for (unsigned left = all; left > tail && text[skip];) {
		size_t len = text_utf8_len((const unsigned char *)text + skip, strlen(text + skip));

		left -= columns_of((const unsigned char *)text + skip, len);
		skip += len;
	}
	snprintf(dst, size, "%.*s\xe2\x80\xa6%s", (int)at, text, text + skip);
}
