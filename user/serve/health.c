/* SPDX-License-Identifier: Apache-2.0 */
/* GET /healthz and /readyz, for probes: whether the agent works, and whether it has figures to show. They tell nothing
 * else, so that everybody who reaches a port may ask. */
#include <string.h>
#include "base/clock.h"
#include "routes.h"

#define LATE_NS (30 * NS_PER_S) /* beyond the intervals that a reading may take */
#define LATE_INTERVALS 3

/* Time since the last totals, or since the start where there are none yet. */
static uint64_t quiet_ns(struct serve *s)
{
	const struct totals *t = board_latest(&s->totals_board);
	uint64_t last = t ? t->mono_ns : s->start_ns, now = clock_mono_ns();

	return now > last ? now - last : 0;
}

static void fine(struct serve *s, struct http_request *r)
{
	buf_reset(&s->out);
	buf_add_str(&s->out, "ok\n");
	http_reply(r, 200, "text/plain; charset=utf-8", NULL, &s->out);
}

static void answer_health(struct serve *s, struct http_request *r, bool ready)
{
	uint64_t interval_ns = serve_feed_interval(s, 0), quiet = quiet_ns(s);

	if (interval_ns < s->o.interval_ns)
		interval_ns = s->o.interval_ns;
	if (ready && !serve_totals(s))
		http_error(r, 503, "Retry-After: 1", "ready: the first interval is not over; try again");
	else if (quiet <= LATE_INTERVALS * interval_ns + LATE_NS)
		fine(s, r);
	else
		http_error(r, 503, NULL,
			   "health: no reading for %llu s; the measuring thread does not come through: restart jouled",
			   (unsigned long long)(quiet / NS_PER_S));
}

bool serve_health(struct serve *s, struct http_request *r)
{
	bool health = strcmp(r->path, "/healthz") == 0;

	if (!health && strcmp(r->path, "/readyz") != 0)
		return false;
	if (strcmp(r->method, "GET") != 0)
		http_error(r, 405, "Allow: GET, HEAD", "method: not for %s; use GET", r->path);
	else
		answer_health(s, r, !health);
	return true;
}
