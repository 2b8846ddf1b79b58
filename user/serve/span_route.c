/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/spans: finished traces, newest first, each whole (docs/query.md). */
#include "encode/trace_json.h"
#include "routes.h"

#define DEFAULT_LIMIT 1000
#define MOST_LIMIT 100000

static const char *const json_types[] = { "application/json", NULL };

void serve_publish_trace(struct serve *s, struct trace *t)
{
	trace_ring_put(&s->traces, t);
}

/* Writes the figures of traces that match the query but are not in the answer, of open traces of all cgroups, and of
 * losses since the agent started. */
static void write_missing(struct serve *s, struct json *j, const struct query *q, struct spans_missing *m)
{
	struct serve_facts f;

	if (q->since_ns > m->forgotten_until_ns)
		m->forgotten = m->forgotten_uj = 0; /* all of them are older than the query */
	if (!m->forgotten)
		m->forgotten_until_ns = 0;
	pthread_mutex_lock(&s->lock);
	f = s->facts;
	pthread_mutex_unlock(&s->lock);
	m->open_trees = f.traces.trees;
	m->open_spans = f.traces.held;
	m->open_uj = f.traces.open_uj;
	m->lost_records = f.lost_records;
	m->lost_processes = f.lost_processes;
	m->lost_ends = f.lost_ends;
	m->lost_calls = f.lost_calls;
	m->lost_spans = f.lost_spans;
	spans_missing_json(j, m, true);
}

struct kept_list {
	struct kept_trace **v; /* oldest first */
	int n;
};

/* Writes whole traces, as many as fit the limit of spans, but at least one. missing: the traces that the ring has
 * dropped. */
static void write_answer(struct serve *s, struct json *j, const struct query *q, const struct kept_list *list,
			 struct spans_missing *missing)
{
	const struct trace_pick pick = { q->cgroup, q->command, q->trace, q->since_ns, q->until_ns };
	uint64_t limit = q->limit == UINT64_MAX ? DEFAULT_LIMIT : q->limit, spans = 0, last = 0;

	json_object_begin(j);
	json_key(j, "traces");
	json_array_begin(j);
	for (int i = list->n; i-- > 0;) {
		const struct kept_trace *k = list->v[i];

		if (k->number >= q->before || !trace_picked(k->trace, &pick))
			continue;
		if (missing->left_out || (spans && spans + k->trace->n_spans > limit)) {
			missing->left_out++;
			missing->left_out_spans += k->trace->n_spans;
			missing->left_out_uj += k->energy_uj;
			missing->next = last;
			continue;
		}
		spans += k->trace->n_spans;
		last = k->number;
		trace_json(j, k->trace);
	}
	json_array_end(j);
	write_missing(s, j, q, missing);
	json_object_end(j);
}

void serve_get_spans(struct serve *s, struct http_request *r, const char *rest)
{
	struct trace_ring_forgotten forgotten;
	struct spans_missing missing;
	struct kept_list list;
	struct query q;
	struct buf out = { 0 };
	struct json j;

	if (!serve_query(r, "cgroup command since until limit trace before", &q) || serve_negotiate(r, json_types) < 0)
		return;
	if (!s->o.spans) {
		http_error(r, 404, NULL, "spans: this agent keeps none; write spans: { processes: true }");
		return;
	}
	if (q.limit != UINT64_MAX && q.limit > MOST_LIMIT) {
		http_error(r, 400, NULL, "limit: more than %d; ask for fewer spans", MOST_LIMIT);
		return;
	}
	list.n = trace_ring_look(&s->traces, &list.v, &forgotten);
	if (list.n < 0) {
		http_error(r, 503, NULL, "spans: out of memory; ask for less");
		return;
	}
	json_init(&j, &out);
	missing = (struct spans_missing){ .forgotten = forgotten.traces,
					  .forgotten_uj = forgotten.energy_uj,
					  .forgotten_until_ns = forgotten.until_unix_ns };
	write_answer(s, &j, &q, &list, &missing);
	buf_add_char(&out, '\n');
	trace_ring_done(&s->traces, list.v, list.n);
	http_reply(r, 200, "application/json", NULL, &out);
	buf_free(&out); /* may be large, so it is not kept for the next answer */
}
