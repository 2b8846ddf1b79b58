/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "rapl.h"

#define BACKOFF_FIRST_NS NS_PER_S
#define BACKOFF_MAX_NS (64 * NS_PER_S) /* longest pause where no wrap bounds it */
#define STILL_NS (3 * NS_PER_S) /* some hypervisors update their counters once a second */
#define SMALLEST_TURN_UJ 65536000000ull /* 2^32 x 2^-16 J, for a zone that does not tell its range */
#define MIN_WRAP_NS (40 * NS_PER_MS) /* four polls at the fastest pace */

/* What the probe says of the counter's range. */
static void use_range(struct rapl_feed *f)
{
	uint64_t turn = f->probe->wrap_units;

	for (unsigned i = 0; i < f->probe->parts; i++)
		f->parts[i].modulus = turn;
	if (!turn && f->ops->interface == ENERGY_POWERCAP)
		turn = SMALLEST_TURN_UJ;
	f->wrap_ns = turn ? (uint64_t)((double)turn / f->parts[0].max_units_per_ns) : 0;
	if (turn && f->wrap_ns < MIN_WRAP_NS)
		f->wrap_ns = MIN_WRAP_NS;
}

int rapl_feed_init(struct rapl_feed *f, const struct energy_source_ops *ops, struct energy_source *src, unsigned index,
		   double watts)
{
	const struct energy_probe *probes;

	ops->probes(src, &probes);
	*f = (struct rapl_feed){ .ops = ops, .src = src, .probe = &probes[index], .index = index };
	f->restarts = f->probe->restarts;
	f->parts = calloc(f->probe->parts, sizeof(*f->parts));
	if (!f->parts)
		return -ENOMEM;
	for (unsigned i = 0; i < f->probe->parts; i++) {
		/* 1 W = 1e-3 uJ/ns */
		f->parts[i].max_units_per_ns = watts * 1e-3 * (double)f->probe->uj_den / (double)f->probe->uj_num;
	}
	use_range(f);
	return 0;
}

/* After the source opened it anew. Another range is another counter: what the old one told is not compared with it. */
static void follow_range(struct rapl_feed *f)
{
	if (f->parts[0].modulus == f->probe->wrap_units)
		return;
	use_range(f);
	for (unsigned i = 0; i < f->probe->parts; i++) {
		f->parts[i].resets += f->parts[i].have_prev;
		f->parts[i].have_prev = false;
	}
	f->have_time = false; /* it has not stood still */
}

/* 0 when every part answered. A core whose CPUs are offline uses nothing that is counted. */
static int read_parts(struct rapl_feed *f, uint64_t now_ns, uint64_t boot_ns)
{
	unsigned offline = 0, n = f->probe->parts;
	uint64_t raw, units = 0;

	for (unsigned i = 0; i < n; i++) {
		int rc = f->ops->read(f->src, f->index, i, &raw);

		if (rc == -ENXIO && ++offline < n)
			rc = 0;
		else if (!rc)
			energy_accumulate(&f->parts[i], raw, now_ns, boot_ns);
		if (rc)
			return rc;
		units += f->parts[i].units;
	}
	f->units = units;
	return 0;
}

static void fail(struct rapl_feed *f, int rc, uint64_t now_ns, uint64_t pace_ns, struct rapl_warnings *w)
{
	uint64_t most = pace_ns ? pace_ns : BACKOFF_MAX_NS;

	f->errors++;
	if (!f->failing)
		rapl_warn(w, "%s: %s %s cannot be read (%s); tried again until it answers", f->probe->name,
			  energy_interface_name(f->ops->interface), f->probe->subject, strerror(-rc));
	f->backoff_ns = f->failing ? f->backoff_ns * 2 : BACKOFF_FIRST_NS;
	if (f->backoff_ns > most)
		f->backoff_ns = most;
	f->retry_ns = now_ns + f->backoff_ns;
	f->failing = true;
}

static void say_events(const struct rapl_feed *f, const struct rapl_feed_events *before, struct rapl_warnings *w)
{
	struct rapl_feed_events now = rapl_feed_events(f);

	if (now.resets != before->resets)
		rapl_warn(w,
			  "%s: %s %s began anew (sleep, module reload or CPU change); energy in between is not known",
			  f->probe->name, energy_interface_name(f->ops->interface), f->probe->subject);
	if (now.dropped != before->dropped)
		rapl_warn(w, "%s: %s %s jumped or was read too late for one wrap; energy in between is partial",
			  f->probe->name, energy_interface_name(f->ops->interface), f->probe->subject);
}

/* A package or a machine that is on uses power. A counter that stands still is frozen (an event on a CPU that was
 * away, a register that a hypervisor made up). Its zero must not pass for a measurement, nor must its step when it
 * moves again. */
static void watch_still(struct rapl_feed *f, uint64_t units_before, uint64_t now_ns, struct rapl_warnings *w)
{
	bool watched = f->probe->kind == DOMAIN_PACKAGE || f->probe->kind == DOMAIN_PSYS;
	bool moved = f->units != units_before || !f->have_time || !watched;

	if (moved) {
		f->restarted += f->still;
		f->moved_ns = now_ns;
	} else if (now_ns - f->moved_ns < STILL_NS) {
		return;
	}
	if (f->still == moved)
		rapl_warn(w, "%s: %s %s %s", f->probe->name, energy_interface_name(f->ops->interface),
			  f->probe->subject,
			  moved ? "moves again; what it missed is not known" :
				  "stands still; its value is marked stale until it moves");
	f->still = !moved;
}

bool rapl_feed_read(struct rapl_feed *f, uint64_t now_ns, uint64_t boot_ns, uint64_t pace_ns, struct rapl_warnings *w)
{
	struct rapl_feed_events before = rapl_feed_events(f);
	uint64_t units = f->units;
	int rc;

	if (f->failing && now_ns < f->retry_ns)
		return false;
	if (f->failing && f->ops->reopen) {
		f->ops->reopen(f->src, f->index);
		follow_range(f);
	}
	rc = read_parts(f, now_ns, boot_ns);
	if (rc) {
		fail(f, rc, now_ns, pace_ns, w);
		return false;
	}
	if (f->failing)
		rapl_warn(w, "%s: %s %s answers again; what it counted meanwhile is in the next value", f->probe->name,
			  energy_interface_name(f->ops->interface), f->probe->subject);
	if (f->have_time && f->wrap_ns && now_ns - f->time_ns > f->wrap_ns)
		f->ambiguous++;
	if (f->restarts != f->probe->restarts)
		f->restarted++;
	f->restarts = f->probe->restarts;
	say_events(f, &before, w);
	watch_still(f, units, now_ns, w);
	f->failing = false;
	f->have_time = true;
	f->time_ns = now_ns;
	return true;
}

void rapl_feed_retry(struct rapl_feed *f)
{
	f->retry_ns = 0;
	f->backoff_ns = BACKOFF_FIRST_NS / 2;
}

struct rapl_feed_events rapl_feed_events(const struct rapl_feed *f)
{
	struct rapl_feed_events e = { .resets = f->restarted, .dropped = f->ambiguous };

	for (unsigned i = 0; i < f->probe->parts; i++) {
		e.wraps += f->parts[i].wraps;
		e.resets += f->parts[i].resets;
		e.dropped += f->parts[i].dropped;
	}
	return e;
}

uint64_t rapl_feed_uj(const struct rapl_feed *f)
{
	return (uint64_t)((unsigned __int128)f->units * f->probe->uj_num / f->probe->uj_den);
}

void rapl_feed_free(struct rapl_feed *f)
{
	free(f->parts);
	f->parts = NULL;
}
