/* SPDX-License-Identifier: Apache-2.0 */
/* Points into series: who they are, who is told about, and what falls into one step. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "history_read.h"

#define IDS_MAX (1u << 20)

static uint64_t hash_of(const char *s)
{
	uint64_t h = 14695981039346656037ull; /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211ull;
	return h;
}

int look_names(struct look *l)
{
	memset(l->buckets, 0xff, sizeof(l->buckets));
	return sqlite3_prepare_v2(l->h->reader, "SELECT CAST(path AS TEXT), ended FROM series WHERE id=?", -1, &l->path,
				  NULL);
}

void look_free(struct look *l)
{
	for (unsigned i = 0; i < l->n_names; i++)
		free(l->names[i].path);
	sqlite3_finalize(l->path);
	free(l->names);
	free(l->ids);
	free(l->touched);
	free(l->energy_uj);
}

/* A name's number; -ENOMEM. */
static int64_t add_name(struct look *l, const char *path, const char *row, bool ended)
{
	uint64_t hash = hash_of(path);
	uint32_t *bucket = &l->buckets[hash % 1024];
	char *copy;

	for (uint32_t i = *bucket; i != LOOK_NONE; i = l->names[i].next)
		if (l->names[i].hash == hash && l->names[i].row == row && strcmp(l->names[i].path, path) == 0) {
			l->names[i].ended &= ended;
			return i;
		}
	if (l->n_names == l->cap_names) {
		unsigned cap = l->cap_names ? l->cap_names * 2 : 64;
		struct look_name *names = realloc(l->names, cap * sizeof(*names));

		if (!names)
			return -ENOMEM;
		l->names = names;
		l->cap_names = cap;
	}
	if (!(copy = strdup(path)))
		return -ENOMEM;
	l->names[l->n_names] = (struct look_name){
		.path = copy, .hash = hash, .row = row, .ended = ended, .series = LOOK_NONE, .next = *bucket
	};
	*bucket = l->n_names;
	return l->n_names++;
}

/* What a series of the store is called: special rows by themselves, cgroups by their path. */
static int64_t find_name(struct look *l, uint64_t id)
{
	static const char *const special[] = { [ROW_IDLE] = "idle",
					       [ROW_KERNEL] = "kernel",
					       [ROW_IRQ_STEAL] = "irq+steal",
					       [ROW_OTHER] = "other",
					       [SERIES_IDLE_POWER] = "idle-power",
					       [SERIES_RESIDUAL] = "residual" };
	int64_t name = LOOK_NONE;

	if (id <= SERIES_RESIDUAL)
		return l->q->cgroup ? (int64_t)LOOK_NONE : add_name(l, special[id], special[id], false);
	sqlite3_bind_int64(l->path, 1, (int64_t)id);
	if (sqlite3_step(l->path) == SQLITE_ROW) {
		const char *path = (const char *)sqlite3_column_text(l->path, 0);

		if (path && (!l->q->cgroup || strcmp(path, l->q->cgroup) == 0))
			name = add_name(l, path, "cgroup", sqlite3_column_int(l->path, 1));
	} else if (!l->q->cgroup) {
		name = add_name(l, special[ROW_OTHER], special[ROW_OTHER], false); /* swept: its sum counts on */
	}
	sqlite3_reset(l->path);
	return name;
}

static struct look_id *place(struct look_id *ids, unsigned cap, uint64_t id)
{
	unsigned at = (unsigned)(id * 0x9e3779b97f4a7c15ull >> 32) & (cap - 1);

	while (ids[at].id && ids[at].id != id + 1)
		at = (at + 1) & (cap - 1);
	return &ids[at];
}

static int grow_ids(struct look *l)
{
	unsigned cap = l->cap_ids ? l->cap_ids * 2 : 256;
	struct look_id *ids;

	if (l->n_ids < l->cap_ids / 2)
		return 0;
	if (cap > IDS_MAX)
		return -E2BIG;
	ids = calloc(cap, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	for (unsigned i = 0; i < l->cap_ids; i++)
		if (l->ids[i].id)
			*place(ids, cap, l->ids[i].id - 1) = l->ids[i];
	free(l->ids);
	l->ids = ids;
	l->cap_ids = cap;
	return 0;
}

static int64_t name_of(struct look *l, uint64_t id)
{
	struct look_id *at;
	int64_t name;
	int rc = grow_ids(l);

	if (rc)
		return rc;
	at = place(l->ids, l->cap_ids, id);
	if (at->id)
		return at->name;
	name = find_name(l, id);
	if (name < 0)
		return name;
	*at = (struct look_id){ id + 1, (uint32_t)name };
	l->n_ids++;
	return name;
}

/* The answer's column of a domain; -E2BIG. */
static int column_of(struct history_answer *a, const char *name, size_t len)
{
	if (len >= sizeof(a->domains[0]))
		return -EBADMSG;
	for (unsigned i = 0; i < a->n_domains; i++)
		if (strlen(a->domains[i]) == len && memcmp(a->domains[i], name, len) == 0)
			return (int)i;
	if (a->n_domains == SCHEMA_MAX_DOMAINS)
		return -E2BIG;
	memcpy(a->domains[a->n_domains], name, len);
	a->domains[a->n_domains][len] = '\0';
	return (int)a->n_domains++;
}

static int add_set(struct look *l, struct look_set *set, const char *names)
{
	while (*names) {
		size_t len = strcspn(names, ",");
		int to = column_of(l->a, names, len);

		if (to < 0)
			return to;
		if (set->n == SCHEMA_MAX_DOMAINS)
			return -EBADMSG;
		set->to[set->n++] = (unsigned)to;
		names += len + (names[len] == ',');
	}
	return 0;
}

static int use_set(struct look *l, int64_t id)
{
	struct look_set *set = &l->sets[l->n_sets];
	sqlite3_stmt *q = NULL;
	int rc;

	for (unsigned i = 0; i < l->n_sets; i++)
		if (l->sets[i].id == id) {
			l->set = &l->sets[i];
			return 0;
		}
	if (l->n_sets == LOOK_SETS)
		return -E2BIG;
	rc = db_prepare(l->h->reader, &q, "SELECT names FROM domains WHERE id=%lld", (long long)id);
	if (rc == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW && sqlite3_column_text(q, 0)) {
		*set = (struct look_set){ .id = id };
		rc = add_set(l, set, (const char *)sqlite3_column_text(q, 0));
		l->n_sets++;
		l->set = set;
	} else if (rc == SQLITE_OK) {
		rc = -EBADMSG;
	}
	sqlite3_finalize(q);
	return rc;
}

/* What is ranked by: package energy, all energy where there is none. */
static uint64_t weight(const struct look *l, const struct point_row *r)
{
	uint64_t package = 0, all = 0;
	bool any = false;

	for (unsigned d = 0; d < l->set->n; d++) {
		all += r->energy_uj[d];
		if (strncmp(l->a->domains[l->set->to[d]], "package", 7) == 0) {
			package += r->energy_uj[d];
			any = true;
		}
	}
	return any ? package : all;
}

static int sum_row(void *arg, const struct point_row *r)
{
	struct look *l = arg;
	int64_t name = name_of(l, r->series);

	if (name < 0)
		return (int)name;
	if (name != LOOK_NONE)
		l->names[name].sum += weight(l, r);
	return 0;
}

int look_sum(struct look *l, const struct stored *s)
{
	int rc = use_set(l, s->domains);

	return rc ? rc : point_read(s->data, s->size, l->set->n, sum_row, l);
}

static int by_sum(const void *a, const void *b, void *names)
{
	const struct look_name *x = &((const struct look_name *)names)[*(const uint32_t *)a];
	const struct look_name *y = &((const struct look_name *)names)[*(const uint32_t *)b];

	if (x->sum != y->sum)
		return x->sum < y->sum ? 1 : -1;
	return strcmp(x->path, y->path);
}

static int show(struct look *l, uint32_t name)
{
	struct history_answer *a = l->a;
	struct look_name *n = &l->names[name];

	n->series = a->n_series;
	a->series[a->n_series] = (struct history_series){ .cgroup = strdup(n->path), .row = n->row, .ended = n->ended };
	return a->series[a->n_series++].cgroup ? 0 : -ENOMEM;
}

int look_choose(struct look *l)
{
	uint32_t *order;
	uint64_t shown = 0;
	int rc = 0;

	if (!l->q->cgroup && l->n_names && name_of(l, ROW_OTHER) < 0)
		return -ENOMEM;
	order = calloc(l->n_names + 1, sizeof(*order));
	l->touched = calloc(l->n_names + 1, sizeof(*l->touched));
	l->a->series = calloc(l->n_names + 1, sizeof(*l->a->series));
	if (!order || !l->touched || !l->a->series) {
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < l->n_names; i++)
		order[i] = i;
	qsort_r(order, l->n_names, sizeof(*order), by_sum, l->names);
	for (unsigned i = 0; i < l->n_names && !rc; i++)
		if (strcmp(l->names[order[i]].row, "cgroup") != 0 || shown++ < l->q->limit)
			rc = show(l, order[i]);
	free(order);
	l->energy_uj = calloc((size_t)l->a->n_series + 1, SCHEMA_MAX_DOMAINS * sizeof(*l->energy_uj));
	return l->energy_uj ? rc : -ENOMEM;
}

static uint64_t *sums_of(const struct look *l, const struct look_name *n)
{
	return &l->energy_uj[(size_t)n->series * SCHEMA_MAX_DOMAINS];
}

static int append_point(struct look *l, const struct look_name *n)
{
	struct history_answer *a = l->a;
	struct history_series *s = &a->series[n->series];

	if (++l->n_points > HISTORY_POINTS_MAX)
		return -E2BIG;
	if (s->n == s->cap) {
		unsigned cap = s->cap ? s->cap * 2 : 16;
		struct history_point *points = realloc(s->points, cap * sizeof(*points));

		if (!points)
			return -ENOMEM;
		s->points = points;
		s->cap = cap;
	}
	if (a->n_energy + a->n_domains > a->cap_energy) {
		size_t cap = a->cap_energy ? a->cap_energy * 2 : 1024;
		uint64_t *v = realloc(a->energy_uj, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		a->energy_uj = v;
		a->cap_energy = cap;
	}
	s->points[s->n++] = (struct history_point){ l->end_ns, l->interval_ns, n->quality, a->n_energy };
	if (a->n_domains)
		memcpy(&a->energy_uj[a->n_energy], sums_of(l, n), a->n_domains * sizeof(*a->energy_uj));
	a->n_energy += a->n_domains;
	return 0;
}

int look_flush(struct look *l)
{
	int rc = 0;

	for (unsigned i = 0; i < l->n_touched && !rc; i++)
		rc = append_point(l, &l->names[l->touched[i]]);
	l->n_touched = 0;
	l->interval_ns = 0;
	return rc;
}

static int tell_row(void *arg, const struct point_row *r)
{
	struct look *l = arg;
	int64_t name = name_of(l, r->series);
	uint64_t *energy;

	if (name < 0 || name == LOOK_NONE)
		return name < 0 ? (int)name : 0;
	if (l->names[name].series == LOOK_NONE)
		name = name_of(l, ROW_OTHER);
	if (name < 0)
		return (int)name;
	energy = sums_of(l, &l->names[name]);
	if (l->names[name].stamp != l->stamp) {
		l->names[name].stamp = l->stamp;
		l->names[name].quality = 0;
		memset(energy, 0, SCHEMA_MAX_DOMAINS * sizeof(*energy));
		l->touched[l->n_touched++] = (uint32_t)name;
	}
	l->names[name].quality |= r->quality;
	for (unsigned d = 0; d < l->set->n; d++)
		energy[l->set->to[d]] += r->energy_uj[d];
	return 0;
}

int look_tell(struct look *l, const struct stored *s)
{
	bool own = l->step_ns <= (uint64_t)history_tiers[s->tier].length_ns;
	int64_t bucket = own ? -s->end_ns : (s->end_ns - 1) / (int64_t)l->step_ns;
	int rc = use_set(l, s->domains);

	if (!rc && (bucket != l->bucket || !l->stamp)) {
		rc = look_flush(l);
		l->bucket = bucket;
		l->stamp++;
	}
	if (rc)
		return rc;
	l->end_ns = s->end_ns;
	l->interval_ns += s->interval_ns;
	return point_read(s->data, s->size, l->set->n, tell_row, l);
}
