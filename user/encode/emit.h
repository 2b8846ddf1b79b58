/* SPDX-License-Identifier: Apache-2.0 */
/* Writers through a bare pointer, for the two loops that run once per cgroup and CPU. The caller reserves room
 * for the whole report beforehand, so nothing is checked here. The two calls per number of buf_add_* would cost
 * more than the number itself. All other code uses base/buf and base/format/json. */
#ifndef JD_EMIT_H
#define JD_EMIT_H
#include <stdint.h>
#include <string.h>

#define EMIT_U64_MAX 20 /* digits of 2^64 - 1 */
#define EMIT_BLOCK 32 /* fixed texts are copied in whole blocks: reserve one block more than needed */

/* A text that is written many times; `text` is padded to whole blocks. */
struct emit_text {
	char *text;
	unsigned len;
};

static inline char *emit_text(char *p, const struct emit_text *t)
{
	for (unsigned i = 0; i < t->len; i += EMIT_BLOCK)
		memcpy(p + i, t->text + i, EMIT_BLOCK);
	return p + t->len;
}

/* The length is a compile-time constant, so the compiler turns the copy into a few moves. */
#define emit_literal(p, s) ((char *)memcpy((p), "" s, sizeof(s) - 1) + sizeof(s) - 1)

static inline char *emit_mem(char *p, const void *s, size_t n)
{
	memcpy(p, s, n);
	return p + n;
}

/* The eight decimal digits of v < 10^8, the first one in the lowest byte, each 0 to 9: all are found at once, by halves. */
static inline uint64_t emit_eight(uint64_t v)
{
	uint64_t four = v / 10000, two, one;

	four |= (v - four * 10000) << 32;
	two = ((four * 5243) >> 19) & 0x0000007f0000007full; /* hundreds */
	two |= (four - two * 100) << 16;
	one = ((two * 103) >> 10) & 0x000f000f000f000full; /* tens */
	return one | (two - one * 10) << 8;
}

#define EMIT_ZEROS 0x3030303030303030ull
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits are stored by words");

/* At most 8 digits, none of them a leading zero. */
static inline char *emit_short(char *p, uint64_t v)
{
	uint64_t digits = emit_eight(v);
	unsigned zeros = (unsigned)__builtin_ctzll(digits | 1ull << 56) / 8;

	digits = (digits | EMIT_ZEROS) >> (8 * zeros);
	memcpy(p, &digits, 8);
	return p + 8 - zeros;
}

static inline char *emit_whole(char *p, uint64_t v)
{
	uint64_t digits = emit_eight(v) | EMIT_ZEROS;

	memcpy(p, &digits, 8);
	return p + 8;
}

/* Writes whole words: at most EMIT_U64_MAX bytes, and at least 8. */
static inline char *emit_u64(char *p, uint64_t v)
{
	const uint64_t e8 = 100000000;
	uint64_t high;

	if (v < e8)
		return emit_short(p, v);
	high = v / e8;
	v -= high * e8;
	if (high < e8)
		return emit_whole(emit_short(p, high), v);
	p = emit_short(p, high / e8);
	return emit_whole(emit_whole(p, high % e8), v);
}

/* Writes a fraction of that many decimals, 1 to 9, without trailing zeros; nothing when it is 0. At most 10 bytes. */
static inline char *emit_fraction(char *p, uint64_t fraction, unsigned decimals)
{
	static const uint32_t power[] = { 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1 };
	uint64_t digits;

	if (!fraction)
		return p;
	*p++ = '.';
	if (decimals > 8) {
		*p++ = (char)('0' + fraction / power[0]);
		fraction %= power[0];
		decimals = 8;
		if (!fraction)
			return p;
	}
	digits = emit_eight(fraction * power[decimals]);
	decimals = 8 - (unsigned)__builtin_clzll(digits) / 8;
	digits |= EMIT_ZEROS;
	memcpy(p, &digits, 8);
	return p + decimals;
}

#endif
