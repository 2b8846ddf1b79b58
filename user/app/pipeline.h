/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring thread: deadlines, readings, and per interval one consumer and one formula whose
 * snapshot goes to all outputs of that interval. What it works on is a plan; a reload makes a new
 * one beside it and hands it over between two readings. */
#ifndef JD_PIPELINE_H
#define JD_PIPELINE_H
#include <stdbool.h>
#include "../formula/formula.h"
#include "machine.h"
#include "output.h"
#include "serving.h"
#include "tracing.h"

/* Outputs of one interval. */
struct group {
	uint64_t interval_ns, deadline_ns;
	uint64_t done; /* intervals finished */
	struct consumer *consumer;
	struct formula *formula;
	bool gauges; /* an output asks for frequencies and temperature */
	unsigned n;
	struct output **outputs; /* borrowed from the plan */
};

struct plan {
	struct config *config; /* owned */
	const struct formula_ops *formula;
	struct formula_options formula_options;
	struct output *outputs; /* list, owned */
	unsigned n_groups;
	struct group *groups; /* owned */
	struct serving *serving; /* the agent's; goes from plan to plan; NULL = none */
	struct tracing *tracing; /* the same */
};

/* The plan of a configuration: opens its outputs, except those that old has alike, which it shares
 * until plan_take. Takes c on success. */
int plan_new(struct config *c, const struct schema *s, struct loop *loop, struct plan *old, struct plan **ret,
	     struct err *err);
/* The new plan is in force: outputs both have are its own from now on, the others stay with old.
 * While nobody measures. */
void plan_take(struct plan *p, struct plan *old);
/* Frees a plan that was not taken; shared outputs stay with the old one. */
void plan_give_up(struct plan *p);
/* Waits until its sinks have sent what waits, all at once, at most timeout_ns. */
void plan_drain(struct plan *p, uint64_t timeout_ns);
/* A finished trace to all outputs that take traces. The measuring thread; never blocks. */
void plan_trace(const struct plan *p, const struct trace *t);
/* Does it write to standard output alone? Then nobody is left when that is closed. */
bool plan_only_stdout(const struct plan *p);
void plan_free(struct plan *p); /* closes its outputs; NULL accepted */
struct formula *plan_formula(const struct plan *p);

struct pipeline;

/* Starts measuring. done_fd (eventfd) is written to when -n is reached or measuring has failed. */
int pipeline_start(struct machine *m, struct plan *p, int done_fd, struct pipeline **ret, struct err *err);
/* Puts p in force between two readings; waits for that. Returns the plan it replaces. */
struct plan *pipeline_swap(struct pipeline *pl, struct plan *p);
/* How often its thread came round; wakes it, so that a later call tells whether it still does. */
unsigned pipeline_turns(struct pipeline *pl);
/* Ends after the reading in progress; returns the plan in force. */
struct plan *pipeline_stop(struct pipeline *pl);

#endif
