/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a v0.2 report in tree order ('/' before all other bytes: what lies below a name follows
 * it at once), each with the place of the nearest name above it. Made anew when a name comes or goes. */
#include <errno.h>
#include <stdlib.h>
#include "vjoule.h"

static int tree_order(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t i = 0, n = a_len < b_len ? a_len : b_len;

	while (i < n && a[i] == b[i])
		i++;
	if (i == n)
		return a_len < b_len ? -1 : a_len > b_len;
	if (a[i] == '/' || b[i] == '/')
		return a[i] == '/' ? -1 : 1;
	return (uint8_t)a[i] < (uint8_t)b[i] ? -1 : 1;
}

static int compare(const struct vjoule_tree *t, const struct vjoule_place *a, const struct vjoule_place *b)
{
	return tree_order(vjoule_place_name(t, a), a->len, vjoule_place_name(t, b), b->len);
}

/* A heap with the largest on top; qsort may allocate. */
static void sift_down(struct vjoule_tree *t, unsigned n, unsigned i)
{
	struct vjoule_place moved = t->v[i];

	for (unsigned child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && compare(t, &t->v[child + 1], &t->v[child]) > 0)
			child++;
		if (compare(t, &moved, &t->v[child]) >= 0)
			break;
		t->v[i] = t->v[child];
	}
	t->v[i] = moved;
}

static void sort(struct vjoule_tree *t)
{
	for (unsigned i = t->n / 2; i-- > 0;)
		sift_down(t, t->n, i);
	for (unsigned n = t->n; n > 1;) {
		struct vjoule_place largest = t->v[0];

		t->v[0] = t->v[--n];
		t->v[n] = largest;
		sift_down(t, n, 0);
	}
}

static struct vjoule_place *find(const struct vjoule_tree *t, unsigned n, const char *name, size_t len)
{
	unsigned low = 0, high = n;

	while (low < high) {
		unsigned mid = (low + high) / 2;
		int order = tree_order(name, len, vjoule_place_name(t, &t->v[mid]), t->v[mid].len);

		if (order == 0)
			return &t->v[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

static bool is_below(const struct vjoule_tree *t, const struct vjoule_place *p, const struct vjoule_place *top)
{
	const char *name = vjoule_place_name(t, p), *above = vjoule_place_name(t, top);

	return p->len > top->len && !memcmp(name, above, top->len) && (top->len == 1 || name[top->len] == '/');
}

static void set_parents(struct vjoule_tree *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		uint32_t p = i ? i - 1 : VJOULE_NO_PLACE;

		while (p != VJOULE_NO_PLACE && !is_below(t, &t->v[i], &t->v[p]))
			p = t->v[p].parent;
		t->v[i].parent = p;
	}
}

static void add_place(struct vjoule_tree *t, const char *name, uint32_t len, uint32_t at)
{
	t->v[t->n++] = (struct vjoule_place){ .offset = (uint32_t)t->text.len, .len = len, .at = at };
	buf_add(&t->text, name, len);
}

static int reserve(struct vjoule_tree *t, unsigned n)
{
	void *p;

	if (n <= t->cap)
		return 0;
	p = realloc(t->v, (size_t)(n + n / 2) * sizeof(*t->v));
	if (!p)
		return -ENOMEM;
	t->v = p;
	t->cap = n + n / 2;
	return 0;
}

int vjoule_tree_make(struct encoder *e, const struct snapshot *s)
{
	struct vjoule_tree *old = &e->tree, *t = &e->spare, swap;
	unsigned rows = e->n_send;

	t->n = 0;
	buf_reset(&t->text);
	if (reserve(t, rows + old->n))
		return -ENOMEM;
	for (unsigned i = 0; i < rows; i++)
		add_place(t, s->rows[e->send[i]].path, e->names[s->rows[e->send[i]].key].len, i);
	if (t->text.failed)
		return -ENOMEM;
	sort(t);
	for (unsigned i = 0; i < old->n; i++) {
		struct vjoule_place *same = find(t, rows, vjoule_place_name(old, &old->v[i]), old->v[i].len);

		if (same)
			same->sent = old->v[i].sent;
		else if (old->v[i].sent)
			add_place(t, vjoule_place_name(old, &old->v[i]), old->v[i].len, VJOULE_NO_PLACE);
		if (!same && old->v[i].sent)
			t->v[t->n - 1].sent = true;
	}
	if (t->text.failed)
		return -ENOMEM;
	if (t->n > rows)
		sort(t);
	set_parents(t);
	swap = *old;
	*old = *t;
	*t = swap;
	return 0;
}
