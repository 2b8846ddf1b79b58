/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/spans: traces that have ended, newest first, each whole (docs/query.md). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "../base/text.h"
#include "../encode/trace_json.h"
#include "serve_internal.h"

#define DEFAULT_LIMIT 1000
#define MOST_LIMIT 100000

static const char *const json_types[] = { "application/json", NULL };

void serve_publish_trace(struct serve *s, struct trace *t)
{
	trace_ring_put(&s->traces, t);
}

/* "a1b2..-..": the uuid, dashes where one likes. */
static bool has_uuid(const struct trace *t, const char *text)
{
	char hex[3] = "";
	unsigned n = 0;

	for (; *text && n < 2 * sizeof(t->uuid); text++) {
		if (*text == '-')
			continue;
		snprintf(hex, sizeof(hex), "%02x", t->uuid[n / 2]);
		if (tolower((unsigned char)*text) != hex[n % 2])
			return false;
		n++;
	}
	return !*text && n == 2 * sizeof(t->uuid);
}

static bool has_command(const struct trace *t, const char *glob)
{
	for (uint32_t i = 0; i < t->n_spans; i++)
		if (text_glob(glob, t->spans[i].comm))
			return true;
	return false;
}

/* In its time: it was there between since and until. */
static bool is_wanted(const struct trace *t, const struct query *q)
{
	const struct span *root = &t->spans[0];
	int64_t end_ns = root->start_real_ns;

	for (uint32_t i = 0; i < t->n_spans; i++) {
		int64_t e = t->spans[i].start_real_ns + (int64_t)(t->spans[i].end_ns - t->spans[i].start_ns);

		end_ns = e > end_ns ? e : end_ns;
	}
	if (q->since_ns != INT64_MIN && end_ns < q->since_ns)
		return false;
	if (q->until_ns != INT64_MIN && root->start_real_ns > q->until_ns)
		return false;
	if (q->cgroup && !text_glob(q->cgroup, root->cgroup))
		return false;
	if (q->trace && !has_uuid(t, q->trace))
		return false;
	return !q->command || has_command(t, q->command);
}

/* Whole traces, as many as fit the limit of spans; one in any case. */
static void write_answer(struct json *j, const struct query *q, struct kept_trace **list, int n, uint64_t dropped)
{
	uint64_t limit = q->limit == UINT64_MAX ? DEFAULT_LIMIT : q->limit, spans = 0, left_out = 0;

	json_object_begin(j);
	json_key(j, "traces");
	json_array_begin(j);
	for (int i = n; i-- > 0;) {
		const struct trace *t = list[i]->trace;

		if (!is_wanted(t, q))
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
	write_answer(&j, &q, list, n, dropped);
	buf_add_char(&out, '\n');
	trace_ring_done(&s->traces, list, n);
	http_reply(r, 200, "application/json", NULL, &out);
	buf_free(&out);         /* may be large: not kept for the next answer */
}
