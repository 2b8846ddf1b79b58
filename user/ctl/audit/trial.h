/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of an audit (docs/audit.md). Pure: no clock, no I/O.
 *
 * Something is switched on and off at random instants. What a domain draws more while it is on is an unbiased reading
 * of its draw, whatever else the machine does. What it is charged more, of the same readings, is compared with that.
 * Every pair is of blocks that are close in time, so that slow changes cancel. */
#ifndef JD_CTL_AUDIT_TRIAL_H
#define JD_CTL_AUDIT_TRIAL_H
#include <stdbool.h>
#include <stdint.h>
#include "ctl/compare/bootstrap.h"
#include "model/schema.h"
#include "price.h"

#define AUDIT_ROUNDS_LEAST 5 /* of fewer nothing is said */

/* Means over a block, in watts. */
struct audit_block {
	double drawn[SCHEMA_MAX_DOMAINS];
	double charged[AUDIT_LOADS][SCHEMA_MAX_DOMAINS];
	double others; /* CPUs that everything but the loads used */
	double load[AUDIT_LOADS]; /* CPUs that each load used */
};

struct audit_rounds {
	unsigned n, cap;
	struct audit_block (*v)[AUDIT_STATES];
	/* what audit_hold_equal found */
	unsigned processes; /* of each load, each on a CPU of its own */
	double ratio[AUDIT_LOADS]; /* a load's CPU time beside the other by that alone */
	struct audit_price price[SCHEMA_MAX_DOMAINS];
};

enum audit_question {
	/* While the other load rests. Marginal and average are then the same. */
	AUDIT_ALONE,
	/* While the other load runs: what the domain draws more because of this one. */
	AUDIT_MARGINAL,
	/* The mean of alone and beside the other, with half of what the two share and half of what it shares with other work. That
	 * is the mean of its draw as the first and as the last to come (Shapley: A value for n-person games, 1953). A ledger that
	 * closes can charge it. Marginal draws do not add up where power does not. */
	AUDIT_AVERAGE,
	/* No charge: the marginal draw beside the other, by the draw alone. 1 = power adds up; below: it saturates. */
	AUDIT_SATURATION,
};

struct audit_answer {
	unsigned n; /* pairs; 0 = none */
	bool known; /* false: too few pairs, or the draw cannot be told from none */
	double charged_w, drawn_w; /* means */
	double bias; /* charged / drawn - 1 */
	struct interval interval; /* of bias, 95 % */
};

/* Compares what was charged with what was drawn, pair by pair. seed: of the bootstrap. */
struct audit_answer audit_judge(const double *charged, const double *drawn, unsigned n, uint64_t seed);
/* One question about one load in one domain. */
struct audit_answer audit_ask(const struct audit_rounds *r, unsigned load, unsigned domain, enum audit_question q,
			      uint64_t seed);
/* Adds a round of AUDIT_STATES blocks. 0 or -ENOMEM. */
int audit_rounds_add(struct audit_rounds *r, const struct audit_block *blocks);
void audit_rounds_free(struct audit_rounds *r);
/* Learns what others cost (price.h), so that audit_ask holds them equal: less noise, and work that others do because of a
 * load is not read as the load's. What others cost more because a load runs beside them is shared: the average draw of the
 * load has half of it, its other draws all. Of fewer rounds than AUDIT_ROUNDS_LEAST it learns nothing, and draws hold what others
 * did. processes: of each load. Call it before audit_ask. */
void audit_hold_equal(struct audit_rounds *r, unsigned n_domains, unsigned processes);

/* When to freeze. Time is cut in slots, so long that one freeze in each takes the part `duty` of the time; the instant
 * within a slot is random. Returns the time from the begin of the slot to the begin of the freeze, ns. around_ns: what
 * is measured before and after a freeze. */
uint64_t audit_slot_ns(uint64_t freeze_ns, double duty);
uint64_t audit_instant(struct random *r, uint64_t slot_ns, uint64_t freeze_ns, uint64_t around_ns);

#endif
