/* SPDX-License-Identifier: Apache-2.0 */
/* openmetrics as an output: the whole page each interval, in OpenMetrics 1.0, whose end is marked. */
#include <errno.h>
#include <stdlib.h>
#include "openmetrics.h"
#include "encode.h"

const char *const openmetrics_types[2] = {
	"text/plain; version=0.0.4; charset=utf-8", "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

struct encoder {
	struct encoder_stats stats;
	struct totals *totals;
	bool http;
	struct buf labels, page;
};

static void openmetrics_destroy(struct encoder *e)
{
	if (!e)
		return;
	totals_free(e->totals);
	free(e->totals);
	buf_free(&e->labels);
	buf_free(&e->page);
	free(e);
}

static int openmetrics_create(const struct encode_options *o, const struct schema *s, struct encoder **ret, struct err *err)
{
	struct totals_options to = { .keep_ns = o->keep_ns ? o->keep_ns : OPENMETRICS_KEEP_NS, .top = o->top };
	struct encoder *e = calloc(1, sizeof(*e));

	if (e)
		e->totals = totals_new(s, &to);
	if (!e || !e->totals) {
		openmetrics_destroy(e);
		return err_set(err, -ENOMEM, "format openmetrics: out of memory; free some");
	}
	e->http = o->http;
	*ret = e;
	return 0;
}

/* Both texts, each with what tells them apart (sink http-listen). */
static int encode_both(struct encoder *e, struct buf *out)
{
	for (int version_1 = 0; version_1 < 2; version_1++) {
		int rc;

		buf_reset(&e->page);
		rc = openmetrics_write(e->totals, NULL, version_1, &e->labels, &e->page);
		if (rc)
			return rc;
		buf_printf(out, "Content-Type: %s\nContent-Length: %zu\n\n", openmetrics_types[version_1], e->page.len);
		buf_add(out, e->page.data, e->page.len);
	}
	return out->failed ? -ENOMEM : 0;
}

static int openmetrics_encode(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	totals_add(e->totals, s);
	if (e->http)
		return encode_both(e, out);
	return openmetrics_write(e->totals, NULL, true, &e->labels, out);
}

static const struct encoder_stats *openmetrics_stats(const struct encoder *e)
{
	return &e->stats;
}

const struct encoder_ops encode_openmetrics = {
	.name = "openmetrics",
	.help = "counters since the start for Prometheus, OpenMetrics 1.0",
	.create = openmetrics_create,
	.encode = openmetrics_encode,
	.stats = openmetrics_stats,
	.destroy = openmetrics_destroy,
};
