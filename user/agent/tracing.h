/* SPDX-License-Identifier: Apache-2.0 */
/* Makes traces with energy from the machine's spans. Runs on the measuring thread, after readings. Without spans
 * there is no tracing: t is NULL, which all functions accept. */
#ifndef JD_TRACING_H
#define JD_TRACING_H
#include "model/traces/traces.h"
#include "agent/machine/machine.h"
#include "agent/plan/tap.h"

struct tracing;

/* Call once the machine is open. Takes its spans. 0 (also without spans) or -ENOMEM. */
int tracing_open(struct machine *m, const struct spans_config *c, struct tracing **ret, struct err *err);
/* Sets the function that takes finished traces over. Before this call they are dropped. Call while no thread
 * measures. */
void tracing_deliver(struct tracing *t, void (*deliver)(void *ctx, struct trace *trace), void *ctx);
void tracing_close(struct tracing *t); /* call while no thread measures */

/* The rest is for the measuring thread. tracing_add splits the energy of an interval over spans. */
void tracing_add(struct tracing *t, const struct snapshot *s);
struct traces_stats tracing_figures(const struct tracing *t); /* zeros when t is NULL */
/* For an agent without totals: tracing_run takes a snapshot after a reading when one is due. tracing_deadline returns
 * when that is, CLOCK_MONOTONIC; UINT64_MAX = never. */
uint64_t tracing_deadline(const struct tracing *t);
void tracing_run(struct tracing *t, const struct formula_choice *by);
/* Ends tracing: cuts every tree and hands it over. */
void tracing_finish(struct tracing *t);

#endif
