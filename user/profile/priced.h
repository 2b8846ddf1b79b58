/* SPDX-License-Identifier: Apache-2.0 */
/* What samples weigh: the prices of the formula, and the rates at which the priced counters are sampled. */
#ifndef JD_PROFILE_PRICED_H
#define JD_PROFILE_PRICED_H
#include "base/buf.h"
#include "model/snapshot.h"
#include "row_shares.h"
#include "sampler.h"

struct priced {
	struct event_set events; /* those that may have a price; their columns */
	uint16_t missing[SCHEMA_MAX_DOMAINS]; /* columns that had a price and are not sampled, ever: bit per column */
	uint16_t used[SCHEMA_MAX_DOMAINS]; /* those by which energy was split */
	uint64_t counted[SCHEMA_MAX_EVENTS], cpu_ns; /* of all rows, at the last call */
	bool beside[SCHEMA_MAX_DOMAINS]; /* domains that have no say in how often a column is sampled */
	double joules[STACK_COLUMNS]; /* that each column cost in the others, older intervals less and less */
	uint32_t dither;
	uint64_t changed_ns; /* when the pace was set, and periods anew */
};

/* Opens the counters of the schema in the sampler. variants: as sampler_events has them. */
void priced_open(struct priced *p, struct sampler *s, const struct event_set *events,
		 const struct event_variants *variants);
/* Ends an interval, before its energy is split: price[n_domains] are the prices that hold in it, counted and cpu_ns the
 * totals of all rows so far. Counters with a price are sampled from now on. Columns with a price and time, n of them, have n + 1
 * times the rate that was asked for together: half a time each, time a whole one, and the rest by what they cost, for chance
 * is smallest where each sample stands for as much energy. Time alone has that rate. 0 or -ENOMEM. */
int priced_take(struct priced *p, struct sampler *s, struct row_shares *r, const struct snap_price *price,
		const uint64_t counted[SCHEMA_MAX_EVENTS], uint64_t cpu_ns);
/* Appends what the energy of a domain followed, in words, and what had a price but was not sampled: "time and
 * INSTRUCTIONS, not LLC_MISSES (the PMU cannot interrupt)". */
void priced_tell(const struct priced *p, const struct sampler *s, unsigned domain, struct buf *out);

#endif
