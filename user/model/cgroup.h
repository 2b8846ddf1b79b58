/* SPDX-License-Identifier: Apache-2.0 */
/* The known cgroups of the accounted hierarchy: id <-> path, alive or ended. source/lifecycle fills the table (initial
 * walk, then events). All parts on the measuring thread read it. An entry's pointer and its path stay valid until
 * cgroup_table_sweep() drops it. That happens only after `release` was called for it (the counters source has retired
 * its slot). */
#ifndef JD_CGROUP_H
#define JD_CGROUP_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "naming.h"
#include "selection.h"

#define CGROUP_PATH_MAX 4096

struct cgroup {
	uint64_t id;
	char *path; /* below the mount, leading slash, "/" for the root; raw bytes */
	uint16_t level; /* 0 = root */
	bool ended; /* removed: no new tasks, may still get last counts */
	bool resolved; /* false: seen by counters before its path was known; path "/?id" */
	uint64_t born_ns, ended_ns; /* CLOCK_MONOTONIC; born_ns 0 = existed before us */
	uint32_t renamed; /* +1 at each rename: copies of the path are stale then */
	uint32_t walk; /* source/lifecycle: number of the walk that saw it last */
	bool in_use; /* a row refers to it: not swept */
	bool selected; /* passes cgroups.include / exclude */
	struct names *names; /* a reference; NULL = not known (yet), or not looked up (source/naming) */
	bool unnamed; /* waits for cgroup_unnamed */
	TAILQ_ENTRY(cgroup) unnamed_link, ended_link; /* of the table's lists of such */
};

struct cgroup_table;

struct cgroup_table *cgroup_table_new(void);
void cgroup_table_free(struct cgroup_table *t);
/* Finds by id; NULL when unknown. */
struct cgroup *cgroup_find(const struct cgroup_table *t, uint64_t id);
/* Adds, or updates the path of a known id; an ended one lives again. path is copied. NULL when out
 * of memory. */
struct cgroup *cgroup_add(struct cgroup_table *t, uint64_t id, const char *path, uint16_t level, uint64_t born_ns);
/* Renames id and every living entry below its old path. The old text stays readable until the next
 * sweep. Paths of CGROUP_PATH_MAX bytes and more, and those without a slash in front, become unresolved ("/?<id>"), here
 * and in _add. */
void cgroup_rename(struct cgroup_table *t, uint64_t id, const char *new_path);
void cgroup_end(struct cgroup_table *t, uint64_t id, uint64_t ended_ns);
/* Drops entries with in_use false that ended before a time (CLOCK_MONOTONIC). Counts of a younger one may still wait in
 * the kernel and need its name. Returns how many were dropped. */
unsigned cgroup_table_sweep(struct cgroup_table *t, uint64_t ended_before_ns);
unsigned cgroup_table_count(const struct cgroup_table *t);
unsigned cgroup_table_ended(const struct cgroup_table *t); /* entries that ended and are not swept yet */
/* The one of those that ended next after cg, or first (NULL). NULL at the end. */
struct cgroup *cgroup_next_ended(const struct cgroup_table *t, const struct cgroup *cg);
/* Takes the next entry whose path is new since it was last taken, oldest first, so that its names are looked up. NULL =
 * none. */
struct cgroup *cgroup_unnamed(struct cgroup_table *t);
/* Iterates; *pos starts at 0; NULL at the end. Not while adding. */
struct cgroup *cgroup_next(const struct cgroup_table *t, unsigned *pos);
/* Sets `selected` of every entry, now and for later additions. The lists are borrowed and must outlive the table. */
void cgroup_table_select(struct cgroup_table *t, const struct selection_rules *rules);

#endif
