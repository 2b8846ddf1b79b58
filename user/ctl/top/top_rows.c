/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows are shown, and in which order: a flat list, or the tree with siblings in that order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "top.h"

const char *const top_sort_names[TOP_SORTS + 1] = { "watts", "joules", "cpu", "ipc", "network", "name", NULL };

struct sorting {
	const struct top_view *v;
	enum top_sort by;
	int scope;
};

/* qsort_r would do, but its argument order differs between C libraries. One thread draws. */
static struct sorting now;

static double key_of(const struct top_row *r)
{
	const struct top_values *t = &r->shown[now.scope];

	switch (now.by) {
	case TOP_BY_WATTS:
		return top_watts(now.v, t->watts);
	case TOP_BY_JOULES:
		return (double)top_uj(now.v, r->shown_total[now.scope].uj);
	case TOP_BY_IPC:
		return !now.v->machine.counters ? (double)r->shown_total[now.scope].time_ns :
		       t->cycles                ? (double)t->instructions / (double)t->cycles :
						  -1;
	case TOP_BY_NETWORK:
		return (double)t->rx_bytes + (double)t->tx_bytes;
	default:
		return (double)t->time_ns;
	}
}

static int compare(const void *pa, const void *pb)
{
	const struct top_row *a = *(const struct top_row *const *)pa, *b = *(const struct top_row *const *)pb;
	double ka, kb;
	int order = 0;

	if (now.by != TOP_BY_NAME) {
		ka = key_of(a);
		kb = key_of(b);
		order = ka < kb ? 1 : ka > kb ? -1 : 0;
		if (!order && a->shown[now.scope].time_ns != b->shown[now.scope].time_ns)
			order = a->shown[now.scope].time_ns < b->shown[now.scope].time_ns ? 1 : -1;
	}
	if (!order)
		order = strcmp(a->label ? a->label : a->name, b->label ? b->label : b->name);
	return now.v->reverse ? -order : order;
}

static bool passes(const struct top_view *v, const struct top_row *r)
{
	return !*v->filter || strcasestr(r->name, v->filter) || (r->label && strcasestr(r->label, v->filter));
}

static bool active(const struct top_view *v, const struct top_row *r)
{
	const struct top_values *t = &r->shown[top_scope(v)];

	if (v->all || t->time_ns || t->rx_bytes || t->tx_bytes)
		return true;
	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		if (t->uj[k])
			return true;
	return false;
}

/* Special rows that did nothing never stand in the way; parents without processes only in the tree. */
static bool belongs(const struct top_view *v, const struct top_row *r)
{
	if (r->kind == ROW_IDLE || (r->kind != ROW_CGROUP && !r->shown[TOP_OWN].time_ns && !v->all))
		return false;
	if (!v->tree && r->kind == ROW_CGROUP && !r->id)
		return false;
	return active(v, r) && passes(v, r);
}

static void mark_wanted(struct top_view *v)
{
	for (unsigned i = 0; i < v->n_rows; i++) {
		struct top_row *r = v->rows[i];

		r->match = belongs(v, r);
		r->wanted = r->match;
		r->child = r->sibling = NULL;
	}
	for (unsigned i = 0; v->tree && i < v->n_rows; i++)
		for (struct top_row *up = v->rows[i]->match ? v->rows[i]->parent : NULL; up && !up->wanted;
		     up = up->parent)
			up->wanted = true;
}

static int reserve(struct top_view *v)
{
	struct top_row **p;

	if (v->n_rows <= v->cap_order)
		return 0;
	p = realloc(v->order, v->cap_rows * sizeof(*p));
	if (!p)
		return -ENOMEM;
	v->order = p;
	v->cap_order = v->cap_rows;
	return 0;
}

/* The sorted list becomes lists of children; those become the tree, depth first. */
static void unfold(struct top_view *v)
{
	struct top_row *top = NULL, *r;
	unsigned n = 0;

	for (unsigned i = v->n_order; i-- > 0;) {
		struct top_row **at = v->order[i]->parent ? &v->order[i]->parent->child : &top;

		v->order[i]->sibling = *at;
		*at = v->order[i];
	}
	for (r = top; r;) {
		unsigned depth = r->parent ? r->parent->depth + 1 : 0;
		uint64_t above = r->parent ? r->parent->last_branches : 0;

		r->depth = depth;
		r->last_branches = above | (r->sibling || depth > 63 ? 0 : 1ull << depth);
		v->order[n++] = r;
		if (r->child && !r->folded) {
			r = r->child;
			continue;
		}
		while (r && !r->sibling)
			r = r->parent;
		r = r ? r->sibling : NULL;
	}
	v->n_order = n;
}

int top_view_arrange(struct top_view *v)
{
	int code = reserve(v);

	if (code)
		return code;
	mark_wanted(v);
	v->n_order = 0;
	for (unsigned i = 0; i < v->n_rows; i++)
		if (v->rows[i]->wanted)
			v->order[v->n_order++] = v->rows[i];
	now = (struct sorting){ .v = v, .by = v->sort, .scope = top_scope(v) };
	/* Without energy there are no watts to sort by. */
	if (!v->machine.split && v->sort <= TOP_BY_JOULES)
		now.by = TOP_BY_CPU;
	if (v->n_order)
		qsort(v->order, v->n_order, sizeof(*v->order), compare);
	if (v->tree)
		unfold(v);
	return 0;
}
