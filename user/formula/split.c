/* SPDX-License-Identifier: Apache-2.0 */
/* Part i should get v = amount * weight / sum + carry. It gets the floor; the units left over go to
 * the parts with the largest fractions (largest remainder), found through a histogram of the
 * fractions instead of a sort. What a part did not get, or got too much, is its new carry, so over
 * time each part's sum stays within about a unit of its exact share, however small that is.
 *
 * Before, the mean carry of the parts present is set aside (it cannot be paid: the amount is
 * fixed) and put back afterwards. A part that had much in advance can have v < 0: it gets 0, and
 * the units it owes are taken from the parts with the smallest fractions. */
#include "split.h"
#include <string.h>

#define BUCKETS 256

struct job {
	const uint64_t *weight;
	int64_t *carry;
	uint64_t *part;
	unsigned n, present; /* present: parts with weight */
	unsigned __int128 sum;
	int64_t mean; /* of the carries present */
	uint32_t up[BUCKETS]; /* parts by fraction */
	uint32_t down[BUCKETS]; /* the same, parts that have a unit to give */
};

/* Fraction left over, as a bucket; owing parts sort lowest. */
static unsigned bucket(int64_t left)
{
	if (left < 0)
		return 0;
	return left >> 32 ? BUCKETS - 1 : (unsigned)(left >> 24);
}

static void sum_up(struct job *j)
{
	int64_t carried = 0;

	for (unsigned i = 0; i < j->n; i++) {
		j->part[i] = 0;
		if (!j->weight[i])
			continue;
		j->present++;
		j->sum += j->weight[i];
		carried += j->carry[i];
	}
	if (j->present)
		j->mean = carried / (int64_t)j->present;
}

/* amount * weight / sum = whole + fraction * 2^-32, by 128-bit division. */
static uint64_t divide(uint64_t amount, uint64_t weight, unsigned __int128 sum, uint32_t *ret_fraction)
{
	unsigned __int128 product = (unsigned __int128)amount * weight;

	/* sum < 2^63 * 2^32: the remainder keeps room for 32 more bits. */
	*ret_fraction = (uint32_t)(((product % sum) << 32) / sum);
	return (uint64_t)(product / sum);
}

/* The same for amount below 2^52 and sum below 2^63, ten times faster. A double is off by one at most; the exact
 * remainder corrects it. */
static uint64_t divide_fast(uint64_t amount, uint64_t weight, uint64_t sum, uint32_t *ret_fraction)
{
	uint64_t whole = (uint64_t)((double)amount * ((double)weight / (double)sum));
	__int128 rest = (__int128)amount * weight - (__int128)whole * sum;
	double fraction;

	while (rest < 0) {
		rest += sum;
		whole--;
	}
	while (rest >= (__int128)sum) {
		rest -= sum;
		whole++;
	}
	fraction = (double)(uint64_t)rest / (double)sum * SPLIT_Q;
	*ret_fraction = fraction < UINT32_MAX ? (uint32_t)fraction : UINT32_MAX;
	return whole;
}

/* Gives every part its floor. Returns the sum of the floors, which may exceed the amount. */
static unsigned __int128 give_floors(struct job *j, uint64_t amount)
{
	bool fast = amount < 1ull << 52 && j->sum < SPLIT_WEIGHT_MAX;
	unsigned __int128 given = 0;

	for (unsigned i = 0; i < j->n; i++) {
		uint32_t fraction;
		uint64_t whole;
		int64_t owed, units;

		if (!j->weight[i])
			continue;
		whole = fast ? divide_fast(amount, j->weight[i], (uint64_t)j->sum, &fraction) :
			       divide(amount, j->weight[i], j->sum, &fraction);
		owed = (int64_t)fraction + j->carry[i] - j->mean;
		units = owed >> 32;
		if (units < 0 && whole < (uint64_t)-units)
			units = -(int64_t)whole;
		j->part[i] = whole + (uint64_t)units;
		j->carry[i] = owed - units * (int64_t)(1ull << 32);
		given += j->part[i];
		j->up[bucket(j->carry[i])]++;
		if (j->part[i])
			j->down[bucket(j->carry[i])]++;
	}
	return given;
}

static void move_unit(struct job *j, unsigned i, int64_t units)
{
	j->part[i] += (uint64_t)units;
	j->carry[i] -= units * (int64_t)(1ull << 32);
}

/* Gives `more` units to the largest fractions, one each. Every part is short of less than a unit, and of less than
 * 2^-32 more where its fraction was cut: more <= present. */
static void give(struct job *j, uint64_t more)
{
	unsigned edge = BUCKETS;
	uint64_t above = 0;

	while (edge > 0 && above + j->up[edge - 1] <= more)
		above += j->up[--edge];
	more -= above; /* so many from the bucket below the edge */
	for (unsigned i = 0; i < j->n; i++) {
		unsigned b;

		if (!j->weight[i])
			continue;
		b = bucket(j->carry[i]);
		if (b >= edge || (edge && b == edge - 1 && more && more--))
			move_unit(j, i, 1);
	}
}

/* Takes `less` units from the smallest fractions, one each, and the rest from parts that have any. */
static void take(struct job *j, uint64_t less)
{
	unsigned edge = 0;
	uint64_t below = 0, left;

	while (edge < BUCKETS && below + j->down[edge] <= less)
		below += j->down[edge++];
	left = less - below;
	for (unsigned i = 0; i < j->n; i++) {
		unsigned b;

		if (!j->weight[i] || !j->part[i])
			continue;
		b = bucket(j->carry[i]);
		if (b < edge || (edge < BUCKETS && b == edge && left && left--))
			move_unit(j, i, -1);
	}
	for (unsigned i = 0; i < j->n && left; i++) {
		uint64_t units = j->part[i] < left ? j->part[i] : left;

		move_unit(j, i, -(int64_t)units);
		left -= units;
	}
}

bool split(uint64_t amount, const uint64_t *weight, int64_t *carry, uint64_t *ret_part, unsigned n)
{
	struct job j = { .weight = weight, .carry = carry, .part = ret_part, .n = n };
	unsigned __int128 given;

	sum_up(&j);
	if (!j.present)
		return false;
	if (!amount)
		return true;
	given = give_floors(&j, amount);
	if (given < amount) {
		give(&j, (uint64_t)(amount - given));
	} else if (given > amount) {
		take(&j, (uint64_t)(given - amount));
	}
	for (unsigned i = 0; i < n; i++)
		if (weight[i])
			carry[i] += j.mean;
	return true;
}
