/* SPDX-License-Identifier: Apache-2.0 */
/* Splits an integer amount by weights, exactly; fractions are carried to the next call. */
#ifndef JD_SPLIT_H
#define JD_SPLIT_H
#include <stdbool.h>
#include <stdint.h>

#define SPLIT_WEIGHT_MAX (1ull << 63)
#define SPLIT_Q 4294967296.0 /* a carry is in 2^-32 of the unit */

/* ret_part[i] = about amount * weight[i] / sum(weight), so that sum(ret_part) = amount. carry[i] is
 * what part i is still owed (negative: has in advance); it is paid in a later call in which part i
 * has weight, and sum(carry) moves by less than n * 2^-32 per call. Parts without weight get 0 and
 * keep their carry. Weights are at most SPLIT_WEIGHT_MAX. False, with nothing done but ret_part
 * zeroed, when no part has weight. O(n). */
bool split(uint64_t amount, const uint64_t *weight, int64_t *carry, uint64_t *ret_part, unsigned n);

#endif
