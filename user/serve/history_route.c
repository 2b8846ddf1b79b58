/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/history: the store's answer as JSON (docs/query.md). One query is answered at a time, in turns
 * between which the loop does its other work. Other queries wait suspended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "model/job_path.h"
#include "store/history/history.h"
#include "routes.h"

#define DEFAULT_LIMIT 20
#define MOST_LIMIT 1000
#define DEFAULT_NS (3600 * (int64_t)NS_PER_S)
#define TURN_ROWS 100000 /* takes some milliseconds */

static const char *const json_types[] = { "application/json", NULL };

static void key_i64(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_i64(j, v);
}

static void add_point(struct json *j, const struct history_answer *a, const struct history_point *p)
{
	json_array_begin(j);
	json_i64(j, p->end_ns);
	json_u64(j, p->interval_ns);
	json_str(j, quality_name(p->quality));
	json_array_begin(j);
	for (unsigned d = 0; d < a->n_domains; d++)
		json_u64(j, a->energy_uj[p->energy + d]);
	json_array_end(j);
	json_array_end(j);
}

/* The row of the totals that has the path of a cgroup; NULL = none, or the series is of no cgroup. */
static const struct total_row *row_of(const struct history_series *e, const struct totals *t)
{
	if (strcmp(e->row, "cgroup") != 0)
		return NULL;
	for (unsigned i = TOTAL_FIRST_CGROUP; t && i < t->n_rows; i++)
		if (strcmp(t->rows[i].name, e->cgroup) == 0)
			return &t->rows[i];
	return NULL;
}

/* Less than the 10 ms that lie between two readings at least. A reading takes its two clocks one after the other, so the
 * difference of the clocks is not the same in each reading. */
#define SAME_READING_NS (5 * (int64_t)NS_PER_MS)

/* True unless the row ended before told_ns, up to which all use is told. The totals know of an end at once; the second in which
 * it fell is written later. */
static bool lives(const struct totals *t, const struct total_row *row, int64_t told_ns)
{
	return row->used &&
	       (!row->ended || t->real_ns - (int64_t)(t->mono_ns - row->ended_ns) > told_ns + SAME_READING_NS);
}

/* True when no cgroup of the step lives. */
static bool step_has_ended(const struct history_series *e, const struct totals *t, int64_t told_ns)
{
	char name[JOB_NAME_MAX];
	struct job_path job;

	for (unsigned i = TOTAL_FIRST_CGROUP; t && i < t->n_rows; i++) {
		if (!lives(t, &t->rows[i], told_ns) || !job_path_parse(t->rows[i].name, &job))
			continue;
		job_path_name(&job, name);
		if (strcmp(e->cgroup, name) == 0)
			return false;
	}
	return t || e->ended;
}

/* True when the cgroup has ended and its last energy is told. The store knows only of ends of cgroups that used something in
 * their last interval; the totals know of all. */
static bool has_ended(const struct history_series *e, const struct totals *t, const struct total_row *row,
		      int64_t told_ns)
{
	if (e->ending)
		return false;
	if (strcmp(e->row, "job") == 0)
		return step_has_ended(e, t, told_ns);
	if (strcmp(e->row, "cgroup") != 0)
		return false;
	return row ? !lives(t, row, told_ns) : t || e->ended;
}

static void add_series(struct json *j, const struct history_answer *a, const struct history_series *e,
		       const struct totals *t)
{
	const struct total_row *row = row_of(e, t);

	json_object_begin(j);
	json_key_str(j, "cgroup", e->cgroup);
	json_key_str(j, "row", e->row);
	names_json(j, row ? row->names : NULL);
	json_key(j, "ended");
	json_bool(j, has_ended(e, t, row, a->told_ns));
	json_key(j, "points");
	json_array_begin(j);
	for (unsigned i = 0; i < e->n; i++)
		add_point(j, a, &e->points[i]);
	json_array_end(j);
	json_object_end(j);
}

static void add_lost(struct json *j, const struct history_answer *a)
{
	json_key(j, "lost");
	json_array_begin(j);
	for (unsigned i = 0; i < a->n_lost; i++) {
		json_object_begin(j);
		key_i64(j, "from_unix_ns", a->lost[i].from_ns);
		key_i64(j, "until_unix_ns", a->lost[i].until_ns);
		json_key_str(j, "reason", a->lost[i].reason);
		json_object_end(j);
	}
	json_array_end(j);
}

static void write_answer(struct json *j, const struct serve_options *o, const struct history_answer *a,
			 const struct totals *t)
{
	const char *names[SCHEMA_MAX_DOMAINS];
	bool summed[SCHEMA_MAX_DOMAINS];

	json_object_begin(j);
	key_i64(j, "since_unix_ns", a->since_ns);
	key_i64(j, "until_unix_ns", a->until_ns);
	json_key_u64(j, "step_ns", a->step_ns);
	if (o->price)
		json_key_str(j, "price", o->price);
	if (o->carbon)
		json_key_str(j, "carbon", o->carbon);
	json_key(j, "domains");
	json_array_begin(j);
	for (unsigned d = 0; d < a->n_domains; d++)
		json_str(j, names[d] = a->domains[d]);
	json_array_end(j);
	domain_names_summed(names, a->n_domains, summed);
	json_key(j, "in_total");
	json_array_begin(j);
	for (unsigned d = 0; d < a->n_domains; d++)
		json_bool(j, summed[d]);
	json_array_end(j);
	json_key(j, "other");
	json_object_begin(j);
	json_key_u64(j, "cgroups", a->n_other);
	json_key(j, "and_more");
	json_bool(j, a->more_other);
	json_object_end(j);
	json_key(j, "series");
	json_array_begin(j);
	for (unsigned i = 0; i < a->n_series; i++)
		add_series(j, a, &a->series[i], t);
	json_array_end(j);
	add_lost(j, a);
	json_object_end(j);
}

static unsigned status_of(int rc)
{
	return rc == -ENOENT ? 404 : rc == -E2BIG ? 400 : 503;
}

static void reply(struct serve *s, struct http_request *r, struct history_answer *a)
{
	struct json j;

	buf_reset(&s->out);
	json_init(&j, &s->out);
	write_answer(&j, &s->o, a, serve_totals(s));
	buf_add_char(&s->out, '\n');
	history_answer_free(a);
	http_reply(r, 200, "application/json", NULL, &s->out);
}

static void next_turn(struct serve *s)
{
	event_add(s->turning, &(const struct timeval){ 0 });
}

void serve_history_turn(evutil_socket_t fd, short what, void *arg)
{
	struct serve *s = arg;

	if (s->look)
		http_again(s->looking);
	else if (s->askers)
		http_again(s->askers->conn);
}

static void end_look(struct serve *s)
{
	history_look_end(s->look);
	s->look = NULL;
	s->looking = NULL;
	if (s->askers)
		next_turn(s);
}

static void go_on(struct serve *s, struct http_request *r)
{
	struct history_answer a = { 0 };
	struct err err = { 0 };
	int rc = history_look_go_on(s->look, TURN_ROWS, &a, &err);

	if (rc > 0) {
		http_wait(r);
		next_turn(s);
		return;
	}
	end_look(s);
	if (rc)
		http_error(r, status_of(rc), NULL, "%s", err.text);
	else
		reply(s, r, &a);
}

static void begin(struct serve *s, struct http_request *r, struct history_query *hq)
{
	struct selection_rules *rules = serve_rules(s);
	struct err err = { 0 };
	int rc;

	hq->rules = rules;
	rc = rules ? history_look_begin(s->o.history, hq, &s->look, &err) :
		     err_set(&err, -ENOMEM, "history: out of memory; ask for less");
	free(rules);
	if (rc) {
		http_error(r, status_of(rc), NULL, "%s", err.text);
		if (s->askers)
			next_turn(s);
		return;
	}
	s->looking = r->conn;
	go_on(s, r);
}

static bool take_asker(struct serve *s, const struct MHD_Connection *conn)
{
	for (struct waiter **at = &s->askers; *at; at = &(*at)->next)
		if ((*at)->conn == conn) {
			struct waiter *w = *at;

			*at = w->next;
			free(w);
			return true;
		}
	return false;
}

static void sleep_behind(struct serve *s, struct http_request *r)
{
	struct waiter *w = calloc(1, sizeof(*w)), **last = &s->askers;

	if (!w) {
		http_error(r, 503, "Retry-After: 1", "history: out of memory; try again");
		return;
	}
	while (*last)
		last = &(*last)->next;
	w->conn = r->conn;
	*last = w;
	http_wait(r);
}

void serve_history_done(struct serve *s, const struct MHD_Connection *conn)
{
	if (s->look && s->looking == conn)
		end_look(s);
	else if (take_asker(s, conn) && s->askers && !s->look)
		next_turn(s);
}

void serve_history_end(struct serve *s)
{
	while (s->askers)
		take_asker(s, s->askers->conn);
	end_look(s);
}

void serve_get_history(struct serve *s, struct http_request *r, const char *rest)
{
	struct history_query hq = { 0 };
	struct query q;

	if (s->look && s->looking == r->conn) {
		go_on(s, r);
		return;
	}
	take_asker(s, r->conn);
	if (!serve_query(r, "cgroup job since until step limit", &q) || serve_negotiate(r, json_types) < 0)
		return;
	hq.cgroup = q.cgroup;
	hq.job = q.job;
	hq.until_ns = q.until_ns == INT64_MIN ? q.now_ns : q.until_ns;
	hq.since_ns = q.since_ns == INT64_MIN ? hq.until_ns - DEFAULT_NS : q.since_ns;
	hq.step_ns = q.step_ns;
	hq.limit = q.limit == UINT64_MAX ? DEFAULT_LIMIT : q.limit;
	if (!s->o.history)
		http_error(r, 404, NULL, "history: %s", s->o.no_history);
	else if (hq.since_ns >= hq.until_ns)
		http_error(r, 400, NULL, "since: not before until; choose an earlier time");
	else if (hq.job && hq.cgroup)
		http_error(r, 400, NULL, "job: not with cgroup; leave one out");
	else if (hq.limit > MOST_LIMIT)
		http_error(r, 400, NULL, "limit: more than %d; ask for fewer cgroups", MOST_LIMIT);
	else if (s->look)
		sleep_behind(s, r);
	else
		begin(s, r, &hq);
}
