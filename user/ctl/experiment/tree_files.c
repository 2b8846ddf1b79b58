/* SPDX-License-Identifier: Apache-2.0 */
/* timestamps.csv: no index column; timestamp, event, data by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/parse.h"
#include "../base/text.h"
#include "tree.h"
#include "tree_csv.h"

enum { TIME, EVENT, DATA, HEADS };

struct events {
	struct tree_repetition *r;
	struct tree_findings *f;
	const char *file;
	int head[HEADS]; /* where in the file */
	unsigned n_heads, digits;
};

static bool read_heads(struct events *e, const struct tree_row *row)
{
	static const char *const names[HEADS] = { "timestamp", "event", "data" };

	e->n_heads = row->n;
	for (unsigned k = 0; k < HEADS; k++) {
		e->head[k] = -1;
		for (unsigned i = 0; i < row->n; i++)
			if (strcmp(row->cell[i], names[k]) == 0)
				e->head[k] = (int)i;
		if (e->head[k] < 0)
			tree_find(e->f, TREE_ABORTS, "no-column", e->file, row->line, "no column %s", names[k]);
	}
	if (row->n && !*row->cell[0])
		tree_find(e->f, TREE_NOTE, "index-in-events", e->file, row->line,
			  "an index column, which this file has not");
	return e->head[TIME] >= 0 && e->head[EVENT] >= 0 && e->head[DATA] >= 0;
}

static const char *cell(const struct tree_row *row, int i)
{
	return (unsigned)i < row->n ? row->cell[i] : "";
}

static struct tree_event *room(struct tree_repetition *r)
{
	if (r->n_events == r->cap_events) {
		size_t cap = r->cap_events ? 2 * r->cap_events : 64;
		struct tree_event *list = realloc(r->events, cap * sizeof(*list));

		if (!list)
			return NULL;
		r->events = list;
		r->cap_events = cap;
	}
	return &r->events[r->n_events];
}

/* Whole numbers, or what a table made of them when a cell was empty: 3.0. */
static bool take_data(const char *s, int64_t *ret)
{
	double v;

	if (parse_i64(s, ret) == 0)
		return true;
	if (parse_double(s, &v) != 0 || v < -9e15 || v > 9e15 || v != (double)(int64_t)v)
		return false;
	*ret = (int64_t)v;
	return true;
}

static void check_time(struct events *e, const struct tree_row *row, unsigned digits, bool zoned)
{
	if (zoned)
		tree_find(e->f, TREE_ABORTS, "time-zone", e->file, row->line,
			  "a time with a zone cannot be compared with the others, which have none");
	if (!e->r->n_events)
		e->digits = digits;
	else if (digits != e->digits)
		tree_find(e->f, TREE_ABORTS, "mixed-fractions", e->file, row->line,
			  "%u digits of a second after times with %u: pandas 2 and newer takes one form; write six",
			  digits, e->digits);
}

static int take_row(struct events *e, const struct tree_row *row)
{
	struct tree_event *ev;
	unsigned digits;
	char shown[80];
	bool zoned;

	if (row->n > e->n_heads) {
		tree_find(e->f, TREE_ABORTS, "too-many-cells", e->file, row->line, "%u cells below %u column names",
			  row->n, e->n_heads);
		return 0;
	}
	if (e->r->n_events == TREE_EVENTS_MAX)
		return -EFBIG;
	ev = room(e->r);
	if (!ev)
		return -ENOMEM;
	*ev = (struct tree_event){ .line = row->line };
	if (tree_parse_time(cell(row, e->head[TIME]), &ev->t_ns, &digits, &zoned)) {
		tree_find(e->f, row->whole ? TREE_ABORTS : TREE_NOTE, "bad-timestamp", e->file, row->line,
			  "\"%.40s\" is no time such as 2026-01-31 12:00:00.000000",
			  text_escape(shown, sizeof(shown), cell(row, e->head[TIME])));
		return 0;
	}
	check_time(e, row, digits, zoned);
	snprintf(ev->name, sizeof(ev->name), "%s", cell(row, e->head[EVENT]));
	ev->has_data = take_data(cell(row, e->head[DATA]), &ev->data);
	e->r->n_events++;
	return 0;
}

static int read_rows(struct events *e, struct tree_csv *c)
{
	struct tree_row row;
	int rc = tree_csv_next(c, &row);

	if (rc == 0)
		tree_find(e->f, TREE_ABORTS, "empty-file", e->file, 0, "an empty file; leave it out");
	if (rc > 0 && !read_heads(e, &row))
		return 0;
	while (rc > 0 && (rc = tree_csv_next(c, &row)) > 0) {
		e->r->has_events = true;
		rc = take_row(e, &row);
		rc = rc ? rc : 1;
	}
	if (rc < 0 && rc != -ENOMEM)
		tree_find(e->f, TREE_ABORTS, "unreadable", e->file, tree_csv_line(c), "%s; what follows is not read",
			  rc == -EFBIG ? "more cells, lines or bytes in a line than can be" : strerrordesc_np(-rc));
	return rc == -ENOMEM ? rc : 0;
}

int tree_events_read(int dir, const char *shown, struct tree_repetition *r, struct tree_findings *f)
{
	char file[1024];
	struct events e = { .r = r, .f = f, .file = file };
	struct tree_csv *c;
	int rc;

	snprintf(file, sizeof(file), "%s/timestamps.csv", shown);
	rc = tree_csv_open(dir, "timestamps.csv", &c);
	if (rc == -ENOENT || rc == -ENOMEM)
		return rc == -ENOMEM ? rc : 0;
	if (rc) {
		tree_find(f, TREE_ABORTS, "unreadable", file, 0, "%s", strerrordesc_np(-rc));
		return 0;
	}
	rc = read_rows(&e, c);
	tree_csv_close(c);
	return rc;
}
