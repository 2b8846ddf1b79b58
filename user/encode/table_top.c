/* SPDX-License-Identifier: Apache-2.0 */
/* The n largest rows without sorting all of them, and without qsort, which takes memory for more
 * than a handful: a heap with the smallest of those chosen on top, then drained in order. */
#include <errno.h>
#include <stdlib.h>
#include "table.h"

static bool less(const struct encoder *e, uint32_t a, uint32_t b)
{
	const struct snap_row *rows = e->snap->rows;

	if (e->key[a] < e->key[b] || e->key[a] > e->key[b])
		return e->key[a] < e->key[b];
	if (rows[a].time_ns != rows[b].time_ns)
		return rows[a].time_ns < rows[b].time_ns;
	return a > b; /* equal ones stay in row order */
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t t = *a;

	*a = *b;
	*b = t;
}

static void sift_down(struct encoder *e, unsigned i, unsigned n)
{
	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= n)
			return;
		if (child + 1 < n && less(e, e->top[child + 1], e->top[child]))
			child++;
		if (!less(e, e->top[child], e->top[i]))
			return;
		swap(&e->top[i], &e->top[child]);
		i = child;
	}
}

static void sift_up(struct encoder *e, unsigned i)
{
	for (; i && less(e, e->top[i], e->top[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&e->top[i], &e->top[(i - 1) / 2]);
}

static void offer(struct encoder *e, uint32_t row, unsigned n)
{
	if (e->n_top < n) {
		e->top[e->n_top] = row;
		sift_up(e, e->n_top++);
	} else if (n && less(e, e->top[0], row)) {
		e->top[0] = row;
		sift_down(e, 0, n);
	}
}

bool table_active(const struct snap_row *row, double watts)
{
	return row->time_ns || watts > 0 || row->traffic.rx_bytes || row->traffic.tx_bytes;
}

int table_choose(struct encoder *e, unsigned n)
{
	const struct snapshot *s = e->snap;

	if (n > s->n_rows)
		n = s->n_rows;
	if (n > e->cap_top) {
		uint32_t *p = realloc(e->top, n * sizeof(*p));

		if (!p)
			return -ENOMEM;
		e->top = p;
		e->cap_top = n;
	}
	e->n_top = 0;
	for (uint32_t i = 0; i < s->n_rows; i++)
		if (s->rows[i].kind != ROW_IDLE && s->rows[i].selected && table_active(&s->rows[i], e->key[i]))
			offer(e, i, n);
	for (unsigned left = e->n_top; left > 1; left--) {
		swap(&e->top[0], &e->top[left - 1]);
		sift_down(e, 0, left - 1);
	}
	return 0;
}
