/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the metrics page (docs/formats/metrics.md) from totals, as Prometheus text 0.0.4 or OpenMetrics 1.0. */
#ifndef JD_OPENMETRICS_H
#define JD_OPENMETRICS_H
#include "encode/totals/totals.h"

#define OPENMETRICS_KEEP_NS (300 * 1000000000ull) /* default of `keep` */

extern const char *const openmetrics_types[2]; /* media types: 0.0.4, 1.0 */

struct openmetrics_output {
	const char *name;
	uint64_t documents, dropped;
};

/* Figures of the agent itself. Pass NULL where they are not known. */
struct openmetrics_self {
	uint64_t cpu_ns, resident_bytes;
	const struct openmetrics_output *outputs;
	unsigned n_outputs;
};

/* Appends the page to out. scratch holds the label texts; reuse it, and steady state allocates nothing. 0 or
 * -ENOMEM. */
int openmetrics_write(const struct totals *t, const struct openmetrics_self *self, bool version_1, struct buf *scratch,
		      struct buf *out);

#endif
