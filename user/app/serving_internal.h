/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_SERVING_INTERNAL_H
#define JD_SERVING_INTERNAL_H
#include "../serve/cost.h"
#include "../serve/serve.h"
#include "../store/history.h"
#include "pipeline.h"
#include "serving.h"
#include "serving_socket.h"
#include "serving_web.h"

struct tap { /* an interval that somebody wants */
	uint64_t interval_ns, deadline_ns;
	struct consumer *consumer;
	struct formula *formula;
};

struct serving {
	struct serve *serve;
	struct serving_socket socket; /* fd -1 once it is the server's */
	struct serving_web web; /* the same */
	bool pages_only; /* there is no socket: totals are all that is asked for */
	int wake_fd;
	struct serve_devices devices;
	char *gpu_library;
	/* measuring thread */
	const struct plan *plan;
	const struct formula_ops *formula;
	struct formula_options formula_options;
	struct tap taps[SERVE_FEEDS];
	struct tap sums; /* behind the totals: read at the agent's interval, and when asked */
	struct totals *totals;
	bool reading; /* somebody waits for one */
	struct cost switch_cost;
	struct history *history; /* NULL = none */
	uint32_t saved; /* adds of the totals that it got last */
	char no_history[240];
	char history_state[16]; /* main thread: what was said of it */
};

/* serving_history.c. A history that cannot be had is said and done without; 0 or -ENOMEM. */
int serving_history_open(struct serving *sv, const struct schema *s, const struct config *c,
			 const struct totals_options *to);
int serving_history_start(struct serving *sv, struct err *err);
void serving_history_say(struct serving *sv);
uint64_t serving_history_put(struct serving *sv,
			     const struct snapshot *s); /* after totals_add; what serve_publish_totals takes */

/* serving_measure.c: of feed 0 */
uint64_t serving_feed_interval(const struct serving *sv, const struct plan *p);

/* serving_devices.c: what the recorder of experiments asks; NULL = there is none */
const struct serve_devices *serving_devices(struct serving *sv, const struct machine *m, const char *gpu_library);

/* serving_facts.c: what the sources are, for the status. An array to free; NULL = no memory. */
struct serve_source *serving_sources(const struct machine *m, unsigned *ret_n);

#endif
