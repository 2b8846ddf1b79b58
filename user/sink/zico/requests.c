/* SPDX-License-Identifier: Apache-2.0 */
/* The requests. Paths and headers by how the collectors of a profile know an agent. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "zico_client_internal.h"

#define CBOR_TYPE "application/zorka+cbor+v1"
#define FORM_TYPE "application/x-www-form-urlencoded"
#define HEADER_MAX 120

struct headers {
	char text[3][HEADER_MAX];
	const char *list[4];
	unsigned n;
};

static void add_header(struct headers *h, const char *name, const char *value)
{
	snprintf(h->text[h->n], HEADER_MAX, "%s: %s", name, value);
	h->list[h->n] = h->text[h->n];
	h->n++;
}

static int post(struct zico_client *c, const char *path, const char *type, const struct headers *h,
		const struct buf *body, struct err *err)
{
	char url[ZICO_URL_MAX + 32];
	struct http_post p = {
		.url = url,
		.type = type,
		.headers = h ? h->list : NULL,
		.body = body->data,
		.len = body->len,
	};

	int rc;

	snprintf(url, sizeof(url), "%s%s", c->url, path);
	rc = http_client_post(c->http, &p, &c->reply, err);
	return !rc || rc == -ECANCELED ? rc : rc == -EINVAL || rc == -EKEYREJECTED ? -EACCES : -EAGAIN;
}

int zico_post_json(struct zico_client *c, const char *path, char *json, struct err *err)
{
	struct buf body = { .data = (uint8_t *)json, .len = json ? strlen(json) : 0 };
	int rc = json ? post(c, path, "application/json", NULL, &body, err) :
			err_set(err, -ENOMEM, "%s: out of memory; free some", c->url);

	free(json);
	return rc;
}

static void add_identity(const struct zico_client *c, struct headers *h)
{
	switch (c->dialect->identity) {
	case ZICO_BY_UUID:
		add_header(h, "X-Zorka-Agent-UUID", c->id);
		add_header(h, "X-Zorka-Session-UUID", c->session);
		break;
	case ZICO_BY_NUMBER:
		add_header(h, "X-Zorka-Agent-ID", c->id);
		add_header(h, "X-Zorka-Session-UUID", c->session);
		break;
	case ZICO_BY_SESSION:
		add_header(h, "X-Zorka-Session-ID", c->session);
	}
}

static int post_bytes(struct zico_client *c, const char *path, const struct headers *h, const struct buf *bytes,
		      struct err *err)
{
	if (c->dialect->base64 && zico_body_base64(c, bytes) != 0)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", c->url);
	return post(c, path, CBOR_TYPE, h, c->dialect->base64 ? &c->body : bytes, err);
}

int zico_post_agent(struct zico_client *c, struct err *err)
{
	struct headers h = { 0 };

	add_identity(c, &h);
	if (c->reset)
		add_header(&h, "X-Zorka-Session-Reset", "true");
	if (!c->dialect->form)
		return post_bytes(c, "/agent/submit/agd", &h, &c->agent, err);
	if (zico_body_form(c, &c->agent) != 0)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", c->url);
	return post(c, "/submit/agent", FORM_TYPE, &h, &c->body, err);
}

int zico_post_trace(struct zico_client *c, const uint8_t uuid[16], struct err *err)
{
	bool dashes = c->dialect->identity != ZICO_BY_SESSION;
	struct headers h = { 0 };
	char text[40];
	int n = 0;

	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%02x",
			      dashes && (i == 4 || i == 6 || i == 8 || i == 10) ? "-" : "", uuid[i]);
	add_identity(c, &h);
	add_header(&h, dashes ? "X-Zorka-Trace-UUID" : "X-Zorka-Trace-ID", text);
	return post_bytes(c, "/agent/submit/trc", &h, &c->trace, err);
}

/* {"error": text} of the first releases, {"reason": text} later. A front of HTTPS sends elsewhere. */
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
