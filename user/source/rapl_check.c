/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-check. Two interfaces of one counter are read some microseconds apart, and the counter moves
 * once a millisecond: over 5 s that is below 0.1 %. Known differences stay inside the 0.5 %:
 * powercap cuts its unit to whole nanojoules (-2.6 ppm at ESU 14, -52 ppm at ESU 16), and takes
 * 15300 nJ for server DRAM where perf takes 2^-16 J (+0.27 %) (intel_rapl_common.c, events/rapl.c). */
#include "../base/clock.h"
#include "rapl_internal.h"

#define WINDOW_NS (5 * NS_PER_S)
#define TOLERANCE_DIV 200 /* 0.5 % */

static uint64_t event_count(const struct rapl_feed *f)
{
	struct rapl_feed_events e = rapl_feed_events(f);

	return e.resets + e.dropped;
}

static void start(struct rapl_check *c, const struct rapl_feed *main, const struct rapl_feed *other, uint64_t now_ns)
{
	c->started = true;
	c->start_ns = now_ns;
	c->main_uj = rapl_feed_uj(main);
	c->other_uj = rapl_feed_uj(other);
	c->main_events = event_count(main);
	c->other_events = event_count(other);
}

/* Counters move in whole units: two of each may stand on either side of a reading. */
static uint64_t allowed(const struct rapl_feed *main, const struct rapl_feed *other, uint64_t uj)
{
	return uj / TOLERANCE_DIV +
	       2 * (main->probe->uj_num / main->probe->uj_den + other->probe->uj_num / other->probe->uj_den) + 4;
}

void rapl_check_step(struct rapl_check *c, const struct rapl_feed *main, const struct rapl_feed *other, uint64_t now_ns,
		     struct rapl_warnings *w)
{
	uint64_t a, b, diff;
	bool differs;

	if (!c->started || c->main_events != event_count(main) || c->other_events != event_count(other)) {
		start(c, main, other, now_ns);
		return;
	}
	if (now_ns - c->start_ns < WINDOW_NS)
		return;
	a = rapl_feed_uj(main) - c->main_uj;
	b = rapl_feed_uj(other) - c->other_uj;
	diff = a > b ? a - b : b - a;
	differs = diff > allowed(main, other, a);
	if (differs && !c->differs)
		rapl_warn(w,
			  "%s: %s says %llu uJ and %s %llu uJ for the same %.1f s, more than 0.5 %% apart; %s is used",
			  main->probe->name, energy_interface_name(main->ops->interface), (unsigned long long)a,
			  energy_interface_name(other->ops->interface), (unsigned long long)b,
			  (double)(now_ns - c->start_ns) / 1e9, energy_interface_name(main->ops->interface));
	c->differs = differs;
	start(c, main, other, now_ns);
}
