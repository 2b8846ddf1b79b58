/* SPDX-License-Identifier: Apache-2.0 */
/* influx: line protocol (docs/formats/influx.md). The measurement is jouled and the field is the rest of the name, so
 * stores that join the two have the name of the metrics page. A line is one sample. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "encode/emit.h"
#include "encode/push.h"
#include "series.h"

#define LINE_ROOM 128 /* bytes of one line for field suffix, numbers and punctuation */

struct influx_writer {
	struct series_writer w;
	struct buf *ends; /* what is the same in all lines: the tags of the machine */
};

struct encoder {
	struct series_encoder e;
	struct buf machine;
};

/* A backslash before a byte that is escaped, or at the end, would be read in two ways by two servers. It becomes U+FFFD,
 * like a line feed, which the format cannot carry. */
static void influx_value(struct buf *b, const char *value)
{
	while (*value) {
		size_t plain = strcspn(value, ", =\\\n");
		const char *c = value + plain;

		buf_add(b, value, plain);
		if (!*c)
			break;
		if (*c == '\n' || (*c == '\\' && (!c[1] || strchr(", =\\", c[1])))) {
			buf_add_str(b, "\xef\xbf\xbd");
		} else {
			if (*c != '\\')
				buf_add_char(b, '\\');
			buf_add_char(b, *c);
		}
		value = c + 1;
	}
}

static void influx_label(struct buf *b, const char *key, const char *value)
{
	if (!*value)
		return; /* a tag without a value breaks the line */
	buf_add_char(b, ',');
	buf_add_str(b, key);
	buf_add_char(b, '=');
	influx_value(b, value);
}

/* Counts are integers (`i`). Joules and seconds are numbers with a point or without one: floats either way. */
static void influx_sample(struct series_writer *sw, struct series_labels row, struct series_labels more, uint64_t v,
			  unsigned digits)
{
	const struct influx_writer *w = (const struct influx_writer *)sw;
	const char *field = sw->family->name + sizeof("jouled_") - 1, *suffix = series_suffix(sw->family->type);
	size_t n_field = strlen(field);
	char *p = (char *)buf_reserve(sw->out, row.len + more.len + w->ends->len + n_field + LINE_ROOM);

	if (!p)
		return;
	p = emit_literal(p, "jouled");
	p = emit_mem(p, row.text, row.len);
	p = emit_mem(p, more.text, more.len);
	p = emit_mem(p, w->ends->data, w->ends->len);
	*p++ = ' ';
	p = emit_mem(p, field, n_field);
	p = emit_mem(p, suffix, strlen(suffix));
	*p++ = '=';
	p = series_number(p, v, digits);
	if (!digits)
		*p++ = 'i';
	*p++ = ' ';
	p = emit_u64(p, (uint64_t)sw->totals->real_ns);
	*p++ = '\n';
	sw->out->len = (size_t)((uint8_t *)p - sw->out->data);
}

static void influx_destroy(struct encoder *e)
{
	if (!e)
		return;
	buf_free(&e->machine);
	series_encoder_fini(&e->e);
	free(e);
}

static int influx_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int rc;

	if (e) {
		influx_label(&e->machine, "instance", s->sensor);
		influx_label(&e->machine, "job", "jouled");
	}
	rc = !e || e->machine.failed ? err_set(err, -ENOMEM, "format influx: out of memory; free some") :
				       series_encoder_init(&e->e, o, s, err);
	if (rc)
		influx_destroy(e);
	else
		*ret = e;
	return rc;
}

static int influx_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	static const struct series_ops ops = { .label = influx_label, .sample = influx_sample };
	struct influx_writer w = { { .ops = &ops, .out = out, .labels = &e->e.labels }, &e->machine };

	totals_add(e->e.totals, s, shown);
	return series_write_pushed(&w.w, &e->e, ROW_ORDER_DEFLATE, s);
}

static const struct encoder_stats *influx_stats(const struct encoder *e)
{
	return &e->e.stats;
}

const struct encoder_ops encode_influx = {
	.name = "influx",
	.create = influx_create,
	.encode = influx_encode,
	.stats = influx_stats,
	.destroy = influx_destroy,
};

/* The side of the sender. */

static size_t influx_item(const void *p, size_t n)
{
	const char *end = memchr(p, '\n', n);

	return end ? (size_t)(end - (const char *)p) + 1 : 0;
}

static void influx_name(const void *item, size_t n, char *dst, size_t size)
{
	char line[256];

	snprintf(line, sizeof(line), "%.*s", (int)(n < sizeof(line) ? n : sizeof(line) - 1), (const char *)item);
	line[strcspn(line, "\n")] = '\0';
	text_escape(dst, size, line);
}

static const char *influx_scheme(const char *url)
{
	return strstr(url, "/api/v2/") ? "Token" : "Bearer";
}

static int influx_check(const char *url, struct err *err)
{
	const char *query = strchr(url, '?'), *path = strstr(url, "://");
	const char *precision = query ? strstr(query, "precision=") : NULL;

	path = path ? strchr(path + 3, '/') : NULL;
	if (!path || !path[1] || (query && query - path <= 1))
		return err_set(err, -EINVAL,
			       "output influx=%s: no path; write /write?db=NAME, or /api/v2/write?org=NAME&bucket=NAME",
			       url);
	if (precision && (precision[-1] == '?' || precision[-1] == '&')) {
		size_t n = strcspn(precision + 10, "&");

		if (!(n == 2 && !memcmp(precision + 10, "ns", n)) && !(n == 1 && precision[10] == 'n'))
			return err_set(err, -EINVAL,
				       "output influx=%s: precision: times are sent in ns; leave precision out", url);
	}
	return 0;
}

const struct push_format push_influx = {
	.type = "text/plain; charset=utf-8",
	.packing = PACK_GZIP,
	.item = influx_item,
	.name = influx_name,
	.token_scheme = influx_scheme,
	.check = influx_check,
};
