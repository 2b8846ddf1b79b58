/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "buf.h"

#define BUF_LIMIT ((size_t)1 << 30)
#define BUF_FIRST 256
#define U64_DIGITS 20

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void buf_free(struct buf *b)
{
	if (!b)
		return;
	free(b->data);
	b->data = NULL;
	b->len = b->cap = 0;
	b->failed = false;
}

static bool buf_grow(struct buf *b, size_t n)
{
	size_t limit = b->limit ? b->limit : BUF_LIMIT, cap = b->cap ? b->cap : BUF_FIRST;
	uint8_t *data;

	if (b->failed || n > limit || b->len > limit - n) {
		b->failed = true;
		return false;
	}
	while (cap < b->len + n)
		cap *= 2;
	if (cap > limit)
		cap = limit;
	data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

uint8_t *buf_reserve(struct buf *b, size_t n)
{
	if (b->failed || (b->cap - b->len < n && !buf_grow(b, n)))
		return NULL;
	/* a zeroed buffer has no memory yet, and even 0 bytes need an address */
	if (!b->data && !buf_grow(b, 1))
		return NULL;
	return b->data + b->len;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	uint8_t *to = buf_reserve(b, n);

	if (!to || !n)
		return;
	memcpy(to, p, n);
	b->len += n;
}

void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

/* Writes two digits per step. Divisions are the main cost of decimal text, and reports are mostly numbers. */
static unsigned format_u64(uint8_t end[U64_DIGITS], uint64_t v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	uint8_t *p = end + U64_DIGITS;

	while (v >= 100) {
		p -= 2;
		memcpy(p, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10) {
		p -= 2;
		memcpy(p, pairs + v * 2, 2);
	} else {
		*--p = (uint8_t)('0' + v);
	}
	return (unsigned)(end + U64_DIGITS - p);
}

void buf_add_u64(struct buf *b, uint64_t v)
{
	uint8_t text[U64_DIGITS];
	unsigned n;

	if (v < 10) {
		buf_add_char(b, (char)('0' + v));
		return;
	}
	n = format_u64(text, v);
	buf_add(b, text + U64_DIGITS - n, n);
}

void buf_add_i64(struct buf *b, int64_t v)
{
	if (v < 0)
		buf_add_char(b, '-');
	buf_add_u64(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	uint8_t *to = buf_reserve(b, 1);
	size_t room;
	va_list ap;
	int n;

	if (!to)
		return;
	room = b->cap - b->len;
	va_start(ap, fmt);
	n = vsnprintf((char *)to, room, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n >= room) {
		/* vsnprintf writes a NUL, which needs room although it is not kept */
		to = buf_reserve(b, (size_t)n + 1);
		if (!to)
			return;
		va_start(ap, fmt);
		n = vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	if (n < 0)
		b->failed = true;
	else
		b->len += (size_t)n;
}
