/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/cgroups[/PATH]: names, totals since they were first seen, and the last interval. What is not
 * listed is summed in `other`, so that per domain energy = cgroups + special + other + idle + residual
 * (+ retired for totals) holds in every answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "cgroups.h"

static const char *const json_types[] = { "application/json", NULL };

static int by_id(const void *a, const void *b)
{
	const struct last_ref *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The rows of the last interval by cgroup id. */
static bool index_last(struct listing *l)
{
	const struct snapshot *s = l->last;

	l->refs = calloc(s->n_rows + 1, sizeof(*l->refs));
	l->used = calloc(s->n_rows + 1, sizeof(*l->used));
	if (!l->refs || !l->used)
		return false;
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++)
		if (s->rows[i].selected)
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

/* Is name below or at prefix? prefix "" = everything. */
static bool within(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);

	return !n || (strncmp(name, prefix, n) == 0 && (!name[n] || name[n] == '/' || n == 1));
}

static uint64_t package_energy(const struct listing *l, uint32_t last)
{
	uint64_t sum = 0;

	for (unsigned d = 0; d < l->last->schema->n_domains && last != LISTING_NONE; d++)
		if (l->last->schema->domains[d].kind == DOMAIN_PACKAGE)
			sum += *snapshot_energy(l->last, last, d);
	return sum;
}

static uint64_t sort_key(const struct listing *l, const struct listed *e)
{
	const uint64_t *v = totals_row(l->totals, e->row);
	uint64_t sum = 0;

	switch (l->query->sort) {
	case SORT_POWER:
		return package_energy(l, e->last);
	case SORT_CPU:
		return v[totals_column(l->totals, TOTAL_TIME)];
	default:
		for (unsigned d = 0; d < l->totals->schema->n_domains; d++)
			if (l->totals->schema->domains[d].kind == DOMAIN_PACKAGE)
				sum += v[d];
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

/* The cgroups that are listed, in order. */
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
		http_error(r, 404, NULL, "cgroup: none of this name was seen; GET /v1/cgroups lists them");
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
