/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a configuration: its outputs, in groups of one interval, and its formula. A reload makes a new plan
 * beside the one in force. */
#ifndef JD_PLAN_H
#define JD_PLAN_H
#include <stdbool.h>
#include "agent/output/output.h"
#include "tap.h"

/* Outputs of one interval. */
struct group {
	struct tap tap;
	uint64_t done; /* number of finished intervals */
	bool self; /* an output tells what the agent costs */
	bool gauges; /* an output wants frequencies and temperature */
	unsigned n;
	struct output **outputs; /* borrowed from the plan */
};

struct plan {
	struct config *config; /* owned */
	struct formula_choice formula;
	struct output *outputs; /* list, owned */
	unsigned n_groups;
	struct group *groups; /* owned */
};

struct plan_options {
	struct config *config; /* taken over on success */
	const struct schema *schema;
	struct loop *loop;
	struct plan *old; /* the plan in force; its outputs are shared where they are alike; NULL = none */
};

/* Makes the plan of a configuration and opens its outputs. Those shared with the old plan belong to both until
 * plan_take or plan_give_up. 0 or negative errno with err. */
int plan_new(const struct plan_options *o, struct plan **ret, struct err *err);
/* Puts p in force: it takes over the shared outputs; the other outputs stay with old. Call while no thread
 * measures. */
void plan_take(struct plan *p, struct plan *old);
/* Frees a plan that was not put in force. Shared outputs stay with the old plan. */
void plan_give_up(struct plan *p);
/* True when nothing is left to wait for: all sinks are empty, or waited_ns is long enough to stop waiting for
 * readers that are away. */
bool plan_drained(struct plan *p, uint64_t waited_ns);
/* Waits until plan_drained, at most timeout_ns. */
void plan_drain(struct plan *p, uint64_t timeout_ns);
/* Sends a finished trace to all outputs that take traces. Measuring thread; never blocks. */
void plan_trace(const struct plan *p, const struct trace *t);
/* True when it writes to standard output only, so that no reader is left once that is closed. */
bool plan_only_stdout(const struct plan *p);
/* Frees its groups, whose consumers refer to the reading that the measuring thread keeps changing. */
void plan_free_groups(struct plan *p);
uint64_t plan_free(struct plan *p); /* closes outputs; returns documents lost; NULL accepted */

#endif
