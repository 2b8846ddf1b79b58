/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the function that answers a request, and checks the rights of the client. */
#include <stdio.h>
#include <string.h>
#include "routes.h"

static const struct route {
	const char *path;
	const char *method;
	bool below; /* also answers paths below this one */
	bool coarse; /* users outside the group may ask too, and get less */
	void (*answer)(struct serve *s, struct http_request *r, const char *rest);
} routes[] = {
	{ "/", "GET", false, false, serve_get_page },
	{ "/v1/status", "GET", false, false, serve_get_status },
	{ "/v1/reading", "POST", false, false, serve_post_reading },
	{ "/v1/audit", "POST", false, false, serve_post_audit },
	{ "/v1/snapshot", "GET", false, false, serve_get_snapshot },
	{ "/v1/cgroups", "GET", true, true, serve_get_cgroups },
	{ "/v1/hwpc", "GET", false, false, serve_get_reports },
	{ "/v1/power", "GET", false, false, serve_get_reports },
	{ "/v1/stream", "GET", false, false, serve_get_stream },
	{ "/metrics", "GET", false, false, serve_get_metrics },
	{ "/v1/history", "GET", false, false, serve_get_history },
	{ "/v1/profile", "GET", false, false, serve_get_profile },
	{ "/v1/devices", "GET", true, false, serve_get_devices },
	{ "/v1/spans", "GET", false, false, serve_get_spans },
};

/* The part after the route's path; NULL when the path is another one. */
static const char *rest_of(const struct route *t, const char *path)
{
	size_t n = strlen(t->path);

	if (strncmp(path, t->path, n) != 0)
		return NULL;
	return !path[n] || (t->below && path[n] == '/') ? path + n : NULL;
}

static void dispatch(struct serve *s, const struct route *t, struct http_request *r, const char *rest)
{
	enum serve_access access = serve_access_of(s, r->peer);
	char allow[32];

	if (strcmp(r->method, t->method) != 0 || (r->head && strcmp(t->method, "GET") != 0)) {
		snprintf(allow, sizeof(allow), "Allow: %s", strcmp(t->method, "GET") ? t->method : "GET, HEAD");
		http_error(r, 405, allow, "method: not for %s; use %s", t->path, t->method);
	} else if (access == ACCESS_NONE || (access == ACCESS_COARSE && !t->coarse)) {
		http_error(r, 403, NULL,
			   "%s: not for your user; ask the administrator to add you to the group of the socket",
			   t->path);
	} else {
		t->answer(s, r, rest);
	}
}

void serve_route(void *arg, struct http_request *r)
{
	struct serve *s = arg;
	const char *rest;

	if (serve_health(s, r))
		return;
	if (!r->peer->local && !web_guard_admit(&s->o.web, r))
		return;
	for (unsigned i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if ((rest = rest_of(&routes[i], r->path))) {
			dispatch(s, &routes[i], r, rest);
			return;
		}
	http_error(
		r, 404, NULL,
		"path: there is nothing; try /v1/status, /v1/reading, /v1/audit, /v1/snapshot, /v1/cgroups, /v1/hwpc, "
		"/v1/power, /v1/stream, /v1/history, /v1/spans, /v1/profile, /v1/devices, /metrics, /healthz or /readyz");
}

bool serve_query(struct http_request *r, const char *allowed, struct query *q)
{
	const struct query_args args = { r->names, r->values, r->n_args };
	struct err err = { 0 };

	if (query_parse(q, allowed, &args, &err) == 0)
		return true;
	http_error(r, 400, NULL, "%s", err.text);
	return false;
}

int serve_negotiate(struct http_request *r, const char *const *types)
{
	int i = http_accept(r->accept, types);
	char list[256] = "";

	if (i >= 0)
		return i;
	for (size_t k = 0, n = 0; types[k] && n < sizeof(list); k++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", k ? ", " : "", types[k]);
	http_error(r, 406, NULL, "Accept: none of these is wanted; there is %s", list);
	return -1;
}
