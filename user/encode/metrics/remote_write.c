/* SPDX-License-Identifier: Apache-2.0 */
/* remote-write: Prometheus remote write 1.0 (docs/formats/remote-write.md). A document is the protobuf message
 * WriteRequest, of which each TimeSeries has one sample. Its few fields are written by hand: field numbers and types are
 * those of prometheus/prompb, types.proto and remote.proto.
 *
 * Series are made family by family, as all formats of metrics are, and sent row by row: a request says the labels of each
 * series in full, and snappy, which looks back 64 KiB at most, finds those of the same row right before. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "encode/emit.h"
#include "encode/push.h"
#include "encode/protobuf.h"
#include "series.h"

#define SERIES 0x0a /* WriteRequest.timeseries = 1 */
#define LABELS 0x0a /* TimeSeries.labels = 1 */
#define SAMPLES 0x12 /* TimeSeries.samples = 2 */
#define NAME 0x0a /* Label.name = 1 */
#define VALUE 0x12 /* Label.value = 2 */
#define SAMPLE_VALUE 0x09 /* Sample.value = 1, a double */
#define SAMPLE_TIME 0x10 /* Sample.timestamp = 2, in ms */
#define STALE \
	0x7ff0000000000002 /* in place of a value: the NaN that ends a series (the specification of remote write 1.0) */
#define LABELS_MAX 32
#define NS_PER_MS 1000000

struct encoder {
	struct series_encoder e;
	struct buf machine; /* labels of the machine */
	struct buf name; /* label of the family that is being written */
};

struct remote_writer {
	struct series_writer w;
	struct encoder *e;
};

/* One label, as it stands in a TimeSeries. */
struct piece {
	const char *text, *key;
	size_t len, n_key;
};

/* A label without a value is as good as none, so it is left out. */
static void remote_label(struct buf *b, const char *key, const char *value)
{
	size_t k = strlen(key), v = strlen(value), len = 1 + protobuf_size(k) + k + 1 + protobuf_size(v) + v;
	char *p = v ? (char *)buf_reserve(b, 1 + protobuf_size(len) + len) : NULL;

	if (!p)
		return;
	*p++ = LABELS;
	p = protobuf_put(p, len);
	*p++ = NAME;
	p = protobuf_put(p, k);
	p = emit_mem(p, key, k);
	*p++ = VALUE;
	p = protobuf_put(p, v);
	p = emit_mem(p, value, v);
	b->len = (size_t)((uint8_t *)p - b->data);
}

static void remote_begin(struct series_writer *sw, const struct series_family *f)
{
	struct encoder *e = ((struct remote_writer *)sw)->e;
	char name[96];

	snprintf(name, sizeof(name), "%s%s", f->name, series_suffix(f->type));
	buf_reset(&e->name);
	remote_label(&e->name, "__name__", name);
}

static bool before(const struct piece *a, const struct piece *b)
{
	int order = memcmp(a->key, b->key, a->n_key < b->n_key ? a->n_key : b->n_key);

	return order < 0 || (!order && a->n_key < b->n_key);
}

/* Adds the labels of a text to a list in the order of their names. The new length of the list. */
static unsigned sort_in(struct piece *list, unsigned n, const char *text, size_t len)
{
	size_t size, inner;
	const char *label;

	for (; n < LABELS_MAX && (size = protobuf_field(text, len, LABELS, &label, &inner));
	     text += size, len -= size) {
		struct piece new = { .text = text, .len = size };
		unsigned at = n++;

		if (!protobuf_field(label, inner, NAME, &new.key, &new.n_key))
			return n - 1;
		for (; at && before(&new, &list[at - 1]); at--)
			list[at] = list[at - 1];
		list[at] = new;
	}
	return n;
}

/* Receivers want the labels in the order of their names. Those of a row are put in order once, with those of the machine. */
static void remote_complete(struct series_writer *sw, struct buf *b, size_t from)
{
	const struct buf *machine = &((struct remote_writer *)sw)->e->machine;
	const size_t len = b->len - from;
	struct piece list[LABELS_MAX];
	char *sorted = (char *)buf_reserve(b, len + machine->len), *p = sorted, *row;
	unsigned n;

	if (!sorted)
		return;
	row = (char *)b->data + from;
	n = sort_in(list, 0, row, len);
	n = sort_in(list, n, (const char *)machine->data, machine->len);
	for (unsigned i = 0; i < n; i++)
		p = emit_mem(p, list[i].text, list[i].len);
	b->len = from + (size_t)(p - sorted);
	memmove(row, sorted, b->len - from);
}

/* Bytes of the labels in a text whose names come before that of a piece. */
static size_t before_it(const struct piece *it, struct series_labels text)
{
	struct piece next;
	const char *label;
	size_t at = 0, size, inner;

	while ((size = protobuf_field(text.text + at, text.len - at, LABELS, &label, &inner)) &&
	       protobuf_field(label, inner, NAME, &next.key, &next.n_key) && before(&next, it))
		at += size;
	return at;
}

static char *emit_labels(char *p, struct series_labels text, const struct piece *more, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const size_t first = before_it(&more[i], text);

		p = emit_mem(emit_mem(p, text.text, first), more[i].text, more[i].len);
		text.text += first;
		text.len -= first;
	}
	return emit_mem(p, text.text, text.len);
}

/* "__name__" comes before all labels there are. */
static void remote_sample(struct series_writer *sw, struct series_labels row, struct series_labels more, uint64_t v,
			  unsigned digits)
{
	static const double units[] = { [0] = 1, [6] = 1e6, [9] = 1e9 };
	static const uint64_t ended = STALE;
	struct encoder *e = ((struct remote_writer *)sw)->e;
	const double number = (double)v / units[digits];
	const uint64_t time_ms = (uint64_t)(sw->totals->real_ns / NS_PER_MS);
	const size_t n_sample = 1 + 8 + 1 + protobuf_size(time_ms);
	const struct series_labels machine = { (const char *)e->machine.data, e->machine.len },
				   labels = row.len ? row : machine;
	const size_t len = e->name.len + labels.len + more.len + 2 + n_sample;
	struct piece list[LABELS_MAX];
	const unsigned n = sort_in(list, 0, more.text, more.len);
	char *p = (char *)buf_reserve(sw->out, protobuf_whole(len));

	if (!p)
		return;
	p = protobuf_head(p, SERIES, len);
	p = emit_mem(p, e->name.data, e->name.len);
	p = emit_labels(p, labels, list, n);
	*p++ = SAMPLES;
	*p++ = (char)n_sample;
	*p++ = SAMPLE_VALUE;
	p = emit_mem(p, sw->ended ? (const void *)&ended : &number,
		     sizeof(number)); /* little endian, as all machines that are built for */
	*p++ = SAMPLE_TIME;
	p = protobuf_put(p, time_ms);
	sw->out->len = (size_t)((uint8_t *)p - sw->out->data);
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a double stands in memory as on the wire");

static void remote_destroy(struct encoder *e)
{
	if (!e)
		return;
	buf_free(&e->machine);
	buf_free(&e->name);
	series_encoder_fini(&e->e);
	free(e);
}

static int remote_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int rc;

	if (e) {
		remote_label(&e->machine, "instance", s->sensor);
		remote_label(&e->machine, "job", "jouled");
	}
	rc = !e || e->machine.failed ? err_set(err, -ENOMEM, "format remote-write: out of memory; free some") :
				       series_encoder_init(&e->e, o, s, err);
	if (rc)
		remote_destroy(e);
	else
		*ret = e;
	return rc;
}

static int remote_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	static const struct series_ops ops = { remote_begin, remote_label, remote_complete, remote_sample };
	struct remote_writer w = { { .ops = &ops, .out = out, .labels = &e->e.labels, .ends = &e->e.ends }, e };

	totals_add(e->e.totals, s, shown);
	return series_write_pushed(&w.w, &e->e, ROW_ORDER_SNAPPY, s);
}

static void remote_lost(struct encoder *e)
{
	e->e.ends.made = false;
}

static void remote_inherit(struct encoder *e, struct encoder *old)
{
	series_encoder_inherit(&e->e, &old->e);
}

static const struct encoder_stats *remote_stats(const struct encoder *e)
{
	return &e->e.stats;
}

const struct encoder_ops encode_remote_write = {
	.name = "remote-write",
	.create = remote_create,
	.encode = remote_encode,
	.lost = remote_lost,
	.inherit = remote_inherit,
	.stats = remote_stats,
	.destroy = remote_destroy,
};

/* The side of the sender. */

static size_t remote_item(const void *p, size_t n)
{
	const char *content;
	size_t len;

	return protobuf_field(p, n, SERIES, &content, &len);
}

/* As Prometheus writes a series: name{label="value", ...}, of what fits. */
static void remote_name(const void *item, size_t n, char *dst, size_t size)
{
	const char *series = "", *label, *key, *value;
	size_t len = 0, n_label, n_key, n_value, step;
	char text[256] = "";
	size_t at = 0;
	bool labels = false;

	protobuf_field(item, n, SERIES, &series, &len);
	for (; (step = protobuf_field(series, len, LABELS, &label, &n_label)) && at < sizeof(text);
	     series += step, len -= step) {
		size_t k = protobuf_field(label, n_label, NAME, &key, &n_key);

		if (!k || !protobuf_field(label + k, n_label - k, VALUE, &value, &n_value))
			break;
		if (n_key == 8 && memcmp(key, "__name__", 8) == 0)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%.*s", (int)n_value, value);
		else
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s=\"%.*s\"", labels ? ", " : "{",
					       (int)n_key, key, (int)n_value, value);
		labels = labels || n_key != 8 || memcmp(key, "__name__", 8) != 0;
	}
	if (labels && at + 1 < sizeof(text))
		snprintf(text + at, sizeof(text) - at, "}");
	text_escape(dst, size, text);
}

static int remote_check(const char *url, struct err *err)
{
	const char *path = strstr(url, "://");

	path = path ? strpbrk(path + 3, "/?") : NULL;
	if (!path || *path != '/' || !path[1] || path[1] == '?')
		return err_set(
			err, -EINVAL,
			"output remote-write=%s: no path; write /api/v1/write, as Prometheus and VictoriaMetrics have it",
			url);
	return 0;
}

static const char *const headers[] = { "X-Prometheus-Remote-Write-Version: 0.1.0", NULL };

const struct push_format push_remote_write = {
	.type = "application/x-protobuf",
	.headers = headers,
	.packing = PACK_SNAPPY,
	.item = remote_item,
	.name = remote_name,
	.check = remote_check,
};
