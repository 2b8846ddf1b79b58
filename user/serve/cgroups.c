/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/cgroups[/PATH]: names, totals since each cgroup was first seen, and the last interval. Cgroups that are not
 * listed are summed in `other`. So in every answer, per domain, energy = cgroups + special + other + idle + residual
 * (+ retired for totals). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "routes.h"

#define LISTING_NONE UINT32_MAX

struct last_ref {
	uint64_t id;
	uint32_t row;
};

struct listed {
	const char *name;
	uint64_t key;
	uint32_t row; /* row of the totals */
	uint32_t last; /* row of the last snapshot, LISTING_NONE = not in it */
};

struct listing {
	const struct totals *totals;
	const struct snapshot *last;
	const struct query *query;
	const char *prefix; /* "" = all */
	unsigned base_level, n_below;
	struct last_ref *refs;
	unsigned n_refs;
	bool *used; /* rows of the last snapshot that are listed */
	struct listed *list;
	unsigned n;
	uint64_t *rest_total, *rest_last; /* sums of rows that are not listed; width of the totals */
	unsigned n_rest;
};

static const char *const json_types[] = { "application/json", NULL };

static int by_id(const void *a, const void *b)
{
	const struct last_ref *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Indexes the rows of the last interval by cgroup id. */
static bool index_last(struct listing *l)
{
	const struct snapshot *s = l->last;

	l->refs = calloc(s->n_rows + 1, sizeof(*l->refs));
	l->used = calloc(s->n_rows + 1, sizeof(*l->used));
	if (!l->refs || !l->used)
		return false;
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++)
		if (s->rows[i].kind == ROW_CGROUP && s->rows[i].selected)
			l->refs[l->n_refs++] = (struct last_ref){ s->rows[i].id, i };
	qsort(l->refs, l->n_refs, sizeof(*l->refs), by_id);
	return true;
}

static uint32_t last_row(const struct listing *l, const struct total_row *r)
{
	struct last_ref key = { .id = r->id }, *found;

	if (!l->n_refs || r->ended)
		return LISTING_NONE;
	found = bsearch(&key, l->refs, l->n_refs, sizeof(*l->refs), by_id);
	return found ? found->row : LISTING_NONE;
}

/* True when name is prefix or lies below it. prefix "" = everything. */
static bool within(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return !n || (strncmp(name, prefix, n) == 0 && (!name[n] || name[n] == '/' || n == 1));
}

static uint64_t last_energy(const struct listing *l, uint32_t last)
{
	unsigned summed = schema_kinds_summed(l->last->schema);
	uint64_t sum = 0;

	for (unsigned d = 0; d < l->last->schema->n_domains && last != LISTING_NONE; d++)
		if (summed & DOMAIN_BIT(l->last->schema->domains[d].kind))
			sum += *snapshot_energy(l->last, last, d);
	return sum;
}

static uint64_t sort_key(const struct listing *l, const struct listed *e)
{
	const uint64_t *v = totals_row(l->totals, e->row);
	unsigned summed = schema_kinds_summed(l->totals->schema);
	uint64_t sum = 0;

	switch (l->query->sort) {
	case SORT_POWER:
		return last_energy(l, e->last);
	case SORT_CPU:
		return v[totals_column(l->totals, TOTAL_TIME)];
	default:
		for (unsigned d = 0; d < l->totals->schema->n_domains; d++)
			sum += summed & DOMAIN_BIT(l->totals->schema->domains[d].kind) ? v[d] : 0;
		return sum;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

static int by_key(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return x->key < y->key ? 1 : x->key > y->key ? -1 : by_name(a, b);
}

/* Chooses the cgroups to list, and their order. */
static bool choose(struct listing *l)
{
	const struct totals *t = l->totals;
	unsigned base = l->base_level;

	l->list = calloc(t->n_rows, sizeof(*l->list));
	if (!l->list)
		return false;
	for (unsigned i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
		struct listed e = { .name = t->rows[i].name, .row = i, .last = last_row(l, &t->rows[i]) };

		if (!within(e.name, l->prefix))
			continue;
		l->n_below++;
		if (t->rows[i].level > base && t->rows[i].level - base > l->query->depth)
			continue;
		e.key = sort_key(l, &e);
		l->list[l->n++] = e;
	}
	qsort(l->list, l->n, sizeof(*l->list), l->query->sort == SORT_NAME ? by_name : by_key);
	if (l->n > l->query->limit)
		l->n = (unsigned)l->query->limit;
	return true;
}

static void add_head(const struct listing *l, struct json *j)
{
	json_key_str(j, "sensor", l->totals->schema->sensor);
	json_key_str(j, "boot_id", l->totals->schema->boot_id);
	json_key(j, "time_ns");
	json_i64(j, l->totals->real_ns);
	json_key_u64(j, "total_ns", l->totals->mono_ns - l->totals->start_ns);
	json_key(j, "last_time_ns");
	json_i64(j, l->last->end_real_ns);
	json_key_u64(j, "last_interval_ns", l->last->end_ns - l->last->start_ns);
}

static unsigned level_of(const char *prefix)
{
	unsigned n = 0;

	for (const char *s = prefix; *s; s++)
		n += *s == '/' && s[1];
	return n;
}

/* Converts a row of the last snapshot to the columns of the totals. */
static void add_last(const struct listing *l, unsigned row, uint64_t *v)
{
	const struct snap_row *r = &l->last->rows[row];
	unsigned n = l->totals->schema->n_domains;

	for (unsigned d = 0; d < n; d++)
		v[d] += *snapshot_energy(l->last, row, d);
	totals_add_counts(v + n, r, l->totals->schema->core.n);
}

/* Sums the rows that are not listed, after the choice. */
static bool listing_begin(struct listing *l)
{
	unsigned width = totals_width(l->totals);
	bool *listed = calloc(l->totals->n_rows, sizeof(*listed));

	l->rest_total = calloc(width, sizeof(uint64_t));
	l->rest_last = calloc(width, sizeof(uint64_t));
	if (!listed || !l->rest_total || !l->rest_last) {
		free(listed);
		return false;
	}
	for (unsigned i = 0; i < l->n; i++) {
		listed[l->list[i].row] = true;
		if (l->list[i].last != LISTING_NONE)
			l->used[l->list[i].last] = true;
	}
	for (unsigned i = TOTAL_UNSELECTED; i < l->totals->n_rows; i++) {
		if (listed[i] || (i > TOTAL_UNSELECTED && i < TOTAL_FIRST_CGROUP))
			continue;
		l->n_rest += i >= TOTAL_FIRST_CGROUP;
		for (unsigned k = 0; k < width; k++)
			l->rest_total[k] += totals_row(l->totals, i)[k];
	}
	for (unsigned i = READING_SPECIAL_ROWS; i < l->last->n_rows; i++)
		if (!l->used[i] && l->last->rows[i].kind == ROW_CGROUP)
			add_last(l, i, l->rest_last);
	free(listed);
	return true;
}

static void listing_free(struct listing *l)
{
	free(l->refs);
	free(l->used);
	free(l->list);
	free(l->rest_total);
	free(l->rest_last);
}

void serve_use_json(struct json *j, const struct schema *c, const uint64_t *v, const struct snapshot *last)
{
	const uint64_t *fixed = v + c->n_domains;
	uint64_t block = 0;

	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < c->n_domains; d++)
		json_key_u64(j, c->domains[d].name, v[d]);
	json_object_end(j);
	if (last) {
		json_key(j, "power_w");
		json_object_begin(j);
		for (unsigned d = 0; d < c->n_domains; d++) {
			const struct snap_domain *dom = &last->domains[d];

			json_key(j, c->domains[d].name);
			json_double(j, dom->end_ns > dom->start_ns && !(dom->quality & QUALITY_LOST) ?
					       (double)v[d] * 1000 / (double)(dom->end_ns - dom->start_ns) :
					       NAN);
		}
		json_object_end(j);
	}
	fields_json(j, &total_columns, fixed, COLUMNS_OF_CPU);
	json_key(j, "counters");
	json_object_begin(j);
	for (unsigned i = 0; i < c->core.n; i++)
		json_key_u64(j, c->core.ev[i].name, fixed[TOTAL_FIXED + i]);
	json_object_end(j);
	for (unsigned i = TOTAL_BLOCK; i < TOTAL_FIXED; i++)
		block |= fixed[i];
	fields_json(j, &total_columns, fixed, COLUMNS_OF_NETWORK | (block ? COLUMNS_OF_BLOCK : 0));
}

static void add_both(const struct listing *l, const uint64_t *total, const uint64_t *last, struct json *j)
{
	json_key(j, "total");
	json_object_begin(j);
	serve_use_json(j, l->totals->schema, total, NULL);
	json_object_end(j);
	json_key(j, "last");
	json_object_begin(j);
	serve_use_json(j, l->totals->schema, last, l->last);
	json_object_end(j);
}

/* Of a row's last energy in the domains that are added up, relative; NaN = not known. The errors of domains are taken to
 * have the same sign. */
static double last_uncertainty(const struct listing *l, uint32_t row)
{
	const struct snapshot *s = l->last;
	double error = 0, energy = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		double uj = (double)*snapshot_energy(s, row, d);
		uint32_t ppm = *snapshot_uncertainty(s, row, d);

		if (!schema_sums(s->schema, d) || !(uj > 0))
			continue;
		if (ppm == SNAPSHOT_UNKNOWN)
			return NAN;
		error += uj * ppm / 1e6;
		energy += uj;
	}
	return energy > 0 ? error / energy : NAN;
}

static void add_row(const struct listing *l, uint32_t row, uint32_t last, struct json *j)
{
	uint64_t v[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + SCHEMA_MAX_EVENTS] = { 0 };
	unsigned quality = l->totals->rows[row].quality;
	double uncertainty = NAN;

	if (last != LISTING_NONE) {
		add_last(l, last, v);
		quality = l->last->rows[last].quality;
		uncertainty = last_uncertainty(l, last);
	}
	json_key_str(j, "quality", quality_name(quality));
	json_key_str(j, "worst_quality", quality_name(l->totals->rows[row].ever));
	json_key_str(j, "energy_quality",
		     quality_name(last != LISTING_NONE ? snapshot_row_energy_quality(l->last, last) :
							 l->totals->rows[row].energy_quality));
	if (isfinite(uncertainty)) {
		json_key(j, "last_uncertainty");
		json_double(j, uncertainty);
	}
	add_both(l, totals_row(l->totals, row), v, j);
}

static void listing_cgroup(const struct listing *l, const struct listed *e, struct json *j)
{
	const struct total_row *r = &l->totals->rows[e->row];

	json_object_begin(j);
	json_key_str(j, "path", r->name);
	names_json(j, r->names);
	json_key_u64(j, "id", r->id);
	json_key_u64(j, "level", r->level);
	json_key_u64(j, "seen_ns", l->totals->mono_ns - r->first_ns);
	json_key(j, "ended");
	json_bool(j, r->ended);
	add_row(l, e->row, e->last, j);
	json_object_end(j);
}

/* The row of a kind that there is once in the last interval, or LISTING_NONE. */
static uint32_t last_of(const struct listing *l, enum row_kind kind)
{
	for (unsigned i = 0; i < l->last->n_rows; i++)
		if (l->last->rows[i].kind == kind)
			return i;
	return LISTING_NONE;
}

static void listing_special(const struct listing *l, struct json *j)
{
	const enum row_kind end = schema_has_wall(l->totals->schema) ? ROW_KINDS : ROW_CGROUP;

	json_key(j, "special");
	json_array_begin(j);
	for (enum row_kind k = ROW_KERNEL; k < end; k++) {
		if (k == ROW_CGROUP)
			continue;
		json_object_begin(j);
		json_key_str(j, "name", row_kind_name(k));
		add_row(l, k, last_of(l, k), j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void listing_other(const struct listing *l, struct json *j)
{
	json_key(j, "other");
	json_object_begin(j);
	json_key_u64(j, "cgroups", l->n_rest);
	add_both(l, l->rest_total, l->rest_last, j);
	json_object_end(j);
}

static void listing_domains(const struct listing *l, struct json *j)
{
	json_key(j, "domains");
	json_array_begin(j);
	for (unsigned d = 0; d < l->totals->schema->n_domains; d++) {
		const struct total_domain *t = &l->totals->domains[d];
		const struct snap_domain *s = &l->last->domains[d];

		json_object_begin(j);
		json_key_str(j, "name", l->totals->schema->domains[d].name);
		json_key_str(j, "kind", domain_kind_name(l->totals->schema->domains[d].kind));
		json_key(j, "in_total");
		json_bool(j, schema_sums(l->totals->schema, d));
		json_key_str(j, "quality", quality_name(s->quality));
		json_key_str(j, "idle_quality", quality_name(s->idle_quality));
		json_key(j, "total");
		json_object_begin(j);
		fields_json(j, &total_domain_fields, t, TOTAL_OF_SUM);
		json_key_u64(j, "retired_uj", l->totals->retired[d]);
		json_object_end(j);
		json_key(j, "last");
		json_object_begin(j);
		json_key_u64(j, "energy_uj", s->energy_uj);
		json_key_u64(j, "idle_uj", s->idle_uj + *snapshot_energy(l->last, ROW_IDLE, d));
		json_key_u64(j, "residual_uj", s->residual_uj);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void write_answer(struct listing *l, struct json *j)
{
	json_object_begin(j);
	add_head(l, j);
	listing_domains(l, j);
	json_key(j, "cgroups");
	json_array_begin(j);
	for (unsigned i = 0; i < l->n; i++)
		listing_cgroup(l, &l->list[i], j);
	json_array_end(j);
	listing_special(l, j);
	listing_other(l, j);
	json_object_end(j);
}

static void answer_full(struct serve *s, struct http_request *r, const char *rest, const struct query *q)
{
	struct listing l = { .totals = serve_totals(s), .last = serve_last(s), .query = q, .prefix = rest };
	struct json j;

	if (!l.totals || !l.last) {
		http_error(r, 503, "Retry-After: 1", "cgroups: the first interval is not over; try again");
		return;
	}
	l.base_level = level_of(rest);
	buf_reset(&s->out);
	json_init(&j, &s->out);
	if (!index_last(&l) || !choose(&l) || !listing_begin(&l)) {
		http_error(r, 503, NULL, "cgroups: out of memory; ask for less");
	} else if (*rest && !l.n_below) {
		http_error(r, 404, NULL,
			   "cgroup: none of this path was seen; take a path from the list of all cgroups");
	} else {
		write_answer(&l, &j);
		buf_add_char(&s->out, '\n');
		http_reply(r, 200, "application/json", NULL, &s->out);
	}
	listing_free(&l);
}

void serve_get_cgroups(struct serve *s, struct http_request *r, const char *rest)
{
	struct query q;

	if (!serve_query(r, "sort limit depth", &q) || serve_negotiate(r, json_types) < 0)
		return;
	if (serve_access_of(s, r->peer) == ACCESS_COARSE)
		serve_cgroups_coarse(s, r, rest, &q);
	else
		answer_full(s, r, rest, &q);
}
