/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of history*.c. */
#ifndef JD_STORE_HISTORY_INTERNAL_H
#define JD_STORE_HISTORY_INTERNAL_H
#include <pthread.h>
#include <sqlite3.h>
#include "../base/clock.h"
#include "../base/varint.h"
#include "history.h"

#define HISTORY_VERSION 1
#define HISTORY_APPLICATION 0x6a6f756c /* "joul" */
#define HISTORY_QUEUE 32 /* intervals that wait for the disk */
#define HISTORY_WARM 4 /* of their places keep their memory */
#define HISTORY_SECOND_NS \
	(900 * (int64_t)NS_PER_MS) /* measured time that makes a point: readings are never early by more */
#define HISTORY_ROWS_MAX (1u << 20) /* of a point that is read back */

/* Series below 16 are the same on every boot; those of cgroups begin there. */
enum { SERIES_IDLE_POWER = READING_SPECIAL_ROWS, SERIES_RESIDUAL, SERIES_FIRST_CGROUP = 16 };

enum tier { TIER_SECOND, TIER_MINUTE, TIER_HOUR, TIERS };
struct tier_desc {
	const char *table;
	int64_t length_ns;
};
extern const struct tier_desc history_tiers[TIERS];

/* A point: what everybody used in an interval. */
struct point_row {
	uint64_t series;
	unsigned quality;
	uint64_t energy_uj[SCHEMA_MAX_DOMAINS];
};

struct point {
	int64_t end_ns, start_ns;
	uint64_t interval_ns; /* measured, of CLOCK_MONOTONIC */
	int64_t domains; /* row of the table `domains` */
	unsigned n_domains, n, cap;
	struct point_row *rows; /* by series, once point_sort was called */
};

void point_reset(struct point *p, int64_t domains, unsigned n_domains);
void point_free(struct point *p);
/* Adds to a series, in the order they come; merged by point_sort. 0 or -ENOMEM. */
int point_add(struct point *p, uint64_t series, unsigned quality, const uint64_t *energy_uj);
void point_sort(struct point *p);
void point_write(const struct point *p, struct buf *out); /* sorted */
/* Calls take for each row; n_domains: as the table says. -EBADMSG: it is none. */
int point_read(const void *data, size_t size, unsigned n_domains, int (*take)(void *arg, const struct point_row *r),
	       void *arg);

/* A hand-over: an interval as it was, flat. */
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
	struct tick_row *rows;
	uint64_t *energy_uj; /* [row * n_domains]; idle power and residual come last, as two rows */
	struct buf paths, totals;
};
/* 0 or -ENOMEM. Rows that used nothing are left out, those not selected summed in `other`. */
int tick_fill(struct tick *t, const struct snapshot *s);
void tick_free(struct tick *t);

/* A cgroup as the store knows it. */
struct series {
	uint64_t id; /* row of the table; 0 = free place */
	uint64_t cgroup;
	uint32_t used; /* minute in which it was written last */
	bool ended;
	char *path;
};
struct series_map {
	struct series *v;
	unsigned n, cap;
};

struct history {
	struct history_options o;
	char *path;
	/* disk thread, and history_open before it */
	sqlite3 *db;
	sqlite3_stmt *insert[TIERS];
	struct series_map series;
	int64_t boot, domains; /* rows of their tables */
	struct point open, next; /* the second that is not over, and with the interval being written */
	int64_t minute; /* number of the one being written, 0 = none */
	int64_t last_end_ns; /* of the last point, 0 = none */
	bool first, have_all; /* nothing was written yet; the totals in the file are whole */
	struct buf text;
	pthread_t thread;
	bool started;
	/* the reader's */
	sqlite3 *reader;
	uint64_t reader_generation;
	/* measuring thread */
	uint64_t last_all_ns;
	int64_t refused_ns; /* hand-overs are refused since; 0 = no */
	/* the rest by lock; a tick belongs to the measuring thread, or, in the queue, to the disk thread */
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct tick ticks[HISTORY_QUEUE];
	unsigned spare[HISTORY_QUEUE], n_spare, queue[HISTORY_QUEUE];
	uint64_t head, tail, generation; /* generation: of the file */
	bool stop, want_all;
	struct history_figures figures;
};

/* history_db.c */
int db_open(struct history *h, struct err *note, struct err *err);
void db_close(struct history *h);
int db_exec(sqlite3 *db, const char *sql); /* SQLite's code */
int64_t db_number(sqlite3 *db, const char *sql, int64_t otherwise); /* first column of the first row */
int db_prepare(sqlite3 *db, sqlite3_stmt **ret, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool db_is_broken(int code); /* moving the file aside is the only remedy */

/* history_series.c. SQLite's code, or SQLITE_NOMEM. */
int series_load(struct history *h);
void series_forget(struct history *h);
int series_of(struct history *h, const struct tick *t, const struct tick_row *r, uint64_t *ret);
int series_sweep(struct history *h, int64_t before_ns);

/* history_write.c */
/* In a transaction of its own; nothing has happened unless it is SQLITE_OK. */
int write_tick(struct history *h, const struct tick *t);
int write_end(struct history *h); /* the second as far as it came; it ends well */
int write_point(struct history *h, enum tier t, int64_t slot, const struct point *p);

/* history_roll.c: minutes from seconds, hours from minutes; what is too old goes. */
int roll_begin(struct history *h); /* what an earlier agent left undone */
int roll_leave(struct history *h, int64_t next); /* h->minute is over, next begins */

#endif
