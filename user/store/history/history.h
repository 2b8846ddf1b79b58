/* SPDX-License-Identifier: Apache-2.0 */
/* The history: who used how much when, in SQLite (docs/formats/history.md). A thread of its own owns the
 * database. The measuring thread hands it copies through a bounded queue and never waits: what finds no
 * room is counted and said, and a disk that is slow, full or broken loses points, not readings.
 *
 * Beside the points it keeps the totals of this boot, whose form is their owner's: a text that holds
 * everything, then what changed since the one before, in the same commit as the interval they belong to. */
#ifndef JD_STORE_HISTORY_H
#define JD_STORE_HISTORY_H
#include <stdbool.h>
#include "../base/buf.h"
#include "../base/err.h"
#include "../model/snapshot.h"

#define HISTORY_POINTS_MAX 200000u /* of an answer */

struct history;

struct history_options {
	const char *path;
	uint64_t keep_ns; /* points of a minute */
	uint64_t size; /* bytes of the file */
	const struct schema *schema; /* borrowed */
	/* On the disk thread: everything handed over up to seq is on disk. NULL = nobody wants to know. */
	void (*kept)(void *arg, uint64_t seq);
	void *arg;
};

/* Opens or makes the store; one that cannot be read or is of another version is moved aside first. 0, or
 * -errno with err, *ret untouched; ret_note: NULL, or what happened to an old file ("" = nothing). */
int history_open(const struct history_options *o, struct history **ret, struct err *ret_note, struct err *err);
/* The totals kept for this boot, oldest first: take is called for each text until it returns non-zero. Before
 * history_start. 0 or what take returned. */
int history_load(struct history *h, int (*take)(void *arg, const void *data, size_t size), void *arg);
int history_start(struct history *h, struct err *err);
/* Writes what waits, for at most two seconds; nothing is kept any more. NULL accepted, and a second time. */
void history_stop(struct history *h);
void history_close(struct history *h); /* stops it first; NULL accepted */

/* Measuring thread. Copies s and what save appends: all totals when all is set, else those that changed since
 * the last one that was taken. The number of the hand-over, 0 = no room: nothing was taken and nothing
 * is lost of the totals, for the next one has it. */
uint64_t history_put(struct history *h, const struct snapshot *s, void (*save)(void *arg, bool all, struct buf *out),
		     void *arg);

struct history_figures {
	char path[256], state[16], reason[512]; /* state: "ok", "failing" */
	uint64_t bytes, written, lost_intervals, queued;
	int64_t resumed_ns; /* CLOCK_REALTIME of the last interval of an earlier agent on this boot, 0 = none */
	bool killed; /* that one did not end by itself: its last second may be missing */
};
void history_figures(struct history *h, struct history_figures *ret); /* any thread */

struct history_query {
	const char *cgroup; /* NULL = all */
	int64_t since_ns, until_ns; /* CLOCK_REALTIME */
	uint64_t step_ns; /* 0 = the finest there is */
	uint64_t limit; /* cgroups; the rest is `other` */
};

struct history_point {
	int64_t end_ns;
	uint64_t interval_ns;
	unsigned quality;
	size_t energy; /* first of its columns in history_answer.energy_uj */
};

struct history_series {
	char *cgroup; /* or the row's name */
	const char *row;
	bool ended;
	unsigned n, cap;
	struct history_point *points;
};

struct history_lost {
	int64_t from_ns, until_ns;
	char reason[96];
};

struct history_answer {
	int64_t since_ns, until_ns;
	uint64_t step_ns;
	unsigned n_domains;
	char domains[SCHEMA_MAX_DOMAINS][64];
	unsigned n_series;
	struct history_series *series;
	size_t n_energy, cap_energy;
	uint64_t *energy_uj; /* n_domains a point */
	unsigned n_lost, cap_lost;
	struct history_lost *lost;
};

/* One thread at a time, not the measuring one; reads beside the writer. 0, -ENOENT: no such cgroup was seen,
 * -E2BIG: more than HISTORY_POINTS_MAX points or too long a look, or another errno; err says so. */
int history_read(struct history *h, const struct history_query *q, struct history_answer *ret, struct err *err);
void history_answer_free(struct history_answer *a); /* not the struct itself */

#endif
