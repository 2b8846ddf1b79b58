/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/audit: joulectl audit leaves its result, which /v1/status, /metrics and the history then have. */
#include <stdlib.h>
#include <string.h>
#include "routes.h"

static const char *const json_types[] = { "application/json", NULL };

/* Lines of cgroups stay in the history: what may be shown of them can change. Own loads have no path. */
void serve_audit_json(const struct serve *s, struct json *j)
{
	struct audit *a = s->audit ? malloc(sizeof(*a)) : NULL;

	if (!a)
		return;
	*a = *s->audit;
	a->n = 0;
	for (unsigned i = 0; i < s->audit->n; i++)
		if (!strchr(s->audit->line[i].cgroup, '/'))
			a->line[a->n++] = s->audit->line[i];
	json_key(j, "audit");
	audit_json(j, a);
	free(a);
}

/* Drops the lines of cgroups that are not reported, and of those whose name is cut. */
static int keep_selected(struct serve *s, struct audit *a)
{
	struct selection_rules *rules = serve_rules(s);
	unsigned n = 0;

	for (unsigned i = 0; rules && i < a->n; i++)
		if (!strchr(a->line[i].cgroup, '/') ||
		    (a->line[i].cgroup[0] == '/' && selection_admits(rules, a->line[i].cgroup)))
			a->line[n++] = a->line[i];
	a->n = n;
	free(rules);
	return rules ? 0 : -1;
}

void serve_post_audit(struct serve *s, struct http_request *r, const char *rest)
{
	struct err err = { 0 };
	const char *why;
	struct query q;
	struct audit *a;
	struct json j;

	if (!serve_query(r, "", &q) || serve_negotiate(r, json_types) < 0)
		return;
	if (!r->peer->local) {
		http_error(r, 403, NULL, "audit: only over the Unix socket; run joulectl audit there");
		return;
	}
	a = malloc(sizeof(*a));
	if (!a || audit_parse(r->body ? r->body : "", r->body_len, a, &err) != 0 || keep_selected(s, a) != 0) {
		free(a);
		http_error(r, err.text[0] ? 400 : 503, NULL, "%s",
			   err.text[0] ? err.text : "audit: out of memory; try again");
		return;
	}
	free(s->audit);
	s->audit = a;
	why = s->o.audited ? s->o.audited(s->o.arg, a) : "this agent keeps none";
	buf_reset(&s->out);
	json_init(&j, &s->out);
	json_object_begin(&j);
	json_key(&j, "kept");
	json_bool(&j, !why);
	if (why)
		json_key_str(&j, "reason", why);
	json_object_end(&j);
	buf_add_char(&s->out, '\n');
	http_reply(r, 200, "application/json", NULL, &s->out);
}
