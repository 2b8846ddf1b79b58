// SPDX-License-Identifier: Apache-2.0
/* Management controllers by Redfish (DMTF DSP0266), over HTTPS. What is asked for is found by its schema and not by its
 * maker: ServiceRoot -> ChassisCollection -> Chassis -> EnvironmentMetrics.PowerWatts (2020.4 and later), or
 * Power.PowerControl[0].PowerConsumedWatts before it. One request at a time, each of a second at most. Who asks is told once where the
 * service root names a collection of sessions (Links.Sessions; DSP0266, "Redfish session login authentication"), else in each request. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/http/http_client.h"
#include "meter_ops.h"

#define TIMEOUT_NS NS_PER_S
#define ANSWER_MAX (256u * 1024)
#define LOOKED_AT 64 /* members of the collection */
#define TOKEN_MAX 1024
#define ROOT "/redfish/v1/"
#define DENIED \
	"%s: answered with %ld for %s: it does not accept who asks; mend user and password-file; it is asked again in 5 minutes, for " \
	"controllers lock out who guesses"

struct chassis {
	char id[METER_REDFISH_PATH]; /* its own path */
	char within[METER_REDFISH_PATH]; /* the path of the chassis around it; "" = none */
	char power[METER_REDFISH_PATH]; /* of the document with its power; "" = none */
};

struct redfish {
	struct http_client *http;
	struct http_answer answer;
	char sessions[METER_REDFISH_PATH]; /* their collection; "" = each request has the password */
	char session[METER_REDFISH_PATH]; /* ours, to be ended; "" = there is none */
	char token[sizeof("X-Auth-Token: ") + TOKEN_MAX]; /* header; "" = there is no session */
	unsigned n; /* 0 = not found yet */
	struct chassis found[METER_MAX_CHANNELS];
};

/* A path from an answer becomes part of a URL: no other host, no query, no step upwards, written with % or not. */
static bool take_path_text(const char *path, char ret[METER_REDFISH_PATH])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_.~:(),='@+$!";
	size_t n = path ? strlen(path) : 0;

	if (!n || n >= METER_REDFISH_PATH || strncmp(path, "/redfish/", 9) != 0 || path[strspn(path, allowed)] ||
	    strstr(path, ".."))
		return false;
	memcpy(ret, path, n + 1);
	return true;
}

static bool take_path(const json_t *o, char ret[METER_REDFISH_PATH])
{
	return take_path_text(json_string_value(json_object_get(o, "@odata.id")), ret);
}

/* Sends a request to a path. In a session its token says who asks. */
static int send_to(struct meter *m, const char *path, struct http_ask *ask, struct err *err)
{
	struct redfish *r = m->state;
	const char *const headers[] = { r->token, NULL };
	char url[512 + METER_REDFISH_PATH];
	size_t len = strlen(m->url);

	while (len && m->url[len - 1] == '/')
		len--;
	snprintf(url, sizeof(url), "%.*s%s", (int)len, m->url, path);
	ask->url = url;
	ask->anonymous |= *r->token || ask->post;
	ask->headers = *r->token ? headers : NULL;
	return http_client_ask(r->http, ask, &r->answer, err);
}

/* The path of the new session: in its document, or in the header Location, with a host or without. */
static void take_session(struct redfish *r)
{
	json_t *doc = json_loadb((const char *)r->answer.body.data, r->answer.body.len, 0, NULL);
	char location[512 + METER_REDFISH_PATH];
	const char *path;

	r->session[0] = '\0';
	if (!take_path(doc, r->session) && http_client_header(r->http, "Location", location, sizeof(location)) &&
	    (path = strstr(location, "/redfish/")))
		take_path_text(path, r->session);
	json_decref(doc);
}

/* Begins a session. 0: it has begun, or the controller has none for us and every request has the password; or -errno. */
static int login(struct meter *m, struct err *err)
{
	struct redfish *r = m->state;
	char password[HTTP_SECRET_MAX], token[TOKEN_MAX], *body;
	json_t *who;
	int rc = http_secret_read(m->password_file, password, err);

	if (rc)
		return rc;
	who = json_pack("{s:s, s:s}", "UserName", m->user, "Password", password);
	body = who ? json_dumps(who, JSON_COMPACT) : NULL;
	explicit_bzero(password, sizeof(password));
	json_decref(who);
	if (!body)
		return err_set(err, -EACCES, "%s: the user or the password is not UTF-8; mend user and password-file",
			       m->url);
	rc = send_to(m, r->sessions,
		     &(struct http_ask){ .post = true, .type = "application/json", .body = body, .len = strlen(body) },
		     err);
	explicit_bzero(body, strlen(body));
	free(body);
	if (rc)
		return rc;
	if ((r->answer.status == 200 || r->answer.status == 201) &&
	    http_client_header(r->http, "X-Auth-Token", token, sizeof(token)) && *token) {
		snprintf(r->token, sizeof(r->token), "X-Auth-Token: %s", token);
		take_session(r);
	} else if (r->answer.status != 401 && r->answer.status != 403) {
		r->sessions[0] = '\0';
	}
	return 0;
}

/* Ends the session, so that the controller has room for others; one that does not answer ends it by itself after some time. */
static void logout(struct meter *m)
{
	struct redfish *r = m->state;
	struct err err;

	if (*r->token && *r->session)
		send_to(m, r->session, &(struct http_ask){ .del = true, .last = true }, &err);
	explicit_bzero(r->token, sizeof(r->token));
	r->session[0] = '\0';
}

static int ask(struct meter *m, const char *path, json_t **ret, struct err *err)
{
	struct redfish *r = m->state;
	const bool is_root = strcmp(path, ROOT) == 0;
	/* everybody may read the root, and it tells whether the password is to be sent at all */
	int rc = send_to(m, path, &(struct http_ask){ .anonymous = is_root }, err);

	if (!rc && r->answer.status == 401 && is_root)
		rc = send_to(m, path, &(struct http_ask){ 0 }, err);
	if (!rc && r->answer.status == 401 && *r->token) {
		/* the session has ended */
		explicit_bzero(r->token, sizeof(r->token));
		r->session[0] = '\0';
		rc = login(m, err);
		if (!rc && (*r->token || !*r->sessions))
			rc = send_to(m, path, &(struct http_ask){ 0 }, err);
	}
	if (rc)
		return rc;
	m->denied = r->answer.status == 401 || r->answer.status == 403;
	if (m->denied)
		return err_set(err, -EACCES, DENIED, m->url, r->answer.status, path);
	if (r->answer.status != 200)
		return err_set(err, -EBADMSG, "%s: answered with %ld for %s; is it a Redfish service", m->url,
			       r->answer.status, path);
	*ret = json_loadb((const char *)r->answer.body.data, r->answer.body.len, 0, NULL);
	if (json_is_object(*ret))
		return 0;
	json_decref(*ret);
	*ret = NULL;
	return err_set(err, -EBADMSG, "%s: no JSON object at %s; is it a Redfish service", m->url, path);
}

/* The power document of a chassis: a link that is there may lead to a document without the value; one with a value now
 * comes first. 0, or -errno: the controller does not answer. */
static int find_power(struct meter *m, const json_t *chassis, struct chassis *c, struct err *err)
{
	static const char *const links[] = { "EnvironmentMetrics", "Power" };
	int64_t uw;

	for (unsigned i = 0; i < 2; i++) {
		char path[METER_REDFISH_PATH];
		struct redfish *r = m->state;
		json_t *doc;
		int rc;

		if (!take_path(json_object_get(chassis, links[i]), path))
			continue;
		rc = ask(m, path, &doc, err);
		if (rc && rc != -EBADMSG)
			return rc;
		if (rc)
			continue;
		json_decref(doc);
		rc = meter_redfish_parse((const char *)r->answer.body.data, r->answer.body.len, &uw);
		if (rc == 0 || (rc == -ENODATA && !*c->power))
			memcpy(c->power, path, sizeof(path));
		if (rc == 0)
			break;
	}
	return 0;
}

/* 0; 1: there is no such chassis; or -errno. */
static int look_at(struct meter *m, const char *path, struct chassis *ret, struct err *err)
{
	json_t *chassis = NULL;
	int rc = ask(m, path, &chassis, err);

	if (rc)
		return rc == -EBADMSG ? 1 : rc;
	*ret = (struct chassis){ 0 };
	snprintf(ret->id, sizeof(ret->id), "%s", path);
	take_path(json_object_get(json_object_get(chassis, "Links"), "ContainedBy"), ret->within);
	rc = find_power(m, chassis, ret, err);
	json_decref(chassis);
	return rc;
}

/* Paths are the same with and without a slash at the end. */
static bool same_path(const char *a, const char *b)
{
	size_t n = strlen(a), k = strlen(b);

	while (n && a[n - 1] == '/')
		n--;
	while (k && b[k - 1] == '/')
		k--;
	return n && n == k && memcmp(a, b, n) == 0;
}

/* Those that the collection names. */
struct members {
	unsigned n;
	struct chassis v[LOOKED_AT];
};

static const struct chassis *find(const struct members *all, const char *id)
{
	for (unsigned i = 0; i < all->n; i++)
		if (same_path(all->v[i].id, id))
			return &all->v[i];
	return NULL;
}

/* A chassis anywhere within another that tells its power is part of that one's. The links of a controller may go round. */
static bool is_contained(const struct members *all, const struct chassis *c)
{
	const struct chassis *around = c;

	for (unsigned steps = 0; steps < all->n && (around = find(all, around->within)) && around != c; steps++)
		if (*around->power)
			return true;
	return false;
}

/* A document that two of them share counts once. */
static bool is_shared(const struct members *all, const struct chassis *c)
{
	for (const struct chassis *before = all->v; before < c; before++)
		if (same_path(before->power, c->power))
			return true;
	return false;
}

/* Takes the powers that count, in the order of the collection. Returns how many found no room. */
static unsigned take_powers(struct redfish *r, const struct members *all)
{
	unsigned left_out = 0;

	for (unsigned i = 0; i < all->n; i++) {
		const struct chassis *c = &all->v[i];

		if (!*c->power || is_contained(all, c) || is_shared(all, c))
			continue;
		if (r->n < METER_MAX_CHANNELS)
			r->found[r->n++] = *c;
		else
			left_out++;
	}
	return left_out;
}

/* Once per meter, although it may be opened again and again. */
static void tell_left_out(struct meter *m, size_t members, bool more_pages)
{
	char text[280], count[48] = "";

	if (m->told_left_out || (!members && !more_pages))
		return;
	m->told_left_out = true;
	if (members)
		snprintf(count, sizeof(count), "%zu member%s%s", members, members == 1 ? "" : "s",
			 more_pages ? " and " : "");
	snprintf(text, sizeof(text),
		 "%s%s of its Chassis are left out: it asks for %d members of the first page and %d powers, by paths "
		 "below /redfish/; use another meter for the rest",
		 count, more_pages ? "further pages" : "", LOOKED_AT, METER_MAX_CHANNELS);
	pthread_mutex_lock(&m->all->lock);
	meter_warn(m, text);
	pthread_mutex_unlock(&m->all->lock);
}

static int look_at_members(struct meter *m, const json_t *list, struct members *all, struct err *err)
{
	const json_t *member;
	size_t i, looked_at = 0;

	json_array_foreach(list, i, member) {
		struct chassis *c = &all->v[all->n];
		char path[METER_REDFISH_PATH];
		int rc;

		if (i == LOOKED_AT)
			break;
		if (!take_path(member, path))
			continue;
		looked_at++;
		if (find(all, path))
			continue; /* named twice */
		rc = look_at(m, path, c, err);
		if (rc < 0)
			return rc;
		all->n += rc == 0;
	}
	return (int)looked_at;
}

static int take_members(struct meter *m, const json_t *collection, struct err *err)
{
	const json_t *list = json_object_get(collection, "Members");
	const bool more_pages = json_is_string(json_object_get(collection, "Members@odata.nextLink"));
	struct members *all = calloc(1, sizeof(*all));
	int looked_at = all ? look_at_members(m, list, all, err) :
			      err_set(err, -ENOMEM, "%s: out of memory; free some", m->url);

	if (looked_at >= 0)
		tell_left_out(m, json_array_size(list) - (size_t)looked_at + take_powers(m->state, all), more_pages);
	free(all);
	return looked_at < 0 ? looked_at : 0;
}

static int discover(struct meter *m, struct err *err)
{
	struct redfish *r = m->state;
	json_t *root = NULL, *all = NULL;
	char path[METER_REDFISH_PATH];
	int rc = ask(m, ROOT, &root, err);

	if (!rc && m->user && take_path(json_object_get(json_object_get(root, "Links"), "Sessions"), r->sessions))
		rc = login(m, err);
	if (!rc && *r->sessions && !*r->token) {
		m->denied = true;
		rc = err_set(err, -EACCES, DENIED, m->url, r->answer.status, r->sessions);
	}
	if (!rc && !take_path(json_object_get(root, "Chassis"), path))
		rc = err_set(err, -EBADMSG, "%s: its service root names no Chassis; is it a Redfish service", m->url);
	if (!rc)
		rc = ask(m, path, &all, err);
	if (!rc)
		rc = take_members(m, all, err);
	if (!rc && !r->n)
		rc = err_set(
			err, -EBADMSG,
			"%s: no chassis tells EnvironmentMetrics.PowerWatts or PowerControl[0].PowerConsumedWatts; "
			"use another meter",
			m->url);
	json_decref(root);
	json_decref(all);
	return rc;
}

static void redfish_close(struct meter *m)
{
	struct redfish *r = m->state;

	if (r->http)
		logout(m);
	http_client_free(r->http);
	buf_free(&r->answer.body);
	free(r);
	m->state = NULL;
}

/* A value that is missing is a gap of its channel; the look failed when no channel has one. */
static int redfish_look(struct meter *m, struct err *err)
{
	struct redfish *r = m->state;
	unsigned known = 0;

	err->code = 0;
	for (unsigned i = 0; i < r->n; i++) {
		json_t *doc = NULL;
		int64_t uw;
		int rc = ask(m, r->found[i].power, &doc, err);

		json_decref(doc);
		if (rc == -EBADMSG)
			continue; /* the others may answer */
		if (rc)
			return known ? 0 : rc;
		if (meter_redfish_parse((const char *)r->answer.body.data, r->answer.body.len, &uw)) {
			err_set(err, -ENODATA, "%s: no power at %s at the moment", m->url, r->found[i].power);
			continue;
		}
		meter_put(m, 0, i, uw);
		known++;
	}
	return known ? 0 : err->code;
}

static int redfish_open(struct meter *m, struct err *err)
{
	const struct http_client_options o = {
		.subject = m->url,
		.ca_file = m->ca_file,
		.only_ca_file = m->ca_file != NULL,
		.secrets = { .user = m->user, .password_file = m->password_file },
		.timeout_ns = TIMEOUT_NS,
		.stop = &m->all->stop,
		.answer_max = ANSWER_MAX,
		.not_this = "this is no management controller",
		.remedy = "name its authority, or the certificate itself, with ca-file",
	};
	struct redfish *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", m->url);
	m->state = r;
	rc = http_client_new(&o, &r->http, err);
	if (!rc)
		rc = discover(m, err);
	if (!rc)
		rc = redfish_look(m, err); /* a board without a value says so at once */
	if (rc)
		redfish_close(m);
	return rc;
}

const struct meter_ops meter_redfish = { "redfish", NS_PER_S, false, redfish_open, redfish_look, redfish_close };

/* A controller that runs draws power: 0 is what firmware says that does not measure it. */
static int watts_of(const json_t *v, int64_t *ret_uw)
{
	if (json_is_null(v) || (json_is_number(v) && json_number_value(v) == 0))
		return -ENODATA;
	return json_is_number(v) && json_number_value(v) >= 0 && meter_watts(json_number_value(v), ret_uw) ? 0 :
													     -EBADMSG;
}

int meter_redfish_parse(const char *text, size_t n, int64_t *ret_uw)
{
	json_t *root = json_loadb(text, n, 0, NULL);
	const json_t *reading = json_object_get(json_object_get(root, "PowerWatts"), "Reading");
	int rc;

	if (!reading)
		reading = json_object_get(json_array_get(json_object_get(root, "PowerControl"), 0),
					  "PowerConsumedWatts");
	rc = watts_of(reading, ret_uw);
	json_decref(root);
	return rc;
}
