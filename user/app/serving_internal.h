/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JD_SERVING_INTERNAL_H
#define JD_SERVING_INTERNAL_H
#include "../serve/serve.h"
#include "pipeline.h"
#include "serving.h"
#include "serving_socket.h"
#include "serving_web.h"

struct tap {                        /* an interval that somebody wants */
	uint64_t interval_ns, deadline_ns;
	struct consumer *consumer;
	struct formula *formula;
};

struct serving {
	struct serve *serve;
	struct serving_socket socket;    /* fd -1 once it is the server's */
	struct serving_web web;          /* the same */
	int wake_fd;
	/* measuring thread */
	const struct plan *plan;
	const struct formula_ops *formula;
	struct formula_options formula_options;
	struct tap taps[SERVE_FEEDS];
	struct tap sums;             /* behind the totals: read at the agent's interval, and when asked */
	struct totals *totals;
	bool reading;                /* somebody waits for one */
};

/* serving_facts.c: what the sources are, for the status. An array to free; NULL = no memory. */
struct serve_source *serving_sources(const struct machine *m, unsigned *ret_n);

#endif
