/* SPDX-License-Identifier: Apache-2.0 */
/* Which number in the points a cgroup of this boot has: an open-addressed table in memory, a row in the
 * database. A cgroup is its kernel id; its path may change. */
#include <stdlib.h>
#include <string.h>
#include "history_internal.h"

void series_forget(struct history *h)
{
	for (unsigned i = 0; i < h->series.cap; i++)
		free(h->series.v[i].path);
	free(h->series.v);
	h->series = (struct series_map){ 0 };
}

static struct series *find(const struct series_map *m, uint64_t cgroup)
{
	unsigned at = (unsigned)(cgroup * 0x9e3779b97f4a7c15ull >> 32) & (m->cap - 1);

	while (m->v[at].id && m->v[at].cgroup != cgroup)
		at = (at + 1) & (m->cap - 1);
	return &m->v[at];
}

static int grow(struct series_map *m)
{
	struct series_map next = { .cap = m->cap ? m->cap * 2 : 256, .n = m->n };

	if (m->cap && m->n < m->cap / 2)
		return SQLITE_OK;
	next.v = calloc(next.cap, sizeof(*next.v));
	if (!next.v)
		return SQLITE_NOMEM;
	for (unsigned i = 0; i < m->cap; i++)
		if (m->v[i].id)
			*find(&next, m->v[i].cgroup) = m->v[i];
	free(m->v);
	*m = next;
	return SQLITE_OK;
}

static int add(struct series_map *m, uint64_t id, uint64_t cgroup, const char *path, bool ended)
{
	char *copy = strdup(path);
	struct series *s;

	if (!copy || grow(m) != SQLITE_OK) {
		free(copy);
		return SQLITE_NOMEM;
	}
	s = find(m, cgroup);
	if (!s->id)
		m->n++;
	else
		free(s->path);
	*s = (struct series){ .id = id, .cgroup = cgroup, .path = copy, .ended = ended };
	return SQLITE_OK;
}

int series_load(struct history *h)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(h->db, &q, "SELECT id, cgroup, CAST(path AS TEXT), ended FROM series WHERE boot=%lld",
			    (long long)h->boot);

	series_forget(h);
	if (rc == SQLITE_OK)
		rc = grow(&h->series);
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		const char *path = (const char *)sqlite3_column_text(q, 2);

		rc = add(&h->series, (uint64_t)sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1),
			 path ? path : "", sqlite3_column_int(q, 3));
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
		sqlite3_bind_int(q, 6, r->ended);
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
		sqlite3_bind_int(q, 2, r->ended);
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

int series_of(struct history *h, const struct tick *t, const struct tick_row *r, uint64_t *ret)
{
	const char *path = (const char *)t->paths.data + r->path;
	uint32_t minute = (uint32_t)(t->end_real_ns / history_tiers[TIER_MINUTE].length_ns);
	struct series *s = find(&h->series, r->id);
	int rc = SQLITE_OK;

	if (!s->id)
		rc = insert(h, t, r, path);
	/* once an hour also where nothing changed, so that it is not swept away */
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
