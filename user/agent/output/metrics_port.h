/* SPDX-License-Identifier: Apache-2.0 */
/* openmetrics=http-listen://...: an output that sends nothing on its own. It is a TCP port of the query server,
 * which answers /metrics from the same totals as on the query socket. Main thread. */
#ifndef JD_METRICS_PORT_H
#define JD_METRICS_PORT_H
#include "base/err.h"
#include "model/config/config.h"
#include "sink/sink.h"

struct page;
struct serve;

/* Checks the URL, and that no recording is replayed. Opens nothing. 0, or -EINVAL with err. */
int page_check(const struct output_config *oc, bool replays, struct err *err);
/* Checks and listens. 0 or negative errno with err. */
int page_open(const struct output_config *oc, bool replays, struct page **ret, struct err *err);
/* Answers from now on. A second call does nothing. */
int page_start(struct page *p, struct serve *s, struct err *err);
/* *ret_number: number of the page's figures with the server (serve_page_number); 0 = not started. */
void page_stats(const struct page *p, struct sink_stats *ret, uint64_t *ret_number);
void page_close(struct page *p); /* call before the server ends; NULL accepted */

#endif
