/* SPDX-License-Identifier: Apache-2.0 */
/* What each row weighs in the energy of one domain. */
#ifndef JD_WEIGHT_H
#define JD_WEIGHT_H
#include "formula.h"

struct weights {
	uint64_t *weight; /* [rows + 1]; the last one: what lost counts stand for */
	uint64_t *time_ns; /* [rows + 1] on the domain's CPUs, idle row 0; the last one is 0 */
	uint64_t busy_ns, elapsed_ns; /* of the domain's CPUs */
	unsigned n_cpus; /* how many those are, online or not */
	bool whole; /* those CPUs were measured through the interval */
	unsigned quality; /* ESTIMATED: not what was asked for, or dram */
	/* owner's */
	unsigned cap, cap_cpus;
	uint8_t *cpus; /* [n_cpus] 1 = the domain's */
	uint32_t *ratio; /* [n_cpus] APERF / MPERF in 2^-16 */
	bool valid; /* false makes the next call compute anew */
	bool misses;
	struct domain_desc of; /* the domain they were computed for */
};

/* Joules by what a cell did: per second of its time and per count. */
struct blend {
	double per_second, per_count[SCHEMA_MAX_EVENTS];
};

/* Room for s. 0 or -ENOMEM. Voids what was computed. */
int weights_reserve(struct weights *w, const struct snapshot *s);
/* Fills w for a domain; nothing to do when the domain before had the same CPUs and kind of weight. */
void weights_of(struct weights *w, const struct snapshot *s, unsigned domain, enum share_weight mode);
/* The same for a GPU: weight.c asks for it (weight_use.c). */
void weights_use(struct weights *w, const struct snapshot *s, unsigned domain);
/* Fills w for a domain with weights of 1 / `per_joule` J by the blend. */
void weights_blend(struct weights *w, const struct snapshot *s, unsigned domain, const struct blend *b,
		   double per_joule);
/* Has every online CPU of the domain the event? Hybrid PMUs have CPUs without. */
bool weights_have(const struct weights *w, const struct snapshot *s, unsigned event);
void weights_free(struct weights *w);

#endif
