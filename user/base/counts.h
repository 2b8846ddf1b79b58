/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of 64-bit counts, two at a time. A plain loop over two runs stays one number at a time: for all that the compiler
 * knows, what is written may be what is read next. n is an even constant. */
#ifndef JD_COUNTS_H
#define JD_COUNTS_H
#include <stdint.h>

typedef uint64_t count_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Zeroes n pairs. The compiler's own way for some hundred bytes is a string instruction, which takes longer to begin than this to
 * end. */
static inline __attribute__((always_inline)) void counts_clear(void *to, unsigned n)
{
#pragma GCC unroll 16
	for (unsigned i = 0; i < n; i++)
		((count_pair *)to)[i] = (count_pair){ 0 };
}

static inline __attribute__((always_inline)) void counts_add(uint64_t *to, const uint64_t *from, unsigned n)
{
	count_pair *sum = (count_pair *)to;
	const count_pair *add = (const count_pair *)from;

#pragma GCC unroll 8
	for (unsigned i = 0; i < n / 2; i++)
		sum[i] += add[i];
}

/* to = now - before. Returns 0 when all differences are 0. */
static inline __attribute__((always_inline)) uint64_t counts_difference(uint64_t *to, const uint64_t *now,
									const uint64_t *before, unsigned n)
{
	count_pair any = { 0 };

#pragma GCC unroll 8
	for (unsigned i = 0; i < n / 2; i++) {
		count_pair d = ((const count_pair *)now)[i] - ((const count_pair *)before)[i];

		((count_pair *)to)[i] = d;
		any |= d;
	}
	return any[0] | any[1];
}

#endif
