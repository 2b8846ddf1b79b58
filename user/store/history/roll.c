/* SPDX-License-Identifier: Apache-2.0 */
/* Makes minutes from seconds and hours from minutes, in the transaction that completes them. So sums stay exact
 * whenever the process ends. Points that are too old are deleted, and the oldest ones when the file is full. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "database.h"

#define SECONDS_NS (3600 * (int64_t)NS_PER_S)
#define HOURS_NS (366 * 24 * 3600 * (int64_t)NS_PER_S)
#define PARTS 8 /* parts of a table; when the file is full the oldest part goes */

static int take_row(void *arg, const struct point_row *r)
{
	return point_add(arg, r->series, r->quality, r->energy_uj);
}

/* Adds the rows of q (start, end, interval, n, data) to p. */
static int add_rows(sqlite3_stmt *q, struct point *p)
{
	int rc;

	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		if (!p->interval_ns)
			p->start_ns = sqlite3_column_int64(q, 0);
		p->end_ns = sqlite3_column_int64(q, 1);
		p->interval_ns += (uint64_t)sqlite3_column_int64(q, 2);
		rc = point_read(sqlite3_column_blob(q, 4), (size_t)sqlite3_column_bytes(q, 4), p->n_domains, take_row,
				p);
		if (rc)
			return rc == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
	}
	point_sort(p);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Rolls the points of one set of domains. slot: number of the minute or hour. */
static int roll_domains(struct history *h, enum tier to, int64_t slot, int64_t domains, unsigned n_domains)
{
	const struct tier_desc *from = &history_tiers[to - 1];
	int64_t length = history_tiers[to].length_ns;
	struct point p = { 0 };
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(
		h->db, &q,
		"SELECT start_ns, end_ns, interval_ns, domains, data FROM %s WHERE slot >= %lld AND slot < %lld"
		" AND domains = %lld ORDER BY slot",
		from->table, (long long)(slot * length), (long long)((slot + 1) * length), (long long)domains);

	point_reset(&p, domains, n_domains);
	if (rc == SQLITE_OK)
		rc = add_rows(q, &p);
	sqlite3_finalize(q);
	if (rc == SQLITE_OK && p.interval_ns)
		rc = write_point(h, to, slot * length, &p);
	point_free(&p);
	return rc;
}

static int roll(struct history *h, enum tier to, int64_t slot)
{
	int64_t length = history_tiers[to].length_ns;
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(h->db, &q,
			    "SELECT DISTINCT p.domains, d.n FROM %s p JOIN domains d ON d.id = p.domains"
			    " WHERE slot >= %lld AND slot < %lld",
			    history_tiers[to - 1].table, (long long)(slot * length), (long long)((slot + 1) * length));

	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		int64_t n = sqlite3_column_int64(q, 1);

		rc = n < 0 || n > SCHEMA_MAX_DOMAINS ?
			     SQLITE_CORRUPT :
			     roll_domains(h, to, slot, sqlite3_column_int64(q, 0), (unsigned)n);
	}
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Rolls slots that have parts but are not rolled, and the slot written to last: a clock that was set back may
 * have added to a slot that was already rolled. */
static int catch_up(struct history *h, enum tier to, int64_t current)
{
	const char *from = history_tiers[to - 1].table, *into = history_tiers[to].table;
	long long length = history_tiers[to].length_ns;
	int64_t slots[4096];
	unsigned n = 0;
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(h->db, &q,
			    "SELECT slot / %lld AS s FROM %s WHERE s NOT IN (SELECT slot / %lld FROM %s) UNION "
			    "SELECT slot / %lld FROM %s WHERE rowid = (SELECT max(rowid) FROM %s)",
			    length, from, length, into, length, from, from);

	while (rc == SQLITE_OK && n < sizeof(slots) / sizeof(slots[0]) && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		slots[n++] = sqlite3_column_int64(q, 0);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(q);
	rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	for (unsigned i = 0; i < n && rc == SQLITE_OK; i++)
		if (slots[i] != current)
			rc = roll(h, to, slots[i]);
	return rc;
}

static void read_session(struct history *h)
{
	char sql[160];

	h->last_end_ns = db_number(h->db, "SELECT max(end_ns) FROM points_1s", 0);
	if (!h->last_end_ns)
		h->last_end_ns = db_number(h->db, "SELECT max(end_ns) FROM points_1h", 0);
	snprintf(sql, sizeof(sql), "SELECT open FROM boot WHERE id=%lld", (long long)h->boot);
	h->figures.killed = db_number(h->db, sql, 0) == 1;
	snprintf(sql, sizeof(sql),
		 "SELECT max(end_ns) FROM points_1s WHERE end_ns > (SELECT begun_ns FROM boot WHERE id=%lld)",
		 (long long)h->boot);
	h->figures.resumed_ns = db_number(h->db, sql, 0);
}

int roll_begin(struct history *h)
{
	int64_t minute = clock_real_ns() / history_tiers[TIER_MINUTE].length_ns;
	char sql[96];
	int rc = db_exec(h->db, "BEGIN IMMEDIATE");

	if (rc != SQLITE_OK)
		return rc;
	read_session(h);
	rc = catch_up(h, TIER_MINUTE, minute);
	if (rc == SQLITE_OK)
		rc = catch_up(h, TIER_HOUR, minute / 60);
	snprintf(sql, sizeof(sql), "UPDATE boot SET open=1 WHERE id=%lld", (long long)h->boot);
	if (rc == SQLITE_OK)
		rc = db_exec(h->db, sql);
	if (rc == SQLITE_OK)
		rc = db_exec(h->db, "COMMIT");
	if (rc != SQLITE_OK)
		db_exec(h->db, "ROLLBACK");
	h->minute = minute;
	h->first = true;
	h->have_all = false;
	point_reset(&h->open, h->domains, h->o.schema->n_domains);
	return rc;
}

static int drop_before(struct history *h, const char *table, const char *column, int64_t before_ns)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(h->db, &q, "DELETE FROM %s WHERE %s < %lld", table, column, (long long)before_ns);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool is_full(struct history *h)
{
	int64_t pages = db_number(h->db, "PRAGMA page_count", 0) - db_number(h->db, "PRAGMA freelist_count", 0);

	return (uint64_t)(pages * db_number(h->db, "PRAGMA page_size", 4096)) > h->o.size / 10 * 9;
}

/* Deletes the oldest part of a tier before until_ns, up to the end of a slot of the coarser tier, which has all of it: what is left of
 * half an hour would stand for the whole. */
static int drop_part(struct history *h, enum tier t, int64_t until_ns)
{
	const int64_t whole_ns = history_tiers[t < TIER_HOUR ? t + 1 : t].length_ns;
	const char *table = history_tiers[t].table;
	char sql[128];
	int64_t cut_ns;

	snprintf(sql, sizeof(sql), "SELECT slot FROM %s ORDER BY slot LIMIT 1 OFFSET (SELECT count(*) / %d FROM %s)",
		 table, PARTS, table);
	cut_ns = (db_number(h->db, sql, 0) / whole_ns + 1) * whole_ns;
	return drop_before(h, table, "slot", cut_ns < until_ns ? cut_ns : until_ns);
}

/* Deletes the oldest minutes first, because their hours stay; then seconds, then hours. Of the hour and the minute that are not over
 * nothing goes, because no coarser point has them yet; but when the file has room for nothing else, the oldest go. */
static int make_room(struct history *h, int64_t now_ns)
{
	const int64_t hour_ns = history_tiers[TIER_HOUR].length_ns;
	const struct {
		enum tier tier;
		int64_t until_ns;
	} order[] = { { TIER_MINUTE, now_ns / hour_ns * hour_ns },
		      { TIER_SECOND, now_ns },
		      { TIER_HOUR, INT64_MAX },
		      { TIER_SECOND, INT64_MAX },
		      { TIER_MINUTE, INT64_MAX } };
	int rc = SQLITE_OK;

	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		for (unsigned k = 0; k < PARTS && rc == SQLITE_OK && is_full(h); k++)
			rc = drop_part(h, order[i].tier, order[i].until_ns);
	return rc;
}

/* Deletes whole minutes and hours, so that the parts of a coarser point are either all present or all gone. */
static int forget(struct history *h, int64_t now_ns)
{
	int64_t minute = history_tiers[TIER_MINUTE].length_ns, hour = history_tiers[TIER_HOUR].length_ns;
	int rc = drop_before(h, "points_1s", "slot", (now_ns - SECONDS_NS) / minute * minute);

	if (rc == SQLITE_OK)
		rc = drop_before(h, "points_1m", "slot", (now_ns - (int64_t)h->o.keep_ns) / hour * hour);
	if (rc == SQLITE_OK)
		rc = drop_before(h, "points_1h", "slot", now_ns - HOURS_NS);
	if (rc == SQLITE_OK)
		rc = drop_before(h, "gap", "until_ns", now_ns - HOURS_NS);
	if (rc == SQLITE_OK && is_full(h))
		rc = make_room(h, now_ns);
	return rc;
}

int roll_leave(struct history *h, int64_t next)
{
	int64_t now_ns = next * history_tiers[TIER_MINUTE].length_ns;
	int rc = roll(h, TIER_MINUTE, h->minute);

	if (rc == SQLITE_OK && h->minute / 60 != next / 60) {
		rc = roll(h, TIER_HOUR, h->minute / 60);
		if (rc == SQLITE_OK)
			rc = series_sweep(h, now_ns - HOURS_NS);
	}
	return rc == SQLITE_OK ? forget(h, now_ns) : rc;
}
