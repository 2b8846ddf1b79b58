/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include "encode/trace_json.h"
#include "trace_ring.h"

void trace_ring_init(struct trace_ring *r, size_t max_bytes)
{
	memset(r, 0, sizeof(*r));
	pthread_mutex_init(&r->lock, NULL);
	r->max_bytes = max_bytes;
	r->forgotten.until_unix_ns = INT64_MIN;
}

static void forget(struct kept_trace *k)
{
	free(k->trace);
	free(k);
}

static void count_forgotten(struct trace_ring *r, uint64_t energy_uj, int64_t end_unix_ns)
{
	r->forgotten.traces++;
	r->forgotten.energy_uj += energy_uj;
	if (end_unix_ns > r->forgotten.until_unix_ns)
		r->forgotten.until_unix_ns = end_unix_ns;
}

/* Drops the oldest trace. The ring itself counts as one holder of each trace. */
static struct kept_trace *drop_oldest(struct trace_ring *r)
{
	struct kept_trace *k = r->oldest;

	r->oldest = k->newer;
	if (!r->oldest)
		r->newest = NULL;
	r->bytes -= k->bytes;
	r->n--;
	count_forgotten(r, k->energy_uj, k->end_unix_ns);
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
	const int64_t end_unix_ns = trace_end_unix_ns(t);
	uint64_t energy_uj;

	trace_energy_uj(t, &energy_uj);
	if (!k) {
		pthread_mutex_lock(&r->lock);
		count_forgotten(r, energy_uj, end_unix_ns);
		pthread_mutex_unlock(&r->lock);
		free(t);
		return;
	}
	*k = (struct kept_trace){ .trace = t,
				  .looks = 1,
				  .bytes = sizeof(*k) + malloc_usable_size(t),
				  .energy_uj = energy_uj,
				  .end_unix_ns = end_unix_ns };
	pthread_mutex_lock(&r->lock);
	k->number = ++r->numbers;
	if (r->newest)
		r->newest->newer = k;
	else
		r->oldest = k;
	r->newest = k;
	r->bytes += k->bytes;
	r->n++;
	while (r->bytes > r->max_bytes && r->n > 1) {
		next = drop_oldest(r);
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

void trace_ring_select(struct trace_ring *r, const struct selection_rules *rules)
{
	struct kept_trace *gone = NULL, *k, **at = &r->oldest;

	pthread_mutex_lock(&r->lock);
	r->newest = NULL;
	while ((k = *at)) {
		if (selection_admits(rules, k->trace->spans[0].cgroup)) {
			r->newest = k;
			at = &k->newer;
			continue;
		}
		*at = k->newer;
		r->bytes -= k->bytes;
		r->n--;
		if (--k->looks)
			continue;
		k->newer = gone;
		gone = k;
	}
	pthread_mutex_unlock(&r->lock);
	for (; gone; gone = k) {
		k = gone->newer;
		forget(gone);
	}
}

int trace_ring_look(struct trace_ring *r, struct kept_trace ***ret, struct trace_ring_forgotten *ret_forgotten)
{
	struct kept_trace **list;
	int n = 0;

	pthread_mutex_lock(&r->lock);
	list = malloc((r->n + 1) * sizeof(struct kept_trace *));
	for (struct kept_trace *k = list ? r->oldest : NULL; k; k = k->newer) {
		k->looks++;
		list[n++] = k;
	}
	*ret_forgotten = r->forgotten;
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
