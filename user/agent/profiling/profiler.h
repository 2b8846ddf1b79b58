/* SPDX-License-Identifier: Apache-2.0 */
/* The continuous profile: a thread of its own takes samples out of the kernel's rings, and splits over them what the ledger
 * gives each row. The measuring thread hands it the rows of each interval and never waits. Chunks of a minute go to disk
 * and to outputs. Without a frequency there is none: p is NULL, which all functions accept. */
#ifndef JD_PROFILER_H
#define JD_PROFILER_H
#include "agent/plan/tap.h"
#include "base/err.h"
#include "model/config/config.h"
#include "model/snapshot.h"
#include "serve/profile.h"

struct plan;
struct profiler;

/* Opens the sampling events, which needs rights. c stays as long. 0 or negative errno with err. */
int profiler_open(const struct config *c, const struct schema *schema, struct profiler **ret, struct err *err);
/* Opens the directory of the chunks, and begins. */
int profiler_start(struct profiler *p, struct err *err);
/* Answers who waits, and writes what it has. Call while no thread measures. */
void profiler_stop(struct profiler *p);
void profiler_close(struct profiler *p); /* stops it first */

/* Measuring thread: the rows of an interval, with their energy. */
void profiler_feed(struct profiler *p, const struct snapshot *s);
/* The same for an agent without totals: takes an interval of its own after a reading when one is due, and says when that
 * is, CLOCK_MONOTONIC; UINT64_MAX = never. */
void profiler_run(struct profiler *p, const struct reading *r, const struct formula_choice *by);
uint64_t profiler_deadline(const struct profiler *p);
/* Main thread: chunks go to the outputs of this plan from now on; NULL = to none. Waits for a chunk on its way. */
void profiler_use(struct profiler *p, const struct plan *plan);
/* For the query server. */
struct serve_profiling profiler_serves(struct profiler *p);

#endif
