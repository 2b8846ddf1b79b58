/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the metrics page (docs/formats/metrics.md) from totals, as Prometheus text 0.0.4 or OpenMetrics 1.0. */
#ifndef JD_OPENMETRICS_H
#define JD_OPENMETRICS_H
#include "series.h"

extern const char *const openmetrics_types[2]; /* media types: 0.0.4, 1.0 */

/* Appends the page to out. scratch holds the label texts; reuse it, and steady state allocates nothing. self may be
 * NULL. 0 or -ENOMEM. */
int openmetrics_write(const struct totals *t, const struct series_self *self, bool version_1, struct buf *scratch,
		      struct buf *out);

#endif
