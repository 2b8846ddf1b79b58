/* SPDX-License-Identifier: Apache-2.0 */
/* otlp: OpenTelemetry's protocol over HTTP (docs/formats/otlp.md). A document in the spool is a head, which holds the
 * resource and the scope, and then a Metric with one data point for each series, so that each is an item. What is sent is
 * one ExportMetricsServiceRequest, in which the points of a metric stand together. Field numbers and types are those of
 * opentelemetry-proto 1.x: metrics.proto, resource.proto, common.proto and metrics_service.proto. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/text.h"
#include "encode/emit.h"
#include "encode/otlp_request.h"
#include "encode/protobuf.h"
#include "series.h"

#define NAME 0x0a /* Metric.name = 1 */
#define UNIT 0x1a /* Metric.unit = 3 */
#define GAUGE 0x2a /* Metric.gauge = 5 */
#define SUM 0x3a /* Metric.sum = 7 */
#define POINTS 0x0a /* Gauge.data_points, Sum.data_points = 1 */
#define ATTRIBUTES 0x3a /* NumberDataPoint.attributes = 7 */
#define START_TIME 0x11 /* NumberDataPoint.start_time_unix_nano = 2, fixed64 */
#define TIME 0x19 /* NumberDataPoint.time_unix_nano = 3, fixed64 */
#define AS_DOUBLE 0x21 /* NumberDataPoint.as_double = 4 */
#define AS_INT 0x31 /* NumberDataPoint.as_int = 6, sfixed64 */
#define NO_VALUE "\x40\x01" /* NumberDataPoint.flags = 8: NO_RECORDED_VALUE, with which a series ends */
#define CUMULATIVE "\x10\x02\x18\x01" /* Sum.aggregation_temporality = 2: CUMULATIVE; Sum.is_monotonic = 3: true */
#define FIXED 9 /* bytes of a time or a value, with its tag */

/* When the counting of a row began, as a time of the day. It stays for as long as the row is shown, whatever the clock
 * does, for a receiver takes another start for a reset. */
struct start {
	uint64_t unix_ns; /* 0 = the row is not shown */
	uint32_t serial; /* of the row */
};

/* By row of the totals; what was not used yet is zeroed. */
struct starts {
	struct start *v;
	uint32_t cap;
};

struct encoder {
	struct series_encoder e;
	struct buf head;
	struct buf metric; /* name and unit of the family that is being written */
	struct starts starts;
	struct starts before; /* of the page that e.ends.before is of: what ends says when it began */
	uint64_t start_unix_ns; /* of the machine */
};

struct otlp_writer {
	struct series_writer w;
	struct encoder *e;
};

static void otlp_label(struct buf *b, const char *key, const char *value)
{
	otlp_text(b, ATTRIBUTES, key, value);
}

/* Names and units are such that Prometheus' rules for them (dots become underscores, the unit and _total are added) make
 * the name of the metrics page. */
static void otlp_begin(struct series_writer *sw, const struct series_family *f)
{
	static const char *const units[][2] = { { "joules", "J" }, { "seconds", "s" }, { "bytes", "By" } };
	struct encoder *e = ((struct otlp_writer *)sw)->e;
	const char *unit = "";
	char name[96];
	int n = snprintf(name, sizeof(name), "%s%s", f->name, f->type == SERIES_COUNTER ? "" : series_suffix(f->type));

	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(f->unit, units[i][0]) == 0) {
			unit = units[i][1];
			n -= (int)strlen(f->unit) + 1;
		}
	for (int i = 0; i < n; i++)
		if (name[i] == '_')
			name[i] = '.';
	buf_reset(&e->metric);
	otlp_field(&e->metric, NAME, name, (size_t)n);
	if (*unit)
		otlp_field(&e->metric, UNIT, unit, strlen(unit));
}

static char *put_fixed(char *p, char tag, const void *eight_bytes)
{
	*p++ = tag;
	return emit_mem(p, eight_bytes, 8); /* little endian, as all machines that are built for */
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a number stands in memory as on the wire");

static void otlp_sample(struct series_writer *sw, struct series_labels row, struct series_labels more, uint64_t v,
			unsigned digits)
{
	static const double units[] = { [0] = 1, [6] = 1e6, [9] = 1e9 };
	const struct encoder *e = ((struct otlp_writer *)sw)->e;
	const bool sum = sw->family->type == SERIES_COUNTER;
	const struct starts *starts = sw->ended ? &e->before : &e->starts;
	const uint64_t start_ns = sw->row == SERIES_MACHINE ? e->start_unix_ns : starts->v[sw->row].unix_ns;
	const uint64_t time_ns = (uint64_t)sw->totals->real_ns;
	const double value = (double)v / units[digits];
	const size_t point = row.len + more.len + 2 * FIXED + (sw->ended ? sizeof(NO_VALUE) - 1 : FIXED);
	const size_t data = protobuf_whole(point) + (sum ? sizeof(CUMULATIVE) - 1 : 0);
	const size_t metric = e->metric.len + protobuf_whole(data);
	char *p = (char *)buf_reserve(sw->out, protobuf_whole(metric));

	if (!p)
		return;
	p = protobuf_head(p, OTLP_ITEM, metric);
	p = emit_mem(p, e->metric.data, e->metric.len);
	p = protobuf_head(p, sum ? SUM : GAUGE, data);
	p = protobuf_head(p, POINTS, point);
	/* those of the row next to its start: deflate finds both at once in the metric before */
	p = emit_mem(p, more.text, more.len);
	p = emit_mem(p, row.text, row.len);
	p = put_fixed(p, START_TIME, &start_ns);
	p = put_fixed(p, TIME, &time_ns);
	if (sw->ended)
		p = emit_literal(p, NO_VALUE);
	else
		p = digits ? put_fixed(p, AS_DOUBLE, &value) : put_fixed(p, AS_INT, &v);
	if (sum)
		p = emit_literal(p, CUMULATIVE);
	sw->out->len = (size_t)((uint8_t *)p - sw->out->data);
}

static void otlp_destroy(struct encoder *e)
{
	if (!e)
		return;
	buf_free(&e->head);
	buf_free(&e->metric);
	free(e->starts.v);
	free(e->before.v);
	series_encoder_fini(&e->e);
	free(e);
}

static int otlp_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int rc;

	if (e)
		otlp_make_head(&e->head, s->sensor, NULL, 0);
	rc = !e || e->head.failed ? err_set(err, -ENOMEM, "format otlp: out of memory; free some") :
				    series_encoder_init(&e->e, o, s, err);
	if (rc)
		otlp_destroy(e);
	else
		*ret = e;
	return rc;
}

/* Where the last page was made and kept, what ends in this one was in it. 0 or -ENOMEM. */
static int keep_starts(struct encoder *e)
{
	if (!e->e.ends.made || !e->starts.cap)
		return 0;
	if (ARRAY_ZEROED(e->before.v, e->before.cap, e->starts.cap))
		return -ENOMEM;
	memcpy(e->before.v, e->starts.v, e->starts.cap * sizeof(*e->starts.v));
	return 0;
}

/* A row counts from the start of the interval in which it is first shown. A clock that was set back would put that after
 * the present: it begins anew. */
static int set_starts(struct encoder *e, const struct snapshot *s)
{
	const struct totals *t = e->e.totals;
	const uint64_t now_ns = (uint64_t)s->end_real_ns, begin_ns = now_ns - (s->end_ns - s->start_ns);

	if (keep_starts(e) || ARRAY_ZEROED(e->starts.v, e->starts.cap, t->n_rows))
		return -ENOMEM;
	if (!e->start_unix_ns || e->start_unix_ns > now_ns)
		e->start_unix_ns = begin_ns;
	for (unsigned i = 0; i < t->n_rows; i++) {
		struct start *start = &e->starts.v[i];

		if (!t->rows[i].shown)
			start->unix_ns = 0;
		else if (!start->unix_ns || start->serial != t->rows[i].serial || start->unix_ns > now_ns)
			*start = (struct start){ begin_ns, t->rows[i].serial };
	}
	return 0;
}

static int otlp_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	static const struct series_ops ops = { .begin = otlp_begin, .label = otlp_label, .sample = otlp_sample };
	struct otlp_writer w = { { .ops = &ops, .out = out, .labels = &e->e.labels, .ends = &e->e.ends }, e };
	int rc;

	totals_add(e->e.totals, s, shown);
	rc = set_starts(e, s);
	if (rc)
		return rc;
	buf_add(out, e->head.data, e->head.len);
	return series_write_pushed(&w.w, &e->e, ROW_ORDER_DEFLATE, s);
}

static void otlp_lost(struct encoder *e)
{
	e->e.ends.made = false;
}

/* What only old shows ends with the start that it had. */
static void otlp_inherit(struct encoder *e, struct encoder *old)
{
	const struct starts starts = e->before;

	e->before = old->e.ends.made ? old->starts : old->before;
	if (old->e.ends.made)
		old->starts = starts;
	else
		old->before = starts;
	series_encoder_inherit(&e->e, &old->e);
}

static const struct encoder_stats *otlp_stats(const struct encoder *e)
{
	return &e->e.stats;
}

const struct encoder_ops encode_otlp = {
	.name = "otlp",
	.create = otlp_create,
	.encode = otlp_encode,
	.lost = otlp_lost,
	.inherit = otlp_inherit,
	.stats = otlp_stats,
	.destroy = otlp_destroy,
};

/* The side of the sender. */

/* An item, taken apart. */
struct item {
	const char *metric, *point, *end; /* name and unit; the point with its tag; what follows the points */
	size_t n_metric, n_point, n_end, size;
	char kind; /* SUM or GAUGE */
};

static bool take_item(const char *p, size_t n, struct item *ret)
{
	const char *content, *data, *inner;
	size_t len, n_data, n_inner, used, step;

	ret->size = protobuf_field(p, n, OTLP_ITEM, &content, &len);
	if (!ret->size)
		return false;
	ret->metric = content;
	used = protobuf_field(content, len, NAME, &inner, &n_inner);
	used += protobuf_field(content + used, len - used, UNIT, &inner, &n_inner);
	ret->n_metric = used;
	if (used >= len)
		return false;
	ret->kind = content[used];
	step = protobuf_field(content + used, len - used, ret->kind, &data, &n_data);
	if (used + step != len || (ret->kind != SUM && ret->kind != GAUGE))
		return false;
	ret->point = data;
	ret->n_point = protobuf_field(data, n_data, POINTS, &inner, &n_inner);
	ret->end = data + ret->n_point;
	ret->n_end = n_data - ret->n_point;
	return ret->n_point != 0;
}

static size_t otlp_item(const void *p, size_t n)
{
	struct item i;

	return take_item(p, n, &i) ? i.size : 0;
}

#define TOGETHER 64 /* points of one metric at most; more of them are a metric again */

/* Items from p on that are of one metric: their points, and how far they reach. 0 = a broken item. */
struct metric {
	struct item first;
	struct {
		const char *p;
		size_t n;
	} point[TOGETHER];
	unsigned n;
	size_t points; /* bytes of them all */
};

static size_t take_metric(const char *p, size_t n, struct metric *m)
{
	struct item i;
	size_t at = 0;

	m->points = 0;
	for (m->n = 0; at < n && m->n < TOGETHER; m->n++) {
		if (!take_item(p + at, n - at, &i))
			return 0;
		if (!m->n)
			m->first = i;
		else if (i.kind != m->first.kind || i.n_metric != m->first.n_metric ||
			 memcmp(i.metric, m->first.metric, i.n_metric) != 0)
			break;
		m->point[m->n].p = i.point;
		m->point[m->n].n = i.n_point;
		m->points += i.n_point;
		at += i.size;
	}
	return at;
}

/* Appends one Metric for all items that are of it. How far they reach. */
static size_t add_metric(const char *p, size_t n, struct buf *out)
{
	struct metric m;
	const size_t end = take_metric(p, n, &m), data = end ? m.points + m.first.n_end : 0;
	const size_t metric = end ? m.first.n_metric + protobuf_whole(data) : 0;
	char *to = end ? (char *)buf_reserve(out, protobuf_whole(metric)) : NULL;

	if (!to)
		return end;
	to = protobuf_head(to, OTLP_ITEM, metric);
	to = emit_mem(to, m.first.metric, m.first.n_metric);
	to = protobuf_head(to, m.first.kind, data);
	for (unsigned i = 0; i < m.n; i++)
		to = emit_mem(to, m.point[i].p, m.point[i].n);
	to = emit_mem(to, m.first.end, m.first.n_end);
	out->len = (size_t)((uint8_t *)to - out->data);
	return end;
}

static int otlp_wrap(const struct push_part *part, struct buf *out)
{
	const size_t from = out->len;

	for (size_t at = 0, n; at < part->n_items; at += n) {
		n = add_metric((const char *)part->items + at, part->n_items - at, out);
		if (!n)
			return -EBADMSG;
	}
	return otlp_enclose(part, out, from);
}

/* Appends an item for each point of a metric. 0, -EBADMSG, -ENOMEM. */
static int part_metric(const struct item *m, struct buf *out)
{
	const char *points = m->point, *content;
	size_t len;

	while (points < m->end) {
		const size_t point = protobuf_field(points, (size_t)(m->end - points), POINTS, &content, &len);
		const size_t data = point + m->n_end, metric = m->n_metric + protobuf_whole(data);
		char *to = point ? (char *)buf_reserve(out, protobuf_whole(metric)) : NULL;

		if (!to)
			return point ? -ENOMEM : -EBADMSG;
		to = protobuf_head(to, OTLP_ITEM, metric);
		to = emit_mem(to, m->metric, m->n_metric);
		to = protobuf_head(to, m->kind, data);
		to = emit_mem(to, points, point);
		to = emit_mem(to, m->end, m->n_end);
		out->len = (size_t)((uint8_t *)to - out->data);
		points += point;
	}
	return 0;
}

static int otlp_unwrap(const void *body, size_t n, struct buf *out)
{
	const char *items, *content;
	size_t n_items, len, step;
	int rc = otlp_disclose(body, n, out, &items, &n_items);
	struct item m;

	for (size_t at = 0; !rc && at < n_items; at += m.size) {
		if (!take_item(items + at, n_items - at, &m))
			return -EBADMSG;
		while ((step = protobuf_field(m.end, m.n_end, POINTS, &content, &len))) {
			m.end += step;
			m.n_end -= step;
		}
		rc = part_metric(&m, out);
	}
	return rc;
}

/* As Prometheus writes a series: name{label="value", ...}, of what fits. */
static void otlp_name(const void *item, size_t n, char *dst, size_t size)
{
	const char *name = "", *point = "", *label, *key, *any, *value;
	size_t n_name = 0, len = 0, n_label, n_key, n_any, n_value, step, at = 0;
	char text[256] = "";
	bool labels = false;
	struct item i;

	if (take_item(item, n, &i)) {
		protobuf_field(i.metric, i.n_metric, NAME, &name, &n_name);
		protobuf_field(i.point, i.n_point, POINTS, &point, &len);
	}
	at = (size_t)snprintf(text, sizeof(text), "%.*s", (int)n_name, name);
	for (; (step = protobuf_field(point, len, ATTRIBUTES, &label, &n_label)) && at < sizeof(text);
	     point += step, len -= step) {
		size_t k = protobuf_field(label, n_label, OTLP_KEY, &key, &n_key);

		if (!k || !protobuf_field(label + k, n_label - k, OTLP_VALUE, &any, &n_any) ||
		    !protobuf_field(any, n_any, OTLP_STRING, &value, &n_value))
			break;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s=\"%.*s\"", labels ? ", " : "{", (int)n_key,
				       key, (int)n_value, value);
		labels = true;
	}
	if (labels && at + 1 < sizeof(text))
		snprintf(text + at, sizeof(text) - at, "}");
	text_escape(dst, size, text);
}

const struct push_format push_otlp = {
	.type = "application/x-protobuf",
	.packing = PACK_GZIP,
	.head = otlp_head,
	.wrap = otlp_wrap,
	.unwrap = otlp_unwrap,
	.item = otlp_item,
	.name = otlp_name,
	.answer = otlp_answer,
	.remedy = "name the path: /v1/metrics of a collector, /api/v1/otlp/v1/metrics of Prometheus, "
		  "/opentelemetry/v1/metrics of VictoriaMetrics",
};
