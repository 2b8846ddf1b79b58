/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by path. A row keeps its totals and history from interval to interval. Every ancestor in a path has a row too: a
 * cgroup without processes of its own is in no snapshot, but may be the parent of many. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "top.h"

#define ROWS_MAX (1u << 17) /* more than any machine has; bounds the memory that a hostile recording can take */
#define PATHS_MAX ((size_t)64 << 20) /* bytes of all paths and titles */

static bool grow(struct top_view *v)
{
	return ARRAY_ROOM(v->rows, v->cap_rows, v->n_rows + 1) == 0 && hash_reserve(&v->by_path, v->n_rows + 1) == 0;
}

static struct top_row *find(const struct top_view *v, const char *path, size_t n)
{
	for (struct hash_walk w = hash_walk(&v->by_path, hash_bytes(path, n)); hash_step(&w);) {
		struct top_row *r = v->rows[w.at];

		if (strncmp(r->path, path, n) == 0 && !r->path[n])
			return r;
	}
	return NULL;
}

struct top_row *top_row_find(const struct top_view *v, const char *path)
{
	return find(v, path, strlen(path));
}

static void free_row(struct top_row *r)
{
	names_put(r->names);
	free(r->path);
	free(r->name);
	free(r->title);
	free(r->label);
	free(r);
}

static struct top_row *add(struct top_view *v, const char *path, size_t n, enum row_kind kind)
{
	struct top_row *r;
	const char *slash;

	if (v->n_rows == ROWS_MAX || v->path_bytes + n > PATHS_MAX || !grow(v))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->kind = kind;
	r->path = strndup(path, n);
	r->name = r->path ? top_clean(r->path) : NULL;
	if (!r->name) {
		free_row(r);
		return NULL;
	}
	slash = strrchr(r->name, '/');
	r->leaf = slash && slash[1] ? slash + 1 : r->name;
	hash_add(&v->by_path, hash_bytes(path, n), v->n_rows);
	v->rows[v->n_rows++] = r;
	v->path_bytes += n;
	return r;
}

/* Makes the rows of all ancestors too. It loops instead of recursing, because a path may have two thousand parts. */
struct top_row *top_row_get(struct top_view *v, const char *path, enum row_kind kind)
{
	struct top_row *first = NULL, *below = NULL;
	size_t n = strlen(path);

	for (;;) {
		struct top_row *r = find(v, path, n);
		bool known = r != NULL;

		if (!r)
			r = add(v, path, n, kind);
		if (!r)
			return NULL;
		if (below)
			below->parent = r;
		if (!first)
			first = r;
		if (known || kind != ROW_CGROUP || n <= 1)
			return first;
		below = r;
		while (n > 1 && path[n - 1] != '/')
			n--;
		n -= n > 1;
	}
}

bool top_entitled(const struct names *n)
{
	return *names_text(n, NAME_POD) || *names_text(n, NAME_CONTAINER) || *names_text(n, NAME_MACHINE) ||
	       *names_text(n, NAME_JOB);
}

int top_row_entitle(struct top_view *v, struct top_row *r, const struct names *n)
{
	char title[3 * (NAMING_TEXT_MAX + 1)];
	char *copy, *label;

	if (!top_entitled(n) || names_title(n, title, sizeof(title)) <= 0 ||
	    (r->title && strcmp(r->title, title) == 0) || v->path_bytes + strlen(title) > PATHS_MAX)
		return 0;
	copy = strdup(title);
	label = copy ? top_clean(copy) : NULL;
	if (!label) {
		free(copy);
		return -ENOMEM;
	}
	v->path_bytes += strlen(title) - (r->title ? strlen(r->title) : 0);
	free(r->title);
	free(r->label);
	r->title = copy;
	r->label = label;
	return 0;
}

void top_rows_sweep(struct top_view *v)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < v->n_rows; i++)
		if (v->rows[i]->seen == v->tick)
			kept++;
	if (kept == v->n_rows)
		return;
	kept = 0;
	hash_clear(&v->by_path);
	for (unsigned i = 0; i < v->n_rows; i++) {
		struct top_row *r = v->rows[i];

		if (r->seen == v->tick) {
			hash_add(&v->by_path, hash_text(r->path), kept);
			v->rows[kept++] = r;
		} else {
			v->path_bytes -= strlen(r->path) + (r->title ? strlen(r->title) : 0);
			free_row(r);
		}
	}
	v->n_rows = kept;
}

void top_rows_free(struct top_view *v)
{
	for (unsigned i = 0; i < v->n_rows; i++)
		free_row(v->rows[i]);
	free(v->rows);
	hash_free(&v->by_path);
}

/* Picks and sorts the rows to show: a flat list, or a tree whose siblings are sorted. */

const char *const top_sort_names[TOP_SORTS + 1] = { "watts", "joules", "cpu", "ipc", "network", "block", "name", NULL };

struct sorting {
	const struct top_view *v;
	enum top_sort by;
	int scope;
};

/* Context of compare(), because qsort passes none and the order of qsort_r's arguments differs between C libraries.
 * Only one thread sorts. */
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
		return (double)t->traffic.rx_bytes + (double)t->traffic.tx_bytes;
	case TOP_BY_BLOCK:
		return (double)t->traffic.read_bytes + (double)t->traffic.write_bytes;
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

	if (v->all || t->time_ns || traffic_any(&t->traffic, 0, TRAFFIC_VALUES))
		return true;
	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		if (t->uj[k])
			return true;
	return false;
}

/* The idle row is never shown. Other special rows without CPU time are shown only with all rows, causes where they have energy, and parents without
 * processes of their own only in the tree. */
static bool belongs(const struct top_view *v, const struct top_row *r)
{
	if (r->kind == ROW_IDLE || (r->kind < ROW_CGROUP && !r->shown[TOP_OWN].time_ns && !v->all && !v->machine.past))
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

enum top_sort top_sorts_by(const struct top_view *v)
{
	return !v->machine.split && v->sort <= TOP_BY_JOULES ? TOP_BY_CPU : v->sort;
}

int top_view_arrange(struct top_view *v)
{
	int rc = ARRAY_ROOM(v->order, v->cap_order, v->n_rows);

	if (rc)
		return rc;
	mark_wanted(v);
	v->n_order = 0;
	for (unsigned i = 0; i < v->n_rows; i++)
		if (v->rows[i]->wanted)
			v->order[v->n_order++] = v->rows[i];
	now = (struct sorting){ .v = v, .by = top_sorts_by(v), .scope = top_scope(v) };
	if (v->n_order)
		qsort(v->order, v->n_order, sizeof(*v->order), compare);
	if (v->tree)
		unfold(v);
	return 0;
}
