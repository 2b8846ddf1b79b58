/* SPDX-License-Identifier: Apache-2.0 */
/* Idle power of one domain: configured, or learned as the intercept of power against busy share
 * over a sliding hour. Bounded memory; time comes from the points alone. */
#ifndef JD_IDLE_H
#define JD_IDLE_H
#include <stdbool.h>
#include <stdint.h>

#define IDLE_SLOTS 12 /* of IDLE_SLOT_NS: an hour */
#define IDLE_SLOT_NS 300000000000ull
#define IDLE_BINS 16 /* of busy share */
#define IDLE_POINT_NS 500000000ull /* shorter intervals are joined: counters update in steps of 1 ms */

struct idle_bin {
	double seconds, joules, busy_seconds;
}; /* busy share x seconds */
struct idle_slot {
	uint64_t stamp;
	bool used;
	double min_watts;
	struct idle_bin bin[IDLE_BINS];
};

/* Zeroed = nothing seen. */
struct idle {
	struct idle_slot slot[IDLE_SLOTS];
	struct idle_bin open; /* intervals not yet long enough to be a point */
	uint64_t last_ns;
	bool seen, seen_below_half;
	double watts; /* learned; valid when seen */
	double low_watts; /* idle power learned when the hour last had a point below half load */
	uint64_t rest; /* carried from the last charge, in uW x ns, below 1 uJ */
};

/* One interval of a domain. */
struct idle_point {
	uint64_t end_ns, duration_ns, energy_uj;
	uint64_t busy_ns, elapsed_ns; /* of its CPUs, summed */
};

/* Learns from an interval; whole is false when the interval was not fully measured. */
void idle_learn(struct idle *st, const struct idle_point *p, bool whole);
/* Energy of `power_uw` over the interval, at most its energy; fractions are carried. */
uint64_t idle_charge(struct idle *st, const struct idle_point *p, uint64_t power_uw);
uint64_t idle_power_uw(const struct idle *st); /* learned; 0 when nothing was seen */
bool idle_is_estimated(const struct idle *st); /* never seen below half load */

#endif
