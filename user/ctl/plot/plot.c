/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/text.h"
#include "plot.h"

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
	hash_free(&p->by_name);
	plot_init(p);
}

static struct plot_series *series_of(struct plot *p, const char *name, enum plot_kind kind)
{
	const uint64_t key = hash_text(name);
	struct plot_series *s;

	for (struct hash_walk w = hash_walk(&p->by_name, key); hash_step(&w);) {
		s = &p->series[w.at];
		if (s->kind == kind && strcmp(s->name, name) == 0)
			return s;
	}
	if (p->n_series >= PLOT_SERIES_MAX && (kind == PLOT_ROW || kind == PLOT_HIDDEN)) {
		p->more_rest = true;
		return series_of(p, REST, PLOT_REST);
	}
	if (ARRAY_ROOM(p->series, p->cap_series, p->n_series + 1) || hash_reserve(&p->by_name, p->n_series + 1))
		return NULL;
	s = &p->series[p->n_series];
	*s = (struct plot_series){ .name = strdup(name), .kind = kind, .low_w = p->any_noted ? 0 : HUGE_VAL };
	if (!s->name)
		return NULL;
	hash_add(&p->by_name, key, p->n_series++);
	return s;
}

bool plot_gap_before(const struct plot *p, unsigned i)
{
	const struct plot_column *a = &p->columns[i - 1], *b = &p->columns[i];
	int64_t shorter = a->end_ns - a->start_ns < b->end_ns - b->start_ns ? a->end_ns - a->start_ns :
									      b->end_ns - b->start_ns;

	return b->start_ns - a->end_ns > shorter / 2;
}

/* What becomes of a column and its left neighbour. */
enum merge {
	MERGE_MOVE, /* the column takes the place of what is there */
	MERGE_ADD, /* the two are added */
	MERGE_KEEP, /* what is there stays: the column's energy is lost */
};

static void merge_cells(struct plot_series *s, unsigned to, unsigned from, enum merge how)
{
	struct plot_cell c = from < s->n ? s->cells[from] : (struct plot_cell){ 0 };

	if (to >= s->n || how == MERGE_KEEP)
		return;
	if (how == MERGE_ADD) {
		s->cells[to].uj += c.uj;
		s->cells[to].quality |= c.quality;
	} else {
		s->cells[to] = c;
	}
}

/* Puts column `from` into column `to`, to its left: merged with it, or in its place. */
static void put_column(struct plot *p, unsigned to, unsigned from, bool merged)
{
	struct plot_column *a = &p->columns[to], *b = &p->columns[from];
	enum merge how = !merged || (!a->known && b->known) ? MERGE_MOVE :
			 a->known && !b->known              ? MERGE_KEEP :
							      MERGE_ADD;
	int64_t start_ns = merged ? a->start_ns : b->start_ns, end_ns = b->end_ns;

	if (how == MERGE_MOVE) {
		*a = *b;
	} else if (how == MERGE_ADD) {
		a->covered_ns += b->covered_ns;
		a->readings += b->readings;
		a->low_w = a->low_w < b->low_w ? a->low_w : b->low_w;
		a->high_w = a->high_w > b->high_w ? a->high_w : b->high_w;
	}
	a->start_ns = start_ns;
	a->end_ns = end_ns;
	for (unsigned k = 0; k < p->n_series; k++)
		merge_cells(&p->series[k], to, from, how);
}

static void cut_columns(struct plot *p, unsigned n)
{
	p->n_columns = n;
	for (unsigned k = 0; k < p->n_series; k++)
		if (p->series[k].n > n)
			p->series[k].n = n;
}

/* The extremes are those of single readings, so they are noted before any are merged. */
static void note_extremes(struct plot *p)
{
	for (unsigned i = 0; i < p->n_columns; i++) {
		struct plot_column *c = &p->columns[i];

		for (unsigned k = 0; c->known && !c->noted && k < p->n_series; k++) {
			struct plot_series *s = &p->series[k];
			double w = plot_watts(p, s, i);

			s->low_w = w < s->low_w ? w : s->low_w;
			s->high_w = w > s->high_w ? w : s->high_w;
			c->high_w += w;
			c->low_w = c->high_w;
		}
		c->noted = true;
	}
	p->any_noted = true;
}

/* Columns whose middle lies in the same slot of time become one. Energy is kept. */
static void merge_slots(struct plot *p, double slot_ns)
{
	int64_t start_ns = p->columns[0].start_ns, last = -1;
	unsigned to = 0;

	for (unsigned i = 0; i < p->n_columns; i++) {
		const struct plot_column *c = &p->columns[i];
		double middle_ns = ((double)(c->start_ns - start_ns) + (double)(c->end_ns - start_ns)) / 2;
		int64_t slot = (int64_t)(middle_ns / slot_ns);
		bool same = slot == last;

		to += i && !same;
		if (same || to != i)
			put_column(p, to, i, same);
		last = slot;
	}
	cut_columns(p, to + 1);
}

static double span_ns(const struct plot *p)
{
	return (double)(p->columns[p->n_columns - 1].end_ns - p->columns[0].start_ns);
}

void plot_reduce(struct plot *p, unsigned n)
{
	merge_slots(p, span_ns(p) / n);
}

/* The slots of a later fold are twice, four times ... as long, so all columns stay about equally long. */
static void fold(struct plot *p)
{
	double slot_ns = 1;

	while (slot_ns * (PLOT_COLUMNS_MAX / 2) < span_ns(p))
		slot_ns *= 2;
	note_extremes(p);
	merge_slots(p, slot_ns);
}

bool plot_begin_column(struct plot *p, int64_t start_ns, int64_t end_ns)
{
	const struct plot_column *last = p->n_columns ? &p->columns[p->n_columns - 1] : NULL;
	uint64_t covered_ns;

	if (end_ns <= start_ns || start_ns < p->since_ns || end_ns > p->until_ns)
		return false;
	/* the clock was set back, and a column of that time is there already */
	if (last && end_ns <= last->end_ns)
		return false;
	covered_ns = (uint64_t)(end_ns - start_ns);
	if (last && start_ns < last->end_ns)
		start_ns = last->end_ns;
	if (p->n_columns == PLOT_COLUMNS_MAX)
		fold(p);
	p->columns[p->n_columns++] = (struct plot_column){
		.start_ns = start_ns, .end_ns = end_ns, .covered_ns = covered_ns, .known = true, .readings = 1
	};
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
	if (!s || ARRAY_ROOM(s->cells, s->cap, column + 1) != 0) {
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

/* Turns the data that was read into what is shown: the top series, the rest, the domains. */

static void sum_up(struct plot *p, struct plot_series *s)
{
	s->uj = 0;
	s->quality = 0;
	s->all_estimated = true;
	for (unsigned i = 0; i < s->n; i++) {
		if (!p->columns[i].known)
			continue;
		s->uj += s->cells[i].uj;
		s->quality |= s->cells[i].quality;
		if (s->cells[i].uj > 0 && !(s->cells[i].quality & QUALITY_ESTIMATED))
			s->all_estimated = false;
	}
}

/* The order of stacking: kinds from the bottom up, the largest series of a kind first. */
static int compare(const void *a, const void *b)
{
	const struct plot_series *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->uj < y->uj || x->uj > y->uj)
		return x->uj > y->uj ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void add_cells(struct plot_series *to, const struct plot_series *from)
{
	for (unsigned i = 0; i < from->n; i++) {
		to->cells[i].uj += from->cells[i].uj;
		to->cells[i].quality |= from->cells[i].quality;
	}
}

/* The rows behind the top ones become one row. Series without energy are left out. */
static int fold_rest(struct plot *p)
{
	struct plot_series rest = {
		.name = strdup("other"), .kind = PLOT_REST, .low_w = HUGE_VAL, .n = p->n_columns, .cap = p->n_columns
	};
	unsigned kept = 0, rows = 0;

	rest.cells = calloc(p->n_columns, sizeof(*rest.cells));
	if (!rest.name || !rest.cells) {
		free(rest.name);
		free(rest.cells);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < p->n_series; i++) {
		struct plot_series *s = &p->series[i];
		bool row = s->kind == PLOT_ROW && s->uj > 0, hidden = s->kind == PLOT_HIDDEN && s->uj > 0;

		rows += row;
		if (s->uj > 0 && s->kind != PLOT_REST && !hidden && (!row || rows <= p->top)) {
			p->series[kept++] = *s;
			continue;
		}
		p->n_rest += row || hidden;
		if (s->uj > 0)
			add_cells(&rest, s);
		free(s->name);
		free(s->cells);
	}
	sum_up(p, &rest);
	p->n_series = kept;
	if (rest.uj > 0) {
		p->series[p->n_series++] = rest; /* there is room, because a series was folded into it */
	} else {
		free(rest.name);
		free(rest.cells);
	}
	hash_free(&p->by_name);
	return 0;
}

int plot_finish(struct plot *p, struct err *err)
{
	if (p->failed)
		return err_set(err, -ENOMEM, "plot: out of memory; ask for less with --since, --until or --cgroup");
	if (!p->n_columns)
		return err_set(err, -ENODATA, "plot: nothing was measured in that time; see --since and --until");
	if (p->any_noted)
		fold(p); /* what came after the last fold is in as long steps as the rest */
	else
		note_extremes(p);
	for (unsigned i = 0; i < p->n_series; i++)
		sum_up(p, &p->series[i]);
	if (p->n_series)
		qsort(p->series, p->n_series, sizeof(*p->series), compare);
	if (p->n_series && fold_rest(p) != 0)
		return err_set(err, -ENOMEM, "plot: out of memory; ask for less with --since, --until or --cgroup");
	if (!p->n_series && p->cgroup)
		return err_set(err, -ENODATA,
			       "plot: no cgroup that matches %s used energy in that time; see joulectl list",
			       p->cgroup);
	if (!p->n_series)
		return err_set(err, -ENODATA,
			       "plot: no energy in that time; joulectl doctor says what this machine can measure");
	return 0;
}

/* "package" of "package-0" and "package-0-die-1". */
static size_t kind_len(const char *name)
{
	const char *dash = strchr(name, '-');

	return dash && dash[1] >= '0' && dash[1] <= '9' ? (size_t)(dash - name) : strlen(name);
}

static bool listed(const char *list, const char *name)
{
	size_t n = kind_len(name);

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t len = strcspn(at, ",");

		if ((len == strlen(name) || len == n) && strncmp(at, name, len) == 0)
			return true;
	}
	return false;
}

/* true = the word is neither a domain's name nor a kind of domains. */
static bool strange(const char *word, size_t len, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if ((len == strlen(names[i]) || len == kind_len(names[i])) && strncmp(word, names[i], len) == 0)
			return false;
	return true;
}

struct name_list {
	const char *const *names;
	unsigned n;
	const bool *which; /* NULL = all of them */
};

static void join(char *dst, size_t size, const struct name_list *list, const char *between)
{
	size_t at = 0;

	dst[0] = '\0';
	for (unsigned i = 0; i < list->n && at < size; i++)
		if (!list->which || list->which[i])
			at += (size_t)snprintf(dst + at, size - at, "%s%.60s", at ? between : "", list->names[i]);
}

int plot_choose_domains(struct plot *p, const char *const *names, unsigned n, bool *ret, struct err *err)
{
	char all[256];

	join(all, sizeof(all), &(struct name_list){ names, n, NULL }, ", ");
	if (!n)
		return err_set(err, -ENODATA, "plot: there is no energy domain; joulectl doctor says why");
	for (const char *at = p->domains; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strange(at, strcspn(at, ","), names, n))
			return err_set(err, -EINVAL, "plot: --domain %.40s: no such domain; there is %s", at, all);
	if (p->domains && *p->domains)
		for (unsigned i = 0; i < n; i++)
			ret[i] = listed(p->domains, names[i]);
	else
		domain_names_summed(names, n, ret);
	join(p->unit_of, sizeof(p->unit_of), &(struct name_list){ names, n, ret }, " + ");
	return 0;
}
