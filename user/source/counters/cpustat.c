// SPDX-License-Identifier: Apache-2.0
/* trigger none: CPU time of each cgroup from its cpu.stat (Documentation/admin-guide/cgroup-v2.rst), idle time per
 * CPU from /proc/stat. No eBPF, no counters, no capability beyond reading files.
 *
 * * cpu.stat counts the subtree. A row needs the cgroup's own time, so the increments of its live children are taken
 * off. Time that a child used between its last reading and its end stays with its parent. cpu.stat does not say
 * which CPU: each increment is spread over the packages by how busy they were, on the first online CPU of each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "counters.h"
#include "model/cgroup.h"
#include "model/reading.h"
#include "topology.h"

struct stat_entry {
	uint64_t id;
	struct cgroup *cgroup;
	int fd;
	uint32_t parent, row; /* UINT32_MAX = none */
	bool seen, fresh; /* fresh: born while we run, so its first value is all new */
	uint64_t usage_ns;
	int64_t delta_ns, own_ns, owed_ns;
};

struct cpu_stat {
	bool seen, online, away;
	uint64_t idle_ns, total_ns;
};

/* The CPU that gets a package's part of a cgroup's time. */
struct package_stat {
	uint16_t cpu;
	bool online;
	uint64_t busy_ns;
	double busy_part;
};

struct cpustat {
	struct schema *schema;
	const struct fsroot *root; /* borrowed */
	int mount_fd, stat_fd;
	struct online_cpus *online; /* NULL = this machine does not tell */
	uint8_t *online_bits, *gone_bits;
	struct stat_entry *entries;
	uint32_t n, cap;
	struct cpu_stat *cpus; /* schema->n_cpus */
	struct package_stat *packages; /* max_packages; the first n_packages are in use */
	unsigned max_packages; /* of the schema as it was opened: energy domains may raise that number */
	unsigned n_packages;
	char *text;
	size_t text_size;
};

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

	if (ARRAY_ROOM(c->entries, c->cap, c->n + 1) != 0)
		return -ENOMEM;
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
	if (c->n)
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
	const bool has_rest = r->schema->core.n > CELL_EVENTS;
	const int64_t cell = time_ns ? reading_cell_number(r, row, cpu) : -1;
	struct cell_rest *rest = cell >= 0 && has_rest ? reading_rest(r, (uint32_t)cell) : NULL;
	struct cell *v;

	if (cell < 0 || (has_rest && !rest))
		return;
	v = reading_touch(r, (uint32_t)cell);
	v->time_ns += time_ns;
	v->switches++;
	for (unsigned i = 0; i < r->schema->core.n; i++)
		if (r->schema->core.ev[i].kind == EVENT_TASK_CLOCK)
			*cell_counter(v, rest, i) += time_ns;
}

/* A child's figures are flushed a moment later than its parent's, so an own share can be below zero by a few
 * microseconds. The deficit is taken off the next share. */
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

static int cpustat_read_cpus(struct cpustat *c, struct reading *r);

int cpustat_read(struct cpustat *c, struct reading *r, struct cgroup_table *t, struct lifecycle *l)
{
	int rc = follow(c, r, t);

	if (!rc)
		rc = cpustat_read_cpus(c, r);
	if (rc)
		return rc;
	take_increments(c);
	for (uint32_t i = 0; i < c->n && !rc; i++)
		rc = add_own(c, r, &c->entries[i]);
	return rc;
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
		return err_set(err, -ENOMEM, "trigger none: out of memory; free some");
	c->schema = s;
	c->root = root;
	c->mount_fd = fsroot_openat(root, h->mount, O_PATH | O_DIRECTORY);
	c->stat_fd = fsroot_openat(root, "proc/stat", O_RDONLY);
	c->cpus = calloc(s->n_cpus, sizeof(*c->cpus));
	c->max_packages = s->n_packages;
	c->packages = calloc(c->max_packages, sizeof(*c->packages));
	c->online_bits = calloc(s->n_cpus / 8 + 1, 1);
	c->gone_bits = calloc(s->n_cpus / 8 + 1, 1);
	if (online_open(root, &c->online) == 0 && online_watch(c->online, s->n_cpus) == 0 && c->online_bits &&
	    c->gone_bits)
		online_look(c->online, c->online_bits, c->gone_bits);
	if (c->mount_fd < 0 || c->stat_fd < 0 || !c->cpus || !c->packages || !c->online_bits || !c->gone_bits) {
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
	online_close(c->online);
	free(c->online_bits);
	free(c->gone_bits);
	free(c->cpus);
	free(c->packages);
	free(c->text);
	free(c);
}

/* Idle and busy time per CPU from /proc/stat (Documentation/filesystems/proc.rst 1.7): user, nice,
 * system, idle, iowait, irq, softirq, steal in clock ticks. Steps of a tick, so never exact. */

#define FIELDS 8
#define FIELD_IDLE 3
#define FIELD_IOWAIT 4

/* The whole file into c->text; grows until it fits, then never again. */
static int read_text(struct cpustat *c)
{
	for (;;) {
		ssize_t n = c->text_size ? pread(c->stat_fd, c->text, c->text_size - 1, 0) : 0;
		char *bigger;

		if (n < 0)
			return -errno;
		if (n > 0 && (size_t)n < c->text_size - 1) {
			c->text[n] = '\0';
			return 0;
		}
		bigger = realloc(c->text, c->text_size ? c->text_size * 2 : 4096);
		if (!bigger)
			return -ENOMEM;
		c->text = bigger;
		c->text_size = c->text_size ? c->text_size * 2 : 4096;
	}
}

static void take_cpu(struct cpustat *c, struct reading *r, unsigned cpu, const uint64_t ticks_ns[FIELDS])
{
	struct cpu_stat *st = &c->cpus[cpu];
	uint64_t idle = ticks_ns[FIELD_IDLE] + ticks_ns[FIELD_IOWAIT], total = 0, idle_add, total_add;
	struct cell *v;

	for (unsigned i = 0; i < FIELDS; i++)
		total += ticks_ns[i];
	st->online = true;
	/* kernels before 6.8 count idle time from 0 again on a CPU that was away (tick_cancel_sched_timer) */
	if ((c->gone_bits[cpu / 8] >> cpu % 8 & 1) && (idle < st->idle_ns || total < st->total_ns))
		st->seen = false;
	/* iowait may step back (Documentation/filesystems/proc.rst): never below what was seen */
	idle_add = st->seen && idle > st->idle_ns ? idle - st->idle_ns : 0;
	total_add = st->seen && total > st->total_ns ? total - st->total_ns : 0;
	st->idle_ns = st->seen && idle < st->idle_ns ? st->idle_ns : idle;
	st->total_ns = st->seen && total < st->total_ns ? st->total_ns : total;
	st->seen = true;
	r->cpus[cpu].elapsed_ns += total_add;
	r->cpus[cpu].read_mono_ns = r->mono_ns;
	c->packages[c->schema->cpus[cpu].package].busy_ns += total_add > idle_add ? total_add - idle_add : 0;
	v = idle_add ? reading_cell(r, ROW_IDLE, (uint16_t)cpu) : NULL;
	if (v) {
		v->time_ns += idle_add;
		v->switches++;
	}
}

static void parse_line(struct cpustat *c, struct reading *r, char *line)
{
	uint64_t ticks_ns[FIELDS], tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned long cpu;
	char *end;

	if (strncmp(line, "cpu", 3) || line[3] < '0' || line[3] > '9')
		return;
	cpu = strtoul(line + 3, &end, 10);
	if (cpu >= c->schema->n_cpus || c->schema->cpus[cpu].package >= c->max_packages)
		return;
	for (unsigned i = 0; i < FIELDS; i++)
		ticks_ns[i] = strtoull(end, &end, 10) * tick_ns;
	take_cpu(c, r, (unsigned)cpu, ticks_ns);
}

/* The first online CPU of each package, packages packed to the front of the array. */
static void share_packages(struct cpustat *c)
{
	uint64_t all = 0;
	unsigned n = 0;

	for (unsigned p = 0; p < c->max_packages; p++) {
		unsigned cpu = 0;

		while (cpu < c->schema->n_cpus && (!c->cpus[cpu].online || c->schema->cpus[cpu].package != p))
			cpu++;
		if (cpu == c->schema->n_cpus)
			continue;
		c->packages[n].busy_ns = c->packages[p].busy_ns;
		c->packages[n].cpu = (uint16_t)cpu;
		all += c->packages[n++].busy_ns;
	}
	for (unsigned i = 0; i < n; i++)
		c->packages[i].busy_part = all ? (double)c->packages[i].busy_ns / (double)all : 1.0 / n;
	c->n_packages = n;
}

/* /proc/stat lists the CPUs that are online now. A CPU that went and came back looks there as if it had never been
 * away. */
static void follow_hotplug(struct cpustat *c, struct reading *r)
{
	for (unsigned cpu = 0; cpu < c->schema->n_cpus; cpu++) {
		bool was = r->cpus[cpu].online, is = c->cpus[cpu].online, gone = c->gone_bits[cpu / 8] >> cpu % 8 & 1;

		if (is && (gone || c->cpus[cpu].away))
			topology_refresh(c->root, c->schema, cpu);
		if (!is)
			c->cpus[cpu].seen = false;
		c->cpus[cpu].away = !is;
		r->cpus[cpu].online_changes += was != is ? 1 : is && gone ? 2 : 0;
		r->cpus[cpu].online = is;
	}
}

/* Idle and elapsed time of every CPU since the last call, from /proc/stat; how busy each package was. */
static int cpustat_read_cpus(struct cpustat *c, struct reading *r)
{
	char *save = NULL;
	int rc;

	/* before the look at /proc/stat: a CPU that goes away after it is told at the next reading */
	if (c->online)
		online_look(c->online, c->online_bits, c->gone_bits);
	rc = read_text(c);
	if (rc)
		return rc;
	for (unsigned p = 0; p < c->max_packages; p++)
		c->packages[p].busy_ns = 0;
	for (unsigned cpu = 0; cpu < c->schema->n_cpus; cpu++)
		c->cpus[cpu].online = false;
	for (char *line = strtok_r(c->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		parse_line(c, r, line);
	follow_hotplug(c, r);
	share_packages(c);
	return c->n_packages ? 0 : -ENODATA;
}
