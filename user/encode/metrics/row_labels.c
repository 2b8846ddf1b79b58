/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "series.h"

/* Labels are the number of rows, a head for each, and the texts. The place of a text is an offset, for the buffer may move
 * while it grows. */
struct head {
	uint32_t at, len, has;
};

static uint32_t rows_of(const struct buf *b)
{
	uint32_t n = 0;

	if (b->len)
		memcpy(&n, b->data, sizeof(n));
	return n;
}

static struct head head_of(const struct buf *b, uint32_t row)
{
	struct head h;

	memcpy(&h, b->data + sizeof(uint32_t) + row * sizeof(h), sizeof(h));
	return h;
}

struct series_labels row_labels_of(const struct buf *b, uint32_t row)
{
	const struct head h = head_of(b, row);

	return (struct series_labels){ (const char *)b->data + h.at, h.len };
}

unsigned row_labels_has(const struct buf *b, uint32_t row)
{
	return head_of(b, row).has;
}

static bool has_moved(const struct totals *t, unsigned row, unsigned first, unsigned end)
{
	uint64_t any = 0;

	for (unsigned i = first; i < end; i++)
		any |= totals_shown(t, row, totals_column(t, i));
	return any;
}

/* Most cgroups have neither socket nor disk, and ten series that stay 0 are most of theirs. */
static unsigned series_of(const struct totals *t, unsigned row)
{
	unsigned has = ROW_SERIES;

	if (!t->rows[row].shown || row == ROW_IDLE)
		return 0;
	if (row >= TOTAL_FIRST_CGROUP && totals_range(t, row) < ROW_RANGE_SHOWN_MAX)
		has |= ROW_SERIES_RANGE;
	if (has_moved(t, row, TOTAL_TRAFFIC, TOTAL_BLOCK))
		has |= ROW_SERIES_NETWORK;
	if (has_moved(t, row, TOTAL_BLOCK, TOTAL_FIXED))
		has |= ROW_SERIES_BLOCK;
	return has;
}

static void add_names(struct buf *b, const struct names *n, const struct series_ops *ops)
{
	static const enum name_field shown_names[] = {
		NAME_NAMESPACE, NAME_POD, NAME_CONTAINER, NAME_MACHINE, NAME_UNIT, NAME_USER, NAME_JOB, NAME_STEP,
	};

	for (unsigned i = 0; n && i < sizeof(shown_names) / sizeof(shown_names[0]); i++) {
		const char *text = names_text(n, shown_names[i]);

		if (*text)
			ops->label(b, name_field_key(shown_names[i]), text);
	}
}

static void add_row(struct series_writer *w, struct buf *b, uint32_t row)
{
	const struct total_row *r = &w->totals->rows[row];
	const size_t from = b->len;

	if (!total_row_named(r))
		w->ops->label(b, "cgroup", r->name);
	add_names(b, r->names, w->ops);
	if (w->ops->complete && !b->failed)
		w->ops->complete(w, b, from);
}

int row_labels_make(struct series_writer *w)
{
	const struct totals *t = w->totals;
	struct buf *b = w->labels;
	const uint32_t n = t->n_rows;
	const size_t heads = sizeof(n) + n * sizeof(struct head);

	buf_reset(b);
	if (!buf_reserve(b, heads))
		return -ENOMEM;
	b->len = heads;
	memcpy(b->data, &n, sizeof(n));
	for (uint32_t i = 0; i < n; i++) {
		struct head h = { .at = (uint32_t)b->len, .has = series_of(t, i) };

		if (h.has)
			add_row(w, b, i);
		h.len = (uint32_t)(b->len - h.at);
		if (!b->failed)
			memcpy(b->data + sizeof(n) + i * sizeof(h), &h, sizeof(h));
	}
	return b->failed ? -ENOMEM : 0;
}

void row_ends_begin(struct row_ends *e, struct buf *labels)
{
	const struct buf was = e->before;

	if (e->made) {
		e->before = *labels;
		*labels = was;
	}
	e->made = false;
	buf_reset(labels);
	buf_reset(&e->list);
}

static bool is_same(struct series_labels a, struct series_labels b)
{
	return a.len == b.len && memcmp(a.text, b.text, a.len) == 0;
}

static uint64_t hash_labels(struct series_labels l)
{
	return hash_bytes(l.text, l.len);
}

static int index_rows(struct row_ends *e, const struct buf *labels)
{
	const uint32_t n = rows_of(labels);

	hash_clear(&e->now);
	if (hash_reserve(&e->now, n))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (row_labels_has(labels, i))
			hash_add(&e->now, hash_labels(row_labels_of(labels, i)), i);
	return 0;
}

/* What the row with these labels has now, wherever it is: a row may be renamed while another takes its name. */
static unsigned has_elsewhere(const struct row_ends *e, const struct buf *labels, struct series_labels was)
{
	for (struct hash_walk w = hash_walk(&e->now, hash_labels(was)); hash_step(&w);)
		if (is_same(row_labels_of(labels, w.at), was))
			return row_labels_has(labels, w.at);
	return 0;
}

int row_ends_find(struct row_ends *e, const struct buf *labels)
{
	bool indexed = false;

	for (uint32_t i = 0; i < rows_of(&e->before); i++) {
		const struct series_labels was = row_labels_of(&e->before, i);
		struct row_ended new = { i, row_labels_has(&e->before, i) };

		if (!new.has)
			continue;
		if (i < rows_of(labels) && row_labels_has(labels, i) && is_same(row_labels_of(labels, i), was)) {
			new.has &= ~row_labels_has(labels, i);
		} else {
			if (!indexed && index_rows(e, labels))
				return -ENOMEM;
			indexed = true;
			new.has &= ~has_elsewhere(e, labels, was);
		}
		if (new.has)
			buf_add(&e->list, &new, sizeof(new));
	}
	return e->list.failed ? -ENOMEM : 0;
}

const struct row_ended *row_ends_list(const struct row_ends *e, size_t *n)
{
	*n = e->list.len / sizeof(struct row_ended);
	return (const struct row_ended *)(const void *)e->list.data;
}

void row_ends_free(struct row_ends *e)
{
	buf_free(&e->before);
	buf_free(&e->list);
	hash_free(&e->now);
}
