/* SPDX-License-Identifier: Apache-2.0 */
/* How wide text gets, without the font: the widest of those that the theme names (DejaVu Sans). */
#include <string.h>
#include "../base/text.h"
#include "svg.h"

#define ELLIPSIS "\xe2\x80\xa6"

/* In sizes of the font. */
static double width_of(const unsigned char *s, size_t n)
{
	if (n == 1) {
		if (*s < 0x20 || *s == 0x7f)
			return 4 * 0.64; /* \xNN */
		if (strchr("ijl.,:;|!'I()[]{}/\\-ftr \"", *s))
			return 0.46;
		if (strchr("mwMW@%", *s))
			return 1;
		return *s >= 'A' && *s <= 'Z' ? 0.76 : 0.65;
	}
	if (!n)
		return 4 * 0.64;
	return n == 2 ? 0.85 : 1.05;
}

double svg_text_width(const char *text, double size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text);
	double sum = 0;

	while (left) {
		size_t n = text_utf8_len(s, left);

		sum += width_of(s, n);
		s += n ? n : 1;
		left -= n ? n : 1;
	}
	return sum * size;
}

/* Bytes from the front, or from the end, that fit. */
static size_t front(const char *text, double width, double size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text), at = 0;

	while (left) {
		size_t n = text_utf8_len(s + at, left), step = n ? n : 1;

		width -= width_of(s + at, n) * size;
		if (width < 0)
			break;
		at += step;
		left -= step;
	}
	return at;
}

static size_t back(const char *text, double width, double size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t at = strlen(text), end = at;

	while (at) {
		size_t begin = at - 1, n;

		while (begin && at - begin < 4 && (s[begin] & 0xc0) == 0x80)
			begin--;
		n = text_utf8_len(s + begin, at - begin);
		if (n != at - begin) {
			begin = at - 1;
			n = 0;
		}
		width -= width_of(s + begin, n) * size;
		if (width < 0)
			break;
		at = begin;
	}
	return end - at;
}

const char *svg_fit(char *dst, size_t size, const char *text, double width, double font_size)
{
	size_t len = strlen(text), head, tail;

	if (!size)
		return dst;
	if (svg_text_width(text, font_size) <= width && len < size) {
		memcpy(dst, text, len + 1);
		return dst;
	}
	width -= font_size;
	/* the end of a path says more than its beginning */
	tail = back(text, width * 0.62, font_size);
	head = front(text, width - svg_text_width(text + len - tail, font_size), font_size);
	if (head + tail + sizeof(ELLIPSIS) > size) {
		dst[0] = '\0';
		return dst;
	}
	memcpy(dst, text, head);
	memcpy(dst + head, ELLIPSIS, sizeof(ELLIPSIS) - 1);
	memcpy(dst + head + sizeof(ELLIPSIS) - 1, text + len - tail, tail + 1);
	return dst;
}
