/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics page (docs/formats/metrics.md) from totals: Prometheus text 0.0.4, or OpenMetrics 1.0. */
#ifndef JD_OPENMETRICS_H
#define JD_OPENMETRICS_H
#include "totals.h"

#define OPENMETRICS_KEEP_NS (300 * 1000000000ull) /* default of `keep` */

extern const char *const openmetrics_types[2]; /* media types: 0.0.4, 1.0 */

struct openmetrics_output {
	const char *name;
	uint64_t documents, dropped;
};

/* What only the program itself knows; NULL where it is not known. */
struct openmetrics_self {
	uint64_t cpu_ns, resident_bytes;
	const struct openmetrics_output *outputs;
	unsigned n_outputs;
};

/* scratch keeps the label texts: reused, so that steady state allocates nothing. 0 or -ENOMEM. */
int openmetrics_write(const struct totals *t, const struct openmetrics_self *self, bool version_1, struct buf *scratch,
		      struct buf *out);

#endif
