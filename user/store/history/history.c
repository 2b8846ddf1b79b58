/* SPDX-License-Identifier: Apache-2.0 */
/* The queue between the measuring thread and the disk thread, and that thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../base/thread.h"
#include "history_internal.h"

#define STACK_BYTES (512u << 10)
#define RETRY_NS (500 * NS_PER_MS)
#define END_NS (2 * NS_PER_S)
#define ALL_NS (60 * NS_PER_S) /* between two texts with all totals */

static void set_state(struct history *h, const char *state, const char *reason)
{
	pthread_mutex_lock(&h->lock);
	snprintf(h->figures.state, sizeof(h->figures.state), "%s", state);
	snprintf(h->figures.reason, sizeof(h->figures.reason), "%s", reason);
	pthread_mutex_unlock(&h->lock);
}

int history_open(const struct history_options *o, struct history **ret, struct err *ret_note, struct err *err)
{
	struct history *h = calloc(1, sizeof(*h));
	int rc;

	if (!h || !(h->path = strdup(o->path))) {
		free(h);
		return err_set(err, -ENOMEM, "history: out of memory; free some");
	}
	h->o = *o;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->more, NULL);
	for (unsigned i = 0; i < HISTORY_QUEUE; i++)
		h->spare[h->n_spare++] = HISTORY_QUEUE - 1 - i;
	h->want_all = true;
	snprintf(h->figures.path, sizeof(h->figures.path), "%s", o->path);
	set_state(h, "ok", "");
	rc = db_open(h, ret_note, err);
	if (rc) {
		history_close(h);
		return rc;
	}
	*ret = h;
	return 0;
}

int history_load(struct history *h, int (*take)(void *arg, const void *data, size_t size), void *arg)
{
	sqlite3_stmt *q = NULL;
	int rc = 0;

	if (db_prepare(h->db, &q, "SELECT data FROM totals WHERE boot=%lld ORDER BY id", (long long)h->boot) !=
	    SQLITE_OK)
		return 0;
	while (!rc && sqlite3_step(q) == SQLITE_ROW)
		rc = take(arg, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0));
	sqlite3_finalize(q);
	return rc;
}

/* Measuring thread. A place, or -1: the queue is full. */
static int take_place(struct history *h, bool *ret_all)
{
	int place = -1;

	pthread_mutex_lock(&h->lock);
	if (h->n_spare)
		place = (int)h->spare[--h->n_spare];
	*ret_all = h->want_all;
	pthread_mutex_unlock(&h->lock);
	return place;
}

/* Those that are needed in bad times only give their memory back. */
static void give_place(struct history *h, struct tick *t)
{
	unsigned place = (unsigned)(t - h->ticks);

	if (place >= HISTORY_WARM)
		tick_free(t);
	pthread_mutex_lock(&h->lock);
	h->spare[h->n_spare++] = place;
	pthread_mutex_unlock(&h->lock);
}

static uint64_t refuse(struct history *h, const struct snapshot *s)
{
	if (!h->refused_ns)
		h->refused_ns = s->end_real_ns - (int64_t)(s->end_ns - s->start_ns);
	pthread_mutex_lock(&h->lock);
	h->figures.lost_intervals++;
	pthread_mutex_unlock(&h->lock);
	return 0;
}

static uint64_t hand_over(struct history *h, unsigned place)
{
	uint64_t seq;

	pthread_mutex_lock(&h->lock);
	h->queue[h->head % HISTORY_QUEUE] = place;
	seq = ++h->head;
	h->ticks[place].seq = seq;
	if (h->ticks[place].all)
		h->want_all = false;
	pthread_cond_signal(&h->more);
	pthread_mutex_unlock(&h->lock);
	return seq;
}

uint64_t history_put(struct history *h, const struct snapshot *s, void (*save)(void *arg, bool all, struct buf *out),
		     void *arg)
{
	bool all;
	int place = take_place(h, &all);
	struct tick *t;

	if (place < 0)
		return refuse(h, s);
	t = &h->ticks[place];
	buf_reset(&t->totals);
	t->all = all || s->end_ns - h->last_all_ns >= ALL_NS;
	if (save)
		save(arg, t->all, &t->totals);
	if (tick_fill(t, s) != 0 || t->totals.failed) {
		give_place(h, t);
		return refuse(h, s);
	}
	t->gap_ns = h->refused_ns;
	h->refused_ns = 0;
	if (t->all)
		h->last_all_ns = s->end_ns;
	return hand_over(h, (unsigned)place);
}

static void deadline(struct timespec *ts, uint64_t after_ns)
{
	uint64_t ns = (uint64_t)clock_real_ns() + after_ns;

	ts->tv_sec = (time_t)(ns / NS_PER_S);
	ts->tv_nsec = (long)(ns % NS_PER_S);
}

/* The oldest hand-over, NULL = there is none and none will come. */
static struct tick *next_tick(struct history *h)
{
	struct tick *t = NULL;

	pthread_mutex_lock(&h->lock);
	while (h->tail == h->head && !h->stop)
		pthread_cond_wait(&h->more, &h->lock);
	if (h->tail != h->head)
		t = &h->ticks[h->queue[h->tail % HISTORY_QUEUE]];
	pthread_mutex_unlock(&h->lock);
	return t;
}

static void done(struct history *h, struct tick *t)
{
	uint64_t seq = t->seq;

	pthread_mutex_lock(&h->lock);
	h->figures.written++;
	h->tail++;
	pthread_mutex_unlock(&h->lock);
	give_place(h, t);
	if (h->o.kept)
		h->o.kept(h->o.arg, seq);
}

/* A file that cannot be mended: another one. */
static void reopen(struct history *h)
{
	struct err note = { 0 }, err = { 0 };
	int rc;

	db_close(h);
	rc = db_open(h, &note, &err);
	pthread_mutex_lock(&h->lock);
	h->want_all = true;
	h->generation++;
	pthread_mutex_unlock(&h->lock);
	if (rc)
		set_state(h, "failing", err.text);
	else
		set_state(h, "ok", note.text);
}

/* Until it may be tried again; false = the time to end is over. */
static bool rest(struct history *h, uint64_t *left_ns)
{
	struct timespec until;
	bool stop;

	pthread_mutex_lock(&h->lock);
	deadline(&until, RETRY_NS);
	if (h->stop)
		*left_ns = *left_ns > RETRY_NS ? *left_ns - RETRY_NS : 0;
	do {
		stop = h->stop;
	} while (pthread_cond_timedwait(&h->more, &h->lock, &until) == 0 && h->stop == stop);
	pthread_mutex_unlock(&h->lock);
	return *left_ns > 0;
}

static void tell_failure(struct history *h, int rc)
{
	char text[160];

	snprintf(text, sizeof(text), "%s%s", sqlite3_errstr(rc),
		 (rc & 0xff) == SQLITE_FULL ? "; free space there, or raise history.size" : "");
	set_state(h, "failing", text);
}

static void update_size(struct history *h)
{
	int64_t pages = db_number(h->db, "PRAGMA page_count", 0), size = db_number(h->db, "PRAGMA page_size", 0);

	/* a little at a time, outside of what must be quick */
	if (db_number(h->db, "PRAGMA freelist_count", 0) > 256)
		db_exec(h->db, "PRAGMA incremental_vacuum(256)");
	pthread_mutex_lock(&h->lock);
	h->figures.bytes = (uint64_t)(pages * size);
	pthread_mutex_unlock(&h->lock);
}

static void *work(void *arg)
{
	struct history *h = arg;
	uint64_t left_ns = END_NS, n = 0;
	struct tick *t;
	bool failing = false;

	while (left_ns && (t = next_tick(h))) {
		int rc = h->db ? write_tick(h, t) : SQLITE_CANTOPEN;

		if (rc == SQLITE_OK) {
			done(h, t);
			if (failing)
				set_state(h, "ok", "");
			failing = false;
			if (n++ % 16 == 0)
				update_size(h);
			continue;
		}
		if (!h->db || db_is_broken(rc)) {
			reopen(h);
			if (h->db)
				continue;
		} else {
			tell_failure(h, rc);
		}
		failing = true;
		if (!rest(h, &left_ns))
			break;
	}
	if (h->db)
		write_end(h);
	return NULL;
}

int history_start(struct history *h, struct err *err)
{
	int rc = thread_start(&h->thread, "jouled-history", STACK_BYTES, work, h);

	if (rc)
		return err_set(err, rc, "history: no thread: %s; raise the limits of memory or tasks", strerror(-rc));
	h->started = true;
	return 0;
}

void history_stop(struct history *h)
{
	if (!h || !h->started)
		return;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_signal(&h->more);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	h->started = false;
}

void history_close(struct history *h)
{
	if (!h)
		return;
	history_stop(h);
	sqlite3_close(h->reader);
	db_close(h);
	for (unsigned i = 0; i < HISTORY_QUEUE; i++)
		tick_free(&h->ticks[i]);
	point_free(&h->open);
	point_free(&h->next);
	buf_free(&h->text);
	pthread_cond_destroy(&h->more);
	pthread_mutex_destroy(&h->lock);
	free(h->path);
	free(h);
}

void history_figures(struct history *h, struct history_figures *ret)
{
	pthread_mutex_lock(&h->lock);
	*ret = h->figures;
	ret->queued = h->head - h->tail;
	pthread_mutex_unlock(&h->lock);
}
