/* SPDX-License-Identifier: Apache-2.0 */
/* The database file: opening it, its tables, and moving aside a file that cannot be used. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/array.h"
#include "database.h"

#define PAGE_BYTES 4096

const struct tier_desc history_tiers[TIERS] = {
	[TIER_SECOND] = { "points_1s", (int64_t)NS_PER_S },
	[TIER_MINUTE] = { "points_1m", 60 * (int64_t)NS_PER_S },
	[TIER_HOUR] = { "points_1h", 3600 * (int64_t)NS_PER_S },
};

static const char schema_sql[] =
	"BEGIN;"
	"CREATE TABLE boot(id INTEGER PRIMARY KEY, boot_id TEXT NOT NULL UNIQUE, begun_ns INTEGER NOT NULL, open INTEGER NOT NULL);"
	"CREATE TABLE domains(id INTEGER PRIMARY KEY, n INTEGER NOT NULL, names TEXT NOT NULL UNIQUE);"
	"CREATE TABLE series(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, cgroup INTEGER NOT NULL, path BLOB NOT NULL,"
	" used_ns INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0, UNIQUE(boot, cgroup));"
	"CREATE INDEX series_path ON series(path);"
	"CREATE TABLE points_1s(slot INTEGER NOT NULL, domains INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
	" end_ns INTEGER NOT NULL, interval_ns INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(slot, domains));"
	"CREATE TABLE points_1m(slot INTEGER NOT NULL, domains INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
	" end_ns INTEGER NOT NULL, interval_ns INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(slot, domains));"
	"CREATE TABLE points_1h(slot INTEGER NOT NULL, domains INTEGER NOT NULL, start_ns INTEGER NOT NULL,"
	" end_ns INTEGER NOT NULL, interval_ns INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(slot, domains));"
	"CREATE TABLE totals(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, data BLOB NOT NULL);"
	"CREATE TABLE gap(from_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL, reason TEXT NOT NULL);"
	"PRAGMA application_id=1785689452;" /* HISTORY_APPLICATION */
	"PRAGMA user_version=1;"
	"COMMIT;";

int db_exec(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

int db_prepare(sqlite3 *db, sqlite3_stmt **ret, const char *fmt, ...)
{
	char sql[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	return sqlite3_prepare_v2(db, sql, -1, ret, NULL);
}

int64_t db_number(sqlite3 *db, const char *sql, int64_t otherwise)
{
	sqlite3_stmt *q = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW &&
	    sqlite3_column_type(q, 0) != SQLITE_NULL)
		otherwise = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return otherwise;
}

bool db_is_broken(int code)
{
	code &= 0xff;
	return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR || code == SQLITE_SCHEMA;
}

void db_close(struct history *h)
{
	for (unsigned t = 0; t < TIERS; t++) {
		sqlite3_finalize(h->insert[t]);
		h->insert[t] = NULL;
	}
	series_forget(h);
	sqlite3_close(h->db);
	h->db = NULL;
}

/* Checks the version that the file states. Makes the tables in an empty file. */
static int look(struct history *h, const char **ret_wrong)
{
	sqlite3_stmt *q = NULL;
	int64_t version, application, objects;
	int rc = sqlite3_prepare_v2(h->db, "SELECT count(*) FROM sqlite_schema", -1, &q, NULL);

	if (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
		rc = SQLITE_OK;
	objects = rc == SQLITE_OK ? sqlite3_column_int64(q, 0) : 0;
	sqlite3_finalize(q);
	if (rc != SQLITE_OK)
		return rc;
	version = db_number(h->db, "PRAGMA user_version", -1);
	application = db_number(h->db, "PRAGMA application_id", -1);
	if (!objects && !version && !application)
		return db_exec(h->db, schema_sql);
	if (application != HISTORY_APPLICATION)
		*ret_wrong = "it is another program's database";
	else if (version != HISTORY_VERSION)
		*ret_wrong = version > HISTORY_VERSION ? "it is of a newer version" : "it is of an unknown version";
	return SQLITE_OK;
}

/* Checks the small tables only, because quick_check reads the whole of each table that it checks. */
static int check(struct history *h)
{
	static const char *const tables[] = { "boot", "domains", "series", "totals", "gap", NULL };
	int rc = SQLITE_OK;

	for (unsigned i = 0; tables[i] && rc == SQLITE_OK; i++) {
		sqlite3_stmt *q = NULL;

		rc = db_prepare(h->db, &q, "PRAGMA quick_check('%s')", tables[i]);
		if (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW)
			rc = strcmp((const char *)sqlite3_column_text(q, 0), "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
		sqlite3_finalize(q);
	}
	return rc;
}

static int set_up(struct history *h)
{
	char sql[128];
	int rc = SQLITE_OK;

	/* synchronous=NORMAL: a commit is in the page cache, which survives the process. A crash of the machine
	 * may lose the last commits. */
	/* younger than the other tables, and older programs do not look at it: the version stays */
	rc = db_exec(
		h->db,
		"CREATE TABLE IF NOT EXISTS audit(id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, data TEXT NOT NULL)");
	if (rc != SQLITE_OK)
		return rc;
	rc = db_exec(h->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=512;"
			    "PRAGMA journal_size_limit=4194304; PRAGMA cache_size=-512; PRAGMA temp_store=MEMORY");
	snprintf(sql, sizeof(sql), "PRAGMA max_page_count=%llu", (unsigned long long)(h->o.size / PAGE_BYTES));
	if (rc == SQLITE_OK)
		rc = db_exec(h->db, sql);
	for (unsigned t = 0; t < TIERS && rc == SQLITE_OK; t++)
		rc = db_prepare(h->db, &h->insert[t], "INSERT OR %s INTO %s VALUES(?,?,?,?,?,?)",
				t == TIER_SECOND ? "ABORT" : "REPLACE", history_tiers[t].table);
	return rc;
}

static int make_rows(struct history *h)
{
	const struct schema *s = h->o.schema;
	struct buf names = { 0 };
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(
		h->db, "INSERT INTO boot(boot_id, begun_ns, open) VALUES(?,?,0) ON CONFLICT DO NOTHING", -1, &q, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_text(q, 1, s->boot_id, -1, SQLITE_STATIC);
		sqlite3_bind_int64(q, 2, clock_real_ns());
		rc = sqlite3_step(q);
	}
	sqlite3_finalize(q);
	for (unsigned d = 0; d < s->n_domains; d++)
		buf_printf(&names, "%s%s", d ? "," : "", s->domains[d].name);
	if (rc == SQLITE_DONE &&
	    (rc = sqlite3_prepare_v2(h->db, "INSERT INTO domains(n, names) VALUES(?,?) ON CONFLICT DO NOTHING", -1, &q,
				     NULL)) == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, s->n_domains);
		sqlite3_bind_text(q, 2, names.len ? (const char *)names.data : "", (int)names.len, SQLITE_STATIC);
		rc = sqlite3_step(q);
		sqlite3_finalize(q);
	}
	buf_free(&names);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int64_t find_text(sqlite3 *db, const char *sql, const char *text)
{
	sqlite3_stmt *q = NULL;
	int64_t id = 0;

	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK) {
		sqlite3_bind_text(q, 1, text, -1, SQLITE_STATIC);
		if (sqlite3_step(q) == SQLITE_ROW)
			id = sqlite3_column_int64(q, 0);
	}
	sqlite3_finalize(q);
	return id;
}

static int find_rows(struct history *h)
{
	struct buf names = { 0 };

	for (unsigned d = 0; d < h->o.schema->n_domains; d++)
		buf_printf(&names, "%s%s", d ? "," : "", h->o.schema->domains[d].name);
	buf_add_char(&names, '\0');
	h->boot = find_text(h->db, "SELECT id FROM boot WHERE boot_id=?", h->o.schema->boot_id);
	h->domains = names.failed ? 0 :
				    find_text(h->db, "SELECT id FROM domains WHERE names=?", (const char *)names.data);
	buf_free(&names);
	return h->boot && h->domains ? SQLITE_OK : SQLITE_CORRUPT;
}

static int open_file(struct history *h, const char **ret_wrong)
{
	int rc = sqlite3_open_v2(h->path, &h->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 NULL);

	if (rc == SQLITE_OK)
		sqlite3_extended_result_codes(h->db, 1);
	/* must precede the first table: space that retention frees goes back to the file system */
	if (rc == SQLITE_OK)
		rc = db_exec(h->db, "PRAGMA auto_vacuum=INCREMENTAL");
	if (rc == SQLITE_OK)
		rc = look(h, ret_wrong);
	if (rc == SQLITE_OK && !*ret_wrong && (rc = check(h)) == SQLITE_OK && (rc = set_up(h)) == SQLITE_OK)
		rc = make_rows(h);
	if (rc == SQLITE_OK && !*ret_wrong)
		rc = find_rows(h);
	if (rc == SQLITE_OK && !*ret_wrong)
		rc = series_load(h);
	if (rc == SQLITE_OK && !*ret_wrong)
		rc = roll_begin(h);
	if (rc == SQLITE_ERROR)
		*ret_wrong = "its tables are not those of a history";
	return rc;
}

/* Renames the file with its write-ahead log, which belongs to it. */
static int move_aside(struct history *h, const char *why, struct err *note, struct err *err)
{
	static const char *const parts[] = { "", "-wal", "-shm" };
	char from[4200], to[4200], stamp[24];

	clock_iso_ms(clock_real_ns(), stamp);
	for (char *c = stamp; *c; c++)
		if (*c == ':')
			*c = '-';
	for (unsigned i = 0; i < 3; i++) {
		snprintf(from, sizeof(from), "%s%s", h->path, parts[i]);
		snprintf(to, sizeof(to), "%s.%s.old%s", h->path, stamp, parts[i]);
		if (rename(from, to) != 0 && (!i || errno != ENOENT))
			return err_set(err, -errno,
				       "history %s: %s, and it cannot be moved aside: %s; move it yourself", h->path,
				       why, strerror(errno));
	}
	snprintf(to, sizeof(to), "%s.%s.old", h->path, stamp);
	err_set(note, 0, "history %s: %s; it is now %s, a new one has begun", h->path, why, to);
	return 0;
}

int db_errno(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return -EACCES;
	default:
		return -EIO;
	}
}

int db_open(struct history *h, struct err *note, struct err *err)
{
	const char *wrong = NULL;
	int rc = SQLITE_OK, moved, failed = 0;

	for (int tries = 0; tries < 2; tries++) {
		wrong = NULL;
		rc = open_file(h, &wrong);
		if (rc == SQLITE_OK && !wrong)
			return 0;
		if (!wrong)
			wrong = sqlite3_errstr(rc);
		/* its file could not be opened: the system knows why */
		failed = ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_IOERR) && h->db ?
				 -sqlite3_system_errno(h->db) :
				 0;
		if (failed)
			wrong = strerrordesc_np(-failed);
		db_close(h);
		if (rc != SQLITE_OK && !db_is_broken(rc))
			break;
		moved = tries ? 0 : move_aside(h, wrong, note, err);
		if (moved)
			return moved;
	}
	failed = failed ? failed : db_errno(rc);
	return err_set(err, failed,
		       "history %s: %s; %s; history: { path: FILE } names another place, { path: none } none", h->path,
		       wrong, err_write_remedy(failed));
}

/* A point in memory, and as the bytes of a row (docs/formats/history.md). */

void point_reset(struct point *p, int64_t domains, unsigned n_domains)
{
	p->end_ns = p->start_ns = 0;
	p->interval_ns = 0;
	p->domains = domains;
	p->n_domains = n_domains;
	p->n = 0;
}

void point_free(struct point *p)
{
	free(p->rows);
	*p = (struct point){ 0 };
}

/* Merges rows of one series first, so that a second of a hundred readings needs no more room. */
static int make_room(struct point *p)
{
	point_sort(p);
	return p->n < p->cap - p->cap / 4 ? 0 : ARRAY_ROOM(p->rows, p->cap, p->cap + 1);
}

int point_add(struct point *p, uint64_t series, unsigned quality, const uint64_t *energy_uj)
{
	struct point_row *r;

	if (p->n == p->cap && make_room(p) != 0)
		return -ENOMEM;
	r = &p->rows[p->n++];
	r->series = series;
	r->quality = quality;
	memcpy(r->energy_uj, energy_uj, p->n_domains * sizeof(*energy_uj));
	return 0;
}

static int by_series(const void *a, const void *b)
{
	uint64_t x = ((const struct point_row *)a)->series, y = ((const struct point_row *)b)->series;

	return x < y ? -1 : x > y;
}

void point_sort(struct point *p)
{
	unsigned n = 0;

	if (p->n)
		qsort(p->rows, p->n, sizeof(*p->rows), by_series);
	for (unsigned i = 0; i < p->n; i++) {
		struct point_row *to = &p->rows[n];

		if (!n || to[-1].series != p->rows[i].series) {
			p->rows[n++] = p->rows[i];
			continue;
		}
		to[-1].quality |= p->rows[i].quality;
		for (unsigned d = 0; d < p->n_domains; d++)
			to[-1].energy_uj[d] += p->rows[i].energy_uj[d];
	}
	p->n = n;
}

void point_write(const struct point *p, struct buf *out)
{
	uint64_t last = 0;

	varint_add(out, p->n);
	for (unsigned i = 0; i < p->n; i++) {
		const struct point_row *r = &p->rows[i];

		varint_add(out, r->series - last);
		varint_add(out, r->quality);
		for (unsigned d = 0; d < p->n_domains; d++)
			varint_add(out, r->energy_uj[d]);
		last = r->series;
	}
}

int point_read(const void *data, size_t size, unsigned n_domains, int (*take)(void *arg, const struct point_row *r),
	       void *arg)
{
	struct varint_reader in = { .at = data, .end = data ? (const uint8_t *)data + size : NULL };
	uint64_t n = varint_take(&in);
	struct point_row r = { 0 };
	int rc = 0;

	if (in.bad || n > HISTORY_ROWS_MAX || n_domains > SCHEMA_MAX_DOMAINS)
		return -EBADMSG;
	for (uint64_t i = 0; i < n && !rc; i++) {
		r.series += varint_take(&in);
		r.quality = (unsigned)varint_take(&in);
		for (unsigned d = 0; d < n_domains; d++)
			r.energy_uj[d] = varint_take(&in);
		rc = in.bad ? -EBADMSG : take(arg, &r);
	}
	return rc ? rc : in.at == in.end ? 0 : -EBADMSG;
}
