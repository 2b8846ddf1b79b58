/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/spans: traces that have ended, newest first, each whole (docs/query.md). */
#include "../encode/trace_json.h"
#include "../encode/trace_pick.h"
#include "serve_internal.h"

#define DEFAULT_LIMIT 1000
#define MOST_LIMIT 100000

static const char *const json_types[] = { "application/json", NULL };

void serve_publish_trace(struct serve *s, struct trace *t)
{
	trace_ring_put(&s->traces, t);
}

/* What is missing, since the agent began. */
static void write_lost(struct serve *s, struct json *j)
{
	struct serve_facts f;

	pthread_mutex_lock(&s->lock);
	f = s->facts;
	pthread_mutex_unlock(&s->lock);
	json_key(j, "lost");
	json_object_begin(j);
	json_key_u64(j, "records", f.lost_records);
	json_key_u64(j, "processes", f.lost_processes);
	json_key_u64(j, "ends", f.lost_ends);
	json_key_u64(j, "calls", f.lost_calls);
	json_key_u64(j, "spans", f.lost_spans);
	json_object_end(j);
}

/* Whole traces, as many as fit the limit of spans; one in any case. */
static void write_answer(struct serve *s, struct json *j, const struct query *q, struct kept_trace **list, int n,
			 uint64_t dropped)
{
	const struct trace_pick pick = { q->cgroup, q->command, q->trace, q->since_ns, q->until_ns };
	uint64_t limit = q->limit == UINT64_MAX ? DEFAULT_LIMIT : q->limit, spans = 0, left_out = 0;

	json_object_begin(j);
	json_key(j, "traces");
	json_array_begin(j);
	for (int i = n; i-- > 0;) {
		const struct trace *t = list[i]->trace;

		if (!trace_picked(t, &pick))
			continue;
		if (left_out || (spans && spans + t->n_spans > limit)) {
			left_out++;
			continue;
		}
		spans += t->n_spans;
		trace_json(j, t);
	}
	json_array_end(j);
	json_key_u64(j, "left_out_traces", left_out);
	json_key_u64(j, "forgotten_traces", dropped);
	write_lost(s, j);
	json_object_end(j);
}

void serve_get_spans(struct serve *s, struct http_request *r, const char *rest)
{
	struct kept_trace **list;
	struct query q;
	uint64_t dropped;
	struct buf out = { 0 };
	struct json j;
	int n;

	if (!serve_query(r, "cgroup command since until limit trace", &q) || serve_negotiate(r, json_types) < 0)
		return;
	if (!s->o.spans) {
		http_error(r, 404, NULL, "spans: this agent keeps none; write spans: { processes: true }");
		return;
	}
	if (q.limit != UINT64_MAX && q.limit > MOST_LIMIT) {
		http_error(r, 400, NULL, "limit: more than %d; ask for fewer spans", MOST_LIMIT);
		return;
	}
	n = trace_ring_look(&s->traces, &list, &dropped);
	if (n < 0) {
		http_error(r, 503, NULL, "spans: out of memory; ask for less");
		return;
	}
	json_init(&j, &out);
	write_answer(s, &j, &q, list, n, dropped);
	buf_add_char(&out, '\n');
	trace_ring_done(&s->traces, list, n);
	http_reply(r, 200, "application/json", NULL, &out);
	buf_free(&out); /* may be large: not kept for the next answer */
}
