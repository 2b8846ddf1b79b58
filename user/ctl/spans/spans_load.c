/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/format/json.h"
#include "base/log.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/ask.h"
#include "ctl/core/choice.h"
#include "ctl/core/put.h"
#include "ctl_spans.h"
#include "encode/trace_json.h"
#include "store/spool/spool.h"
#include "store/trace_record.h"

#define FILE_MAX ((size_t)256 << 20)
#define MOST_SPANS 1000000000
#define PAGE_SPANS 2000 /* of one answer of the agent */

/* The list becomes the owner of t and of doc, the json_t that holds t's texts; NULL = t is a record
 * (store/trace_record.h). 0 or -ENOMEM; after -ENOMEM the caller still owns both. */
static int spans_list_add(struct spans_list *l, struct trace *t, void *doc)
{
	if (l->n == l->cap) {
		uint32_t cap = array_step(l->n + 1);

		if (!cap || ARRAY_RESIZE(l->v, cap) || ARRAY_RESIZE(l->docs, cap))
			return -ENOMEM;
		l->cap = cap;
	}
	l->v[l->n] = t;
	l->docs[l->n++] = doc;
	return 0;
}

/* Frees the traces from index n on. */
static void drop_from(struct spans_list *l, size_t n)
{
	for (size_t i = n; i < l->n; i++) {
		if (l->docs[i])
			free(l->v[i]);
		else
			trace_record_free(l->v[i]);
		json_decref(l->docs[i]);
	}
	l->n = l->n < n ? l->n : n;
}

void spans_list_free(struct spans_list *l)
{
	drop_from(l, 0);
	free(l->v);
	free(l->docs);
	*l = (struct spans_list){ 0 };
}

struct from_spool {
	struct spans_list *list;
	struct trace_pick pick;
	struct err *err;
};

/* A record of another version, or a damaged one, does not hide the others. */
static int take_record(void *ctx, int64_t real_ns, const void *data, size_t len)
{
	struct from_spool *f = ctx;
	struct trace *t;
	int rc = trace_record_read(data, len, &t, f->err);

	if (rc && rc != -ENOMEM)
		f->list->missing.unread++;
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	if (!trace_picked(t, &f->pick)) {
		trace_record_free(t);
		return 0;
	}
	rc = spans_list_add(f->list, t, NULL);
	if (rc)
		trace_record_free(t);
	return rc;
}

static int read_all(const char *path, struct buf *b, struct err *err)
{
	int fd = source_open(path, err), rc = 0;

	if (fd < 0)
		return fd;
	b->limit = FILE_MAX + 65536;
	for (ssize_t n = 1; n && !rc;) {
		uint8_t *to = b->len > FILE_MAX ? NULL : buf_reserve(b, 65536);

		n = to ? read(fd, to, 65536) : -1;
		if (n > 0)
			b->len += (size_t)n;
		else if (!to)
			rc = err_set(err, -EFBIG, "%s: more than 256 MiB; ask for less", path);
		else if (n < 0 && errno != EINTR)
			rc = err_set(err, -errno, "%s: %s; name a file that can be read", path, strerrordesc_np(errno));
	}
	close(fd);
	return rc;
}

/* Keeps the traces that were asked for and frees the others. */
static void pick(struct spans_list *l, const struct trace_pick *p)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (trace_picked(l->v[i], p)) {
			l->docs[n] = l->docs[i];
			l->v[n++] = l->v[i];
			continue;
		}
		json_decref(l->docs[i]);
		free(l->v[i]);
	}
	l->n = n;
}

static void reverse(struct spans_list *l)
{
	for (size_t i = 0; i < l->n / 2; i++) {
		struct trace *t = l->v[i];

		l->v[i] = l->v[l->n - 1 - i];
		l->v[l->n - 1 - i] = t;
	}
}

static int load_file(const struct verb_call *call, struct spans_list *l, struct err *err)
{
	const char *path = call->args[0];
	struct from_spool f = { .list = l,
				.err = err,
				.pick = { .cgroup = call->option[SPANS_CGROUP],
					  .since_ns = INT64_MIN,
					  .uuid = call->option[SPANS_TRACE],
					  .command = call->option[SPANS_COMMAND],
					  .until_ns = INT64_MIN } };
	struct buf text = { 0 };
	int rc = strcmp(path, "-") == 0 ? -ENODATA : spool_read(path, take_record, &f, err);

	if (rc != -ENODATA) {
		reverse(l); /* all are records, so that docs holds only NULL */
		return rc;
	}
	rc = read_all(path, &text, err);
	if (!rc)
		rc = spans_read_json(l, (const char *)text.data, text.len, path, err);
	if (!rc)
		pick(l, &f.pick);
	buf_free(&text);
	return rc;
}

static void add_parameter(struct buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(b, "&%s=", name);
	agent_escape(b, value);
}

static int get_page(struct agent *a, const struct verb_call *call, uint64_t limit, struct spans_list *l,
		    struct err *err)
{
	struct buf path = { 0 }, body = { 0 };
	int rc;

	buf_printf(&path, "/v1/spans?limit=%llu", (unsigned long long)(limit < PAGE_SPANS ? limit : PAGE_SPANS));
	if (l->missing.next)
		buf_printf(&path, "&before=%llu", (unsigned long long)l->missing.next);
	add_parameter(&path, "cgroup", call->option[SPANS_CGROUP]);
	add_parameter(&path, "command", call->option[SPANS_COMMAND]);
	add_parameter(&path, "since", call->option[SPANS_SINCE]);
	add_parameter(&path, "until", call->option[SPANS_UNTIL]);
	add_parameter(&path, "trace", call->option[SPANS_TRACE]);
	buf_add_char(&path, '\0');
	/* each answer counts all traces that are older, so only the last answer counts */
	l->missing = (struct spans_missing){ 0 };
	rc = path.failed ? err_set(err, -ENOMEM, "spans: out of memory; free some") :
			   agent_get(a, (const char *)path.data, NULL, &body, err);
	if (!rc)
		rc = spans_read_json(l, (const char *)body.data, body.len, "agent", err);
	buf_free(&path);
	buf_free(&body);
	return rc;
}

/* Leaves out the first trace that exceeds the limit, and all traces of the answer behind it. The newest trace of all is
 * kept whole in any case. */
static uint64_t cut(struct spans_list *l, size_t from, uint64_t got, uint64_t limit)
{
	struct spans_missing *m = &l->missing;
	size_t n = from;
	uint64_t uj;

	for (; n < l->n && (!got || got + l->v[n]->n_spans <= limit); n++)
		got += l->v[n]->n_spans;
	for (size_t i = n; i < l->n; i++) {
		trace_energy_uj(l->v[i], &uj);
		m->left_out++;
		m->left_out_spans += l->v[i]->n_spans;
		m->left_out_uj += uj;
	}
	if (n < l->n)
		m->next = 0;
	drop_from(l, n);
	return got;
}

/* true = the options select some of the traces. The trees that go on are only counted for the whole machine. */
static bool asks_some(const struct verb_call *call)
{
	static const int some[] = { SPANS_CGROUP, SPANS_COMMAND, SPANS_UNTIL, SPANS_TRACE };
	bool any = false;

	for (unsigned i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		any |= call->option[some[i]] != NULL;
	return any;
}

static int load_agent(const struct spans_query *q, uint64_t limit, struct spans_list *l, struct err *err)
{
	struct agent *a = NULL;
	uint64_t got = 0;
	int rc = agent_open(q->call->option[SPANS_SOCKET], &a, err);

	if (rc)
		return rc;
	do {
		const size_t from = l->n;

		rc = get_page(a, q->call, limit - got, l, err);
		if (!rc)
			got = cut(l, from, got, limit);
		if (!rc && q->each) {
			rc = q->each(q->ctx, l);
			drop_from(l, 0);
		}
	} while (!rc && l->missing.next && got < limit);
	if (asks_some(q->call))
		l->missing.open_trees = 0;
	agent_close(a);
	return rc;
}

int spans_load(const struct spans_query *q, struct spans_list *ret, struct err *err)
{
	const struct verb_call *call = q->call;
	uint64_t limit = q->limit;
	int rc = choice_number("spans: --limit", call->option[SPANS_LIMIT], choice_range(1, MOST_SPANS), &limit, err);

	if (rc)
		return rc;
	if (call->option[SPANS_TRACE] && !trace_uuid_ok(call->option[SPANS_TRACE]))
		return err_set(err, -EINVAL, "spans: --trace: no uuid; take one of those that spans --json tells");
	if (call->n && (call->option[SPANS_SINCE] || call->option[SPANS_UNTIL] || call->option[SPANS_LIMIT]))
		return err_set(err, -EINVAL,
			       "spans: --since, --until, --limit: for the agent alone; a file is read whole");
	if (!call->n)
		return load_agent(q, limit, ret, err);
	rc = load_file(call, ret, err);
	return !rc && q->each ? q->each(q->ctx, ret) : rc;
}

unsigned spans_say_missing(const struct spans_missing *m, char text[SPANS_SENTENCES][200])
{
	char until[CLOCK_LOCAL_BYTES];
	unsigned n = 0;

	if (m->left_out)
		snprintf(text[n++], 200, "%llu older trace%s with %llu spans and %.6g J %s left out; raise --limit",
			 (unsigned long long)m->left_out, m->left_out == 1 ? "" : "s",
			 (unsigned long long)m->left_out_spans, (double)m->left_out_uj / 1e6,
			 m->left_out == 1 ? "is" : "are");
	clock_local(m->forgotten_until_ns, until);
	if (m->forgotten)
		snprintf(text[n++], 200,
			 "%llu trace%s with %.6g J, of before %s, %s no longer in the agent's memory; raise spans.keep",
			 (unsigned long long)m->forgotten, m->forgotten == 1 ? "" : "s", (double)m->forgotten_uj / 1e6,
			 until, m->forgotten == 1 ? "is" : "are");
	if (m->lost_spans || m->lost_processes || m->lost_records)
		snprintf(
			text[n++], 200,
			"%llu spans, %llu processes and %llu records found no room since the agent began; their energy stays "
			"with their cgroups",
			(unsigned long long)m->lost_spans, (unsigned long long)m->lost_processes,
			(unsigned long long)m->lost_records);
	if (m->open_trees)
		snprintf(
			text[n++], 200,
			"%llu tree%s of processes that go%s on, with %llu spans and %.6g J so far: told at the end, or after "
			"spans.trace-period",
			(unsigned long long)m->open_trees, m->open_trees == 1 ? "" : "s",
			m->open_trees == 1 ? "es" : "", (unsigned long long)m->open_spans, (double)m->open_uj / 1e6);
	if (m->unread)
		snprintf(text[n++], 200,
			 "%llu records of the spool are damaged or of another version, and are left out",
			 (unsigned long long)m->unread);
	return n;
}

void spans_warn_missing(const char *verb, const struct spans_missing *m)
{
	struct spans_missing cut = *m;
	char text[SPANS_SENTENCES][200];
	unsigned n;

	cut.open_trees = 0; /* trees that go on are no fault */
	n = spans_say_missing(&cut, text);
	for (unsigned i = 0; i < n; i++)
		log_warn("%s: %s", verb, text[i]);
}

int spans_write(const char *path, const struct buf *b, struct err *err)
{
	return b->failed ? err_set(err, -ENOMEM, "spans: out of memory; ask for less") : put_file(path, b, err);
}

/* The JSON of docs/formats/spans.md, read and written. */

struct piece { /* one malloc: this and the spans; texts are jansson's */
	struct trace t; /* first: what callers hold */
	const char *domains[SCHEMA_MAX_DOMAINS], *interfaces[SCHEMA_MAX_DOMAINS];
};

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void take_span(const json_t *o, const char *cgroup, struct span *s)
{
	const json_t *energy = json_object_get(o, "energy_uj");

	*s = (struct span){
		.end = SPAN_UNKNOWN, .comm = "", .exe = "", .cmdline = "", .cgroup = cgroup, .symbol = "", .binary = ""
	};
	fields_json_read(o, &span_fields, s, SPAN_JSON);
	if (!json_object_get(o, "tid"))
		s->tid = s->pid;
	if (s->kind == SPAN_PROCESS)
		s->calls = 1;
	if (!json_object_get(o, "duration_ns"))
		s->end_ns = s->start_ns;
	for (; s->n_domains < json_array_size(energy) && s->n_domains < SCHEMA_MAX_DOMAINS; s->n_domains++) {
		json_int_t v = json_integer_value(json_array_get(energy, s->n_domains));

		s->energy_uj[s->n_domains] = v > 0 ? (uint64_t)v : 0;
	}
}

static void take_uuid(const char *s, uint8_t uuid[16])
{
	unsigned n = 0, v;

	for (; *s && n < 16; s += 2, n++) {
		s += *s == '-';
		if (sscanf(s, "%2x", &v) != 1 || !s[1])
			return;
		uuid[n] = (uint8_t)v;
	}
}

static void take_head(const json_t *o, struct piece *p)
{
	const json_t *domains = json_object_get(o, "domains"), *interfaces = json_object_get(o, "interfaces");
	struct trace *t = &p->t;

	take_uuid(text(o, "trace"), t->uuid);
	t->sensor = t->boot_id = t->pod = t->pod_namespace = t->container = t->unit = "";
	fields_json_read(o, &trace_fields, t, TRACE_JSON);
	t->domains = p->domains;
	t->interfaces = p->interfaces;
	for (; t->n_domains < json_array_size(domains) && t->n_domains < SCHEMA_MAX_DOMAINS; t->n_domains++) {
		const char *name = json_string_value(json_array_get(domains, t->n_domains));
		const char *interface = json_string_value(json_array_get(interfaces, t->n_domains));

		p->domains[t->n_domains] = name ? name : "";
		p->interfaces[t->n_domains] = interface ? interface : "";
	}
}

static int take_trace(struct spans_list *l, json_t *o, const char *subject, struct err *err)
{
	const json_t *spans = json_object_get(o, "spans");
	size_t n = json_array_size(spans);
	struct piece *p = calloc(1, sizeof(*p) + n * sizeof(struct span));
	const char *wrong;

	if (!p)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", subject);
	take_head(o, p);
	p->t.spans = (struct span *)(p + 1);
	p->t.n_spans = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		take_span(json_array_get(spans, i), text(o, "cgroup"), &p->t.spans[i]);
	wrong = n > UINT32_MAX ? "too many spans" : trace_check(&p->t);
	if (!wrong && spans_list_add(l, &p->t, json_incref(o)) == 0)
		return 0;
	if (!wrong)
		json_decref(o);
	free(p);
	return wrong ? err_set(err, -EBADMSG, "%s: no traces as docs/formats/spans.md says: %s", subject, wrong) :
		       err_set(err, -ENOMEM, "%s: out of memory; free some", subject);
}

static void take_missing(const json_t *doc, struct spans_missing *m)
{
	const json_t *lost = json_object_get(doc, "lost");

	fields_json_read(doc, &spans_missing_fields, m, MISSING_NEXT);
	fields_json_read(json_object_get(doc, "open"), &spans_open_fields, m, ~0u);
	fields_json_read(lost, &spans_lost_fields, m, ~0u);
	m->has_lost = json_is_object(lost);
}

int spans_read_json(struct spans_list *l, const char *json, size_t size, const char *subject, struct err *err)
{
	json_error_t why;
	json_t *doc = json_loadb(json, size, JSON_REJECT_DUPLICATES, &why), *traces = json_object_get(doc, "traces"),
	       *o;
	int rc = 0;
	size_t i;

	if (!json_is_array(traces)) {
		rc = err_set(err, -EBADMSG, "%s: neither a spool nor what joulectl spans --json writes (%s)", subject,
			     doc ? "no traces in it" : why.text);
		json_decref(doc);
		return rc;
	}
	take_missing(doc, &l->missing);
	json_array_foreach(traces, i, o)
		if (!rc)
			rc = take_trace(l, o, subject, err);
	json_decref(doc);
	return rc;
}

void spans_print_json(const struct spans_list *l, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "traces");
	json_array_begin(&j);
	for (size_t i = 0; i < l->n; i++)
		trace_json(&j, l->v[i]);
	json_array_end(&j);
	spans_missing_json(&j, &l->missing, false);
	json_object_end(&j);
	buf_add_char(out, '\n');
}
