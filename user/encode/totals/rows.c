/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "encode/target.h"
#include "totals.h"

#define NONE TOTALS_NONE

struct total_key { /* the row of the totals for a snapshot's row; found by its key */
	uint32_t generation, renamed, row, serial;
	struct names *names; /* groups: a reference to those that told the group */
};

static int grow_rows(struct totals *t)
{
	const unsigned cap = array_step(t->n_rows + 1);
	const size_t values = (size_t)cap * totals_width(t);

	if (!cap || ARRAY_RESIZE(t->values, values) || (t->options.top && ARRAY_RESIZE(t->hidden, values)) ||
	    ARRAY_RESIZE(t->rows, cap))
		return -ENOMEM;
	t->cap_rows = cap;
	return 0;
}

/* Makes a row with zeroed values and takes name over. Its number or -ENOMEM. */
static int64_t new_row(struct totals *t, char *name, uint64_t hash)
{
	size_t width = totals_width(t);
	uint32_t row = t->free_row;

	if (row != NONE)
		t->free_row = t->rows[row].next;
	else if (t->n_rows < t->cap_rows || grow_rows(t) == 0)
		row = t->n_rows++;
	else
		return -ENOMEM;
	t->rows[row] = (struct total_row){ .name = name,
					   .hash = hash,
					   .used = true,
					   .serial = ++t->next_serial,
					   .changed = t->adds,
					   .named = t->adds };
	memset(totals_row(t, row), 0, width * sizeof(uint64_t));
	if (t->hidden)
		memset(&t->hidden[row * width], 0, width * sizeof(uint64_t));
	return row;
}

void totals_alive(struct totals *t, uint32_t row)
{
	struct total_row *r = &t->rows[row];

	if (!r->ended)
		return;
	*(r->ended_prev == NONE ? &t->ended_first : &t->rows[r->ended_prev].ended_next) = r->ended_next;
	*(r->ended_next == NONE ? &t->ended_last : &t->rows[r->ended_next].ended_prev) = r->ended_prev;
	r->ended = false;
	r->changed = t->adds;
	t->n_ended--;
}

void totals_call(struct totals *t, uint32_t row, struct names *n, uint32_t add)
{
	struct total_row *r = &t->rows[row];

	if (r->names == n || (!n && r->recalled))
		return;
	names_set(&r->names, n);
	r->recalled = false;
	r->changed = r->named = add;
}

void totals_met(struct totals *t, uint32_t row)
{
	t->n_waits -= t->rows[row].waits;
	t->rows[row].waits = false;
}

void totals_end(struct totals *t, uint32_t row)
{
	struct total_row *r = &t->rows[row];

	totals_met(t, row);
	r->ended = true;
	r->ended_ns = t->mono_ns;
	r->changed = t->adds;
	r->ended_next = NONE;
	r->ended_prev = t->ended_last;
	*(t->ended_last == NONE ? &t->ended_first : &t->rows[t->ended_last].ended_next) = row;
	t->ended_last = row;
	t->n_ended++;
}

void totals_retire(struct totals *t, uint32_t row)
{
	for (unsigned i = 0; t->rows[row].shown && i < totals_width(t); i++)
		t->retired[i] += totals_shown(t, row, i);
	t->n_shown -= t->rows[row].shown;
	t->rows[row].shown = false;
	t->rows[row].changed = t->adds;
}

void totals_drop(struct totals *t, uint32_t row)
{
	struct total_row *r = &t->rows[row];

	totals_retire(t, row);
	totals_alive(t, row);
	totals_met(t, row);
	hash_remove(&t->by_name, r->hash, row);
	free((char *)r->name);
	names_put(r->names);
	*r = (struct total_row){ .next = t->free_row, .changed = t->adds };
	t->free_row = row;
}

static int64_t find_name(const struct totals *t, const char *name, uint64_t hash)
{
	for (struct hash_walk w = hash_walk(&t->by_name, hash); hash_step(&w);)
		if (strcmp(t->rows[w.at].name, name) == 0)
			return w.at;
	return -ENOENT;
}

static struct total_key *key_of(struct totals *t, uint32_t key)
{
	if (ARRAY_ZEROED(t->keys, t->cap_keys, (size_t)key + 1) != 0)
		return NULL;
	return &t->keys[key];
}

static int64_t add_name(struct totals *t, const struct snap_row *r, const char *text, uint64_t hash)
{
	char *name;
	int64_t row;

	if (hash_reserve(&t->by_name, (size_t)t->by_name.n + 1) || !(name = strdup(text)))
		return -ENOMEM;
	row = new_row(t, name, hash);
	if (row < 0) {
		free(name);
		return row;
	}
	t->rows[row].id = r->id;
	t->rows[row].level = r->level;
	t->rows[row].first_ns = t->mono_ns;
	t->rows[row].shown = t->options.top == 0 || t->n_shown < t->options.top;
	t->n_shown += t->rows[row].shown;
	hash_add(&t->by_name, hash, (uint32_t)row);
	return row;
}

/* Renames a row whose cgroup got another name; it keeps its totals. Not used when the new name already has a
 * row, which then counts on. */
static int64_t rename_row(struct totals *t, uint32_t row, const char *text, uint64_t hash)
{
	char *name = strdup(text);

	if (!name)
		return -ENOMEM;
	hash_remove(&t->by_name, t->rows[row].hash, row);
	free((char *)t->rows[row].name);
	t->rows[row].name = name;
	t->rows[row].hash = hash;
	t->rows[row].changed = t->rows[row].named = t->adds;
	t->rows[row].recalled = false;
	hash_add(&t->by_name, hash, row);
	return row;
}

/* Finds a loaded row by id: a cgroup that was renamed while the agent did not run is known by its id only. Ids
 * rise, so a new cgroup has a higher id than all of them, and the search is rare. */
static int64_t find_id(const struct totals *t, uint64_t id)
{
	if (!t->n_waits || id > t->waits_max)
		return -ENOENT;
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++)
		if (t->rows[i].waits && t->rows[i].id == id)
			return i;
	return -ENOENT;
}

static int64_t resolve(struct totals *t, const struct snap_row *r, struct total_key *k)
{
	bool known = k->serial && k->generation == r->generation && t->rows[k->row].serial == k->serial;
	char text[TARGET_NAME_MAX];
	uint64_t hash;
	int64_t row;

	if (known && k->renamed == r->renamed)
		return k->row;
	target_name(r, false, text);
	hash = hash_text(text);
	row = find_name(t, text, hash);
	if (row < 0 && !known) {
		int64_t same = find_id(t, r->id);

		row = same < 0 ? add_name(t, r, text, hash) : rename_row(t, (uint32_t)same, text, hash);
	} else if (row < 0) {
		row = rename_row(t, k->row, text, hash);
	}
	if (row < 0)
		return row;
	*k = (struct total_key){ r->generation, r->renamed, (uint32_t)row, t->rows[row].serial, NULL };
	/* the path now belongs to another cgroup */
	if (t->rows[row].id != r->id)
		t->rows[row].recalled = false;
	t->rows[row].id = r->id;
	return row;
}

/* The text by which the group of a cgroup is found. d: the names that tell it, of which n is the owner. */
static void group_text(const struct totals *t, const char *path, const struct names *n, struct names_draft *d,
		       char dst[TARGET_NAME_MAX])
{
	const struct grouping *g = &t->options.by;
	char part[CGROUP_PATH_MAX];
	struct snap_row r = { .path = part };
	size_t len;

	if (grouping_by_names(g)) {
		if (grouping_names(g, n, d))
			grouping_key(d, dst);
		else
			snprintf(dst, TARGET_NAME_MAX, "%s", GROUPING_UNNAMED);
		return;
	}
	*d = (struct names_draft){ 0 };
	len = grouping_path(g, path);
	len = len < sizeof(part) ? len : sizeof(part) - 1;
	memcpy(part, path, len);
	part[len] = '\0';
	r.id = hash_text(part); /* in place of a cgroup's: it tells two names apart that need U+FFFD */
	target_name(&r, false, dst);
}

int64_t totals_group(const struct totals *t, const char *path, const struct names *n)
{
	char text[TARGET_NAME_MAX];
	struct names_draft d;

	group_text(t, path, n, &d, text);
	return find_name(t, text, hash_text(text));
}

static int64_t add_group(struct totals *t, const char *text, uint64_t hash, const struct names_draft *d)
{
	const struct snap_row none = { 0 };
	bool named = text[0] == GROUPING_MARK;
	struct names *n = named ? names_new(d) : NULL;
	int64_t row = named && !n ? -ENOMEM : add_name(t, &none, text, hash);

	if (row < 0)
		names_put(n);
	else
		t->rows[row].names = n;
	return row;
}

/* As resolve, for groups: a cgroup that moves or gets names is counted in another group from then on. */
static int64_t resolve_group(struct totals *t, const struct snap_row *r, struct total_key *k)
{
	bool known = k->serial && k->generation == r->generation && t->rows[k->row].serial == k->serial;
	char text[TARGET_NAME_MAX];
	struct names_draft d;
	uint64_t hash;
	int64_t row;

	if (known && k->renamed == r->renamed && k->names == r->names)
		return k->row;
	group_text(t, r->path, r->names, &d, text);
	hash = hash_text(text);
	row = find_name(t, text, hash);
	if (row < 0)
		row = add_group(t, text, hash, &d);
	if (row < 0)
		return row;
	names_set(&k->names, r->names);
	k->generation = r->generation;
	k->renamed = r->renamed;
	k->row = (uint32_t)row;
	k->serial = t->rows[row].serial;
	return row;
}

/* Drops the row of a cgroup that is no longer selected. It is not shown as ended either. */
static void forget_key(struct totals *t, const struct snap_row *r)
{
	struct total_key *k = r->key < t->cap_keys ? &t->keys[r->key] : NULL;

	if (!k || !k->serial || k->generation != r->generation)
		return;
	if (t->rows[k->row].serial == k->serial && !t->options.by.kind)
		totals_drop(t, k->row);
	k->serial = 0;
}

void totals_select(struct totals *t, const struct selection_rules *rules)
{
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows && !t->options.by.kind; i++)
		if (t->rows[i].used && !selection_admits(rules, t->rows[i].name))
			totals_drop(t, i);
	t->reselected = t->options.by.kind && t->added; /* names of cgroups are not known yet right after a load */
	if (t->view)
		totals_select(t->view, rules);
}

uint32_t totals_place(struct totals *t, const struct snap_row *r, bool selected)
{
	struct total_key *k;
	int64_t row;

	if (r->kind != ROW_CGROUP)
		return (uint32_t)r->kind;
	if (!selected)
		forget_key(t, r);
	if (!selected || r->path[0] != '/')
		return TOTAL_UNSELECTED;
	k = key_of(t, r->key);
	row = !k ? -ENOMEM : t->options.by.kind ? resolve_group(t, r, k) : resolve(t, r, k);
	return row < 0 ? TOTAL_UNSELECTED : (uint32_t)row;
}

void totals_free_keys(struct totals *t)
{
	for (uint32_t i = 0; i < t->cap_keys; i++)
		names_put(t->keys[i].names);
	free(t->keys);
}

int totals_empty_place(struct totals *t)
{
	/* having keys means that t owns its names (it is no copy) */
	if (!key_of(t, 0) || (t->n_rows == t->cap_rows && grow_rows(t) != 0))
		return -ENOMEM;
	t->rows[t->n_rows] = (struct total_row){ 0 };
	memset(totals_row(t, t->n_rows), 0, totals_width(t) * sizeof(uint64_t));
	if (t->hidden)
		memset(&t->hidden[(size_t)t->n_rows * totals_width(t)], 0, totals_width(t) * sizeof(uint64_t));
	t->n_rows++;
	return 0;
}

static int by_end(const void *a, const void *b, void *rows)
{
	uint64_t x = ((struct total_row *)rows)[*(const uint32_t *)a].ended_ns,
		 y = ((struct total_row *)rows)[*(const uint32_t *)b].ended_ns;

	return x < y ? -1 : x > y;
}

/* Rebuilds the list of ended rows, in the order of their ends. */
static int relink_ended(struct totals *t)
{
	uint32_t *order = calloc(t->n_rows, sizeof(*order)), n = 0;
	uint64_t now_ns = t->mono_ns;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++)
		if (t->rows[i].used && t->rows[i].ended)
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), by_end, t->rows);
	for (uint32_t i = 0; i < n; i++) {
		t->mono_ns = t->rows[order[i]].ended_ns;
		totals_end(t, order[i]);
	}
	t->mono_ns = now_ns;
	free(order);
	return 0;
}

int totals_relink(struct totals *t)
{
	t->free_row = t->ended_first = t->ended_last = NONE;
	t->n_shown = t->n_ended = t->n_waits = 0;
	t->waits_max = 0;
	if (hash_reserve(&t->by_name, t->n_rows) != 0)
		return -ENOMEM;
	hash_clear(&t->by_name);
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
		struct total_row *r = &t->rows[i];

		r->changed = r->named = r->seen = t->adds;
		if (!r->used) {
			r->next = t->free_row;
			t->free_row = i;
			continue;
		}
		r->hash = hash_text(r->name);
		if (find_name(t, r->name, r->hash) >= 0)
			return -EBADMSG;
		r->serial = ++t->next_serial;
		t->n_shown += r->shown;
		r->waits = !r->ended;
		t->n_waits += r->waits;
		if (r->waits && r->id > t->waits_max)
			t->waits_max = r->id;
		hash_add(&t->by_name, r->hash, i);
	}
	totals_trim(t);
	return relink_ended(t);
}

static int add_fixed(struct totals *t)
{

	for (unsigned i = 0; i < TOTAL_FIRST_CGROUP; i++) {
		int64_t row = new_row(t, NULL, 0);

		if (row < 0)
			return (int)row;
		t->rows[row].name = i == TOTAL_UNSELECTED ? "unselected" : row_kind_name((enum row_kind)i);
		t->rows[row].shown = i <= TOTAL_UNSELECTED || schema_has_wall(t->schema);
	}
	return 0;
}

struct totals *totals_new(const struct schema *s, const struct totals_options *o)
{
	struct totals *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->schema = s;
	t->options = *o;
	t->free_row = t->ended_first = t->ended_last = NONE;
	t->retired = calloc(totals_width(t), sizeof(*t->retired));
	if (!t->retired || add_fixed(t) != 0) {
		totals_free(t);
		free(t);
		return NULL;
	}
	return t;
}
