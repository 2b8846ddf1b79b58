/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of history_read.c and history_look.c: one look through the points. */
#ifndef JD_STORE_HISTORY_READ_H
#define JD_STORE_HISTORY_READ_H
#include "history_internal.h"

#define LOOK_SETS 64
#define LOOK_NONE UINT32_MAX

struct stored { /* a point as it lies in the file */
	int64_t start_ns, end_ns, domains;
	uint64_t interval_ns;
	const void *data;
	size_t size;
	enum tier tier;
};

struct look_name { /* a row of the answer, or one that becomes part of `other` */
	char *path;
	uint64_t hash, sum;
	const char *row;
	bool ended;
	uint32_t series; /* of the answer; LOOK_NONE = other's */
	uint32_t next; /* of its bucket of the hash */
	uint64_t stamp; /* of the step in which it was met last */
	unsigned quality;
};

struct look_id {
	uint64_t id;
	uint32_t name;
}; /* id + 1; name LOOK_NONE = nobody asked for it */

struct look_set {
	int64_t id;
	unsigned n, to[SCHEMA_MAX_DOMAINS];
};

struct look {
	struct history *h;
	const struct history_query *q;
	struct history_answer *a;
	uint64_t deadline_ns, step_ns;
	int64_t from[TIERS], before[TIERS];
	sqlite3_stmt *path;
	struct look_set sets[LOOK_SETS];
	unsigned n_sets;
	const struct look_set *set; /* of the point being read */
	struct look_id *ids;
	unsigned n_ids, cap_ids;
	struct look_name *names;
	unsigned n_names, cap_names;
	uint32_t buckets[1024];
	/* the step being added up */
	uint64_t stamp, n_points;
	int64_t bucket, end_ns;
	uint64_t interval_ns;
	uint32_t *touched;
	unsigned n_touched;
	uint64_t *energy_uj; /* [series * SCHEMA_MAX_DOMAINS] */
};

/* All: 0, a negative errno, or SQLite's code. */
int look_names(struct look *l);
int look_sum(struct look *l, const struct stored *s); /* first pass */
int look_choose(struct look *l);
int look_tell(struct look *l, const struct stored *s); /* second */
int look_flush(struct look *l);
void look_free(struct look *l);

#endif
