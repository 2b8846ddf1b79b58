/* SPDX-License-Identifier: Apache-2.0 */
/* openmetrics=http-listen://...: an output that sends nothing by itself. It is a TCP port of the query server, where
 * /metrics is answered from the same totals as on the query socket. Main thread. */
#ifndef JD_PAGE_H
#define JD_PAGE_H
#include <stdbool.h>
#include "../base/err.h"
#include "../model/config.h"
#include "../sink/sink.h"

struct page;
struct serve;

bool page_is(const struct output_config *oc);
/* -EINVAL with err: what cannot work whatever the machine. Opens nothing. */
int page_check(const struct output_config *oc, const struct config *c, struct err *err);
int page_open(const struct output_config *oc, const struct config *c, struct page **ret, struct err *err); /* listens */
int page_start(struct page *p, struct serve *s, struct err *err); /* answers from now on; again: nothing happens */
void page_stats(const struct page *p, struct sink_stats *ret,
		uint64_t *ret_number); /* number: of its figures with the server */
void page_close(struct page *p); /* before the server ends; NULL accepted */

#endif
