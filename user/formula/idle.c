/* SPDX-License-Identifier: Apache-2.0 */
/* The hour is 12 slots of 5 minutes, each with 16 bins of busy share that hold sums. A bin's point over the hour is
 * its median slot, weighted by time, so that a few odd minutes do not move it. The slope is the weighted median of
 * the slopes between points (Theil-Sen; pairs closer than a bin's width say nothing), the intercept the weighted
 * median of the points' power less slope times busy share. Both medians weigh by time. The intercept's weighs by
 * idleness too, because power is not quite linear and the idle end matters. The result is never above the smallest
 * power of the hour.
 *
 * * * With one point (u, P) only, slope = P is assumed: P * (1 - u), nothing at full load. */
#include "idle.h"
#include <math.h>
#include <string.h>

#define MAX_PAIRS (IDLE_BINS * (IDLE_BINS - 1) / 2)
#define UW_NS_PER_UJ 1000000000ull

struct weighted {
	double value, weight, busy;
};
struct at {
	double busy, watts, seconds;
};

static void sort(struct weighted *v, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		struct weighted x = v[i];
		unsigned k = i;

		for (; k > 0 && v[k - 1].value > x.value; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

/* The weighted median, the lower one of two. Sorts v. */
static struct weighted median(struct weighted *v, unsigned n)
{
	double total = 0, sum = 0;
	unsigned i;

	sort(v, n);
	for (i = 0; i < n; i++)
		total += v[i].weight;
	for (i = 0; i + 1 < n; i++) {
		sum += v[i].weight;
		if (sum * 2 >= total)
			break;
	}
	return v[i];
}

/* The median slot of a bin, with the weight of all of them. False when the bin is empty. */
static bool bin_point(const struct idle *st, unsigned b, struct at *ret)
{
	struct weighted power[IDLE_SLOTS], middle;
	double seconds = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < IDLE_SLOTS; i++) {
		const struct idle_bin *bin = &st->slot[i].bin[b];

		if (!st->slot[i].used || !(bin->seconds > 0))
			continue;
		power[n++] = (struct weighted){ bin->joules / bin->seconds, bin->seconds,
						bin->busy_seconds / bin->seconds };
		seconds += bin->seconds;
	}
	if (!n)
		return false;
	middle = median(power, n);
	*ret = (struct at){ middle.busy, middle.value, seconds };
	return true;
}

/* Watts between no and full load; NaN when the points lie too close together. */
static double slope_of(const struct at *p, unsigned n)
{
	struct weighted slope[MAX_PAIRS];
	unsigned pairs = 0;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = i + 1; k < n; k++) {
			double run = p[k].busy - p[i].busy;

			if (run >= 1.0 / IDLE_BINS)
				slope[pairs++] = (struct weighted){ .value = (p[k].watts - p[i].watts) / run,
								    .weight = fmin(p[i].seconds, p[k].seconds) * run };
		}
	}
	return pairs ? median(slope, pairs).value : NAN;
}

static double intercept_of(const struct at *p, unsigned n)
{
	struct weighted left[IDLE_BINS];
	double slope = slope_of(p, n);

	for (unsigned i = 0; i < n; i++) {
		double rise = isnan(slope) ? p[i].watts : fmax(slope, 0);

		left[i] = (struct weighted){ .value = p[i].watts - rise * p[i].busy,
					     .weight = p[i].seconds * (1.0 + 1.0 / IDLE_BINS - p[i].busy) };
	}
	return fmax(median(left, n).value, 0);
}

static double smallest_power(const struct idle *st)
{
	double min = INFINITY;

	for (unsigned i = 0; i < IDLE_SLOTS; i++)
		if (st->slot[i].used)
			min = fmin(min, st->slot[i].min_watts);
	return min;
}

static void fit(struct idle *st)
{
	struct at point[IDLE_BINS];
	double watts, cap = smallest_power(st);
	unsigned n = 0;

	for (unsigned b = 0; b < IDLE_BINS; b++)
		if (bin_point(st, b, &point[n]))
			n++;
	if (!n)
		return;
	watts = intercept_of(point, n);
	/* A fully loaded hour does not replace the idle power learned from low load before it. */
	if (point[0].busy < 0.5) {
		st->low_watts = watts;
		st->seen_below_half = true;
	} else if (st->seen_below_half) {
		watts = st->low_watts;
	}
	st->watts = fmin(watts, cap);
	st->seen = true;
}

/* The slot of a time, emptied when it holds an older hour; slots that aged out are emptied too. */
static struct idle_slot *slot_at(struct idle *st, uint64_t now_ns)
{
	uint64_t stamp = now_ns / IDLE_SLOT_NS;
	struct idle_slot *slot = &st->slot[stamp % IDLE_SLOTS];

	for (unsigned i = 0; i < IDLE_SLOTS; i++)
		if (st->slot[i].used && st->slot[i].stamp + IDLE_SLOTS <= stamp)
			st->slot[i].used = false;
	if (!slot->used || slot->stamp != stamp) {
		memset(slot, 0, sizeof(*slot));
		slot->used = true;
		slot->stamp = stamp;
		slot->min_watts = INFINITY;
	}
	return slot;
}

static void close_point(struct idle *st, uint64_t now_ns)
{
	struct idle_slot *slot = slot_at(st, now_ns);
	double busy = st->open.busy_seconds / st->open.seconds;
	unsigned b = busy < 1 ? (unsigned)(busy * IDLE_BINS) : IDLE_BINS - 1;
	struct idle_bin *bin = &slot->bin[b];

	bin->seconds += st->open.seconds;
	bin->joules += st->open.joules;
	bin->busy_seconds += st->open.busy_seconds;
	slot->min_watts = fmin(slot->min_watts, st->open.joules / st->open.seconds);
	memset(&st->open, 0, sizeof(st->open));
	fit(st);
}

void idle_learn(struct idle *st, const struct idle_point *p, bool whole)
{
	double seconds = (double)p->duration_ns / 1e9, busy;

	if (p->end_ns < st->last_ns) /* the time went back: another recording has an hour of its own */
		memset(st, 0, sizeof(*st));
	st->last_ns = p->end_ns;
	if (!whole || !p->duration_ns || !p->elapsed_ns) {
		memset(&st->open, 0, sizeof(st->open));
		return;
	}
	busy = fmin((double)p->busy_ns / (double)p->elapsed_ns, 1);
	st->open.seconds += seconds;
	st->open.joules += (double)p->energy_uj / 1e6;
	st->open.busy_seconds += busy * seconds;
	if (st->open.seconds * 1e9 >= (double)IDLE_POINT_NS)
		close_point(st, p->end_ns);
}

uint64_t idle_charge(struct idle *st, const struct idle_point *p, uint64_t power_uw)
{
	unsigned __int128 work = (unsigned __int128)power_uw * p->duration_ns + st->rest;
	unsigned __int128 uj = work / UW_NS_PER_UJ;

	if (uj >= p->energy_uj) {
		/* The part that was clamped away is not owed later. */
		st->rest = 0;
		return p->energy_uj;
	}
	st->rest = (uint64_t)(work % UW_NS_PER_UJ);
	return (uint64_t)uj;
}

uint64_t idle_power_uw(const struct idle *st)
{
	return st->seen && st->watts < 1e12 ? (uint64_t)(st->watts * 1e6) : 0;
}

bool idle_is_estimated(const struct idle *st)
{
	return !st->seen_below_half;
}
