/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of the machine made to traces with energy, and handed to the outputs and the query socket. On the
 * measuring thread, after readings; where nobody asked for spans there is none (NULL, accepted by all). */
#ifndef JD_TRACING_H
#define JD_TRACING_H
#include "../model/traces.h"
#include "machine.h"

struct plan;
struct tracing;

/* Once the machine is open: takes its spans. 0 (also when it has none) or -ENOMEM. */
int tracing_open(struct machine *m, const struct config *c, struct tracing **ret, struct err *err);
void tracing_close(struct tracing *t); /* while nobody measures */

/* Measuring thread. Deadline of readings it needs: CLOCK_MONOTONIC, UINT64_MAX = those of others do. */
uint64_t tracing_deadline(const struct tracing *t, const struct plan *p);
/* An interval whose energy is split: that of the totals, so that spans never sum to more than those. */
void tracing_add(struct tracing *t, const struct plan *p, const struct snapshot *s);
/* After a reading: takes an interval of its own where there are no totals. */
void tracing_run(struct tracing *t, const struct plan *p);
struct traces_stats tracing_figures(const struct tracing *t); /* of none: zeros */
/* The end: every tree is cut and handed over. */
void tracing_finish(struct tracing *t, const struct plan *p);

#endif
