/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one interval to the database. The transaction can be tried again, because memory changes only after
 * the commit. */
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "database.h"

#define CLOCK_TRIES 1000

int write_point(struct history *h, enum tier t, int64_t slot, const struct point *p)
{
	sqlite3_stmt *q = h->insert[t];
	int rc;

	buf_reset(&h->text);
	point_write(p, &h->text);
	if (h->text.failed)
		return SQLITE_NOMEM;
	sqlite3_bind_int64(q, 1, slot);
	sqlite3_bind_int64(q, 2, p->domains);
	sqlite3_bind_int64(q, 3, p->start_ns);
	sqlite3_bind_int64(q, 4, p->end_ns);
	sqlite3_bind_int64(q, 5, (int64_t)p->interval_ns);
	sqlite3_bind_blob(q, 6, h->text.data, (int)h->text.len, SQLITE_STATIC);
	rc = sqlite3_step(q);
	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A second that ends with a minute belongs to that minute. */
static int64_t minute_of(int64_t end_ns)
{
	return (end_ns - 1) / history_tiers[TIER_MINUTE].length_ns;
}

/* Tries the next slots when one is taken: a clock that was set back reaches the same instant again. */
static int write_second(struct history *h, const struct point *p)
{
	int rc = SQLITE_CONSTRAINT;

	for (int i = 0; i < CLOCK_TRIES && (rc & 0xff) == SQLITE_CONSTRAINT; i++)
		rc = write_point(h, TIER_SECOND, p->end_ns - 1 + i, p);
	return rc;
}

static int write_gap(struct history *h, int64_t from_ns, int64_t until_ns, const char *reason)
{
	sqlite3_stmt *q = NULL;
	int rc;

	if (until_ns <= from_ns)
		return SQLITE_OK;
	rc = db_prepare(h->db, &q, "INSERT INTO gap VALUES(?,?,?)");
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, from_ns);
		sqlite3_bind_int64(q, 2, until_ns);
		sqlite3_bind_text(q, 3, reason, -1, SQLITE_STATIC);
		rc = sqlite3_step(q);
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_gaps(struct history *h, const struct tick *t)
{
	int64_t start_ns = t->end_real_ns - (int64_t)t->interval_ns;
	int rc = SQLITE_OK;

	if (h->first && h->last_end_ns)
		rc = write_gap(h, h->last_end_ns, start_ns,
			       h->figures.killed     ? "jouled was killed" :
			       h->figures.resumed_ns ? "jouled was not running" :
						       "the machine or jouled was not running");
	if (rc == SQLITE_OK && t->gap_ns)
		rc = write_gap(h, t->gap_ns, start_ns, "the disk did not keep up");
	return rc;
}

static int write_totals(struct history *h, const struct tick *t)
{
	sqlite3_stmt *q = NULL;
	int rc = SQLITE_OK;

	if (!t->totals.len || (!t->all && !h->have_all))
		return SQLITE_OK;
	if (t->all)
		rc = db_exec(h->db, "DELETE FROM totals");
	if (rc == SQLITE_OK)
		rc = db_prepare(h->db, &q, "INSERT INTO totals(boot, data) VALUES(?,?)");
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, h->boot);
		sqlite3_bind_blob(q, 2, t->totals.data, (int)t->totals.len, SQLITE_STATIC);
		rc = sqlite3_step(q);
		rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	}
	sqlite3_finalize(q);
	return rc;
}

static int copy_open(struct history *h)
{
	const struct point *from = &h->open;
	struct point *to = &h->next;

	point_reset(to, h->domains, h->o.schema->n_domains);
	to->start_ns = from->start_ns;
	to->interval_ns = from->interval_ns;
	for (unsigned i = 0; i < from->n; i++)
		if (point_add(to, from->rows[i].series, from->rows[i].quality, from->rows[i].energy_uj) != 0)
			return SQLITE_NOMEM;
	return SQLITE_OK;
}

static int series_of(struct history *h, const struct tick *t, const struct tick_row *r, uint64_t *ret);

/* h->next becomes the open second plus this interval. */
static int join(struct history *h, const struct tick *t)
{
	int rc = copy_open(h);

	if (!h->open.interval_ns)
		h->next.start_ns = t->end_real_ns - (int64_t)t->interval_ns;
	h->next.interval_ns += t->interval_ns;
	h->next.end_ns = t->end_real_ns;
	for (unsigned i = 0; i < t->n && rc == SQLITE_OK; i++) {
		uint64_t series = i;

		if (i >= t->n_fixed)
			rc = series_of(h, t, &t->rows[i], &series);
		if (rc == SQLITE_OK &&
		    point_add(&h->next, series, t->rows[i].quality, &t->energy_uj[(size_t)i * t->n_domains]) != 0)
			rc = SQLITE_NOMEM;
	}
	point_sort(&h->next);
	return rc;
}

static bool is_whole(const struct point *p)
{
	return (int64_t)p->interval_ns >= HISTORY_SECOND_NS;
}

static int write_parts(struct history *h, const struct tick *t)
{
	int64_t minute = minute_of(t->end_real_ns);
	int rc = join(h, t);

	if (rc == SQLITE_OK && is_whole(&h->next))
		rc = write_second(h, &h->next);
	if (rc == SQLITE_OK)
		rc = write_totals(h, t);
	if (rc == SQLITE_OK)
		rc = write_gaps(h, t);
	if (rc == SQLITE_OK)
		rc = audit_write(h);
	if (rc == SQLITE_OK && is_whole(&h->next) && h->minute && h->minute != minute)
		rc = roll_leave(h, minute);
	return rc;
}

static void committed(struct history *h, const struct tick *t)
{
	struct point swap = h->open;

	audit_committed(h);
	h->open = h->next;
	h->next = swap;
	h->first = false;
	h->have_all |= t->all;
	if (!is_whole(&h->open))
		return;
	h->minute = minute_of(t->end_real_ns);
	h->last_end_ns = t->end_real_ns;
	point_reset(&h->open, h->domains, h->o.schema->n_domains);
}

static int finish(struct history *h, int rc)
{
	if (rc == SQLITE_OK)
		rc = db_exec(h->db, "COMMIT");
	if (rc == SQLITE_OK)
		return rc;
	if (!sqlite3_get_autocommit(h->db))
		db_exec(h->db, "ROLLBACK");
	return rc;
}

int write_tick(struct history *h, const struct tick *t)
{
	int rc = db_exec(h->db, "BEGIN IMMEDIATE"), again;

	if (rc != SQLITE_OK)
		return rc;
	rc = finish(h, write_parts(h, t));
	if (rc == SQLITE_OK) {
		committed(h, t);
		return rc;
	}
	/* series got numbers in memory that the file does not have */
	again = series_load(h);
	return again == SQLITE_OK ? rc : again;
}

int write_end(struct history *h)
{
	sqlite3_stmt *q = NULL;
	int rc = db_exec(h->db, "BEGIN IMMEDIATE");

	if (rc != SQLITE_OK)
		return rc;
	rc = h->open.interval_ns ? write_second(h, &h->open) : SQLITE_OK;
	if (rc == SQLITE_OK)
		rc = audit_write(h);
	if (rc == SQLITE_OK)
		rc = db_prepare(h->db, &q, "UPDATE boot SET open=0 WHERE id=%lld", (long long)h->boot);
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(q);
		rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	}
	sqlite3_finalize(q);
	return finish(h, rc);
}

/* The number that a cgroup of this boot has in the points: an entry in memory, a row in the database. A cgroup is identified by its kernel id; its path may change. */

void series_forget(struct history *h)
{
	for (unsigned i = 0; i < h->series.n; i++)
		free(h->series.v[i].path);
	free(h->series.v);
	hash_free(&h->series.by_cgroup);
	h->series = (struct series_map){ 0 };
}

/* NULL = there is none. */
static struct series *find(const struct series_map *m, uint64_t cgroup)
{
	uint32_t at = hash_find(&m->by_cgroup, cgroup);

	return at == HASH_NONE ? NULL : &m->v[at];
}

static int add(struct series_map *m, uint64_t id, uint64_t cgroup, const char *path, bool ended)
{
	char *copy = strdup(path);
	struct series *s = find(m, cgroup);

	if (!copy || ARRAY_ROOM(m->v, m->cap, m->n + 1) || hash_reserve(&m->by_cgroup, m->n + 1)) {
		free(copy);
		return SQLITE_NOMEM;
	}
	if (s) {
		free(s->path);
	} else {
		hash_add(&m->by_cgroup, cgroup, m->n);
		s = &m->v[m->n++];
	}
	*s = (struct series){ .id = id, .cgroup = cgroup, .path = copy, .ended = ended };
	return SQLITE_OK;
}

int series_load(struct history *h)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(h->db, &q, "SELECT id, cgroup, CAST(path AS TEXT), ended FROM series WHERE boot=%lld",
			    (long long)h->boot);

	series_forget(h);
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		const char *path = (const char *)sqlite3_column_text(q, 2);

		rc = add(&h->series, (uint64_t)sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1),
			 path ? path : "", sqlite3_column_int64(q, 3) != 0);
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int insert(struct history *h, const struct tick *t, const struct tick_row *r, const char *path)
{
	sqlite3_stmt *q = NULL;
	int64_t id = db_number(h->db, "SELECT max(id) FROM series", 0) + 1;
	int rc = db_prepare(h->db, &q,
			    "INSERT INTO series(id, boot, cgroup, path, used_ns, ended) VALUES(?,?,?,?,?,?)");

	if (id < SERIES_FIRST_CGROUP)
		id = SERIES_FIRST_CGROUP;
	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, id);
		sqlite3_bind_int64(q, 2, h->boot);
		sqlite3_bind_int64(q, 3, (int64_t)r->id);
		sqlite3_bind_blob(q, 4, path, (int)strlen(path), SQLITE_STATIC);
		sqlite3_bind_int64(q, 5, t->end_real_ns);
		sqlite3_bind_int64(q, 6, r->ended ? t->end_real_ns : 0);
		rc = sqlite3_step(q);
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? add(&h->series, (uint64_t)id, r->id, path, r->ended) : rc;
}

static int update(struct history *h, struct series *s, const struct tick *t, const struct tick_row *r, const char *path)
{
	char *copy = strdup(path);
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(h->db, &q, "UPDATE series SET path=?, ended=?, used_ns=? WHERE id=?");

	if (rc == SQLITE_OK && copy) {
		sqlite3_bind_blob(q, 1, path, (int)strlen(path), SQLITE_STATIC);
		sqlite3_bind_int64(q, 2, r->ended ? t->end_real_ns : 0);
		sqlite3_bind_int64(q, 3, t->end_real_ns);
		sqlite3_bind_int64(q, 4, (int64_t)s->id);
		rc = sqlite3_step(q);
	}
	sqlite3_finalize(q);
	if (rc != SQLITE_DONE || !copy) {
		free(copy);
		return copy ? rc : SQLITE_NOMEM;
	}
	free(s->path);
	s->path = copy;
	s->ended = r->ended;
	return SQLITE_OK;
}

static int series_of(struct history *h, const struct tick *t, const struct tick_row *r, uint64_t *ret)
{
	const char *path = (const char *)t->paths.data + r->path;
	uint32_t minute = (uint32_t)(t->end_real_ns / history_tiers[TIER_MINUTE].length_ns);
	struct series *s = find(&h->series, r->id);
	int rc = SQLITE_OK;

	if (!s)
		rc = insert(h, t, r, path);
	/* once an hour even when unchanged, so that it is not swept away */
	else if (s->ended != r->ended || s->used / 60 != minute / 60 || strcmp(s->path, path) != 0)
		rc = update(h, s, t, r, path);
	if (rc != SQLITE_OK)
		return rc;
	s = find(&h->series, r->id);
	s->used = minute;
	*ret = s->id;
	return SQLITE_OK;
}

int series_sweep(struct history *h, int64_t before_ns)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(h->db, &q, "DELETE FROM series WHERE used_ns < %lld", (long long)before_ns);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	sqlite3_finalize(q);
	if (rc != SQLITE_DONE)
		return rc;
	return sqlite3_changes(h->db) ? series_load(h) : SQLITE_OK;
}
