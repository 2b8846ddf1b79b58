/* SPDX-License-Identifier: Apache-2.0 */
/* Unsigned numbers in as few bytes as they need: seven bits each, the lowest first, the top bit set in all but the last
 * (LEB128; DWARF 5, 7.6). Files on disk are made of them. */
#ifndef JD_VARINT_H
#define JD_VARINT_H
#include <stdbool.h>
#include "base/buf.h"

#define VARINT_MAX 10

static inline void varint_add(struct buf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];
	unsigned n = 0;

	do {
		bytes[n] = (uint8_t)(v & 0x7f) | (v > 0x7f ? 0x80 : 0);
		v >>= 7;
		n++;
	} while (v);
	buf_add(b, bytes, n);
}

struct varint_reader {
	const uint8_t *at, *end;
	bool bad; /* the data ended early or was no varint: every read since then gave 0 */
};

static inline uint64_t varint_take(struct varint_reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
		uint8_t byte = *r->at++;

		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	r->bad = true;
	r->at = r->end;
	return 0;
}

/* Takes n bytes unchanged; NULL = fewer are left. */
static inline const uint8_t *varint_bytes(struct varint_reader *r, uint64_t n)
{
	const uint8_t *p = r->at;

	if (r->bad || n > (uint64_t)(r->end - r->at)) {
		r->bad = true;
		r->at = r->end;
		return NULL;
	}
	r->at += n;
	return p;
}

#endif
