/* SPDX-License-Identifier: Apache-2.0 */
/* The queue between the measuring thread and the disk thread, and the disk thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/array.h"
#include "base/thread.h"
#include "database.h"

#define STACK_BYTES (512u << 10)
#define RETRY_NS (500 * NS_PER_MS)
#define END_NS (2 * NS_PER_S)
#define ALL_NS (60 * NS_PER_S) /* time between two texts with all totals */

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
	thread_cond_init(&h->more);
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

/* Measuring thread. Returns a place in the queue, or -1: the queue is full. */
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

static void tick_free(struct tick *t);

/* Gives a place back. Places that are needed only in bad times free their memory. */
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

static int tick_fill(struct tick *t, const struct snapshot *s);

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

/* Waits for the oldest hand-over. NULL = there is none and none will come. */
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

/* Replaces a file that cannot be repaired. */
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

/* Waits before the next try. False = the time for ending is over. */
static bool rest(struct history *h, uint64_t *left_ns)
{
	const uint64_t until_ns = clock_mono_ns() + RETRY_NS;
	bool stop;

	pthread_mutex_lock(&h->lock);
	if (h->stop)
		*left_ns = *left_ns > RETRY_NS ? *left_ns - RETRY_NS : 0;
	do {
		stop = h->stop;
	} while (thread_cond_wait(&h->more, &h->lock, until_ns) && h->stop == stop);
	pthread_mutex_unlock(&h->lock);
	return *left_ns > 0;
}

static void tell_failure(struct history *h, int rc)
{
	char text[160];

	snprintf(text, sizeof(text), "%s; %s%s", sqlite3_errstr(rc), err_write_remedy(db_errno(rc)),
		 (rc & 0xff) == SQLITE_FULL ? ", or raise history.size" : "");
	set_state(h, "failing", text);
}

static void update_size(struct history *h)
{
	int64_t pages = db_number(h->db, "PRAGMA page_count", 0), size = db_number(h->db, "PRAGMA page_size", 0);

	/* a little at a time, outside of time-critical work */
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
	buf_free(&h->audit);
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

/* The hand-over of the measuring thread. Memory is reused, so steady state allocates nothing. */

/* Qualities that are stored even without energy: a domain that could not be read must not look like one that
 * used nothing. */
#define TELLING (QUALITY_STALE | QUALITY_PARTIAL | QUALITY_LOST)

static void tick_free(struct tick *t)
{
	free(t->rows);
	free(t->energy_uj);
	buf_free(&t->paths);
	buf_free(&t->totals);
	*t = (struct tick){ 0 };
}

static int reserve(struct tick *t, unsigned rows, unsigned n_domains)
{
	const uint32_t cap = array_step(rows);

	if (rows <= t->cap && n_domains == t->n_domains)
		return 0;
	if (!cap || ARRAY_RESIZE(t->rows, cap) || ARRAY_RESIZE(t->energy_uj, (size_t)cap * (n_domains ? n_domains : 1)))
		return -ENOMEM;
	t->cap = cap;
	t->n_domains = n_domains;
	return 0;
}

/* True when a row is stored: it used energy, has ended, or ran while its energy is uncertain. *ret_quality is
 * the quality of its energy. */
static bool worth(const struct snapshot *s, unsigned row, unsigned *ret_quality)
{
	const struct snap_row *r = &s->rows[row];
	unsigned quality = 0;
	bool any = false;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		if (*snapshot_energy(s, row, d)) {
			any = true;
			quality |= snapshot_energy_quality(s, row, d);
		} else if (r->time_ns) {
			quality |= s->domains[d].quality & TELLING;
		}
	}
	*ret_quality = quality |= any ? 0 : r->quality;
	return any || r->ended || (r->time_ns && quality & TELLING);
}

static void add_to(struct tick *t, unsigned at, const struct snapshot *s, unsigned row)
{
	for (unsigned d = 0; d < t->n_domains; d++)
		t->energy_uj[(size_t)at * t->n_domains + d] += *snapshot_energy(s, row, d);
}

static void add_row(struct tick *t, const struct snapshot *s, unsigned row)
{
	const struct snap_row *r = &s->rows[row];
	unsigned quality;

	if (!worth(s, row, &quality))
		return;
	if (r->kind >= ROW_FIRST_CAUSE) {
		const unsigned at = SERIES_CAUSES + (unsigned)(r->kind - ROW_FIRST_CAUSE);

		if (at < t->n_fixed) {
			t->rows[at].quality |= quality;
			add_to(t, at, s, row);
		}
		return;
	}
	if (!r->selected || r->path[0] != '/') {
		t->rows[ROW_OTHER].quality |= quality;
		add_to(t, ROW_OTHER, s, row);
		return;
	}
	t->rows[t->n] = (struct tick_row){
		.kind = ROW_CGROUP, .quality = quality, .id = r->id, .ended = r->ended, .path = (uint32_t)t->paths.len
	};
	buf_add(&t->paths, r->path, strlen(r->path) + 1);
	memset(&t->energy_uj[(size_t)t->n * t->n_domains], 0, t->n_domains * sizeof(uint64_t));
	add_to(t, t->n++, s, row);
}

/* Adds the rows that every tick has: 0 to 3 are the special rows, 4 and 5 idle power and residual, then the causes where there
 * is a wall. So a time in which nothing ran differs from a time of which nothing is known. */
static void add_fixed(struct tick *t, const struct snapshot *s)
{
	unsigned idle = 0, rest = 0;

	t->n_fixed = schema_has_wall(s->schema) ? SERIES_FIXED : SERIES_CAUSES;
	for (unsigned i = 0; i < t->n_fixed; i++)
		t->rows[i] = (struct tick_row){ .kind = ROW_OTHER };
	memset(t->energy_uj, 0, t->n_fixed * (size_t)t->n_domains * sizeof(uint64_t));
	for (unsigned i = 0; i < READING_SPECIAL_ROWS && i < s->n_rows; i++) {
		worth(s, i, &t->rows[i].quality);
		add_to(t, i, s, i);
	}
	for (unsigned d = 0; d < t->n_domains; d++) {
		const struct snap_domain *from = &s->domains[d];

		t->energy_uj[SERIES_IDLE_POWER * t->n_domains + d] = from->idle_uj;
		t->energy_uj[SERIES_RESIDUAL * t->n_domains + d] = from->residual_uj;
		idle |= from->idle_quality;
		rest |= from->quality;
	}
	t->rows[SERIES_IDLE_POWER].quality = idle;
	t->rows[SERIES_RESIDUAL].quality = rest;
	t->n = t->n_fixed;
}

/* Copies a snapshot. Rows that used nothing are left out; rows not selected are summed in `other`. 0 or -ENOMEM. */
static int tick_fill(struct tick *t, const struct snapshot *s)
{
	if (reserve(t, s->n_rows + SERIES_FIXED, s->schema->n_domains) != 0)
		return -ENOMEM;
	t->end_real_ns = s->end_real_ns;
	t->interval_ns = s->end_ns - s->start_ns;
	buf_reset(&t->paths);
	add_fixed(t, s);
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++)
		add_row(t, s, i);
	return t->paths.failed ? -ENOMEM : 0;
}
