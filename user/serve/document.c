/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot as a document in one of the formats, and the routes that return the last one. */
#include <errno.h>
#include <string.h>
#include "routes.h"

const char *const serve_format_names[SERVE_FORMATS + 1] = {
	"json", "snapshot", "hwpc", "power", "table", "vjoule", NULL
};
const char *const serve_format_types[SERVE_FORMATS + 1] = {
	"application/json",
	"application/cbor",
	"application/x-ndjson",
	"application/x-ndjson",
	"text/plain; charset=utf-8",
	"application/x-vjoule",
	NULL,
};

/* 0; -ENOENT: the program does not have the format; or an error of the encoder's create. */
static int make_encoder(struct serve *s, enum serve_format f, struct err *err)
{
	const struct encoder_ops *ops = encoder_find(serve_format_names[f]);
	struct encode_options o = { .sensor = s->o.schema->sensor, .iso_time = true, .stand_ins = true, .width = 100 };

	if (!ops)
		return err_set(err, -ENOENT, "format: this agent does not speak %s; ask for json",
			       serve_format_names[f]);
	if (f == FORMAT_TABLE)
		o.limit = 50;
	return s->encoders[f] ? 0 : ops->create(&o, s->o.schema, &s->encoders[f], err);
}

static int result(int rc, const struct buf *out, struct err *err)
{
	if (!rc && out->failed)
		rc = -ENOMEM;
	return rc ? err_set(err, rc, "answer: %s; ask for less", strerror(-rc)) : 0;
}

int serve_preamble(struct serve *s, enum serve_format f, struct buf *out, struct err *err)
{
	const struct encoder_ops *ops = encoder_find(serve_format_names[f]);
	int rc;

	if (f == FORMAT_JSON)
		return 0;
	rc = make_encoder(s, f, err);
	if (rc)
		return rc;
	return result(ops->preamble ? ops->preamble(s->encoders[f], s->o.schema, out) : 0, out, err);
}

int serve_document(struct serve *s, enum serve_format f, const struct snapshot *snap, struct buf *out, struct err *err)
{
	int rc;

	if (f == FORMAT_JSON) {
		snap = selection_fold(&s->fold, snap, NULL);
		if (!snap)
			return result(-ENOMEM, out, err);
		serve_snapshot_json(snap, out);
		return result(0, out, err);
	}
	rc = make_encoder(s, f, err);
	if (rc)
		return rc;
	return result(encoder_find(serve_format_names[f])->encode(s->encoders[f], snap, NULL, out), out, err);
}

static void reply_document(struct serve *s, struct http_request *r, enum serve_format f)
{
	const struct snapshot *snap = serve_last(s);
	struct err err = { 0 };
	int rc;

	if (!snap) {
		http_error(r, 503, "Retry-After: 1", "snapshot: the first interval is not over; try again");
		return;
	}
	buf_reset(&s->out);
	rc = serve_preamble(s, f, &s->out, &err);
	if (!rc)
		rc = serve_document(s, f, snap, &s->out, &err);
	if (rc)
		http_error(r, rc == -ENOENT ? 406 : 503, NULL, "%s", err.text);
	else
		http_reply(r, 200, serve_format_types[f], "Vary: Accept", &s->out);
}

void serve_get_snapshot(struct serve *s, struct http_request *r, const char *rest)
{
	static const char *const types[] = { "application/json", "application/cbor", "text/plain",
					     "application/x-vjoule", NULL };
	static const enum serve_format formats[] = { FORMAT_JSON, FORMAT_CBOR, FORMAT_TABLE, FORMAT_VJOULE };
	struct query q;
	int type;

	if (serve_query(r, "", &q) && (type = serve_negotiate(r, types)) >= 0)
		reply_document(s, r, formats[type]);
}

/* Answers with JSON lines. A request for JSON gets them too, because each line is JSON. */
void serve_get_reports(struct serve *s, struct http_request *r, const char *rest)
{
	static const char *const types[] = { "application/x-ndjson", "application/json", NULL };
	struct query q;

	if (serve_query(r, "", &q) && serve_negotiate(r, types) >= 0)
		reply_document(s, r, strcmp(r->path, "/v1/hwpc") == 0 ? FORMAT_HWPC : FORMAT_POWER);
}
