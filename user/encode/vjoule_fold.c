/* SPDX-License-Identifier: Apache-2.0 */
/* v0.2: what may be left out of a report, and when. simple_formula has a directory per cgroup, removes
 * those that have been away for some reports, in the order of their names, and ends when one of them
 * is not empty. So a name stays, with zeros when its cgroup has gone, as long as one below it was in
 * the report before. And its reader loses long records: the smallest consumers go into `/other` until
 * the report fits, one only after all below it. */
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

/* Which rows are there, and in which order: while it stays the same, so do the places. */
static uint64_t fingerprint(const struct encoder *e, const struct snapshot *s)
{
	uint64_t h = e->n_send + 1;

	for (unsigned i = 0; i < e->n_send; i++) {
		const struct snap_row *r = &s->rows[e->send[i]];

		h ^= r->key + ((uint64_t)r->generation << 32) + r->renamed * 0x9e3779b97f4a7c15ull;
		h *= 0xbf58476d1ce4e5b9ull;
		h ^= h >> 31;
	}
	return h;
}

/* From the leaves up: what a name and all below it use, and whether it must stay. */
static void climb(struct encoder *e, const struct snapshot *s)
{
	struct vjoule_tree *t = &e->tree;

	for (unsigned i = 0; i < t->n; i++) {
		t->v[i].use = t->v[i].at == VJOULE_NO_PLACE ? 0 : use_of(s, e->send[t->v[i].at]);
		t->v[i].below = false;
	}
	for (unsigned i = t->n; i-- > 0;) {
		struct vjoule_place *p = &t->v[i], *up = p->parent == VJOULE_NO_PLACE ? NULL : &t->v[p->parent];

		p->stays = p->sent && p->below;
		if (p->stays)
			p->use = UINT64_MAX;
		if (!up)
			continue;
		up->below |= p->sent || p->below;
		if (p->use > up->use)
			up->use = p->use;
	}
}

/* Names whose cgroup has gone: those that stay are sent once more. */
static void keep_ghosts(struct encoder *e)
{
	e->n_ghosts = 0;
	for (unsigned i = 0; i < e->tree.n; i++) {
		struct vjoule_place *p = &e->tree.v[i];

		p->sent = p->at != VJOULE_NO_PLACE || p->stays;
		if (p->at != VJOULE_NO_PLACE || !p->stays)
			continue;
		e->n_ghosts++;
		e->n_cgroups++;
		e->size += vjoule_cgroup_size(e->dialect, p->len, vjoule_metrics(e));
	}
}

/* Of two that use the same the longer name is the smaller one: it may lie below the other. */
static bool smaller(const struct vjoule_place *a, const struct vjoule_place *b)
{
	return a->use != b->use ? a->use < b->use : a->len > b->len;
}

static void sift_down(const struct vjoule_place *v, uint32_t *heap, unsigned n, unsigned i)
{
	uint32_t moved = heap[i];

	for (unsigned child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && smaller(&v[heap[child + 1]], &v[heap[child]]))
			child++;
		if (!smaller(&v[heap[child]], &v[moved]))
			break;
		heap[i] = heap[child];
	}
	heap[i] = moved;
}

static void fold_one(struct encoder *e, const struct snapshot *s, struct vjoule_place *p)
{
	e->size -= vjoule_cgroup_size(e->dialect, p->len, vjoule_metrics(e));
	vjoule_add_row(e, s, e->send[p->at], e->extras[VJOULE_OTHER].values);
	e->send[p->at] = UINT32_MAX;
	p->sent = false;
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

/* A heap with the smallest on top: only those are taken out, and qsort may allocate. */
static void fold(struct encoder *e, const struct snapshot *s, size_t room)
{
	struct vjoule_tree *t = &e->tree;
	unsigned n = 0;

	e->other_stays = true;
	if (!e->extras[VJOULE_OTHER].sent) {
		e->extras[VJOULE_OTHER].sent = true;
		e->size += vjoule_cgroup_size(e->dialect, strlen("/other"), vjoule_metrics(e));
		e->n_cgroups++;
	}
	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].at != VJOULE_NO_PLACE)
			e->ranked[n++] = i;
	for (unsigned i = n / 2; i-- > 0;)
		sift_down(t->v, e->ranked, n, i);
	while (e->size > room && n) {
		fold_one(e, s, &t->v[e->ranked[0]]);
		e->ranked[0] = e->ranked[--n];
		sift_down(t->v, e->ranked, n, 0);
	}
	close_gaps(e);
}

int vjoule_fit(struct encoder *e, const struct snapshot *s, size_t room)
{
	uint64_t print = fingerprint(e, s);
	bool too_long;
	int err = 0;

	if (print != e->print) {
		err = vjoule_tree_make(e, s);
		e->print = print;
		e->settled = false;
	}
	if (err || (e->settled && e->size <= room))
		return err;
	climb(e, s);
	keep_ghosts(e);
	too_long = e->size > room;
	if (too_long)
		fold(e, s, room);
	e->settled = !e->n_ghosts && !too_long;
	return 0;
}
