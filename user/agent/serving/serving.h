/* SPDX-License-Identifier: Apache-2.0 */
/* The query server within the agent: its socket, the pages among the outputs, and the measuring thread's work
 * for it. Each requested interval has a consumer and a formula of its own, so a query never changes the reports
 * of others. */
#ifndef JD_SERVING_H
#define JD_SERVING_H
#include "agent/machine/machine.h"
#include "model/traces/traces.h"
#include "serve/profile.h"

struct plan;
struct serving;
struct trace;

/* Listens, before privileges are given up. 0 with *ret NULL: there is neither socket nor page, or the socket is
 * not available and was not configured, which is logged. */
int serving_open(const struct serving_config *c, const struct outputs_config *outputs, struct serving **ret,
		 struct err *err);
/* Answers from now on. Takes nothing over; uses the plan's interval and formula. */
int serving_start(struct serving *sv, struct machine *m, const struct plan *p, struct loop *loop,
		  struct serve_profiling profiling, struct err *err);
/* Starts the pages of a plan that do not answer yet. Main thread; sv may be NULL. */
int serving_pages(struct serving *sv, const struct plan *p, struct err *err);
/* Call while no thread measures, after the plan's pages are closed. Returns the number of intervals that the
 * history lost, and logs it. NULL accepted. */
uint64_t serving_stop(struct serving *sv);

/* Measuring thread. NULL accepted by the first three. */
int serving_fd(const struct serving *sv); /* readable = clients want other intervals or a reading; -1 = none */
void serving_use(struct serving *sv, const struct plan *p); /* use p from now on, after a reload */
void serving_trace(struct serving *sv, struct trace *t); /* takes a trace that has ended */
uint64_t serving_deadline(struct serving *sv, struct machine *m); /* CLOCK_MONOTONIC; UINT64_MAX = never */
/* After a reading: shows the snapshots of the intervals that clients want. True = the totals are due too. *ret_sums
 * is then the snapshot that was added to them, valid until the next call, or NULL without memory; serving_show
 * must follow. */
bool serving_run(struct serving *sv, struct machine *m, struct snapshot **ret_sums);
/* Stores and shows the totals, with the present figures of traces. */
void serving_show(struct serving *sv, const struct machine *m, const struct snapshot *sums, struct traces_stats traces);

/* Main thread: tells the server the state of the outputs. */
void serving_tell(struct serving *sv, const struct plan *p);

#endif
