/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/profile: energy by code, of the last hour. The thread that profiles answers; meanwhile the request sleeps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "routes.h"

#define AT_ONCE 8 /* questions */
#define DEFAULT_NS (3600 * (int64_t)NS_PER_S)

static const char *const pprof_types[] = { "application/octet-stream", NULL }, *const folded_types[] = { "text/plain",
													 NULL };

struct profile_asker {
	struct serve *s;
	struct MHD_Connection *conn; /* NULL = it has left */
	struct serve_profile q;
	bool answered;
	struct profile_asker *next;
};

static void free_asker(struct profile_asker *a)
{
	free(a->q.cgroup);
	free(a->q.rules);
	buf_free(&a->q.body);
	free(a);
}

/* The asker of a connection, taken out of the list where `take`. */
static struct profile_asker *asker_of(struct serve *s, const struct MHD_Connection *conn, bool take)
{
	for (struct profile_asker **at = &s->profile_askers; *at; at = &(*at)->next)
		if ((*at)->conn == conn) {
			struct profile_asker *a = *at;

			if (take)
				*at = a->next;
			return a;
		}
	return NULL;
}

/* On the loop. */
static void wake(void *arg)
{
	struct profile_asker *a = arg;

	a->answered = true;
	if (a->conn) {
		http_again(a->conn);
		return;
	}
	for (struct profile_asker **at = &a->s->profile_askers; *at; at = &(*at)->next)
		if (*at == a) {
			*at = a->next;
			break;
		}
	free_asker(a);
}

/* On the thread that profiles. Without memory the request stays until its client leaves. */
static void answered(struct serve_profile *p)
{
	struct profile_asker *a = p->arg;

	loop_post(a->s->loop, wake, a);
}

void serve_profile_done(struct serve *s, const struct MHD_Connection *conn)
{
	struct profile_asker *a = asker_of(s, conn, false);

	if (!a)
		return;
	a->conn = NULL; /* the thread may still have it */
	if (a->answered) {
		for (struct profile_asker **at = &s->profile_askers; *at; at = &(*at)->next)
			if (*at == a) {
				*at = a->next;
				break;
			}
		free_asker(a);
	}
}

void serve_profile_end(struct serve *s)
{
	while (s->profile_askers) {
		struct profile_asker *a = s->profile_askers;

		s->profile_askers = a->next;
		free_asker(a);
	}
}

static void reply(struct http_request *r, struct profile_asker *a)
{
	if (!a->q.rc)
		http_reply(r, 200, a->q.folded ? folded_types[0] : pprof_types[0], NULL, &a->q.body);
	else
		http_error(r, a->q.rc == -ENODATA ? 404 : 503, a->q.rc == -ENODATA ? NULL : "Retry-After: 1", "%s",
			   a->q.err.text);
	free_asker(a);
}

static bool too_many(const struct serve *s)
{
	unsigned n = 0;

	for (const struct profile_asker *a = s->profile_askers; a; a = a->next)
		n++;
	return n >= AT_ONCE;
}

static void ask(struct serve *s, struct http_request *r, const struct query *q, bool folded)
{
	struct profile_asker *a = calloc(1, sizeof(*a));

	if (a) {
		a->s = s;
		a->conn = r->conn;
		a->q = (struct serve_profile){ .folded = folded, .answered = answered, .arg = a };
		a->q.until_ns = q->until_ns == INT64_MIN ? q->now_ns : q->until_ns;
		a->q.since_ns = q->since_ns == INT64_MIN ? a->q.until_ns - DEFAULT_NS : q->since_ns;
		a->q.rules = serve_rules(s);
		a->q.cgroup = q->cgroup ? strdup(q->cgroup) : NULL;
	}
	if (!a || !a->q.rules || (q->cgroup && !a->q.cgroup)) {
		if (a)
			free_asker(a);
		http_error(r, 503, "Retry-After: 1", "profile: out of memory; try again");
		return;
	}
	if (a->q.since_ns >= a->q.until_ns) {
		free_asker(a);
		http_error(r, 400, NULL, "since: not before until; choose an earlier time");
		return;
	}
	a->next = s->profile_askers;
	s->profile_askers = a;
	http_wait(r);
	s->o.profiling.ask(s->o.profiling.arg, &a->q);
}

void serve_get_profile(struct serve *s, struct http_request *r, const char *rest)
{
	struct profile_asker *a = asker_of(s, r->conn, false);
	struct query q;
	bool folded;

	if (a && !a->answered) {
		http_wait(r);
		return;
	}
	if (a) {
		reply(r, asker_of(s, r->conn, true));
		return;
	}
	if (!serve_query(r, "cgroup since until format", &q))
		return;
	folded = strcmp(q.format, "folded") == 0;
	if (*q.format && !folded && strcmp(q.format, "pprof") != 0)
		http_error(r, 400, NULL, "format: unknown; write pprof or folded");
	else if (serve_negotiate(r, folded ? folded_types : pprof_types) < 0)
		return;
	else if (!s->o.profiling.ask)
		http_error(r, 404, NULL, "profile: %s", s->o.no_profile);
	else if (too_many(s))
		http_error(r, 503, "Retry-After: 1", "profile: too many ask at once; try again");
	else
		ask(s, r, &q, folded);
}
