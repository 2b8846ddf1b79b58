/* SPDX-License-Identifier: Apache-2.0 */
/* The weight of each row in the energy of one domain. */
#ifndef JD_WEIGHT_H
#define JD_WEIGHT_H
#include "formula.h"

enum { WEIGHTS_TIME = -1, WEIGHTS_OTHER = -2 };

struct weights {
	uint64_t *weight; /* [rows + 1]; the last one is the weight of lost counts */
	uint64_t *time_ns; /* [rows + 1] on the domain's CPUs, idle row 0; the last one is 0 */
	uint64_t busy_ns, elapsed_ns; /* of the domain's CPUs */
	unsigned n_cpus; /* number of the domain's CPUs, online or not */
	bool whole; /* those CPUs were measured through the interval */
	int column; /* index of the event that the weights count; WEIGHTS_TIME; WEIGHTS_OTHER: several, or a device's use */
	unsigned quality; /* ESTIMATED: another weight than was asked for, or dram */
	/* owner's */
	unsigned cap, cap_cpus;
	uint8_t *cpus; /* [n_cpus] 1 = the domain's */
	uint32_t *ratio; /* [n_cpus] APERF / MPERF in 2^-16 */
	bool valid; /* false makes the next call compute anew */
	bool misses;
	struct domain_desc of; /* the domain they were computed for */
};

struct terms_prices; /* of what cells did (terms.h) */

/* Room for s. 0 or -ENOMEM. The weights computed before are void. */
int weights_reserve(struct weights *w, const struct snapshot *s);
/* Fills w for a domain; nothing to do when the domain before had the same CPUs and kind of weight. */
void weights_of(struct weights *w, const struct snapshot *s, unsigned domain, enum share_weight mode);
/* Fills w for a domain with weights of 1 / `per_joule` J by the prices. */
void weights_blend(struct weights *w, const struct snapshot *s, unsigned domain, const struct terms_prices *prices,
		   double per_joule);
/* The price of the one column of weights_of, for so much energy of the rows. */
struct snap_price weights_price(const struct weights *w, const struct snapshot *s, uint64_t rows_uj);
/* True when every online CPU of the domain has the event. On hybrid machines some CPUs lack it. */
bool weights_have(const struct weights *w, const struct snapshot *s, unsigned event);
void weights_free(struct weights *w);

#endif
