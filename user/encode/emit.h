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

static inline unsigned emit_digits(uint64_t v)
{
	static const uint64_t power[] = {
		0,
		10ull,
		100ull,
		1000ull,
		10000ull,
		100000ull,
		1000000ull,
		10000000ull,
		100000000ull,
		1000000000ull,
		10000000000ull,
		100000000000ull,
		1000000000000ull,
		10000000000000ull,
		100000000000000ull,
		1000000000000000ull,
		10000000000000000ull,
		100000000000000000ull,
		1000000000000000000ull,
		10000000000000000000ull,
	};
	/* 1233 / 4096 approximates log10(2) well enough for 64 bits; one comparison corrects the guess */
	unsigned guess = ((64 - (unsigned)__builtin_clzll(v | 1)) * 1233) >> 12;

	return guess + (v >= power[guess]);
}

static inline char *emit_u64(char *p, uint64_t v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
				    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	unsigned n = emit_digits(v);
	char *end = p + n;

	for (p = end; v >= 100; v /= 100)
		memcpy(p -= 2, pairs + v % 100 * 2, 2);
	if (v >= 10)
		memcpy(p - 2, pairs + v * 2, 2);
	else
		p[-1] = (char)('0' + v);
	return end;
}

/* Writes a fraction of that many decimals, without trailing zeros; nothing when it is 0. */
static inline char *emit_fraction(char *p, uint64_t fraction, unsigned decimals)
{
	if (!fraction)
		return p;
	*p++ = '.';
	for (unsigned i = decimals; i-- > 0; fraction /= 10)
		p[i] = (char)('0' + fraction % 10);
	p += decimals;
	while (p[-1] == '0')
		p--;
	return p;
}

#endif
