// SPDX-License-Identifier: Apache-2.0
/* trigger none: CPU time of each cgroup from its cpu.stat (Documentation/admin-guide/cgroup-v2.rst),
 * idle time per CPU from /proc/stat. No eBPF, no counters, no capability beyond reading files.
 *
 * cpu.stat counts the subtree; a row wants the cgroup's own time, so the increments of its live
 * children are taken off. What a child used after its last reading before it ended stays with its
 * parent. cpu.stat does not say which CPU: each increment is spread over the packages by how busy
 * they were, on the first online CPU of each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cpustat_internal.h"
#include "counters.h"

static int by_tree(const void *a, const void *b)
{
	const struct stat_entry *x = a, *y = b;
	const unsigned char *p = (const unsigned char *)x->cgroup->path, *q = (const unsigned char *)y->cgroup->path;

	/* '/' sorts before everything: a parent is followed by all of its subtree */
	while (*p && *p == *q) {
		p++;
		q++;
	}
	return (*p == '/' ? 1 : *p) - (*q == '/' ? 1 : *q);
}

static bool is_below(const char *path, const char *parent)
{
	size_t n = strlen(parent);

	return !strcmp(parent, "/") || (!strncmp(path, parent, n) && path[n] == '/');
}

/* Parents from the sorted order: the nearest entry before it that it lies below. */
static void link_parents(struct cpustat *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t up = i ? i - 1 : UINT32_MAX;

		while (up != UINT32_MAX && !is_below(c->entries[i].cgroup->path, c->entries[up].cgroup->path))
			up = c->entries[up].parent;
		c->entries[i].parent = up;
	}
}

static int open_stat(const struct cpustat *c, const struct cgroup *cg)
{
	char path[CGROUP_PATH_MAX + 16];
	const char *below = strcmp(cg->path, "/") ? cg->path + 1 : "";

	if ((size_t)snprintf(path, sizeof(path), "%s%scpu.stat", below, *below ? "/" : "") >= sizeof(path))
		return -ENAMETOOLONG;
	return openat(c->mount_fd, path, O_RDONLY | O_CLOEXEC);
}

static int add_entry(struct cpustat *c, struct cgroup *cg)
{
	struct stat_entry *e;

	if (c->n == c->cap) {
		uint32_t cap = c->cap ? c->cap * 2 : 64;
		struct stat_entry *v = realloc(c->entries, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		c->entries = v;
		c->cap = cap;
	}
	e = &c->entries[c->n];
	*e = (struct stat_entry){ .id = cg->id, .cgroup = cg, .fd = open_stat(c, cg), .row = UINT32_MAX };
	if (e->fd < 0)
		return 0; /* it has ended meanwhile: its time stays with its parent */
	e->fresh = cg->born_ns != 0;
	c->n++;
	return 0;
}

static void drop_entry(struct cpustat *c, uint32_t i, struct reading *r)
{
	close(c->entries[i].fd);
	if (c->entries[i].row != UINT32_MAX)
		reading_drop_row(r, c->entries[i].row);
	c->entries[i] = c->entries[--c->n];
}

static bool known(const struct cpustat *c, uint64_t id)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->entries[i].id == id)
			return true;
	return false;
}

/* Follows the table: ended cgroups out, new ones in, renamed ones to their place. */
static int follow(struct cpustat *c, struct reading *r, struct cgroup_table *t)
{
	unsigned pos = 0, live = 0;
	struct cgroup *cg;

	for (uint32_t i = 0; i < c->n;) {
		if (c->entries[i].cgroup->ended)
			drop_entry(c, i, r);
		else
			i++;
	}
	while ((cg = cgroup_next(t, &pos)))
		live += !cg->ended;
	if (live != c->n) {
		pos = 0;
		while ((cg = cgroup_next(t, &pos)))
			if (!cg->ended && !known(c, cg->id) && add_entry(c, cg))
				return -ENOMEM;
	}
	qsort(c->entries, c->n, sizeof(*c->entries), by_tree);
	link_parents(c);
	return 0;
}

/* usage_usec of an entry; false when the file is gone. */
static bool read_usage(const struct stat_entry *e, uint64_t *ret_ns)
{
	char text[512], *at;
	ssize_t n = pread(e->fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strstr(text, "usage_usec ");
	if (!at)
		return false;
	*ret_ns = strtoull(at + strlen("usage_usec "), NULL, 10) * 1000;
	return true;
}

static void take_increments(struct cpustat *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct stat_entry *e = &c->entries[i];
		uint64_t now;

		e->delta_ns = 0;
		if (!read_usage(e, &now))
			continue;
		if (e->seen)
			e->delta_ns = (int64_t)(now - e->usage_ns);
		else if (e->fresh)
			e->delta_ns = (int64_t)now;
		e->usage_ns = now;
		e->seen = true;
		e->own_ns = e->delta_ns;
	}
	for (uint32_t i = 0; i < c->n; i++)
		if (c->entries[i].parent != UINT32_MAX)
			c->entries[c->entries[i].parent].own_ns -= c->entries[i].delta_ns;
}

static void add_time(struct reading *r, uint32_t row, uint16_t cpu, uint64_t time_ns)
{
	struct cell_values *v = time_ns ? reading_cell(r, row, cpu) : NULL;

	if (!v)
		return;
	v->time_ns += time_ns;
	v->switches++;
	v->enabled_ns += time_ns;
	v->running_ns += time_ns;
	for (unsigned i = 0; i < r->schema->core.n; i++)
		if (r->schema->core.ev[i].kind == EVENT_TASK_CLOCK)
			v->counters[i] += time_ns;
}

/* A child's books are flushed a moment later than its parent's, so an own share can be below zero by
 * a few microseconds: it is taken off the next one. */
static int add_own(struct cpustat *c, struct reading *r, struct stat_entry *e)
{
	uint64_t left;

	e->owed_ns += e->own_ns;
	if (e->owed_ns <= 0)
		return 0;
	if (e->row == UINT32_MAX) {
		int64_t row = reading_add_row(r, e->cgroup);

		if (row < 0)
			return (int)row;
		e->row = (uint32_t)row;
	}
	left = (uint64_t)e->owed_ns;
	e->owed_ns = 0;
	for (unsigned p = 0; p < c->n_packages; p++) {
		uint64_t part = p + 1 == c->n_packages ? left : (uint64_t)((double)left * c->packages[p].busy_part);

		add_time(r, e->row, c->packages[p].cpu, part < left ? part : left);
		left -= part < left ? part : left;
	}
	return 0;
}

int cpustat_read(struct cpustat *c, struct reading *r, struct cgroup_table *t, struct lifecycle *l)
{
	int err = follow(c, r, t);

	if (!err)
		err = cpustat_read_cpus(c, r);
	if (err)
		return err;
	take_increments(c);
	for (uint32_t i = 0; i < c->n && !err; i++)
		err = add_own(c, r, &c->entries[i]);
	return err;
}

int cpustat_open(const struct hierarchy *h, const struct fsroot *root, struct schema *s, struct cpustat **ret,
		 struct err *err)
{
	struct cpustat *c;

	if (!h->v2)
		return err_set(err, -EOPNOTSUPP,
			       "trigger none: cgroup v1 has no cpu.stat with CPU time; mount cgroup2 "
			       "and set cgroups.hierarchy: v2, or choose another trigger");
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, -ENOMEM, "trigger none: out of memory");
	c->schema = s;
	c->mount_fd = fsroot_openat(root, h->mount, O_PATH | O_DIRECTORY);
	c->stat_fd = fsroot_openat(root, "proc/stat", O_RDONLY);
	c->cpus = calloc(s->n_cpus, sizeof(*c->cpus));
	c->max_packages = s->n_packages;
	c->packages = calloc(c->max_packages, sizeof(*c->packages));
	if (c->mount_fd < 0 || c->stat_fd < 0 || !c->cpus || !c->packages) {
		cpustat_close(c);
		return err_set(err, -EIO, "trigger none: %s or /proc/stat cannot be opened; mount them", h->mount);
	}
	snprintf(s->trigger, sizeof(s->trigger), "none");
	snprintf(s->clock, sizeof(s->clock), "cpu.stat");
	*ret = c;
	return 0;
}

void cpustat_close(struct cpustat *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->n; i++)
		close(c->entries[i].fd);
	free(c->entries);
	if (c->mount_fd >= 0)
		close(c->mount_fd);
	if (c->stat_fd >= 0)
		close(c->stat_fd);
	free(c->cpus);
	free(c->packages);
	free(c->text);
	free(c);
}
