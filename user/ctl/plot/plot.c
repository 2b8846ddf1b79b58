/* SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/text.h"

#define REST "other"

void plot_init(struct plot *p)
{
	memset(p, 0, sizeof(*p));
	p->since_ns = INT64_MIN;
	p->until_ns = INT64_MAX;
	p->top = 8;
}

void plot_free(struct plot *p)
{
	for (unsigned i = 0; i < p->n_series; i++) {
		free(p->series[i].name);
		free(p->series[i].cells);
	}
	free(p->series);
	free(p->table);
	plot_init(p);
}

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static int grow_table(struct plot *p)
{
	unsigned cap = p->cap_table ? p->cap_table * 2 : 256;
	uint32_t *table = calloc(cap, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (unsigned i = 0; i < p->n_series; i++) {
		uint32_t at = hash(p->series[i].name) & (cap - 1);

		while (table[at])
			at = (at + 1) & (cap - 1);
		table[at] = i + 1;
	}
	free(p->table);
	p->table = table;
	p->cap_table = cap;
	return 0;
}

static struct plot_series *new_series(struct plot *p, const char *name, enum plot_kind kind)
{
	if (p->n_series == p->cap_series) {
		unsigned cap = p->cap_series ? p->cap_series * 2 : 64;
		struct plot_series *list = realloc(p->series, cap * sizeof(*list));

		if (!list)
			return NULL;
		p->series = list;
		p->cap_series = cap;
	}
	p->series[p->n_series] = (struct plot_series){ .name = strdup(name), .kind = kind };
	return p->series[p->n_series].name ? &p->series[p->n_series++] : NULL;
}

static struct plot_series *series_of(struct plot *p, const char *name, enum plot_kind kind)
{
	struct plot_series *s;
	uint32_t at;

	if (p->n_series * 2 >= p->cap_table && grow_table(p) != 0)
		return NULL;
	for (at = hash(name) & (p->cap_table - 1); p->table[at]; at = (at + 1) & (p->cap_table - 1)) {
		s = &p->series[p->table[at] - 1];
		if (s->kind == kind && strcmp(s->name, name) == 0)
			return s;
	}
	if (p->n_series >= PLOT_SERIES_MAX && kind == PLOT_ROW)
		return series_of(p, REST, PLOT_REST);
	s = new_series(p, name, kind);
	if (s)
		p->table[at] = p->n_series;
	return s;
}

bool plot_gap_before(const struct plot *p, unsigned i)
{
	const struct plot_column *a = &p->columns[i - 1], *b = &p->columns[i];
	int64_t shorter = a->end_ns - a->start_ns < b->end_ns - b->start_ns ? a->end_ns - a->start_ns :
									      b->end_ns - b->start_ns;

	return b->start_ns - a->end_ns > shorter / 2;
}

static void merge_cells(struct plot_series *s, unsigned to, unsigned from, bool same)
{
	struct plot_cell c = from < s->n ? s->cells[from] : (struct plot_cell){ 0 };

	if (to >= s->n)
		return;
	if (same) {
		s->cells[to].uj += c.uj;
		s->cells[to].quality |= c.quality;
	} else {
		s->cells[to] = c;
	}
}

/* Two neighbours become one where nothing is missing between them, or less than `bridge`. Energy is kept. */
static void merge_neighbours(struct plot *p, int64_t bridge)
{
	unsigned to = 0, merged = 1;

	for (unsigned i = 1; i < p->n_columns; i++) {
		struct plot_column *a = &p->columns[to], *b = &p->columns[i];
		bool near = !plot_gap_before(p, i) || b->start_ns - p->columns[i - 1].end_ns < bridge;
		bool same = near && a->known == b->known && merged < 2;

		merged = same ? merged + 1 : 1;
		to += !same;
		if (same) {
			a->end_ns = b->end_ns;
			a->covered_ns += b->covered_ns;
		} else {
			p->columns[to] = *b;
		}
		for (unsigned k = 0; k < p->n_series; k++)
			merge_cells(&p->series[k], to, i, same);
	}
	p->n_columns = to + 1;
	for (unsigned k = 0; k < p->n_series; k++)
		if (p->series[k].n > p->n_columns)
			p->series[k].n = p->n_columns;
}

static void fold(struct plot *p)
{
	int64_t span = p->columns[p->n_columns - 1].end_ns - p->columns[0].start_ns;

	merge_neighbours(p, 0);
	for (int64_t bridge = span / 512 + 1; p->n_columns > PLOT_COLUMNS_MAX * 3 / 4; bridge *= 2)
		merge_neighbours(p, bridge);
}

bool plot_begin_column(struct plot *p, int64_t start_ns, int64_t end_ns)
{
	const struct plot_column *last = p->n_columns ? &p->columns[p->n_columns - 1] : NULL;
	uint64_t covered_ns;

	if (end_ns <= start_ns || start_ns < p->since_ns || end_ns > p->until_ns)
		return false;
	/* the clock was set back: what it says twice cannot be drawn twice */
	if (last && end_ns <= last->end_ns)
		return false;
	covered_ns = (uint64_t)(end_ns - start_ns);
	if (last && start_ns < last->end_ns)
		start_ns = last->end_ns;
	if (p->n_columns == PLOT_COLUMNS_MAX)
		fold(p);
	p->columns[p->n_columns++] = (struct plot_column){ start_ns, end_ns, covered_ns, true };
	return true;
}

void plot_lost(struct plot *p)
{
	p->columns[p->n_columns - 1].known = false;
}

void plot_covered(struct plot *p, uint64_t ns)
{
	p->columns[p->n_columns - 1].covered_ns = ns;
}

void plot_add(struct plot *p, const char *name, enum plot_kind kind, double uj, unsigned quality)
{
	unsigned column = p->n_columns - 1;
	struct plot_series *s;

	if (p->cgroup && (kind != PLOT_ROW || *name != '/' || !text_glob(p->cgroup, name)))
		return;
	s = series_of(p, name, kind);
	if (s && column >= s->cap) {
		unsigned cap = s->cap ? s->cap * 2 : 16;
		struct plot_cell *cells;

		while (cap <= column)
			cap *= 2;
		cells = realloc(s->cells, cap * sizeof(*cells));
		s->cells = cells ? cells : s->cells;
		s->cap = cells ? cap : s->cap;
	}
	if (!s || column >= s->cap) {
		p->failed = true;
		return;
	}
	while (s->n <= column)
		s->cells[s->n++] = (struct plot_cell){ 0 };
	s->cells[column].uj += uj;
	s->cells[column].quality |= quality;
}

double plot_watts(const struct plot *p, const struct plot_series *s, unsigned column)
{
	if (column >= s->n || !p->columns[column].known)
		return 0;
	return s->cells[column].uj * 1000 / (double)p->columns[column].covered_ns;
}
