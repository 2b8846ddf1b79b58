/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot as a document of one of the formats, and the routes that give the last one. */
#include <errno.h>
#include <string.h>
#include "serve_internal.h"

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

/* 0, -ENOENT: not a format of this program, or what its create says. */
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

int serve_document(struct serve *s, enum serve_format f, const struct snapshot *snap, bool preamble, struct buf *out,
		   struct err *err)
{
	const struct encoder_ops *ops;
	int rc;

	if (f == FORMAT_JSON) {
		if (snap)
			serve_snapshot_json(snap, out);
		return out->failed ? err_set(err, -ENOMEM, "answer: out of memory; ask for less") : 0;
	}
	rc = make_encoder(s, f, err);
	if (rc)
		return rc;
	ops = encoder_find(serve_format_names[f]);
	if (preamble && ops->preamble)
		rc = ops->preamble(s->encoders[f], s->o.schema, out);
	if (!rc && snap)
		rc = ops->encode(s->encoders[f], snap, out);
	return rc || out->failed ?
		       err_set(err, rc ? rc : -ENOMEM, "answer: %s; ask for less", strerror(rc ? -rc : ENOMEM)) :
		       0;
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
	rc = serve_document(s, f, snap, true, &s->out, &err);
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

/* JSON lines; who asks for JSON gets them too, for that is what they are line by line. */
void serve_get_reports(struct serve *s, struct http_request *r, const char *rest)
{
	static const char *const types[] = { "application/x-ndjson", "application/json", NULL };
	struct query q;

	if (serve_query(r, "", &q) && serve_negotiate(r, types) >= 0)
		reply_document(s, r, strcmp(r->path, "/v1/hwpc") == 0 ? FORMAT_HWPC : FORMAT_POWER);
}
