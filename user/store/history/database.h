/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder: the database, its points and series, and the hand-over to its thread. */
#ifndef JD_HISTORY_DATABASE_H
#define JD_HISTORY_DATABASE_H
#include <pthread.h>
#include <sqlite3.h>
#include "base/clock.h"
#include "base/hash.h"
#include "base/format/varint.h"
#include "history.h"

#define HISTORY_VERSION 1
#define HISTORY_APPLICATION 0x6a6f756c /* "joul" */
#define HISTORY_QUEUE 32 /* intervals that wait for the disk */
#define HISTORY_WARM 4 /* places of the queue that keep their memory */
#define HISTORY_SECOND_NS (900 * (int64_t)NS_PER_MS) /* measured time that makes a point: no reading is so early */
#define HISTORY_ROWS_MAX (1u << 20) /* rows of a point that is read back */

/* Series below 16 are the same on every boot. Series of cgroups begin at 16. */
enum {
	SERIES_IDLE_POWER = READING_SPECIAL_ROWS,
	SERIES_RESIDUAL,
	SERIES_CAUSES, /* in the order of enum row_kind; only where there is a wall */
	SERIES_FIXED = SERIES_CAUSES + ROW_KINDS - ROW_FIRST_CAUSE,
	SERIES_FIRST_CGROUP = 16
};

enum tier { TIER_SECOND, TIER_MINUTE, TIER_HOUR, TIERS };
struct tier_desc {
	const char *table;
	int64_t length_ns;
};
extern const struct tier_desc history_tiers[TIERS];

/* A point: the energy of every series in an interval. */
struct point_row {
	uint64_t series;
	unsigned quality;
	uint64_t energy_uj[SCHEMA_MAX_DOMAINS];
};

struct point {
	int64_t end_ns, start_ns;
	uint64_t interval_ns; /* measured with CLOCK_MONOTONIC */
	int64_t domains; /* row of the table `domains` */
	unsigned n_domains, n, cap;
	struct point_row *rows; /* sorted by series after point_sort */
};

void point_reset(struct point *p, int64_t domains, unsigned n_domains);
void point_free(struct point *p);
/* Adds a row to a series, in any order; point_sort merges rows of one series. 0 or -ENOMEM. */
int point_add(struct point *p, uint64_t series, unsigned quality, const uint64_t *energy_uj);
void point_sort(struct point *p);
void point_write(const struct point *p, struct buf *out); /* sorted */
/* Calls take for each row. n_domains: as the table says. -EBADMSG: data is not a point. */
int point_read(const void *data, size_t size, unsigned n_domains, int (*take)(void *arg, const struct point_row *r),
	       void *arg);

/* A hand-over: a flat copy of an interval. */
struct tick_row {
	enum row_kind kind;
	unsigned quality;
	uint64_t id;
	uint32_t path;
	bool ended;
};
struct tick {
	uint64_t seq;
	int64_t end_real_ns;
	uint64_t interval_ns;
	int64_t gap_ns; /* hand-overs before this one were refused since then; 0 = none were */
	bool all; /* the totals' text holds everything */
	unsigned n, cap, n_domains;
	unsigned n_fixed; /* rows that every tick has: SERIES_FIXED, without a wall SERIES_CAUSES */
	struct tick_row *rows;
	uint64_t *energy_uj; /* [row * n_domains] */
	struct buf paths, totals;
};

/* A cgroup as the store knows it. */
struct series {
	uint64_t id; /* row of the table */
	uint64_t cgroup;
	uint32_t used; /* minute in which it was last written */
	bool ended;
	char *path;
};
struct series_map {
	struct series *v;
	unsigned n, cap;
	struct hash by_cgroup;
};

struct history {
	struct history_options o;
	char *path;
	/* disk thread, and history_open before it */
	sqlite3 *db;
	sqlite3_stmt *insert[TIERS];
	struct series_map series;
	int64_t boot, domains; /* row numbers in their tables */
	struct point open, next; /* open: the unfinished second; next: that and the interval being written */
	int64_t minute; /* number of the minute being written, 0 = none */
	int64_t last_end_ns; /* of the last point, 0 = none */
	bool first, have_all; /* nothing was written yet; the file has whole totals */
	struct buf text;
	pthread_t thread;
	bool started;
	/* the reader's */
	sqlite3 *reader;
	uint64_t reader_generation;
	bool looking;
	/* measuring thread */
	uint64_t last_all_ns;
	int64_t refused_ns; /* time since which hand-overs are refused; 0 = none are */
	/* the rest is under lock; a tick belongs to the measuring thread or, in the queue, to the disk thread */
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct tick ticks[HISTORY_QUEUE];
	unsigned spare[HISTORY_QUEUE], n_spare, queue[HISTORY_QUEUE];
	uint64_t head, tail, generation; /* generation: of the file */
	bool stop, want_all;
	struct buf audit; /* to be written, as JSON; len 0 = none */
	int64_t audit_ns;
	uint64_t audits, audit_written; /* numbers: of the one in audit, and of that written in the open transaction */
	struct history_figures figures;
};

/* db.c */
int db_open(struct history *h, struct err *note, struct err *err);
void db_close(struct history *h);
int db_exec(sqlite3 *db, const char *sql); /* SQLite's result code */
int64_t db_number(sqlite3 *db, const char *sql, int64_t otherwise); /* first column of the first row */
int db_prepare(sqlite3 *db, sqlite3_stmt **ret, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int db_errno(int code); /* the negative errno that says the same as a failure of SQLite */
bool db_is_broken(int code); /* true when only moving the file aside helps */

/* write.c. Return SQLite's result code, or SQLITE_NOMEM. */
int series_load(struct history *h);
void series_forget(struct history *h);
int series_sweep(struct history *h, int64_t before_ns);

/* write.c */
/* Writes in a transaction of its own. Nothing has changed unless the result is SQLITE_OK. */
int write_tick(struct history *h, const struct tick *t);
int audit_write(struct history *h); /* the audit that waits, in the transaction that is open; audits.c */
void audit_committed(struct history *h);
int write_end(struct history *h); /* writes the unfinished second at a normal end */
int write_point(struct history *h, enum tier t, int64_t slot, const struct point *p);

/* roll.c: makes minutes from seconds and hours from minutes, and deletes points that are too old. */
int roll_begin(struct history *h); /* makes the minutes and hours that an earlier agent left undone */
int roll_leave(struct history *h, int64_t next); /* h->minute is over, next begins */

#endif
