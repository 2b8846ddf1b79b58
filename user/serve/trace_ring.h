/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the newest finished traces in a bounded number of bytes. The measuring thread adds traces, the loop's
 * thread reads them. Both hold the lock only to move pointers. */
#ifndef JD_TRACE_RING_H
#define JD_TRACE_RING_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include "model/selection.h"
#include "model/span.h"

struct kept_trace {
	struct kept_trace *newer;
	size_t bytes;
	uint64_t number, energy_uj; /* numbers count up from 1 */
	int64_t end_unix_ns;
	unsigned looks; /* holders: the ring and its readers; under lock */
	struct trace *trace;
};

/* Traces that were dropped to make room for newer ones. */
struct trace_ring_forgotten {
	uint64_t traces, energy_uj;
	int64_t until_unix_ns; /* latest end among them; INT64_MIN = none */
};

struct trace_ring {
	pthread_mutex_t lock;
	struct kept_trace *oldest, *newest;
	size_t bytes, max_bytes;
	unsigned n;
	uint64_t numbers; /* numbers given so far */
	struct trace_ring_forgotten forgotten;
};

void trace_ring_init(struct trace_ring *r, size_t max_bytes);
void trace_ring_fini(struct trace_ring *r);
/* Takes t, one piece of memory (model/traces/traces.h). Drops the oldest traces to make room. */
void trace_ring_put(struct trace_ring *r, struct trace *t);
/* Drops traces of cgroups that the rules do not admit. */
void trace_ring_select(struct trace_ring *r, const struct selection_rules *rules);
/* Returns all kept traces, oldest first; they stay valid until trace_ring_done. The number, or -ENOMEM. */
int trace_ring_look(struct trace_ring *r, struct kept_trace ***ret, struct trace_ring_forgotten *ret_forgotten);
void trace_ring_done(struct trace_ring *r, struct kept_trace **list, int n);

#endif
