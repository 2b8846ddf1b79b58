/* SPDX-License-Identifier: Apache-2.0 */
/* One record of the ring into the table.
 *
 * Paths are below the mount. Where only a subtree is mounted (private namespace, bind mount) the
 * record says how many components lie above it; a cgroup outside keeps its path from the
 * hierarchy's root. No walk and no handle names those: one that was there before the start is
 * "/?<id>". */
#include "lifecycle.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "../base/clock.h"
#include "lifecycle_internal.h"

#define PENDING_NS (1 * NS_PER_S)

/* The record's path below the mount. */
static const char *mapped_path(const struct jd_lifecycle_event *e)
{
	const char *path = e->path;

	if (e->mount_level == JD_OUTSIDE)
		return path;
	for (uint32_t i = 0; i < e->mount_level && *path; i++) {
		const char *next = strchr(path + 1, '/');

		path = next ? next : "";
	}
	return *path ? path : "/";
}

static uint16_t mapped_level(const struct jd_lifecycle_event *e)
{
	uint32_t level = e->mount_level == JD_OUTSIDE || e->mount_level > e->level ? e->level :
										     e->level - e->mount_level;

	return level < UINT16_MAX ? (uint16_t)level : UINT16_MAX;
}

void lifecycle_placeholder(uint64_t id, const char *cut, char ret_path[CGROUP_PATH_MAX])
{
	const char *end = strrchr(cut, '/');
	int n = end ? (int)(end - cut) : 0;

	snprintf(ret_path, CGROUP_PATH_MAX, "%.*s/?%llu", n, cut, (unsigned long long)id);
}

static void pend(struct lifecycle *l, uint64_t id)
{
	for (unsigned i = 0; i < l->n_pending; i++)
		if (l->pending[i] == id)
			return;
	if (l->n_pending < LIFECYCLE_PENDING)
		l->pending[l->n_pending++] = id;
	else
		l->walk_wanted = true;
}

/* Full path of the record's cgroup into path. False when it could not be had (yet). */
static bool full_path(const struct lifecycle *l, const struct jd_lifecycle_event *e, char ret_path[CGROUP_PATH_MAX])
{
	const char *path = mapped_path(e);

	if (!(e->flags & JD_PATH_TRUNCATED)) {
		memcpy(ret_path, path, strlen(path) + 1);
		return true;
	}
	if (e->kind != JD_CGROUP_RMDIR && !lifecycle_path_of(l, e->cgroup_id, ret_path))
		return true;
	lifecycle_placeholder(e->cgroup_id, path, ret_path);
	return false;
}

static struct cgroup *add_record(struct lifecycle *l, const struct jd_lifecycle_event *e, uint64_t born_ns)
{
	char path[CGROUP_PATH_MAX];
	bool full = full_path(l, e, path);
	struct cgroup *cg = cgroup_add(l->table, e->cgroup_id, path, mapped_level(e), born_ns);

	if (!cg) {
		l->walk_wanted = true;
		return NULL;
	}
	if (!full) {
		cg->resolved = false;
		if (e->kind != JD_CGROUP_RMDIR)
			pend(l, cg->id);
	}
	return cg;
}

static void take_mkdir(struct lifecycle *l, const struct jd_lifecycle_event *e)
{
	struct cgroup *cg = cgroup_find(l->table, e->cgroup_id);

	if (!cg || !cg->resolved)
		add_record(l, e, e->mono_ns);
	else if (!cg->born_ns)
		cg->born_ns = e->mono_ns;
}

/* One whose birth was lost, or that died before the walk: the record still names it. */
static void take_rmdir(struct lifecycle *l, const struct jd_lifecycle_event *e)
{
	if (!cgroup_find(l->table, e->cgroup_id))
		add_record(l, e, 0);
	cgroup_end(l->table, e->cgroup_id, e->mono_ns);
}

static void take_rename(struct lifecycle *l, const struct jd_lifecycle_event *e)
{
	char path[CGROUP_PATH_MAX];

	l->renames++;
	if (!cgroup_find(l->table, e->cgroup_id)) {
		add_record(l, e, 0);
		return;
	}
	if (full_path(l, e, path)) {
		cgroup_rename(l->table, e->cgroup_id, path);
		return;
	}
	cgroup_rename(l->table, e->cgroup_id, path);
	cgroup_find(l->table, e->cgroup_id)->resolved = false;
	pend(l, e->cgroup_id);
}

void lifecycle_tell_moved(struct lifecycle *l, uint32_t cpu)
{
	int n;

	if (!l->hooks.task_moved)
		return;
	if (cpu != JD_EVERY_CPU) {
		l->hooks.task_moved(l->hooks.ctx, cpu);
		return;
	}
	n = libbpf_num_possible_cpus();
	for (int i = 0; i < n; i++)
		l->hooks.task_moved(l->hooks.ctx, (unsigned)i);
}

int lifecycle_record(void *ctx, void *data, size_t n)
{
	const struct jd_lifecycle_event *e = data;
	struct lifecycle *l = ctx;
	size_t head = offsetof(struct jd_lifecycle_event, path);

	if (n <= head || n > sizeof(*e) || e->path_len >= n - head || e->path[e->path_len])
		return 0;
	l->taken++;
	switch (e->kind) {
	case JD_CGROUP_MKDIR:
		take_mkdir(l, e);
		break;
	case JD_CGROUP_RMDIR:
		take_rmdir(l, e);
		break;
	case JD_CGROUP_RENAME:
		take_rename(l, e);
		break;
	case JD_TASK_MOVED:
		if (l->resolving)
			l->moves_owed = true;
		else
			lifecycle_tell_moved(l, e->cpu);
		break;
	}
	return 0;
}

/* A new cgroup is announced a moment before the kernel lets its handle be opened. */
void lifecycle_settle_pending(struct lifecycle *l)
{
	uint64_t now = l->n_pending ? clock_mono_ns() : 0;
	char path[CGROUP_PATH_MAX];
	unsigned kept = 0;

	for (unsigned i = 0; i < l->n_pending; i++) {
		struct cgroup *cg = cgroup_find(l->table, l->pending[i]);

		if (!cg || cg->ended || cg->resolved)
			continue;
		if (!lifecycle_path_of(l, cg->id, path))
			cgroup_rename(l->table, cg->id, path);
		else if (now < cg->born_ns + PENDING_NS)
			l->pending[kept++] = cg->id;
	}
	l->n_pending = kept;
}
