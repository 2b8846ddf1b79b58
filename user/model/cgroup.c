/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing over pointers; removal shifts the run back, so there are
 * no tombstones and a table that saw a million short cgroups is as fast as a new one. */
#include "cgroup.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"

#define FIRST_CAPACITY 256u

/* Where a path's text lives. A replaced path is chained here until the next sweep, because
 * readers on the same thread may still hold it. */
struct path_box {
	struct path_box *next;
	char text[];
};

struct cgroup_table {
	struct cgroup **slot;
	unsigned capacity; /* a power of two, at most half of it used */
	unsigned count, ended;
	struct path_box *retired;
	struct cgroup *unnamed_first, **unnamed_last;
	char *const *include, *const *exclude;
	unsigned n_include, n_exclude;
};

static unsigned home(const struct cgroup_table *t, uint64_t id)
{
	/* Ids are small consecutive numbers: multiplied by 2^64 / phi they spread. */
	return (unsigned)((id * 0x9e3779b97f4a7c15ull) >> 32) & (t->capacity - 1);
}

static unsigned place(const struct cgroup_table *t, uint64_t id)
{
	unsigned i = home(t, id);

	while (t->slot[i] && t->slot[i]->id != id)
		i = (i + 1) & (t->capacity - 1);
	return i;
}

static struct path_box *box_of(char *path)
{
	return (struct path_box *)(void *)(path - offsetof(struct path_box, text));
}

/* prefix (n bytes) and rest in one new path; NULL without memory. */
static char *path_join(const char *prefix, size_t n, const char *rest)
{
	size_t m = strlen(rest);
	struct path_box *b = malloc(sizeof(*b) + n + m + 1);

	if (!b)
		return NULL;
	b->next = NULL;
	memcpy(b->text, prefix, n);
	memcpy(b->text + n, rest, m + 1);
	return b->text;
}

static void path_retire(struct cgroup_table *t, char *path)
{
	struct path_box *b = box_of(path);

	b->next = t->retired;
	t->retired = b;
}

static void retired_free(struct cgroup_table *t)
{
	while (t->retired) {
		struct path_box *b = t->retired;

		t->retired = b->next;
		free(b);
	}
}

static void unnamed_add(struct cgroup_table *t, struct cgroup *cg)
{
	if (cg->unnamed_prev)
		return;
	cg->unnamed_next = NULL;
	cg->unnamed_prev = t->unnamed_last;
	*t->unnamed_last = cg;
	t->unnamed_last = &cg->unnamed_next;
}

static void unnamed_remove(struct cgroup_table *t, struct cgroup *cg)
{
	if (!cg->unnamed_prev)
		return;
	*cg->unnamed_prev = cg->unnamed_next;
	if (cg->unnamed_next)
		cg->unnamed_next->unnamed_prev = cg->unnamed_prev;
	else
		t->unnamed_last = cg->unnamed_prev;
	cg->unnamed_prev = NULL;
}

struct cgroup *cgroup_unnamed(struct cgroup_table *t)
{
	struct cgroup *cg = t->unnamed_first;

	if (cg)
		unnamed_remove(t, cg);
	return cg;
}

static void entry_free(struct cgroup_table *t, struct cgroup *cg)
{
	if (!cg)
		return;
	unnamed_remove(t, cg);
	names_put(cg->names);
	free(box_of(cg->path));
	free(cg);
}

static bool any_match(char *const *globs, unsigned n, const char *path)
{
	for (unsigned i = 0; i < n; i++)
		if (text_glob(globs[i], path))
			return true;
	return false;
}

static void entry_select(const struct cgroup_table *t, struct cgroup *cg)
{
	cg->selected = (!t->n_include || any_match(t->include, t->n_include, cg->path)) &&
		       !any_match(t->exclude, t->n_exclude, cg->path);
}

/* A path the kernel itself cannot show (readlink and /proc/PID/cgroup stop at PATH_MAX) is kept
 * as unresolved, so that every path in the table fits CGROUP_PATH_MAX. */
static char *path_make(uint64_t id, const char *prefix, size_t n, const char *rest, bool *ret_resolved)
{
	char unknown[32];

	*ret_resolved = n + strlen(rest) < CGROUP_PATH_MAX;
	if (*ret_resolved)
		return path_join(prefix, n, rest);
	snprintf(unknown, sizeof(unknown), "/?%llu", (unsigned long long)id);
	return path_join(unknown, strlen(unknown), "");
}

/* Gives cg the path prefix + rest. Without memory the entry keeps the path it has. */
static bool entry_set_path(struct cgroup_table *t, struct cgroup *cg, const char *prefix, size_t n, const char *rest)
{
	bool resolved;
	char *path = path_make(cg->id, prefix, n, rest, &resolved);

	if (!path)
		return false;
	if (cg->path) {
		if (strcmp(cg->path, path))
			cg->renamed++;
		path_retire(t, cg->path);
	}
	cg->path = path;
	cg->resolved = resolved;
	unnamed_add(t, cg);
	entry_select(t, cg);
	return true;
}

static bool table_grow(struct cgroup_table *t)
{
	struct cgroup **old = t->slot;
	unsigned n = t->capacity;

	t->slot = calloc((size_t)n * 2, sizeof(*t->slot));
	if (!t->slot) {
		t->slot = old;
		return false;
	}
	t->capacity = n * 2;
	for (unsigned i = 0; i < n; i++)
		if (old[i])
			t->slot[place(t, old[i]->id)] = old[i];
	free(old);
	return true;
}

struct cgroup_table *cgroup_table_new(void)
{
	struct cgroup_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->capacity = FIRST_CAPACITY;
	t->unnamed_last = &t->unnamed_first;
	t->slot = calloc(t->capacity, sizeof(*t->slot));
	if (!t->slot) {
		free(t);
		return NULL;
	}
	return t;
}

void cgroup_table_free(struct cgroup_table *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->capacity; i++)
		entry_free(t, t->slot[i]);
	retired_free(t);
	free(t->slot);
	free(t);
}

struct cgroup *cgroup_find(const struct cgroup_table *t, uint64_t id)
{
	return t->slot[place(t, id)];
}

static struct cgroup *entry_update(struct cgroup_table *t, struct cgroup *cg, const char *path, uint16_t level,
				   uint64_t born_ns)
{
	if ((!cg->resolved || strcmp(cg->path, path)) && !entry_set_path(t, cg, path, strlen(path), ""))
		return NULL;
	cg->level = level;
	if (!cg->born_ns)
		cg->born_ns = born_ns;
	if (cg->ended) { /* a walk took it for gone too early */
		cg->ended = false;
		cg->ended_ns = 0;
		t->ended--;
	}
	return cg;
}

struct cgroup *cgroup_add(struct cgroup_table *t, uint64_t id, const char *path, uint16_t level, uint64_t born_ns)
{
	struct cgroup *cg = cgroup_find(t, id);

	if (cg)
		return entry_update(t, cg, path, level, born_ns);
	if ((t->count + 1) * 2 > t->capacity && !table_grow(t))
		return NULL;
	cg = calloc(1, sizeof(*cg));
	if (!cg)
		return NULL;
	cg->id = id;
	cg->level = level;
	cg->born_ns = born_ns;
	if (!entry_set_path(t, cg, path, strlen(path), "")) {
		free(cg);
		return NULL;
	}
	t->slot[place(t, id)] = cg;
	t->count++;
	return cg;
}

/* The part of path below dir ("/x" of "/a/x" and "/a"), NULL when it is not below. */
static const char *path_below(const char *path, const char *dir, size_t n)
{
	if (n == 1) /* the root: everything else is below */
		return path[1] ? path : NULL;
	return !strncmp(path, dir, n) && path[n] == '/' ? path + n : NULL;
}

void cgroup_rename(struct cgroup_table *t, uint64_t id, const char *new_path)
{
	struct cgroup *cg = cgroup_find(t, id), *below;
	size_t old_len, new_len = strlen(new_path);
	const char *old, *rest;
	unsigned pos = 0;

	if (!cg || !strcmp(cg->path, new_path))
		return;
	old = cg->path; /* retired, not freed, by the next line */
	old_len = strlen(old);
	if (!entry_set_path(t, cg, new_path, new_len, ""))
		return;
	/* An ended cgroup keeps the path it died with: it may have lived below an earlier
	 * directory of the same name. */
	while ((below = cgroup_next(t, &pos)))
		if (below != cg && !below->ended && (rest = path_below(below->path, old, old_len)))
			entry_set_path(t, below, new_path, new_len, rest);
}

void cgroup_end(struct cgroup_table *t, uint64_t id, uint64_t ended_ns)
{
	struct cgroup *cg = cgroup_find(t, id);

	if (!cg || cg->ended)
		return;
	cg->ended = true;
	cg->ended_ns = ended_ns;
	t->ended++;
}

/* Empties slot i and moves later entries of the run up, so that each stays reachable from its home. */
static void slot_remove(struct cgroup_table *t, unsigned i)
{
	unsigned mask = t->capacity - 1, j = i;

	for (;;) {
		t->slot[i] = NULL;
		do {
			j = (j + 1) & mask;
			if (!t->slot[j])
				return;
			/* stays where it is when its home lies cyclically in (i, j] */
		} while (((j - home(t, t->slot[j]->id)) & mask) < ((j - i) & mask));
		t->slot[i] = t->slot[j];
		i = j;
	}
}

unsigned cgroup_table_sweep(struct cgroup_table *t, uint64_t ended_before_ns)
{
	unsigned dropped = 0;

	retired_free(t);
	for (unsigned i = 0; i < t->capacity && t->ended;) {
		struct cgroup *cg = t->slot[i];

		if (!cg || !cg->ended || cg->in_use || cg->ended_ns >= ended_before_ns) {
			i++;
			continue;
		}
		slot_remove(t, i); /* may bring another entry to i */
		entry_free(t, cg);
		t->count--;
		t->ended--;
		dropped++;
	}
	return dropped;
}

unsigned cgroup_table_count(const struct cgroup_table *t)
{
	return t->count;
}

unsigned cgroup_table_ended(const struct cgroup_table *t)
{
	return t->ended;
}

struct cgroup *cgroup_next(const struct cgroup_table *t, unsigned *pos)
{
	while (*pos < t->capacity) {
		struct cgroup *cg = t->slot[(*pos)++];

		if (cg)
			return cg;
	}
	return NULL;
}

void cgroup_table_select(struct cgroup_table *t, char *const *include, unsigned n_include, char *const *exclude,
			 unsigned n_exclude)
{
	struct cgroup *cg;
	unsigned pos = 0;

	t->include = include;
	t->n_include = n_include;
	t->exclude = exclude;
	t->n_exclude = n_exclude;
	while ((cg = cgroup_next(t, &pos)))
		entry_select(t, cg);
}
