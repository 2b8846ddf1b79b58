/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include "trace_ring.h"

void trace_ring_init(struct trace_ring *r, size_t max_bytes)
{
	memset(r, 0, sizeof(*r));
	pthread_mutex_init(&r->lock, NULL);
	r->max_bytes = max_bytes;
}

static void forget(struct kept_trace *k)
{
	free(k->trace);
	free(k);
}

/* The list has one look at each of its traces. */
static struct kept_trace *drop_oldest(struct trace_ring *r)
{
	struct kept_trace *k = r->oldest;

	r->oldest = k->newer;
	if (!r->oldest)
		r->newest = NULL;
	r->bytes -= k->bytes;
	r->n--;
	return --k->looks ? NULL : k;
}

void trace_ring_fini(struct trace_ring *r)
{
	while (r->oldest) {
		struct kept_trace *k = drop_oldest(r);

		if (k)
			forget(k);
	}
	pthread_mutex_destroy(&r->lock);
}

void trace_ring_put(struct trace_ring *r, struct trace *t)
{
	struct kept_trace *k = malloc(sizeof(*k)), *gone = NULL, *next;

	if (!k) {
		free(t);
		return;
	}
	*k = (struct kept_trace){ .trace = t, .looks = 1, .bytes = sizeof(*k) + malloc_usable_size(t) };
	pthread_mutex_lock(&r->lock);
	if (r->newest)
		r->newest->newer = k;
	else
		r->oldest = k;
	r->newest = k;
	r->bytes += k->bytes;
	r->n++;
	while (r->bytes > r->max_bytes && r->n > 1) {
		next = drop_oldest(r);
		r->dropped++;
		if (!next)
			continue;
		next->newer = gone;
		gone = next;
	}
	pthread_mutex_unlock(&r->lock);
	for (; gone; gone = next) {
		next = gone->newer;
		forget(gone);
	}
}

int trace_ring_look(struct trace_ring *r, struct kept_trace ***ret, uint64_t *ret_dropped)
{
	struct kept_trace **list;
	int n = 0;

	pthread_mutex_lock(&r->lock);
	list = malloc((r->n + 1) * sizeof(struct kept_trace *));
	for (struct kept_trace *k = list ? r->oldest : NULL; k; k = k->newer) {
		k->looks++;
		list[n++] = k;
	}
	*ret_dropped = r->dropped;
	pthread_mutex_unlock(&r->lock);
	if (!list)
		return -ENOMEM;
	*ret = list;
	return n;
}

void trace_ring_done(struct trace_ring *r, struct kept_trace **list, int n)
{
	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < n; i++)
		if (--list[i]->looks)
			list[i] = NULL;
	pthread_mutex_unlock(&r->lock);
	for (int i = 0; i < n; i++)
		if (list[i])
			forget(list[i]);
	free(list);
}
