/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring thread: it keeps deadlines and takes readings. The snapshots of each group of the plan go to its
 * outputs. Those of the query server's totals also go to the traces, and finished traces go to outputs and query
 * server. A reload hands over a new plan between two readings. */
#ifndef JD_PIPELINE_H
#define JD_PIPELINE_H
#include "agent/machine/machine.h"
#include "agent/plan/plan.h"
#include "agent/profiling/profiler.h"
#include "agent/serving/serving.h"
#include "tracing.h"

struct pipeline;

/* All are borrowed. */
struct pipeline_options {
	struct machine *machine;
	struct plan *plan;
	struct serving *serving; /* NULL = none */
	struct tracing *tracing; /* NULL = none */
	struct profiler *profiler; /* NULL = none */
	int done_fd; /* an eventfd, written to when -n is reached */
};

/* Starts measuring. 0 or negative errno with err. */
int pipeline_start(const struct pipeline_options *o, struct pipeline **ret, struct err *err);
/* Puts p in force between two readings and waits for that. Returns the plan it replaces. */
struct plan *pipeline_swap(struct pipeline *pl, struct plan *p);
/* Number of turns of its loop so far. Also wakes the thread, so that a later call shows whether it still runs. */
unsigned pipeline_turns(struct pipeline *pl);
/* Ends after the reading in progress; returns the plan in force. */
struct plan *pipeline_stop(struct pipeline *pl);

#endif
