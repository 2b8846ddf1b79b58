/* SPDX-License-Identifier: Apache-2.0 */
/* The history: the energy of each cgroup over time, in SQLite (docs/formats/history.md). A thread of its own owns the
 * database. The measuring thread hands it copies through a bounded queue and never waits. Intervals that do not fit the
 * queue are counted and reported. A slow, full or broken disk loses points of the history, not readings.
 *
 * Beside the points the history keeps the totals of this boot. Their owner defines the form: a text that holds
 * everything, then texts of the changes since the one before. Each is in the same commit as its interval. */
#ifndef JD_STORE_HISTORY_H
#define JD_STORE_HISTORY_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"
#include "model/audit.h"
#include "model/selection.h"
#include "model/snapshot.h"

#define HISTORY_POINTS_MAX 200000u /* points of an answer */
#define HISTORY_LOOK_ROWS_MAX 10000000u /* rows read for an answer: cgroups x points of the file */

struct history;

struct history_options {
	const char *path;
	uint64_t keep_ns; /* how long points of a minute are kept */
	uint64_t size; /* size limit of the file, bytes */
	const struct schema *schema; /* borrowed */
	/* Called on the disk thread: everything handed over up to seq is on disk. May be NULL. */
	void (*kept)(void *arg, uint64_t seq);
	void *arg;
};

/* Opens or makes the store. An old file that cannot be read or is of another version is moved aside first. 0, or -errno
 * with err and *ret untouched. ret_note may be NULL; it tells the fate of an old file ("" = it was not moved). */
int history_open(const struct history_options *o, struct history **ret, struct err *ret_note, struct err *err);
/* Reads the totals kept for this boot, oldest text first: calls take for each until it returns non-zero. Call before
 * history_start. 0 or the value that take returned. */
int history_load(struct history *h, int (*take)(void *arg, const void *data, size_t size), void *arg);
int history_start(struct history *h, struct err *err);
/* Writes the hand-overs that wait, for at most two seconds; later ones are not kept. NULL and a second call are
 * accepted. */
void history_stop(struct history *h);
void history_close(struct history *h); /* stops it first; NULL accepted */

/* Measuring thread. Copies s and the totals that save appends: all when all is set, else those that changed
 * since the last hand-over that was accepted. Returns the number of the hand-over; 0 = no room, and s is not
 * taken. No totals are lost then: the next hand-over has them. */
uint64_t history_put(struct history *h, const struct snapshot *s, void (*save)(void *arg, bool all, struct buf *out),
		     void *arg);

/* Any thread: keeps the result of an audit; it is on the disk with the next interval. 0 or -ENOMEM. */
int history_put_audit(struct history *h, const struct audit *a);
/* The last one that was kept, on whatever boot. Call before history_start. False = there is none. */
bool history_last_audit(struct history *h, struct audit *ret);

struct history_figures {
	char path[256], state[16], reason[512]; /* state: "ok", "failing" */
	uint64_t bytes, written, lost_intervals, queued;
	int64_t resumed_ns; /* CLOCK_REALTIME of the last interval of an earlier agent on this boot, 0 = none */
	bool killed; /* that agent was killed: its last second may be missing */
};
void history_figures(struct history *h, struct history_figures *ret); /* any thread */

struct history_query {
	const char *cgroup; /* NULL = all */
	const char *job; /* the steps of that batch job, each added up over its cgroups; NULL = all; not with cgroup */
	int64_t since_ns, until_ns; /* CLOCK_REALTIME */
	uint64_t step_ns; /* 0 = the finest available */
	uint64_t limit; /* cgroups shown; the rest is `other` */
	const struct selection_rules *rules; /* cgroups that may be shown, the rest is `other`; NULL = all */
};

struct history_point {
	int64_t end_ns;
	uint64_t interval_ns;
	unsigned quality;
	size_t energy; /* index of its first column in history_answer.energy_uj */
};

struct history_series {
	char *cgroup; /* or the name of a special row, or of a step: JOB.STEP */
	const char *row; /* "cgroup", "job", or that of a special row */
	bool ended; /* and its last energy is in the points */
	bool ending; /* it has ended, and its last energy is not in the points: it came later than the time asked for, or comes */
	unsigned n, cap;
	struct history_point *points;
};

struct history_lost {
	int64_t from_ns, until_ns;
	char reason[96];
};

struct history_answer {
	int64_t since_ns, until_ns;
	int64_t told_ns; /* CLOCK_REALTIME; what was used up to then is in the points, later use may not be */
	uint64_t step_ns;
	unsigned n_domains;
	char domains[SCHEMA_MAX_DOMAINS][64];
	unsigned n_series;
	struct history_series *series;
	unsigned n_other; /* cgroups whose energy is in `other` */
	bool more_other; /* `other` also has cgroups that were never stored by name */
	size_t n_energy;
	uint32_t cap_energy;
	uint64_t *energy_uj; /* n_domains values per point */
	unsigned n_lost, cap_lost;
	struct history_lost *lost;
};

/* A query that is answered in steps, so that its thread can do other work between them. One thread at a time,
 * not the measuring one, and one look at a time. It reads beside the writer. The answer depends on q and the
 * file alone. */
struct history_look;
/* 0; -EBUSY: the look before has not ended; or another errno. err says so. */
int history_look_begin(struct history *h, const struct history_query *q, struct history_look **ret, struct err *err);
/* Reads about `rows` more rows. 1: there is more; 0: *ret is the answer, which the caller owns. -ENOENT: the
 * cgroup was never seen; -E2BIG: more than HISTORY_POINTS_MAX points or HISTORY_LOOK_ROWS_MAX rows; or another
 * errno. err says so. */
int history_look_go_on(struct history_look *l, uint64_t rows, struct history_answer *ret, struct err *err);
void history_look_end(struct history_look *l); /* at any time; NULL accepted */
/* The whole query in one call. */
int history_read(struct history *h, const struct history_query *q, struct history_answer *ret, struct err *err);
void history_answer_free(struct history_answer *a); /* not the struct itself */

#endif
