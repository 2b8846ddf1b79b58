/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <lz4frame.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "collector.h"

const struct zico_dialect *zico_dialect_find(const char *profile)
{
	static const struct zico_dialect all[] = {
		{ "document", ZICO_BY_UUID, true, true },
		{ "zico-1.90", ZICO_BY_UUID, true, false },
		{ "zico-1.90.6", ZICO_BY_NUMBER, false, false },
		{ "zico-2", ZICO_BY_SESSION, false, false },
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].profile, profile))
			return &all[i];
	return NULL;
}

static int copy(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

static int copy_attrs(struct zico_client *c, const struct zico_client_options *o)
{
	json_t *j = json_object();

	for (unsigned i = 0; i < o->n_attrs && j; i++)
		if (o->attrs[i].value && *o->attrs[i].value)
			json_object_set_new(j, o->attrs[i].key, json_string(o->attrs[i].value));
	c->attrs = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	return c->attrs ? 0 : -ENOMEM;
}

static int copy_options(struct zico_client *c, const struct zico_client_options *o)
{
	int rc = copy(&c->url, o->url);
	size_t len = rc ? 0 : strlen(c->url);

	while (len && c->url[len - 1] == '/')
		c->url[--len] = '\0';
	rc = rc ? rc : copy(&c->key, o->key);
	rc = rc ? rc : copy(&c->name, o->name);
	rc = rc ? rc : copy(&c->app, o->app);
	rc = rc ? rc : copy(&c->env, o->env);
	rc = rc ? rc : copy(&c->state_file, o->state_file);
	return rc ? rc : copy_attrs(c, o);
}

static int check_options(struct zico_client *c, const struct zico_client_options *o, struct err *err)
{
	const char *form = o->form ? o->form : "zdata";

	if (strncmp(o->url, "http://", 7) != 0 && strncmp(o->url, "https://", 8) != 0)
		return err_set(err, -EINVAL,
			       "%s: no address of a collector; write http://HOST:PORT or https://HOST:PORT", o->url);
	if (strlen(o->url) >= ZICO_URL_MAX || (o->state_file && strlen(o->state_file) >= ZICO_URL_MAX))
		return err_set(err, -EINVAL, "%.64s...: longer than 1023 bytes; shorten it", o->url);
	c->wanted = strcmp(o->profile, "auto") == 0 ? NULL : zico_dialect_find(o->profile);
	if (!c->wanted && strcmp(o->profile, "auto") != 0)
		return err_set(err, -EINVAL,
			       "%s: no profile \"%s\"; expected auto, document, zico-1.90, zico-1.90.6 or zico-2",
			       o->url, o->profile);
	c->form = !strcmp(form, "data") ? ZICO_FORM_DATA : !strcmp(form, "ldata") ? ZICO_FORM_LZ4 : ZICO_FORM_ZLIB;
	return 0;
}

int zico_client_new(const struct zico_client_options *o, struct zico_client **ret, struct err *err)
{
	struct http_client_options ho = o->http ? *o->http : (struct http_client_options){ 0 };
	struct zico_client *c = calloc(1, sizeof(*c));
	int rc = c ? check_options(c, o, err) : err_set(err, -ENOMEM, "%s: out of memory; free some", o->url);

	if (!rc && copy_options(c, o) != 0)
		rc = err_set(err, -ENOMEM, "%s: out of memory; free some", o->url);
	ho.subject = o->url;
	ho.proxies = true;
	ho.stop = o->stop;
	ho.not_this = "this is no collector";
	ho.remedy = "name its authority with ca-file";
	if (!rc)
		rc = http_client_new(&ho, &c->http, err);
	if (rc) {
		zico_client_free(c);
		return rc;
	}
	c->dialect = c->wanted;
	zico_identity_load(c);
	*ret = c;
	return 0;
}

void zico_client_free(struct zico_client *c)
{
	if (!c)
		return;
	http_client_free(c->http);
	buf_free(&c->reply.body);
	buf_free(&c->agent);
	buf_free(&c->trace);
	buf_free(&c->body);
	free(c->url);
	free(c->key);
	free(c->name);
	free(c->app);
	free(c->env);
	free(c->state_file);
	free(c->attrs);
	free(c);
}

const char *zico_client_profile(const struct zico_client *c)
{
	return c->registered && c->dialect ? c->dialect->profile : NULL;
}

static bool accepted(const struct zico_client *c)
{
	return c->reply.status >= 200 && c->reply.status <= 202;
}

/* True when the collector has accepted nothing sent as this profile: it may be another release now. A trace
 * that is refused although its agent data was accepted is itself at fault. */
static bool may_be_another(struct zico_client *c)
{
	if (c->wanted || c->n_told || c->asked)
		return false;
	c->asked = true;
	c->n_refused = 0;
	return true;
}

/* Handles a status other than success for agent data and traces. 0 = go on with the next step. */
static int mend(struct zico_client *c, struct err *err)
{
	long status = c->reply.status;

	/* all releases have these pages, so a proxy in front of the collector does not find it */
	if (status == 404 || status == 405)
		return err_set(err, -EAGAIN, "%s: answered with %s%s", c->url, zico_reason(c),
			       c->dialect->form ? "; it may be no collector of profile document, use profile: auto" :
						  "");
	c->session[0] = '\0';
	if (status == 412 || (c->dialect->identity != ZICO_BY_UUID && (status == 400 || status == 401)))
		return 0;
	if (status == 401) {
		c->registered = false; /* "No such agent." */
		return 0;
	}
	if (status == 400 || status == 413 || status == 500) {
		if (status != 413 && !c->n_refused++)
			return 0;
		if (status != 413 && may_be_another(c)) {
			zico_ask_profile(c);
			return 0;
		}
		return err_set(err, -EBADMSG, "%s: the trace was refused: %s", c->url, zico_reason(c));
	}
	return err_set(err, -EAGAIN, "%s: answered with %s", c->url, zico_reason(c));
}

static int submit(struct zico_client *c, const uint8_t uuid[16], const struct zico_encoding *e, bool *ret_done,
		  struct err *err)
{
	int rc;

	buf_reset(&c->agent);
	buf_reset(&c->trace);
	rc = e->encode(e->arg, &c->agent, &c->trace, err);
	if (rc)
		return rc;
	if (c->agent.len) {
		rc = zico_post_agent(c, err);
		if (rc || !accepted(c))
			return rc ? rc : mend(c, err);
		e->told(e->arg);
		c->reset = false;
		c->n_told++;
	}
	rc = zico_post_trace(c, uuid, err);
	if (rc || !accepted(c))
		return rc ? rc : mend(c, err);
	*ret_done = true;
	return 0;
}

static int begin(struct zico_client *c, const struct zico_encoding *e, struct err *err)
{
	int rc = zico_session(c, err);

	return rc || !*c->session ? rc : e->begin(e->arg, c->dialect->profile, err);
}

int zico_client_send(struct zico_client *c, const uint8_t uuid[16], const struct zico_encoding *e, struct err *err)
{
	bool done = false;
	int rc = 0;

	c->n_sessions = c->n_registered = c->n_refused = c->n_told = 0;
	c->asked = false;
	if (c->unsaved && zico_identity_save(c) == 0)
		c->unsaved = false;
	while (!rc && !done) {
		if (!c->registered || !c->dialect)
			rc = zico_register(c, err);
		else if (!*c->session)
			rc = begin(c, e, err);
		else
			rc = submit(c, uuid, e, &done, err);
	}
	return rc;
}

/* Bodies as text: base64 (RFC 4648, with padding) and forms. */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* A form needs "+", "/" and "=" percent-encoded. */
static void put_digit(struct buf *out, char c, bool percent)
{
	if (percent && (c == '+' || c == '/' || c == '='))
		buf_add_str(out, c == '+' ? "%2B" : c == '/' ? "%2F" : "%3D");
	else
		buf_add_char(out, c);
}

static void put_base64(struct buf *out, const uint8_t *p, size_t n, bool percent)
{
	for (size_t i = 0; i < n; i += 3) {
		unsigned left = n - i < 3 ? (unsigned)(n - i) : 3;
		uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);

		for (unsigned d = 0; d < 4; d++)
			put_digit(out, d <= left ? digits[v >> (18 - 6 * d) & 63] : '=', percent);
	}
}

int zico_body_base64(struct zico_client *c, const struct buf *bytes)
{
	buf_reset(&c->body);
	put_base64(&c->body, bytes->data, bytes->len, false);
	return c->body.failed ? -ENOMEM : 0;
}

static int pack(enum zico_form form, const struct buf *in, struct buf *out)
{
	size_t room = form == ZICO_FORM_ZLIB ? compressBound(in->len) : LZ4F_compressFrameBound(in->len, NULL);
	uint8_t *to = buf_reserve(out, room);
	uLongf n = room;
	size_t lz4;

	if (!to)
		return -ENOMEM;
	if (form == ZICO_FORM_ZLIB) {
		if (compress2(to, &n, in->data, in->len, Z_DEFAULT_COMPRESSION) != Z_OK)
			return -ENOMEM;
		out->len += n;
		return 0;
	}
	lz4 = LZ4F_compressFrame(to, room, in->data, in->len, NULL);
	if (LZ4F_isError(lz4))
		return -ENOMEM;
	out->len += lz4;
	return 0;
}

int zico_body_form(struct zico_client *c, const struct buf *bytes)
{
	static const char *const fields[] = { "data", "zdata", "ldata" };
	struct buf packed = { 0 };
	int rc = c->form == ZICO_FORM_DATA ? 0 : pack(c->form, bytes, &packed);

	buf_reset(&c->body);
	buf_printf(&c->body, "host=%s&%s=", c->id, fields[c->form]);
	if (c->form == ZICO_FORM_DATA)
		put_base64(&c->body, bytes->data, bytes->len, true);
	else if (!rc)
		put_base64(&c->body, packed.data, packed.len, true);
	buf_free(&packed);
	return rc ? rc : c->body.failed ? -ENOMEM : 0;
}
