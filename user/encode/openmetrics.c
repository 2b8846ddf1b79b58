/* SPDX-License-Identifier: Apache-2.0 */
/* openmetrics as an output: the whole page each interval, in OpenMetrics 1.0, whose end is marked. */
#include <errno.h>
#include <stdlib.h>
#include "openmetrics.h"
#include "encode.h"

const char *const openmetrics_types[2] = {
	"text/plain; version=0.0.4; charset=utf-8",
	"application/openmetrics-text; version=1.0.0; charset=utf-8",
};

struct encoder {
	struct encoder_stats stats;
	struct totals *totals;
	struct buf labels;
};

static void openmetrics_destroy(struct encoder *e)
{
	if (!e)
		return;
	totals_free(e->totals);
	free(e->totals);
	buf_free(&e->labels);
	free(e);
}

static int openmetrics_create(const struct encode_options *o, const struct schema *s, struct encoder **ret,
			      struct err *err)
{
	struct totals_options to = { .keep_ns = o->keep_ns ? o->keep_ns : OPENMETRICS_KEEP_NS, .top = o->top };
	struct encoder *e = calloc(1, sizeof(*e));

	if (e)
		e->totals = totals_new(s, &to);
	if (!e || !e->totals) {
		openmetrics_destroy(e);
		return err_set(err, -ENOMEM, "format openmetrics: out of memory; free some");
	}
	*ret = e;
	return 0;
}

static int openmetrics_encode(struct encoder *e, const struct snapshot *s, struct buf *out)
{
	totals_add(e->totals, s);
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
