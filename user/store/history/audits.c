/* SPDX-License-Identifier: Apache-2.0 */
/* Results of audits in the history: JSON, as joulectl audit --json prints them. */
#include <errno.h>
#include <stdio.h>
#include "database.h"

#define AUDITS_KEPT 1000

int history_put_audit(struct history *h, const struct audit *a)
{
	struct buf text = { 0 };
	struct json j;

	json_init(&j, &text);
	audit_json(&j, a);
	if (text.failed) {
		buf_free(&text);
		return -ENOMEM;
	}
	pthread_mutex_lock(&h->lock);
	buf_free(&h->audit);
	h->audit = text;
	h->audit_ns = a->time_ns;
	h->audits++;
	pthread_mutex_unlock(&h->lock);
	return 0;
}

bool history_last_audit(struct history *h, struct audit *ret)
{
	sqlite3_stmt *q = NULL;
	bool found = false;

	if (db_prepare(h->db, &q, "SELECT CAST(data AS TEXT) FROM audit ORDER BY id DESC LIMIT 1") == SQLITE_OK &&
	    sqlite3_step(q) == SQLITE_ROW)
		found = audit_parse((const char *)sqlite3_column_text(q, 0), (size_t)sqlite3_column_bytes(q, 0), ret,
				    NULL) == 0;
	sqlite3_finalize(q);
	return found;
}

static int insert(struct history *h)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(h->db, &q, "INSERT INTO audit(time_ns, data) VALUES(?,?)");

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(q, 1, h->audit_ns);
		sqlite3_bind_text(q, 2, (const char *)h->audit.data, (int)h->audit.len, SQLITE_STATIC);
		rc = sqlite3_step(q);
		rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	}
	sqlite3_finalize(q);
	h->audit_written = h->audits;
	return rc;
}

int audit_write(struct history *h)
{
	char sql[120];
	int rc = SQLITE_OK;
	bool any;

	pthread_mutex_lock(&h->lock);
	any = h->audit.len;
	if (any)
		rc = insert(h);
	pthread_mutex_unlock(&h->lock);
	snprintf(sql, sizeof(sql), "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - %d", AUDITS_KEPT);
	return any && rc == SQLITE_OK ? db_exec(h->db, sql) : rc;
}

void audit_committed(struct history *h)
{
	pthread_mutex_lock(&h->lock);
	if (h->audit_written == h->audits)
		buf_reset(&h->audit);
	pthread_mutex_unlock(&h->lock);
}
