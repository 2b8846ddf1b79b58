/* SPDX-License-Identifier: Apache-2.0 */
/* Writing. The heads are libcbor's; nothing is built as a tree. */
#include "cbor.h"

#include <cbor.h>
#include <string.h>

#include "text.h"

#define HEAD_MAX 9 /* RFC 8949 section 3: initial byte and eight bytes of argument */

static uint8_t *room(struct buf *b)
{
	return b->cap - b->len >= HEAD_MAX ? b->data + b->len : buf_reserve(b, HEAD_MAX);
}

void cbw_uint(struct buf *b, uint64_t v)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_uint(v, p, HEAD_MAX);
}

void cbw_int(struct buf *b, int64_t v)
{
	uint8_t *p = room(b);

	if (p)
		b->len += v < 0 ? cbor_encode_negint(~(uint64_t)v, p, HEAD_MAX) :
				  cbor_encode_uint((uint64_t)v, p, HEAD_MAX);
}

void cbw_bool(struct buf *b, bool v)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_bool(v, p, HEAD_MAX);
}

void cbw_double(struct buf *b, double v)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_double(v, p, HEAD_MAX);
}

void cbw_array(struct buf *b, uint64_t n)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_array_start(n, p, HEAD_MAX);
}

void cbw_map(struct buf *b, uint64_t pairs)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_map_start(pairs, p, HEAD_MAX);
}

void cbw_tag(struct buf *b, uint64_t tag)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_tag(tag, p, HEAD_MAX);
}

void cbw_bytes(struct buf *b, const void *data, size_t n)
{
	uint8_t *p = room(b);

	if (p)
		b->len += cbor_encode_bytestring_start(n, p, HEAD_MAX);
	buf_add(b, data, n);
}

static bool is_utf8(const char *s, size_t n)
{
	while (n) {
		size_t k = text_utf8_len((const unsigned char *)s, n);

		if (!k)
			return false;
		s += k;
		n -= k;
	}
	return true;
}

void cbw_str(struct buf *b, const char *s)
{
	size_t n = strlen(s);
	uint8_t *p;

	if (!is_utf8(s, n)) {
		cbw_bytes(b, s, n);
		return;
	}
	p = room(b);
	if (p)
		b->len += cbor_encode_string_start(n, p, HEAD_MAX);
	buf_add(b, s, n);
}
