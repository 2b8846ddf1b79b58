/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that have ended, the newest of them, in a bounded number of bytes. The measuring thread puts them in,
 * the loop's looks at them; each holds the lock only to move pointers. */
#ifndef JD_TRACE_RING_H
#define JD_TRACE_RING_H
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include "../model/span.h"

struct kept_trace {
	struct kept_trace *newer;
	size_t bytes;
	unsigned looks; /* who looks at it; lock */
	struct trace *trace;
};

struct trace_ring {
	pthread_mutex_t lock;
	struct kept_trace *oldest, *newest;
	size_t bytes, max_bytes;
	unsigned n;
	uint64_t dropped; /* traces that made room for newer ones */
};

void trace_ring_init(struct trace_ring *r, size_t max_bytes);
void trace_ring_fini(struct trace_ring *r);
/* Takes t, one piece of memory (model/traces.h); the oldest go. */
void trace_ring_put(struct trace_ring *r, struct trace *t);
/* All that are kept, oldest first, for looking at until trace_ring_done. Number, or -ENOMEM. dropped: see there. */
int trace_ring_look(struct trace_ring *r, struct kept_trace ***ret, uint64_t *ret_dropped);
void trace_ring_done(struct trace_ring *r, struct kept_trace **list, int n);

#endif
