/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/text.h"

/* The memory of a path's text. A replaced path is chained here until the next sweep, because readers on the same thread
 * may still hold it. */
struct path_box {
	struct path_box *next;
	char text[];
};

TAILQ_HEAD(cgroups, cgroup);

struct cgroup_table {
	struct cgroup **all;
	unsigned count, cap, ended;
	struct hash by_id;
	struct path_box *retired;
	struct cgroups unnamed_ones, ended_ones; /* oldest first */
	struct selection_rules rules;
};

static struct path_box *box_of(char *path)
{
	return (struct path_box *)(void *)(path - offsetof(struct path_box, text));
}

/* Joins prefix (n bytes) and rest to a new path; NULL = no memory. */
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
	if (cg->unnamed)
		return;
	cg->unnamed = true;
	TAILQ_INSERT_TAIL(&t->unnamed_ones, cg, unnamed_link);
}

static void unnamed_remove(struct cgroup_table *t, struct cgroup *cg)
{
	if (!cg->unnamed)
		return;
	cg->unnamed = false;
	TAILQ_REMOVE(&t->unnamed_ones, cg, unnamed_link);
}

struct cgroup *cgroup_unnamed(struct cgroup_table *t)
{
	struct cgroup *cg = TAILQ_FIRST(&t->unnamed_ones);

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

static void entry_select(const struct cgroup_table *t, struct cgroup *cg)
{
	cg->selected = selection_admits(&t->rules, cg->path);
}

/* Makes the path of an entry. A path that the kernel itself cannot show (readlink and /proc/PID/cgroup stop at
 * PATH_MAX), or that does not begin with a slash, is kept as unresolved, so that every path in the table does and fits
 * CGROUP_PATH_MAX. */
static char *path_make(uint64_t id, const char *prefix, size_t n, const char *rest, bool *ret_resolved)
{
	char unknown[32];

	*ret_resolved = (n ? *prefix : *rest) == '/' && n + strlen(rest) < CGROUP_PATH_MAX;
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

struct cgroup_table *cgroup_table_new(void)
{
	struct cgroup_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	TAILQ_INIT(&t->unnamed_ones);
	TAILQ_INIT(&t->ended_ones);
	return t;
}

void cgroup_table_free(struct cgroup_table *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->count; i++)
		entry_free(t, t->all[i]);
	retired_free(t);
	free(t->all);
	hash_free(&t->by_id);
	free(t);
}

struct cgroup *cgroup_find(const struct cgroup_table *t, uint64_t id)
{
	uint32_t at = hash_find(&t->by_id, id);

	return at == HASH_NONE ? NULL : t->all[at];
}

static void ended_remove(struct cgroup_table *t, struct cgroup *cg)
{
	TAILQ_REMOVE(&t->ended_ones, cg, ended_link);
	t->ended--;
}

static struct cgroup *entry_update(struct cgroup_table *t, struct cgroup *cg, const char *path, uint16_t level,
				   uint64_t born_ns)
{
	if ((!cg->resolved || strcmp(cg->path, path)) && !entry_set_path(t, cg, path, strlen(path), ""))
		return NULL;
	cg->level = level;
	if (!cg->born_ns)
		cg->born_ns = born_ns;
	if (cg->ended) { /* an earlier walk took it for removed, but it is there */
		cg->ended = false;
		cg->ended_ns = 0;
		ended_remove(t, cg);
	}
	return cg;
}

struct cgroup *cgroup_add(struct cgroup_table *t, uint64_t id, const char *path, uint16_t level, uint64_t born_ns)
{
	struct cgroup *cg = cgroup_find(t, id);

	if (cg)
		return entry_update(t, cg, path, level, born_ns);
	if (ARRAY_ROOM(t->all, t->cap, t->count + 1) || hash_reserve(&t->by_id, t->count + 1))
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
	hash_add(&t->by_id, id, t->count);
	t->all[t->count++] = cg;
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
	TAILQ_INSERT_TAIL(&t->ended_ones, cg, ended_link);
	t->ended++;
}

/* Takes an entry out of the table; the last one takes its place. */
static void entry_remove(struct cgroup_table *t, const struct cgroup *cg)
{
	const uint32_t i = hash_find(&t->by_id, cg->id);
	struct cgroup *last = t->all[--t->count];

	hash_remove(&t->by_id, cg->id, i);
	if (i == t->count)
		return;
	hash_move(&t->by_id, last->id, t->count, i);
	t->all[i] = last;
}

unsigned cgroup_table_sweep(struct cgroup_table *t, uint64_t ended_before_ns)
{
	struct cgroup *next, *cg = TAILQ_FIRST(&t->ended_ones);
	unsigned dropped = 0;

	retired_free(t);
	for (; cg; cg = next) {
		next = TAILQ_NEXT(cg, ended_link);
		if (cg->in_use || cg->ended_ns >= ended_before_ns)
			continue;
		ended_remove(t, cg);
		entry_remove(t, cg);
		entry_free(t, cg);
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

struct cgroup *cgroup_next_ended(const struct cgroup_table *t, const struct cgroup *cg)
{
	return cg ? TAILQ_NEXT(cg, ended_link) : TAILQ_FIRST(&t->ended_ones);
}

struct cgroup *cgroup_next(const struct cgroup_table *t, unsigned *pos)
{
	return *pos < t->count ? t->all[(*pos)++] : NULL;
}

void cgroup_table_select(struct cgroup_table *t, const struct selection_rules *rules)
{
	struct cgroup *cg;
	unsigned pos = 0;

	t->rules = *rules;
	while ((cg = cgroup_next(t, &pos)))
		entry_select(t, cg);
}
