/* SPDX-License-Identifier: Apache-2.0 */
#include "rows_queue.h"
#include <stdio.h>
#include <string.h>

struct head {
	uint64_t id;
	uint32_t quality, n_name;
};

static bool used(const struct snapshot *s, unsigned row)
{
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		if (*snapshot_energy(s, row, d))
			return true;
	return false;
}

static void add_counts(struct rows_interval *to, const struct snapshot *s)
{
	memset(to->counted, 0, sizeof(to->counted));
	to->cpu_ns = 0;
	for (unsigned i = 0; i < s->n_rows; i++) {
		for (unsigned e = 0; e < s->schema->core.n; e++)
			to->counted[e] += s->rows[i].counters[e];
		to->cpu_ns += s->rows[i].kind == ROW_CGROUP ? s->rows[i].time_ns : 0;
	}
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		to->price[d] = s->domains[d].price;
}

void rows_queue_put(struct rows_queue *q, const struct snapshot *s, const bool *shown)
{
	const uint32_t put = atomic_load_explicit(&q->put, memory_order_relaxed);
	struct rows_interval *to = &q->v[put % ROWS_QUEUE];
	size_t waiting;

	if (put - atomic_load_explicit(&q->taken, memory_order_acquire) >= ROWS_QUEUE) {
		atomic_fetch_add(&q->dropped, 1);
		return;
	}
	to->start_ns = s->start_ns;
	to->end_ns = s->end_ns;
	to->end_real_ns = s->end_real_ns;
	memcpy(to->formula, s->formula, sizeof(to->formula));
	snprintf(to->idle, sizeof(to->idle), "%s", idle_policy_name(s->idle_policy));
	add_counts(to, s);
	buf_reset(&to->rows);
	for (unsigned i = 0; i < s->n_rows; i++) {
		struct head h = { s->rows[i].id, snapshot_row_energy_quality(s, i),
				  (uint32_t)strlen(s->rows[i].path) + 1 };

		if (!selection_shows(shown, s, i) || !used(s, i))
			continue;
		buf_add(&to->rows, &h, sizeof(h));
		buf_add(&to->rows, snapshot_energy(s, i, 0), s->schema->n_domains * sizeof(uint64_t));
		buf_add(&to->rows, s->rows[i].path, h.n_name);
	}
	waiting = atomic_load(&q->waiting);
	if (to->rows.failed || (waiting && waiting + to->rows.len > ROWS_QUEUE_BYTES)) {
		buf_free(&to->rows);
		atomic_fetch_add(&q->dropped, 1);
		return;
	}
	atomic_fetch_add(&q->waiting, to->rows.len);
	atomic_store_explicit(&q->put, put + 1, memory_order_release);
}

const struct rows_interval *rows_queue_next(struct rows_queue *q)
{
	const uint32_t taken = atomic_load_explicit(&q->taken, memory_order_relaxed);

	return atomic_load_explicit(&q->put, memory_order_acquire) == taken ? NULL : &q->v[taken % ROWS_QUEUE];
}

void rows_queue_done(struct rows_queue *q)
{
	struct rows_interval *of = &q->v[atomic_load_explicit(&q->taken, memory_order_relaxed) % ROWS_QUEUE];

	atomic_fetch_sub(&q->waiting, of->rows.len);
	buf_free(&of->rows); /* 64 of a machine with a thousand cgroups are megabytes */
	atomic_fetch_add_explicit(&q->taken, 1, memory_order_release);
}

void rows_queue_free(struct rows_queue *q)
{
	for (unsigned i = 0; i < ROWS_QUEUE; i++)
		buf_free(&q->v[i].rows);
}

bool rows_next(struct rows_reader *r, unsigned n_domains, struct rows_row *ret)
{
	struct head h;

	if (r->at >= r->end)
		return false;
	memcpy(&h, r->at, sizeof(h));
	ret->id = h.id;
	ret->quality = h.quality;
	ret->n_name = h.n_name;
	ret->energy_uj = r->at + sizeof(h);
	ret->name = (const char *)ret->energy_uj + n_domains * sizeof(uint64_t);
	r->at = (const uint8_t *)ret->name + h.n_name;
	return true;
}
