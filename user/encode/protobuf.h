/* SPDX-License-Identifier: Apache-2.0 */
/* The few pieces that messages of Protocol Buffers are made of (encoding.md of its documentation). A tag is a field's number
 * times 8 plus its wire type: 0 varint, 1 eight bytes, 2 a length and so many bytes, 5 four bytes. Only tags of one byte. */
#ifndef JD_ENCODE_PROTOBUF_H
#define JD_ENCODE_PROTOBUF_H
#include <stddef.h>
#include <stdint.h>

#define PROTOBUF_VARINT_MAX 10

static inline char *protobuf_put(char *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (char)(v | 0x80);
	*p++ = (char)v;
	return p;
}

static inline size_t protobuf_size(uint64_t v)
{
	size_t n = 1;

	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

/* Bytes of a field of `len` bytes, with its tag and length. */
static inline size_t protobuf_whole(size_t len)
{
	return 1 + protobuf_size(len) + len;
}

/* Writes the tag and the length of a field. Its bytes follow. */
static inline char *protobuf_head(char *p, char tag, size_t len)
{
	*p++ = tag;
	return protobuf_put(p, len);
}

/* The length of a field with a length, and where its content begins. 0 = there is none with that tag. */
static inline size_t protobuf_field(const char *p, size_t n, char tag, const char **ret, size_t *ret_len)
{
	size_t len = 0, width = 0;

	if (!n || *p != tag)
		return 0;
	do {
		if (++width >= n || width > 9)
			return 0;
		len |= (size_t)((unsigned char)p[width] & 0x7f) << (7 * (width - 1));
	} while ((unsigned char)p[width] & 0x80);
	width++;
	if (len > n - width)
		return 0;
	*ret = p + width;
	*ret_len = len;
	return width + len;
}

#endif
