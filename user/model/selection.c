/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/text.h"
#include "selection.h"

static int reserve(struct selection *sel, const struct snapshot *s)
{
	unsigned keys = 0;

	for (unsigned i = 0; i < s->n_rows; i++)
		if (s->rows[i].key >= keys)
			keys = s->rows[i].key + 1;
	if (ARRAY_ZEROED(sel->memo, sel->cap_memo, keys) || ARRAY_ROOM(sel->shown, sel->cap_rows, s->n_rows))
		return -ENOMEM;
	return 0;
}

static bool any_match(const struct snap_row *row, char *const *globs, unsigned n)
{
	const struct selection_rules rules = { .of_output = globs, .n_of_output = n };
	char special[32];

	if (row->kind == ROW_CGROUP)
		return selection_admits(&rules, row->path);
	snprintf(special, sizeof(special), "/%s", row_kind_name(row->kind));
	return selection_admits(&rules, special);
}

static bool matches(struct selection *sel, const struct snap_row *row, char *const *globs, unsigned n)
{
	struct selection_row *m = &sel->memo[row->key];

	if (!m->known || m->generation != row->generation || m->renamed != row->renamed)
		*m = (struct selection_row){ row->generation, row->renamed, true, any_match(row, globs, n) };
	return m->match;
}

const bool *selection_of(struct selection *sel, const struct snapshot *s, char *const *globs, unsigned n)
{
	if (reserve(sel, s) != 0)
		return NULL;
	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];

		sel->shown[i] = row->selected && (row->kind == ROW_IDLE || matches(sel, row, globs, n));
	}
	return sel->shown;
}

void selection_free(struct selection *sel)
{
	free(sel->memo);
	free(sel->shown);
	*sel = (struct selection){ 0 };
}

static bool any(char *const *globs, unsigned n, const char *path)
{
	for (unsigned i = 0; i < n; i++)
		if (text_glob(globs[i], path))
			return true;
	return false;
}

/* True when the patterns admit every path. */
static bool all(char *const *globs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(globs[i], "/**") || !strcmp(globs[i], "**"))
			return true;
	return !n;
}

/* True for a path with "?" and a number in place of a part that is not known. */
static bool is_unknown(const char *path)
{
	for (const char *at = strstr(path, "/?"); at; at = strstr(at + 2, "/?")) {
		size_t n = strspn(at + 2, "0123456789");

		if (n && (!at[2 + n] || at[2 + n] == '/'))
			return true;
	}
	return path[0] != '/';
}

bool selection_admits(const struct selection_rules *r, const char *path)
{
	if (is_unknown(path))
		return all(r->include, r->n_include) && all(r->of_output, r->n_of_output) && !r->n_exclude;
	return (!r->n_include || any(r->include, r->n_include, path)) && !any(r->exclude, r->n_exclude, path) &&
	       (!r->n_of_output || any(r->of_output, r->n_of_output, path));
}

static bool same(char *const *a, unsigned n_a, char *const *b, unsigned n_b)
{
	bool equal = n_a == n_b;

	for (unsigned i = 0; i < n_a && equal; i++)
		equal = !strcmp(a[i], b[i]);
	return equal;
}

bool selection_rules_same(const struct selection_rules *a, const struct selection_rules *b)
{
	return same(a->include, a->n_include, b->include, b->n_include) &&
	       same(a->exclude, a->n_exclude, b->exclude, b->n_exclude) &&
	       same(a->of_output, a->n_of_output, b->of_output, b->n_of_output);
}

static size_t room(char *const *globs, unsigned n)
{
	size_t size = n * sizeof(*globs);

	for (unsigned i = 0; i < n; i++)
		size += strlen(globs[i]) + 1;
	return size;
}

/* Copies the patterns into one piece of memory, which has all lists first and then their texts. */
static char *const *put(char ***lists, char **texts, char *const *globs, unsigned n)
{
	char **list = *lists;

	for (unsigned i = 0; i < n; i++) {
		list[i] = *texts;
		*texts = stpcpy(*texts, globs[i]) + 1;
	}
	*lists += n;
	return list;
}

struct selection_rules *selection_rules_copy(const struct selection_rules *r)
{
	struct selection_rules *c = malloc(sizeof(*c) + room(r->include, r->n_include) +
					   room(r->exclude, r->n_exclude) + room(r->of_output, r->n_of_output));
	char **lists, *texts;

	if (!c)
		return NULL;
	lists = (char **)(c + 1);
	*c = *r;
	texts = (char *)(lists + r->n_include + r->n_exclude + r->n_of_output);
	c->include = put(&lists, &texts, r->include, r->n_include);
	c->exclude = put(&lists, &texts, r->exclude, r->n_exclude);
	c->of_output = put(&lists, &texts, r->of_output, r->n_of_output);
	return c;
}

static bool hidden(const struct snapshot *s, const bool *shown, uint32_t i)
{
	return s->rows[i].kind == ROW_CGROUP && !selection_shows(shown, s, i);
}

static int fold_reserve(struct selection_fold *f, const struct snapshot *s)
{
	unsigned n_cpus = s->schema->n_cpus;

	f->own.schema = s->schema;
	if (snapshot_reserve(&f->own, s->n_rows, s->n_cells + n_cpus) ||
	    (s->n_uses && snapshot_reserve_uses(&f->own, s->n_uses + s->schema->n_domains)))
		return -ENOMEM;
	if (ARRAY_ROOM(f->row_of, f->cap_rows, s->n_rows) || ARRAY_ROOM(f->sums, f->cap_sums, n_cpus))
		return -ENOMEM;
	return 0;
}

static void add_cell(struct snap_cell *to, const struct snap_cell *c)
{
	to->quality |= c->quality;
	to->time_ns += c->time_ns;
	to->switches += c->switches;
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		to->counters[i] += c->counters[i];
	to->enabled_ns += c->enabled_ns;
	to->running_ns += c->running_ns;
}

/* Adds the cells of a row to the sums of `other`. `row` of a sum marks a CPU that has one. */
static void sum_cells(struct selection_fold *f, const struct snapshot *s, const struct snap_row *row)
{
	for (unsigned i = 0; i < row->n_cells; i++) {
		const struct snap_cell *c = &s->cells[row->first_cell + i];

		if (c->cpu >= s->schema->n_cpus)
			continue;
		f->sums[c->cpu].row = ROW_OTHER;
		add_cell(&f->sums[c->cpu], c);
	}
}

static void add_row(struct snap_row *to, const struct snap_row *row)
{
	to->quality |= row->quality;
	to->time_ns += row->time_ns;
	to->switches += row->switches;
	for (unsigned i = 0; i < SCHEMA_MAX_EVENTS; i++)
		to->counters[i] += row->counters[i];
	to->enabled_ns += row->enabled_ns;
	to->running_ns += row->running_ns;
	traffic_add(&to->traffic, &row->traffic);
}

static void fold_row(struct selection_fold *f, const struct snapshot *s, unsigned i)
{
	struct snapshot *v = &f->view;

	f->row_of[i] = ROW_OTHER;
	add_row(&v->rows[ROW_OTHER], &s->rows[i]);
	sum_cells(f, s, &s->rows[i]);
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		uint64_t uj = *snapshot_energy(s, i, d), *other_uj = snapshot_energy(v, ROW_OTHER, d);
		uint32_t *ppm = snapshot_uncertainty(v, ROW_OTHER, d);

		*ppm = snapshot_joined_ppm(*other_uj, *ppm, uj, *snapshot_uncertainty(s, i, d));
		*other_uj += uj;
	}
}

static void keep_row(struct selection_fold *f, const struct snapshot *s, unsigned i)
{
	struct snapshot *v = &f->view;
	struct snap_row *row = &v->rows[v->n_rows];

	f->row_of[i] = v->n_rows;
	*row = s->rows[i];
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		*snapshot_energy(v, v->n_rows, d) = *snapshot_energy(s, i, d);
		*snapshot_uncertainty(v, v->n_rows, d) = *snapshot_uncertainty(s, i, d);
	}
	row->first_cell = v->n_cells;
	for (unsigned c = 0; c < row->n_cells; c++) {
		v->cells[v->n_cells] = s->cells[s->rows[i].first_cell + c];
		v->cells[v->n_cells++].row = v->n_rows;
	}
	v->n_rows++;
}

/* Appends the cells of `other`. They come last, because their sums are known only then. */
static void put_sums(struct selection_fold *f)
{
	struct snapshot *v = &f->view;
	struct snap_row *other = &v->rows[ROW_OTHER];

	other->first_cell = v->n_cells;
	other->n_cells = 0;
	for (unsigned cpu = 0; cpu < v->schema->n_cpus; cpu++) {
		if (f->sums[cpu].row != ROW_OTHER)
			continue;
		v->cells[v->n_cells] = f->sums[cpu];
		v->cells[v->n_cells++].cpu = (uint16_t)cpu;
		other->n_cells++;
	}
}

static void fold_uses(struct selection_fold *f, const struct snapshot *s)
{
	uint64_t other[SCHEMA_MAX_DOMAINS] = { 0 };
	struct snapshot *v = &f->view;

	for (unsigned i = 0; i < s->n_uses; i++) {
		struct snap_use u = s->uses[i];

		if (u.row < s->n_rows)
			u.row = f->row_of[u.row];
		if (u.row == ROW_OTHER && u.domain < SCHEMA_MAX_DOMAINS)
			other[u.domain] += u.ns;
		else
			v->uses[v->n_uses++] = u;
	}
	for (unsigned d = 0; s->n_uses && d < s->schema->n_domains; d++)
		if (other[d])
			v->uses[v->n_uses++] = (struct snap_use){ ROW_OTHER, (uint16_t)d, other[d] };
}

/* True when every row of s is shown as it is. */
static bool whole(const struct snapshot *s, const bool *shown)
{
	for (uint32_t i = 0; i < s->n_rows; i++)
		if (hidden(s, shown, i) || selection_shows(shown, s, i) != s->rows[i].selected)
			return false;
	return true;
}

const struct snapshot *selection_fold(struct selection_fold *f, const struct snapshot *s, const bool *shown)
{
	struct snapshot *v = &f->view;

	if (whole(s, shown))
		return s;
	if (fold_reserve(f, s))
		return NULL;
	*v = *s;
	v->rows = f->own.rows;
	v->cells = f->own.cells;
	v->energy_uj = f->own.energy_uj;
	v->uncertainty_ppm = f->own.uncertainty_ppm;
	v->uses = f->own.uses;
	v->n_rows = v->n_cells = v->n_uses = 0;
	for (unsigned cpu = 0; cpu < s->schema->n_cpus; cpu++)
		f->sums[cpu] = (struct snap_cell){ .row = UINT32_MAX };
	for (uint32_t i = 0; i < s->n_rows; i++) {
		if (hidden(s, shown, i)) {
			fold_row(f, s, i);
			continue;
		}
		keep_row(f, s, i);
		v->rows[v->n_rows - 1].selected = selection_shows(shown, s, i);
	}
	sum_cells(f, s, &s->rows[ROW_OTHER]);
	put_sums(f);
	fold_uses(f, s);
	return v;
}

void selection_fold_free(struct selection_fold *f)
{
	snapshot_free(&f->own);
	free(f->sums);
	free(f->row_of);
	*f = (struct selection_fold){ 0 };
}
