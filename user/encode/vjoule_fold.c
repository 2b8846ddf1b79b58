/* SPDX-License-Identifier: Apache-2.0 */
/* v0.2: the smallest consumers go into `/other` until the report fits. A heap with the smallest on
 * top, because only those are taken out and sorting all would cost more (and qsort may allocate). */
#include "vjoule.h"

/* Package energy as the formula split it; time where none did. */
static uint64_t use_of(const struct snapshot *s, uint32_t row)
{
	uint64_t use = 0;

	if (!s->formula[0] || !strcmp(s->formula, "none"))
		return s->rows[row].time_ns;
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		if (s->schema->domains[d].kind == DOMAIN_PACKAGE)
			use += *snapshot_energy(s, row, d);
	return use;
}

static void sift_down(struct vjoule_ranked *heap, unsigned n, unsigned i)
{
	struct vjoule_ranked moved = heap[i];

	for (unsigned child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && heap[child + 1].use < heap[child].use)
			child++;
		if (moved.use <= heap[child].use)
			break;
		heap[i] = heap[child];
	}
	heap[i] = moved;
}

static void fold_one(struct encoder *e, const struct snapshot *s, uint32_t at)
{
	uint32_t row = e->send[at];

	e->size -= vjoule_cgroup_size(e->dialect, e->names[s->rows[row].key].len, vjoule_metrics(e));
	vjoule_add_row(e, s, row, e->extras[VJOULE_OTHER].values);
	e->send[at] = UINT32_MAX;
	e->n_cgroups--;
	e->stats.folded_rows++;
}

static void close_gaps(struct encoder *e)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < e->n_send; i++)
		if (e->send[i] != UINT32_MAX)
			e->send[kept++] = e->send[i];
	e->n_send = kept;
}

void vjoule_fold(struct encoder *e, const struct snapshot *s, size_t room)
{
	unsigned n = e->n_send;

	if (!e->extras[VJOULE_OTHER].sent) {
		e->extras[VJOULE_OTHER].sent = true;
		e->size += vjoule_cgroup_size(e->dialect, strlen("/other"), vjoule_metrics(e));
		e->n_cgroups++;
	}
	for (uint32_t i = 0; i < n; i++)
		e->ranked[i] = (struct vjoule_ranked){ use_of(s, e->send[i]), i };
	for (unsigned i = n / 2; i-- > 0;)
		sift_down(e->ranked, n, i);
	while (e->size > room && n) {
		fold_one(e, s, e->ranked[0].at);
		e->ranked[0] = e->ranked[--n];
		sift_down(e->ranked, n, 0);
	}
	close_gaps(e);
}
