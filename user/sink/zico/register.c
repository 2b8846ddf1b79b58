/* SPDX-License-Identifier: Apache-2.0 */
/* Registration and session. The form of the answer to a registration shows the release of the collector:
 * {"uuid", "authkey"} up to 1.90.5, {"id": number, "authkey"} for 1.90.6. From 1.90.7 on there is no such page. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "collector.h"

/* While the collector's release is unknown, the form of the stored id shows the release that gave it. */
static bool by_number(const struct zico_client *c)
{
	if (c->dialect)
		return c->dialect->identity == ZICO_BY_NUMBER;
	return *c->id && strspn(c->id, "0123456789") == strlen(c->id);
}

/* Chooses the form of the next registration. 1.90.4 and 1.90.6 fail when a registered host registers again with
 * its identity and attributes, and when an attribute does not fit. So the forms are tried in turn: with
 * attributes, without, then both without an identity. */
static void next_way(const struct zico_client *c, bool *ret_attrs, bool *ret_identity)
{
	*ret_attrs = c->n_failed % 2 == 0;
	*ret_identity = *c->id && c->n_failed % 4 < 2;
}

static char *registration(const struct zico_client *c)
{
	bool with_attrs, with_identity;
	json_t *j = json_pack("{s:s,s:s}", "rkey", c->key, "name", c->name);
	char *text;

	next_way(c, &with_attrs, &with_identity);
	if (j && with_attrs)
		json_object_set_new(j, "attrs", json_loads(c->attrs, 0, NULL));
	if (j && c->app)
		json_object_set_new(j, "app", json_string(c->app));
	if (j && c->env)
		json_object_set_new(j, "env", json_string(c->env));
	if (j && with_identity && by_number(c))
		json_object_set_new(j, "id", json_integer(strtoll(c->id, NULL, 10)));
	else if (j && with_identity)
		json_object_set_new(j, "uuid", json_string(c->id));
	if (j && with_identity)
		json_object_set_new(j, "akey", json_string(c->authkey));
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	return text;
}

/* Reads a uuid or an id as text. False: j is neither. */
static bool read_id(const json_t *j, char id[ZICO_ID_MAX], const char **ret_profile)
{
	const char *uuid = json_string_value(json_object_get(j, "uuid"));
	const json_t *number = json_object_get(j, "id");

	if (uuid && zico_id_ok(uuid)) {
		memcpy(id, uuid, strlen(uuid) + 1);
		*ret_profile = "zico-1.90";
		return true;
	}
	if (!json_is_integer(number) || json_integer_value(number) < 0)
		return false;
	snprintf(id, ZICO_ID_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
	*ret_profile = "zico-1.90.6";
	return true;
}

static int take_registration(struct zico_client *c, struct err *err)
{
	json_t *j = json_loadb((const char *)c->reply.body.data, c->reply.body.len, JSON_REJECT_DUPLICATES, NULL);
	const char *authkey = json_string_value(json_object_get(j, "authkey")), *profile = NULL;
	char id[ZICO_ID_MAX];
	int rc = 0;

	if (!authkey || strlen(authkey) >= sizeof(c->authkey) || !read_id(j, id, &profile))
		rc = err_set(err, -EAGAIN,
			     "%s: its answer to a registration has no uuid and authkey; is it a ZICO collector?",
			     c->url);
	else if (c->wanted && c->wanted->identity != zico_dialect_find(profile)->identity)
		rc = err_set(err, -EACCES, "%s: it speaks %s, not %s; use profile: auto", c->url, profile,
			     c->wanted->profile);
	if (!rc) {
		memcpy(c->id, id, sizeof(id));
		memcpy(c->authkey, authkey, strlen(authkey) + 1);
		c->dialect = c->wanted ? c->wanted : zico_dialect_find(profile);
		c->registered = true;
		c->n_failed = 0;
		/* the failure is logged once. Delivery goes on, because that makes room on a full disk */
		rc = zico_identity_save(c);
		c->unsaved = rc != 0;
		if (rc) {
			err_write(err, rc, c->state_file, "the identity at the collector is not kept");
			rc = -EAGAIN;
		}
	}
	json_decref(j);
	return rc;
}

/* 400: the collector's closed schema does not know the keys of the registration, or the identity is of another
 * collector. 401: the key of the identity or the registration key is wrong. Without an identity the cause is clear. */
static int refused(struct zico_client *c, struct err *err)
{
	if (*c->id) {
		c->id[0] = c->authkey[0] = '\0';
		c->dialect = c->wanted;
		return 0;
	}
	if (c->reply.status == 401)
		return err_set(err, -EACCES,
			       "%s: registration refused: %s; set key to the collector's registration key", c->url,
			       zico_reason(c));
	return err_set(err, -EACCES, "%s: registration refused: %s", c->url, zico_reason(c));
}

int zico_register(struct zico_client *c, struct err *err)
{
	int rc;

	if (c->n_registered++ == 3)
		return err_set(err, -EAGAIN,
			       "%s: registered three times and still not known; look at the collector's log", c->url);
	if (c->wanted && c->wanted->identity == ZICO_BY_SESSION) {
		c->dialect = c->wanted;
		c->registered = true;
		return 0;
	}
	rc = zico_post_json(c, "/agent/register", registration(c), err);
	if (rc)
		return rc;
	switch (c->reply.status) {
	case 200:
	case 201:
		return take_registration(c, err);
	case 400:
	case 401:
		return refused(c, err);
	case 404:
		if (c->wanted)
			return err_set(err, -EACCES,
				       "%s: it has no /agent/register; use profile: auto, or mend the URL", c->url);
		c->dialect = zico_dialect_find("zico-2");
		c->registered = true;
		c->n_failed = 0;
		return 0;
	case 500:
		c->n_failed++;
		return err_set(err, -EREMOTEIO,
			       "%s: registration answered with %s; tried again in other ways, in the end every 10 min",
			       c->url, zico_reason(c));
	}
	return err_set(err, -EAGAIN, "%s: registration answered with %s", c->url, zico_reason(c));
}

void zico_ask_profile(struct zico_client *c)
{
	c->registered = false;
	if (!c->wanted)
		c->dialect = NULL;
}

/* zico-2: the client chooses the session, and the next agent data opens it. */
static int own_session(struct zico_client *c, struct err *err)
{
	uint64_t v;

	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		return err_set(err, -EAGAIN, "%s: the kernel gave no random numbers; start jouled later", c->url);
	snprintf(c->session, sizeof(c->session), "%016" PRIx64, v);
	c->reset = true;
	return 0;
}

static int take_session(struct zico_client *c, struct err *err)
{
	json_t *j = json_loadb((const char *)c->reply.body.data, c->reply.body.len, JSON_REJECT_DUPLICATES, NULL);
	const char *session = json_string_value(json_object_get(j, "session"));
	int rc = 0;

	if (session && zico_id_ok(session))
		memcpy(c->session, session, strlen(session) + 1);
	else
		rc = err_set(err, -EAGAIN, "%s: its answer has no session; is it a ZICO collector?", c->url);
	json_decref(j);
	return rc;
}

/* Another release may run there now: a zico-2 client gets 412 from a 1.90 collector. If each new session
 * accepted the agent data, the trace is at fault: zico-2 also answers 401 to a trace that it cannot read, but
 * 412 only to a session. */
static int forgets(struct zico_client *c, struct err *err)
{
	if (c->dialect->identity == ZICO_BY_SESSION && c->reply.status != 412 && c->n_told >= c->n_sessions - 1)
		return err_set(err, -EBADMSG, "%s: the trace was refused in each new session: %s", c->url,
			       zico_reason(c));
	zico_ask_profile(c);
	return err_set(err, -EAGAIN, "%s: it forgets each session at once; look at the collector's log", c->url);
}

int zico_session(struct zico_client *c, struct err *err)
{
	json_t *j;
	int rc;

	c->reset = false;
	if (c->n_sessions++ == 4)
		return forgets(c, err);
	if (c->dialect->identity == ZICO_BY_SESSION)
		return own_session(c, err);
	j = json_pack("{s:s,s:s}", by_number(c) ? "id" : "uuid", c->id, "authkey", c->authkey);
	rc = zico_post_json(c, "/agent/session", j ? json_dumps(j, JSON_COMPACT) : NULL, err);
	json_decref(j);
	if (rc)
		return rc;
	if (c->reply.status != 404)
		c->n_missing = 0;
	switch (c->reply.status) {
	case 200:
	case 201:
		return take_session(c, err);
	case 400:
	case 401:
		c->registered = false; /* it does not know the agent, or not with this key */
		return 0;
	case 404:
		/* the first 404 may be a proxy's; the next is that of zico-2, which has no such page */
		if (c->n_missing++) {
			zico_ask_profile(c);
			return 0;
		}
	}
	return err_set(err, -EAGAIN, "%s: no session: %s", c->url, zico_reason(c));
}
