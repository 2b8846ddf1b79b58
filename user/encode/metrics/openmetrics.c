/* SPDX-License-Identifier: Apache-2.0 */
/* openmetrics as an output: each interval it writes the whole page in OpenMetrics 1.0, whose end is marked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "encode/emit.h"
#include "openmetrics.h"

#define LINE_ROOM 128 /* bytes of one line for suffix, number and punctuation */

struct metrics_writer {
	struct series_writer w;
	bool version_1;
	char name[80]; /* of the family's samples */
	size_t name_len;
};

const char *const openmetrics_types[2] = {
	"text/plain; version=0.0.4; charset=utf-8",
	"application/openmetrics-text; version=1.0.0; charset=utf-8",
};

struct encoder {
	struct series_encoder e;
};

static void openmetrics_destroy(struct encoder *e)
{
	if (e)
		series_encoder_fini(&e->e);
	free(e);
}

static int openmetrics_create(const struct encode_options *o, const struct schema *s, struct encoder **ret,
			      struct err *err)
{
	struct encoder *e = calloc(1, sizeof(*e));
	int rc = e ? series_encoder_init(&e->e, o, s, err) :
		     err_set(err, -ENOMEM, "format openmetrics: out of memory; free some");

	if (rc)
		openmetrics_destroy(e);
	else
		*ret = e;
	return rc;
}

static int openmetrics_encode(struct encoder *e, const struct snapshot *s, const bool *shown, struct buf *out)
{
	totals_add(e->e.totals, s, shown);
	return openmetrics_write(e->e.totals, NULL, true, &e->e.labels, out);
}

static const struct encoder_stats *openmetrics_stats(const struct encoder *e)
{
	return &e->e.stats;
}

const struct encoder_ops encode_openmetrics = {
	.name = "openmetrics",
	.create = openmetrics_create,
	.encode = openmetrics_encode,
	.stats = openmetrics_stats,
	.destroy = openmetrics_destroy,
};

/* In 0.0.4 HELP and TYPE carry the sample's name; in 1.0 they carry the family's name, with its unit. */
static void metrics_begin(struct series_writer *w, const struct series_family *f)
{
	static const char *const types[] = { "counter", "gauge", "info" };
	struct metrics_writer *m = (struct metrics_writer *)w;
	const bool version_1 = m->version_1;
	const char *suffix = version_1 ? "" : series_suffix(f->type);

	snprintf(m->name, sizeof(m->name), "%s%s", f->name, series_suffix(f->type));
	m->name_len = strlen(m->name);
	if (!version_1)
		buf_printf(w->out, "# HELP %s%s %s\n", f->name, suffix, f->help);
	buf_printf(w->out, "# TYPE %s%s %s\n", f->name, suffix,
		   types[f->type == SERIES_INFO && !version_1 ? SERIES_GAUGE : f->type]);
	if (!version_1)
		return;
	if (*f->unit)
		buf_printf(w->out, "# UNIT %s %s\n", f->name, f->unit);
	buf_printf(w->out, "# HELP %s %s\n", f->name, f->help);
}

/* Appends key="value", with a comma. Backslash, quote and line feed are escaped in both forms. */
static void metrics_label(struct buf *b, const char *key, const char *value)
{
	buf_add_str(b, key);
	buf_add_str(b, "=\"");
	while (*value) {
		size_t n = strcspn(value, "\\\"\n");

		buf_add(b, value, n);
		value += n;
		if (!*value)
			break;
		buf_add_char(b, '\\');
		buf_add_char(b, *value == '\n' ? 'n' : *value);
		value++;
	}
	buf_add_str(b, "\",");
}

static void metrics_sample(struct series_writer *w, struct series_labels row, struct series_labels more, uint64_t v,
			   unsigned digits)
{
	const struct metrics_writer *m = (const struct metrics_writer *)w;
	char *p = (char *)buf_reserve(w->out, m->name_len + row.len + more.len + LINE_ROOM);

	if (!p)
		return;
	p = emit_mem(p, m->name, m->name_len);
	if (row.len + more.len) {
		*p++ = '{';
		p = emit_mem(p, row.text, row.len);
		p = emit_mem(p, more.text, more.len);
		p[-1] = '}'; /* in place of the last comma */
	}
	*p++ = ' ';
	p = series_number(p, v, digits);
	*p++ = '\n';
	w->out->len = (size_t)((uint8_t *)p - w->out->data);
}

int openmetrics_write(const struct totals *t, const struct series_self *self, bool version_1, struct buf *scratch,
		      struct buf *out)
{
	static const struct series_ops ops = { .begin = metrics_begin,
					       .label = metrics_label,
					       .sample = metrics_sample };
	struct metrics_writer w = { .w = { .ops = &ops, .out = out, .labels = scratch }, .version_1 = version_1 };
	int rc = series_write(&w.w, t, self);

	if (rc)
		return rc;
	if (version_1)
		buf_add_str(out, "# EOF\n");
	return out->failed ? -ENOMEM : 0;
}
