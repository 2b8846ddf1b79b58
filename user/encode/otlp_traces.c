/* SPDX-License-Identifier: Apache-2.0 */
/* otlp-traces: traces by OpenTelemetry's protocol over HTTP (docs/formats/otlp.md). Field numbers and types are those of
 * opentelemetry-proto 1.x: trace.proto and trace_service.proto. Names of attributes are OpenTelemetry's where it has one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "emit.h"
#include "otlp_request.h"
#include "otlp_traces.h"
#include "protobuf.h"

#define TRACE_ID 0x0a /* Span.trace_id = 1 */
#define SPAN_ID 0x12 /* Span.span_id = 2 */
#define PARENT_ID 0x22 /* Span.parent_span_id = 4 */
#define NAME 0x2a /* Span.name = 5 */
#define INTERNAL "\x30\x01" /* Span.kind = 6: INTERNAL */
#define START 0x39 /* Span.start_time_unix_nano = 7, fixed64 */
#define END 0x41 /* Span.end_time_unix_nano = 8, fixed64 */
#define ATTRIBUTES 0x4a /* Span.attributes = 9 */
#define LINKS 0x6a /* Span.links = 13 */
#define LINK_ATTRIBUTES 0x22 /* Span.Link.attributes = 4; trace_id and span_id as in Span */
#define STATUS_ERROR "\x7a\x02\x18\x02" /* Span.status = 15: Status.code = 3: ERROR */

static void add_fixed(struct buf *b, char tag, uint64_t v)
{
	buf_add_char(b, tag);
	buf_add(b, &v, sizeof(v)); /* little endian, as all machines that are built for */
}

/* An id of OTLP is bytes; a number stands in them as people read it. */
static void add_id(struct buf *b, char tag, uint64_t id)
{
	id = __builtin_bswap64(id);
	otlp_field(b, tag, &id, sizeof(id));
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a number stands in memory as on the wire");

static void add_energy(struct buf *b, const struct trace *t, const struct span *s)
{
	char key[96];
	uint64_t sum_uj;

	if (!span_energy_uj(t, s, &sum_uj))
		return;
	otlp_number(b, ATTRIBUTES, "jouled.energy_uj", sum_uj);
	for (unsigned d = 0; d < s->n_domains; d++) {
		snprintf(key, sizeof(key), "jouled.energy_uj.%.64s", t->domains[d]);
		otlp_number(b, ATTRIBUTES, key, s->energy_uj[d]);
	}
	otlp_text(b, ATTRIBUTES, "jouled.energy_quality", quality_name(s->energy_quality));
}

static void add_process(struct buf *b, const struct span *s)
{
	otlp_text(b, ATTRIBUTES, "process.executable.name", s->comm);
	otlp_text(b, ATTRIBUTES, "process.executable.path", s->exe ? s->exe : "");
	otlp_text(b, ATTRIBUTES, "process.command_line", s->cmdline ? s->cmdline : "");
	otlp_number(b, ATTRIBUTES, "process.parent_pid", s->parent_pid);
	if (s->end == SPAN_EXITED)
		otlp_number(b, ATTRIBUTES, "process.exit.code", (uint64_t)(int64_t)s->exit_code);
	if (s->signal)
		otlp_number(b, ATTRIBUTES, "jouled.signal", (uint64_t)s->signal);
	otlp_number(b, ATTRIBUTES, "jouled.minor_faults", s->minor_faults);
	otlp_number(b, ATTRIBUTES, "jouled.major_faults", s->major_faults);
	otlp_number(b, ATTRIBUTES, "jouled.peak_rss_bytes", s->peak_rss_bytes);
}

static void add_function(struct buf *b, const struct span *s)
{
	otlp_text(b, ATTRIBUTES, "code.function.name", s->symbol ? s->symbol : "");
	otlp_text(b, ATTRIBUTES, "jouled.binary", s->binary ? s->binary : "");
	otlp_number(b, ATTRIBUTES, "thread.id", s->tid);
	otlp_number(b, ATTRIBUTES, "jouled.calls", s->calls);
	otlp_number(b, ATTRIBUTES, "jouled.wall_ns", s->wall_ns);
}

/* From the root of a part of a long-lived tree to itself in the part before. */
static void add_link(struct buf *b, const struct trace *t, const struct span *root)
{
	uint8_t before[16], room[128];
	struct buf link = { .data = room, .cap = sizeof(room), .limit = sizeof(room) };

	trace_part_uuid(t, t->part - 1, before);
	otlp_field(&link, TRACE_ID, before, sizeof(before));
	add_id(&link, SPAN_ID, root->id);
	otlp_text(&link, LINK_ATTRIBUTES, "jouled.link", "the part before");
	otlp_field(b, LINKS, link.data, link.len);
}

static void make_span(struct buf *b, const struct trace *t, const struct span *s)
{
	const char *name = s->kind == SPAN_FUNCTION ? s->symbol : s->comm;
	char text[SPAN_SYMBOL_MAX];
	const uint64_t start_ns = (uint64_t)s->start_real_ns;

	otlp_field(b, TRACE_ID, t->uuid, sizeof(t->uuid));
	add_id(b, SPAN_ID, s->id);
	if (s->parent)
		add_id(b, PARENT_ID, s->parent);
	text_escape(text, sizeof(text), name && *name ? name : span_kind_name(s->kind));
	otlp_field(b, NAME, text, strlen(text));
	buf_add(b, INTERNAL, sizeof(INTERNAL) - 1);
	add_fixed(b, START, start_ns);
	add_fixed(b, END, start_ns + (s->end_ns - s->start_ns));
	add_energy(b, t, s);
	otlp_number(b, ATTRIBUTES, "jouled.cpu_ns", s->cpu_ns);
	otlp_text(b, ATTRIBUTES, "jouled.quality", quality_name(s->quality));
	otlp_text(b, ATTRIBUTES, "jouled.kind", span_kind_name(s->kind));
	otlp_text(b, ATTRIBUTES, "jouled.end", span_end_name(s->end));
	otlp_number(b, ATTRIBUTES, "process.pid", s->pid);
	otlp_text(b, ATTRIBUTES, "process.linux.cgroup", s->cgroup ? s->cgroup : "");
	if (s->kind == SPAN_FUNCTION)
		add_function(b, s);
	else
		add_process(b, s);
	if (t->part && s == t->spans)
		add_link(b, t, s);
	if ((s->end == SPAN_EXITED && s->exit_code) || s->end == SPAN_SIGNALED || s->end == SPAN_OOM)
		buf_add(b, STATUS_ERROR, sizeof(STATUS_ERROR) - 1);
}

int otlp_trace(const struct trace *t, struct buf *scratch, struct buf *out)
{
	const struct otlp_name names[] = { { "k8s.namespace.name", t->pod_namespace ? t->pod_namespace : "" },
					   { "k8s.pod.name", t->pod ? t->pod : "" },
					   { "k8s.container.name", t->container ? t->container : "" },
					   { "jouled.unit", t->unit ? t->unit : "" } };

	otlp_make_head(out, t->sensor, names, sizeof(names) / sizeof(names[0]));
	for (uint32_t i = 0; i < t->n_spans; i++) {
		buf_reset(scratch);
		make_span(scratch, t, &t->spans[i]);
		otlp_field(out, OTLP_ITEM, scratch->data, scratch->len);
		out->failed = out->failed || scratch->failed;
	}
	return out->failed ? -ENOMEM : 0;
}

/* The side of the sender. */

static size_t spans_item(const void *p, size_t n)
{
	const char *content;
	size_t len;

	return protobuf_field(p, n, OTLP_ITEM, &content, &len);
}

static int spans_wrap(const struct push_part *part, struct buf *out)
{
	const size_t from = out->len;

	for (size_t at = 0, n; at < part->n_items; at += n) {
		n = spans_item((const char *)part->items + at, part->n_items - at);
		if (!n)
			return -EBADMSG;
	}
	buf_add(out, part->items, part->n_items);
	return otlp_enclose(part, out, from);
}

static int spans_unwrap(const void *body, size_t n, struct buf *out)
{
	const char *items;
	size_t n_items;
	int rc = otlp_disclose(body, n, out, &items, &n_items);

	if (rc)
		return rc;
	buf_add(out, items, n_items);
	return out->failed ? -ENOMEM : 0;
}

/* The name of the span, and its process. */
static void spans_name(const void *item, size_t n, char *dst, size_t size)
{
	static const char before[] = { TRACE_ID, SPAN_ID, PARENT_ID };
	const char *span = "", *content = "";
	size_t len = 0, n_content = 0;
	char text[SPAN_SYMBOL_MAX + 8];

	protobuf_field(item, n, OTLP_ITEM, &span, &len);
	for (unsigned i = 0; i < sizeof(before); i++) {
		size_t step = protobuf_field(span, len, before[i], &content, &n_content);

		span += step;
		len -= step;
	}
	if (!protobuf_field(span, len, NAME, &content, &n_content))
		n_content = 0;
	snprintf(text, sizeof(text), "span %.*s", (int)(n_content < SPAN_SYMBOL_MAX ? n_content : SPAN_SYMBOL_MAX),
		 content);
	text_escape(dst, size, text);
}

const struct push_format push_otlp_traces = {
	.type = "application/x-protobuf",
	.packing = PACK_GZIP,
	.head = otlp_head,
	.wrap = spans_wrap,
	.unwrap = spans_unwrap,
	.item = spans_item,
	.name = spans_name,
	.answer = otlp_answer,
	.remedy = "name the path: /v1/traces of a collector and of Jaeger",
};
