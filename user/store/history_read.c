/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from the store, over a connection of its own beside the writer. Two passes over the points of
 * the time asked for: who used most, then what is told. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "history_read.h"

#define LOOK_NS (250 * NS_PER_MS) /* the I/O loop waits so long and no longer */
#define LOST_MAX 1000

static int too_late(void *arg)
{
	const struct look *l = arg;

	return clock_mono_ns() > l->deadline_ns;
}

static int connect_file(struct history *h, struct err *err)
{
	uint64_t generation;

	pthread_mutex_lock(&h->lock);
	generation = h->generation;
	pthread_mutex_unlock(&h->lock);
	if (h->reader && h->reader_generation == generation)
		return 0;
	sqlite3_close(h->reader);
	h->reader = NULL;
	if (sqlite3_open_v2(h->path, &h->reader, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		sqlite3_close(h->reader);
		h->reader = NULL;
		return err_set(err, -EIO, "history %s: it cannot be opened; see /v1/status", h->path);
	}
	h->reader_generation = generation;
	db_exec(h->reader, "PRAGMA cache_size=-1024");
	return 0;
}

static int fail(struct look *l, int rc, struct err *err)
{
	if (rc == SQLITE_NOMEM || rc == -ENOMEM)
		return err_set(err, -ENOMEM, "history: out of memory; ask for less");
	if (rc == SQLITE_INTERRUPT || rc == -E2BIG)
		return err_set(err, -E2BIG,
			       "history: too much for one answer; ask for a longer step or a shorter time");
	if (rc == -EBADMSG)
		return err_set(err, -EIO, "history %s: a point cannot be read; see /v1/status", l->h->path);
	return err_set(err, -EIO, "history %s: %s; see /v1/status", l->h->path, sqlite3_errstr(rc));
}

/* The first slot of a tier, INT64_MAX = it has none. */
static int64_t oldest(struct look *l, enum tier t)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "SELECT min(slot) FROM %s", history_tiers[t].table);
	return db_number(l->h->reader, sql, INT64_MAX);
}

static int64_t floor_to(int64_t ns, int64_t length)
{
	return ns == INT64_MAX ? ns : ns / length * length;
}

/* The finest tier that holds all of the time asked for, or the one the step is made of. */
static enum tier choose_tier(struct look *l)
{
	uint64_t step = l->q->step_ns;

	if (step)
		return step >= (uint64_t)history_tiers[TIER_HOUR].length_ns   ? TIER_HOUR :
		       step >= (uint64_t)history_tiers[TIER_MINUTE].length_ns ? TIER_MINUTE :
										TIER_SECOND;
	for (int t = TIER_SECOND; t < TIER_HOUR; t++) {
		int64_t first = oldest(l, (enum tier)t);

		/* a coarser slot begins before the finer one that it is made of, and holds no more for that */
		if (first <= l->q->since_ns ||
		    oldest(l, (enum tier)(t + 1)) >= floor_to(first, history_tiers[t + 1].length_ns))
			return (enum tier)t;
	}
	return TIER_HOUR;
}

static int64_t last_of(struct look *l, enum tier t, int64_t from, int64_t before)
{
	sqlite3_stmt *q = NULL;
	int64_t slot = from - history_tiers[t].length_ns;

	if (db_prepare(l->h->reader, &q,
		       "SELECT max(slot) FROM %s WHERE slot >= %lld AND slot < %lld AND end_ns <= %lld",
		       history_tiers[t].table, (long long)from, (long long)before,
		       (long long)l->q->until_ns) == SQLITE_OK &&
	    sqlite3_step(q) == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL)
		slot = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return slot;
}

/* From coarse to fine: where a finer tier has nothing left the coarser one stands, and where a coarser one
 * is not made yet the finer one does. No instant is in two of them. */
static void plan(struct look *l)
{
	enum tier base = choose_tier(l);
	int64_t from = 0;

	for (int t = TIER_HOUR; t >= TIER_SECOND; t--) {
		int64_t length = history_tiers[t].length_ns, before = INT64_MAX;

		if (t > (int)base)
			before = floor_to(oldest(l, (enum tier)(t - 1)), length);
		if (t - 1 > (int)base && oldest(l, (enum tier)base) < oldest(l, (enum tier)(t - 1)))
			before = floor_to(oldest(l, base), length);
		if (t == TIER_SECOND)
			before = INT64_MAX;
		l->from[t] = from;
		l->before[t] = before;
		if (t > TIER_SECOND && from < before) {
			int64_t last = last_of(l, (enum tier)t, from, before);

			if (last >= from)
				from = last + length;
		}
	}
	l->step_ns = l->q->step_ns ? l->q->step_ns : (uint64_t)history_tiers[base].length_ns;
}

static int read_row(struct look *l, sqlite3_stmt *q, enum tier t, int (*row)(struct look *l, const struct stored *s))
{
	struct stored s = { .start_ns = sqlite3_column_int64(q, 0),
			    .end_ns = sqlite3_column_int64(q, 1),
			    .interval_ns = (uint64_t)sqlite3_column_int64(q, 2),
			    .domains = sqlite3_column_int64(q, 3),
			    .tier = t,
			    .data = sqlite3_column_blob(q, 4),
			    .size = (size_t)sqlite3_column_bytes(q, 4) };

	if (clock_mono_ns() > l->deadline_ns)
		return -E2BIG;
	return row(l, &s);
}

/* Every point of the time asked for, in order. 0, a negative errno, or SQLite's code. */
static int each(struct look *l, int (*row)(struct look *l, const struct stored *s))
{
	int rc = 0;

	for (int t = TIER_HOUR; t >= TIER_SECOND && !rc; t--) {
		sqlite3_stmt *q = NULL;
		int64_t from = l->from[t], first = l->q->since_ns - history_tiers[t].length_ns;

		rc = db_prepare(l->h->reader, &q,
				"SELECT start_ns, end_ns, interval_ns, domains, data FROM %s WHERE slot >= %lld AND "
				"slot < %lld AND end_ns > %lld AND end_ns <= %lld ORDER BY slot",
				history_tiers[t].table, (long long)(from > first ? from : first),
				(long long)l->before[t], (long long)l->q->since_ns, (long long)l->q->until_ns);
		while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
			rc = read_row(l, q, (enum tier)t, row);
		sqlite3_finalize(q);
		rc = rc == SQLITE_DONE ? 0 : rc;
	}
	return rc;
}

static int add_lost(struct history_answer *a, int64_t from_ns, int64_t until_ns, const char *reason)
{
	if (a->n_lost == a->cap_lost) {
		unsigned cap = a->cap_lost ? a->cap_lost * 2 : 16;
		struct history_lost *lost = realloc(a->lost, cap * sizeof(*lost));

		if (!lost)
			return -ENOMEM;
		a->lost = lost;
		a->cap_lost = cap;
	}
	a->lost[a->n_lost] = (struct history_lost){ .from_ns = from_ns, .until_ns = until_ns };
	snprintf(a->lost[a->n_lost++].reason, sizeof(a->lost[0].reason), "%s", reason);
	return 0;
}

static int read_lost(struct look *l)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(l->h->reader, &q,
			    "SELECT from_ns, until_ns, reason FROM gap WHERE until_ns > %lld AND from_ns < %lld "
			    "ORDER BY from_ns LIMIT %d",
			    (long long)l->q->since_ns, (long long)l->q->until_ns, LOST_MAX);

	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		const char *reason = (const char *)sqlite3_column_text(q, 2);

		rc = add_lost(l->a, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), reason ? reason : "");
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : rc;
}

static int look_through(struct look *l)
{
	int rc = db_exec(l->h->reader, "BEGIN"); /* both passes see the same */

	if (rc == SQLITE_OK)
		rc = look_names(l);
	if (!rc) {
		plan(l);
		rc = each(l, look_sum);
	}
	if (!rc)
		rc = look_choose(l);
	if (!rc)
		rc = each(l, look_tell);
	if (!rc)
		rc = look_flush(l);
	if (!rc)
		rc = read_lost(l);
	db_exec(l->h->reader, "COMMIT");
	return rc;
}

int history_read(struct history *h, const struct history_query *q, struct history_answer *ret, struct err *err)
{
	struct look l = { .h = h, .q = q, .deadline_ns = clock_mono_ns() + LOOK_NS, .a = calloc(1, sizeof(*l.a)) };
	int rc = l.a ? connect_file(h, err) : err_set(err, -ENOMEM, "history: out of memory; ask for less");

	if (rc) {
		free(l.a);
		return rc;
	}
	sqlite3_progress_handler(h->reader, 1000, too_late, &l);
	rc = look_through(&l);
	sqlite3_progress_handler(h->reader, 0, NULL, NULL);
	if (!rc && q->cgroup && !l.a->n_series)
		rc = err_set(err, -ENOENT,
			     "cgroup: the history knows none of this path; a new one is in it after two seconds, "
			     "GET /v1/history without it lists the largest");
	else if (rc)
		rc = fail(&l, rc, err);
	l.a->since_ns = q->since_ns;
	l.a->until_ns = q->until_ns;
	l.a->step_ns = l.step_ns;
	if (rc)
		history_answer_free(l.a);
	else
		*ret = *l.a;
	free(l.a);
	look_free(&l);
	return rc;
}

void history_answer_free(struct history_answer *a)
{
	for (unsigned i = 0; i < a->n_series; i++) {
		free(a->series[i].cgroup);
		free(a->series[i].points);
	}
	free(a->series);
	free(a->energy_uj);
	free(a->lost);
	*a = (struct history_answer){ 0 };
}
