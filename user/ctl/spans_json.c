/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of docs/formats/spans.md, read and written. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/json.h"
#include "../encode/trace_json.h"
#include "spans.h"

struct piece { /* one malloc: this and the spans; texts are jansson's */
	struct trace t; /* first: what callers hold */
	const char *domains[SCHEMA_MAX_DOMAINS], *interfaces[SCHEMA_MAX_DOMAINS];
};

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static uint64_t number(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static bool flag(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static uint64_t hex(const json_t *o, const char *key)
{
	const char *s = text(o, key);
	char *end;
	uint64_t v = strtoull(s, &end, 16);

	return *end || strlen(s) > 16 ? 0 : v;
}

static unsigned quality(const json_t *o, const char *key)
{
	for (unsigned bit = 0; bit < 6; bit++)
		if (strcmp(text(o, key), quality_name(1u << bit)) == 0)
			return 1u << bit;
	return QUALITY_MEASURED;
}

static enum span_end end_of(const json_t *o)
{
	enum span_end e = SPAN_EXITED;

	while (e < SPAN_UNKNOWN && strcmp(text(o, "end"), span_end_name(e)) != 0)
		e++;
	return e;
}

static void take_span(const json_t *o, const char *cgroup, struct span *s)
{
	const json_t *energy = json_object_get(o, "energy_uj");

	*s = (struct span){
		.id = hex(o, "id"),
		.parent = hex(o, "parent"),
		.pid = (uint32_t)number(o, "pid"),
		.end = end_of(o),
		.kind = strcmp(text(o, "kind"), "function") ? SPAN_PROCESS : SPAN_FUNCTION,
		.ns_pid = (uint32_t)number(o, "ns_pid"),
		.parent_pid = (uint32_t)number(o, "parent_pid"),
		.uid = (uint32_t)number(o, "uid"),
		.start_boot_ns = number(o, "start_boot_ns"),
		.start_ns = number(o, "start_ns"),
		.start_real_ns = (int64_t)number(o, "start_unix_ns"),
		.exit_code = (int)number(o, "exit_code"),
		.signal = (int)number(o, "signal"),
		.moved = flag(o, "moved"),
		.core_dumped = flag(o, "core_dumped"),
		.seen_running = flag(o, "seen_running"),
		.calls = 1,
		.cpu_ns = number(o, "cpu_ns"),
		.wall_ns = number(o, "wall_ns"),
		.minor_faults = number(o, "minor_faults"),
		.major_faults = number(o, "major_faults"),
		.peak_rss_bytes = number(o, "peak_rss_bytes"),
		.quality = quality(o, "quality"),
		.energy_quality = quality(o, "energy_quality"),
		.comm = text(o, "comm"),
		.exe = text(o, "exe"),
		.cmdline = text(o, "cmdline"),
		.cgroup = cgroup,
		.symbol = text(o, "symbol"),
		.binary = text(o, "binary"),
	};
	s->tid = json_object_get(o, "tid") ? (uint32_t)number(o, "tid") : s->pid;
	if (s->kind == SPAN_FUNCTION)
		s->calls = number(o, "calls");
	s->end_ns = s->start_ns + number(o, "duration_ns");
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
	t->part = (uint32_t)number(o, "part");
	t->last = flag(o, "last");
	t->sensor = text(o, "sensor");
	t->boot_id = text(o, "boot_id");
	t->pod = text(o, "pod");
	t->pod_namespace = text(o, "namespace");
	t->container = text(o, "container");
	t->unit = text(o, "unit");
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
	l->left_out += number(doc, "left_out_traces");
	l->forgotten += number(doc, "forgotten_traces");
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
	json_key_u64(&j, "left_out_traces", l->left_out);
	json_key_u64(&j, "forgotten_traces", l->forgotten);
	json_object_end(&j);
	buf_add_char(out, '\n');
}
