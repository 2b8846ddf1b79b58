/* SPDX-License-Identifier: Apache-2.0 */
/* A tap draws snapshots from the machine's reading: a consumer, which remembers the reading of the last snapshot, a
 * formula, which splits the energy, and a deadline. Outputs of one interval, each interval of the query server, its
 * totals and the traces have a tap each. A replay uses the formula alone. Zeroed is an unused tap. */
#ifndef JD_TAP_H
#define JD_TAP_H
#include "formula/formula.h"

/* The formula that a configuration chose. */
struct formula_choice {
	const struct formula_ops *ops;
	struct formula_options options;
};

struct tap {
	uint64_t interval_ns, deadline_ns; /* CLOCK_MONOTONIC */
	struct consumer *consumer; /* NULL = not begun */
	struct formula *formula; /* NULL = none yet */
	struct formula_choice by; /* the choice that the formula was made by */
};

/* Begins an interval at this reading. A consumer that it has goes on with its own. 0 or -ENOMEM. */
int tap_begin(struct tap *t, const struct reading *r, uint64_t interval_ns);
/* Makes the formula of this choice. Keeps the one it has, and all that it has learned, unless the choice has
 * changed. 0, or -ENOMEM: then tap_split leaves all energy residual. */
int tap_use(struct tap *t, const struct formula_choice *by);
/* The snapshot of the interval that ends at this reading, without gauges and before tap_split. Owned by the tap,
 * until the next one. NULL = no memory, or not begun; the interval is then joined to the next one. */
struct snapshot *tap_take(struct tap *t, const struct reading *r);
/* True when its last snapshot, or its begin, was at this reading. */
bool tap_is_at(const struct tap *t, const struct reading *r);
void tap_split(struct tap *t, struct snapshot *s);
/* Moves the deadline to the next multiple of the interval after now_ns, which is not before the deadline. Returns
 * the number of deadlines that were missed. */
uint64_t tap_next(struct tap *t, uint64_t now_ns);
void tap_end(struct tap *t); /* frees its parts; the tap is unused then */

#endif
