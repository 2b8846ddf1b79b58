/* SPDX-License-Identifier: Apache-2.0 */
/* The totals of the query server and the history on disk: a restart restores the totals from the history, which
 * stores them with the snapshots. */
#ifndef JD_SERVING_KEPT_H
#define JD_SERVING_KEPT_H
#include "encode/totals/totals.h"
#include "model/config/config.h"
#include "store/history/history.h"

struct kept {
	void (*stored)(void *arg, uint64_t seq); /* called on the thread of the history; set before kept_open */
	void *arg;
	struct history *history; /* NULL = none */
	struct totals *totals; /* measuring thread */
	uint32_t saved; /* totals->adds at the last hand-over to the history */
	char no_history[240]; /* why there is none */
	char state[16]; /* main thread: the state last logged */
};

struct kept_totals {
	struct totals_options own;
	struct totals_options view; /* of the page, when it shows groups (view.by) */
};

/* Without a usable history the agent logs that and goes on. 0 or -ENOMEM. */
int kept_open(struct kept *k, const struct schema *s, const struct history_config *c, const struct kept_totals *o);
int kept_start(struct kept *k, struct err *err); /* starts its thread */
void kept_say(struct kept *k); /* main thread: logs the state of the disk when it changes */
/* Measuring thread, after totals_add: hands the totals and s over. Returns the number for serve_publish_totals. */
uint64_t kept_put(struct kept *k, const struct snapshot *s);
/* Ends its thread, which calls `stored`. Returns the number of intervals lost, and logs it. */
uint64_t kept_stop(struct kept *k);
void kept_close(struct kept *k); /* also after a failed kept_open */

#endif
