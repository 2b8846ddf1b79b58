/* SPDX-License-Identifier: Apache-2.0 */
/* The query server's place in the agent: its socket, the pages among the outputs, and what the measuring thread does for it. Each
 * interval that is asked for is a consumer and a formula of its own, so that nobody's report changes
 * because somebody looks. */
#ifndef JD_SERVING_H
#define JD_SERVING_H
#include "machine.h"

struct plan;
struct serving;
struct trace;

/* Listens, before privileges go. 0 with *ret NULL: there is neither socket nor page, or the socket cannot be had and
 * nobody asked for it, which is said. */
int serving_open(const struct config *c, struct serving **ret, struct err *err);
/* Answers from now on. Takes nothing; the plan's interval and formula are used. */
int serving_start(struct serving *sv, struct machine *m, const struct plan *p, struct loop *loop, struct err *err);
/* The pages of a plan that do not answer yet do from now on. Main thread; sv may be NULL. */
int serving_pages(struct serving *sv, const struct plan *p, struct err *err);
void serving_stop(struct serving *sv); /* while nobody measures, after the plan's pages; NULL accepted */

/* Measuring thread; NULL accepted by all. */
int serving_fd(const struct serving *sv); /* readable: look at what is wanted; -1 = none */
void serving_use(struct serving *sv, const struct plan *p); /* from now on, after a reload */
uint64_t serving_deadline(struct serving *sv, struct machine *m); /* CLOCK_MONOTONIC; UINT64_MAX = never */
void serving_run(struct serving *sv, struct machine *m); /* after a reading */

void serving_trace(struct serving *sv, struct trace *t); /* one that has ended; taken */

/* Main thread: how the outputs are. */
void serving_tell(struct serving *sv, const struct plan *p);

#endif
