/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to answer.c: one query of the history, which reads the points in two passes. */
#ifndef JD_STORE_HISTORY_READ_H
#define JD_STORE_HISTORY_READ_H
#include "database.h"

#define LOOK_SETS 64
#define LOOK_NONE (HASH_NONE - 1)

struct stored { /* a point as it lies in the file */
	int64_t start_ns, end_ns, domains;
	uint64_t interval_ns;
	const void *data;
	size_t size;
	enum tier tier;
};

struct look_end {
	bool ended, ending; /* as of struct history_series */
};

struct look_name { /* a name that gets a row of the answer or goes into `other` */
	char *path;
	uint64_t sum;
	const char *row;
	struct look_end end;
	uint32_t series; /* index in the answer; LOOK_NONE = in `other` */
	uint64_t stamp; /* of the step in which it was last seen */
	unsigned quality;
};

struct look_set { /* a set of domains that points have */
	int64_t id;
	unsigned n, to[SCHEMA_MAX_DOMAINS];
	bool summed[SCHEMA_MAX_DOMAINS]; /* domains that are added up to rank rows */
};

struct history_look {
	struct history *h;
	struct history_query query, *q; /* q: query, with its own copy of the cgroup */
	struct history_answer answer, *a;
	uint64_t step_ns;
	int64_t from[TIERS], before[TIERS];
	bool telling; /* the second pass */
	int tier; /* current tier; below TIER_SECOND = done */
	sqlite3_stmt *points; /* of that tier, NULL = not started */
	uint64_t rows; /* rows read, in both passes */
	unsigned ops; /* thousands of SQLite operations since the last point */
	sqlite3_stmt *path;
	struct look_set sets[LOOK_SETS];
	unsigned n_sets;
	const struct look_set *set; /* domains of the point being read */
	struct hash by_id; /* the name of each id of a series; LOOK_NONE = not asked for */
	struct look_name *names;
	unsigned n_names, cap_names;
	struct hash by_path;
	/* the step being added up */
	uint64_t stamp, n_points;
	int64_t bucket, end_ns;
	uint64_t interval_ns;
	uint32_t *touched;
	unsigned n_touched;
	uint64_t *energy_uj; /* [series * SCHEMA_MAX_DOMAINS] */
};

#endif
