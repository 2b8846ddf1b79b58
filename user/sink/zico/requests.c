/* SPDX-License-Identifier: Apache-2.0 */
/* The requests to a collector. Paths and headers depend on how the collectors of a profile identify an agent. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collector.h"

#define CBOR_TYPE "application/zorka+cbor+v1"
#define FORM_TYPE "application/x-www-form-urlencoded"
#define HEADER_MAX 120

struct request {
	const char *path, *type;
	const struct buf *body;
	char text[3][HEADER_MAX];
	const char *headers[4]; /* point into text; NULL ends them */
	unsigned n;
};

static void add_header(struct request *q, const char *name, const char *value)
{
	snprintf(q->text[q->n], HEADER_MAX, "%s: %s", name, value);
	q->headers[q->n] = q->text[q->n];
	q->n++;
}

static int post(struct zico_client *c, const struct request *q, struct err *err)
{
	char url[ZICO_URL_MAX + 32];
	const struct http_ask ask = {
		.url = url,
		.post = true,
		.type = q->type,
		.headers = q->n ? q->headers : NULL,
		.body = q->body->data,
		.len = q->body->len,
	};
	int rc;

	snprintf(url, sizeof(url), "%s%s", c->url, q->path);
	rc = http_client_ask(c->http, &ask, &c->reply, err);
	if (!rc || rc == -ECANCELED || rc == -EACCES)
		return rc;
	return rc == -EINVAL || rc == -EKEYREJECTED ? -EACCES : -EAGAIN;
}

int zico_post_json(struct zico_client *c, const char *path, char *json, struct err *err)
{
	struct buf body = { .data = (uint8_t *)json, .len = json ? strlen(json) : 0 };
	struct request q = { .path = path, .type = "application/json", .body = &body };
	int rc = json ? post(c, &q, err) : err_set(err, -ENOMEM, "%s: out of memory; free some", c->url);

	free(json);
	return rc;
}

static void add_identity(const struct zico_client *c, struct request *q)
{
	switch (c->dialect->identity) {
	case ZICO_BY_UUID:
		add_header(q, "X-Zorka-Agent-UUID", c->id);
		add_header(q, "X-Zorka-Session-UUID", c->session);
		break;
	case ZICO_BY_NUMBER:
		add_header(q, "X-Zorka-Agent-ID", c->id);
		add_header(q, "X-Zorka-Session-UUID", c->session);
		break;
	case ZICO_BY_SESSION:
		add_header(q, "X-Zorka-Session-ID", c->session);
	}
}

static int post_cbor(struct zico_client *c, struct request *q, struct err *err)
{
	q->type = CBOR_TYPE;
	if (c->dialect->base64 && zico_body_base64(c, q->body) != 0)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", c->url);
	if (c->dialect->base64)
		q->body = &c->body;
	return post(c, q, err);
}

int zico_post_agent(struct zico_client *c, struct err *err)
{
	struct request q = { .path = "/agent/submit/agd", .body = &c->agent };

	add_identity(c, &q);
	if (c->reset)
		add_header(&q, "X-Zorka-Session-Reset", "true");
	if (!c->dialect->form)
		return post_cbor(c, &q, err);
	if (zico_body_form(c, &c->agent) != 0)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", c->url);
	q.path = "/submit/agent";
	q.type = FORM_TYPE;
	q.body = &c->body;
	return post(c, &q, err);
}

int zico_post_trace(struct zico_client *c, const uint8_t uuid[16], struct err *err)
{
	bool dashes = c->dialect->identity != ZICO_BY_SESSION;
	struct request q = { .path = "/agent/submit/trc", .body = &c->trace };
	char text[40];
	int n = 0;

	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%02x",
			      dashes && (i == 4 || i == 6 || i == 8 || i == 10) ? "-" : "", uuid[i]);
	add_identity(c, &q);
	add_header(&q, dashes ? "X-Zorka-Trace-UUID" : "X-Zorka-Trace-ID", text);
	return post_cbor(c, &q, err);
}

/* The first releases send {"error": text}, later ones {"reason": text}. An HTTPS front end sends a redirect. */
const char *zico_reason(struct zico_client *c)
{
	json_t *j = json_loadb((const char *)c->reply.body.data, c->reply.body.len, 0, NULL);
	const char *s = json_string_value(json_object_get(j, "error"));

	if (!s)
		s = json_string_value(json_object_get(j, "reason"));
	if (!s && c->reply.status >= 300 && c->reply.status < 400)
		s = "a redirect, which is not followed; name the URL that it leads to";
	snprintf(c->why, sizeof(c->why), s ? "%ld (%.120s)" : "%ld", c->reply.status, s ? s : "");
	json_decref(j);
	return c->why;
}
