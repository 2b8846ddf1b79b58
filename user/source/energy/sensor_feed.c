// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "domain.h"
#include "sensor_feed.h"

#define PACE_NS (100 * NS_PER_MS)
#define SLOW_PACE_NS NS_PER_S /* of a sum of many counters: each read wakes its core */
#define MANY_PARTS 8
#define LONGEST_NS (3 * NS_PER_S)
#define STILL_NS (3 * NS_PER_S)
#define BACKOFF_MAX_NS (32 * NS_PER_S)
#define UW_2NS_PER_UJ 2000000000ull

const char *sensor_way_text(enum sensor_way way)
{
	static const char *const texts[] = { "energy counter", "average power", "power of an instant",
					     "power by the kernel's model" };

	return texts[way];
}

static bool is_whole(const struct sensor *s)
{
	return s->is.kind == DOMAIN_PACKAGE || s->is.kind == DOMAIN_PSYS;
}

static double watts_bound(const struct sensor *s)
{
	return s->is.kind == DOMAIN_PSYS ? SENSOR_MACHINE_WATTS : SENSOR_WATTS;
}

/* 0, -errno of the read, -EBADMSG: no number, -ERANGE: more power than such a thing can draw, -ENODATA: a machine that is
 * on uses power, so that its 0 is a firmware's that does not fill it in. */
static int read_value(const struct sensor *s, int fd, uint64_t *ret)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int64_t v;

	if (n < 0)
		return -errno;
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	if (s->way == SENSOR_COUNTER) {
		if (parse_u64(text, ret) != 0)
			return -EBADMSG;
		return 0;
	}
	if (parse_i64(text, &v) != 0)
		return -EBADMSG;
	if (v < 0 || (double)v > watts_bound(s) * 1e6)
		return -ERANGE;
	*ret = (uint64_t)v;
	return v == 0 && is_whole(s) ? -ENODATA : 0;
}

static const char *error_text(int rc)
{
	switch (rc) {
	case -EBADMSG:
		return "it is no number";
	case -ERANGE:
		return "it is more power than can be, or its unit changed";
	case -ENODATA:
		return "it says 0; the firmware does not fill it in";
	case -EACCES:
	case -EPERM:
		return "it may not be read; run as root or with CAP_DAC_READ_SEARCH";
	default:
		return strerror(-rc);
	}
}

static int open_place(const struct fsroot *root, const struct sensor *s, const char *place)
{
	struct sensor at = *s;
	char path[160];

	memcpy(at.place, place, sizeof(at.place));
	sensor_path(&at, path, sizeof(path));
	return fsroot_openat(root, path, O_RDONLY);
}

/* The longest time between two reads in which nothing is lost: power is not bridged for longer, and a counter wraps once
 * at most. */
static uint64_t sure_ns(const struct sensor_feed *f, const struct sensor *s)
{
	double turn_ns = (double)s->wrap_units / (watts_bound(s) * 1e-3);

	if (s->way != SENSOR_COUNTER)
		return f->longest_ns;
	return !s->wrap_units || turn_ns > (double)INT64_MAX ? UINT64_MAX : (uint64_t)turn_ns;
}

int sensor_feed_add(struct sensor_feed *f, const struct fsroot *root, const struct sensor *s, char *why, size_t size)
{
	struct sensor_part *more = realloc(f->parts, (f->n + 1) * sizeof(*more)), *p;
	uint64_t v = 0;
	int fd, rc;

	if (!more)
		return -ENOMEM;
	f->parts = more;
	fd = open_place(root, s, s->place);
	rc = fd < 0 ? fd : read_value(s, fd, &v);
	if (!rc && s->way == SENSOR_COUNTER && !v && is_whole(s))
		rc = -ENODATA;
	if (rc) {
		snprintf(why, size, "not used: %s", error_text(rc));
		if (fd >= 0)
			close(fd);
		return rc == -EPERM ? -EACCES : rc == -ENOMEM ? -EIO : rc;
	}
	p = &f->parts[f->n++];
	*p = (struct sensor_part){ .sensor = s, .fd = fd };
	memcpy(p->place, s->place, sizeof(p->place));
	p->counter.modulus = s->wrap_units;
	p->counter.max_units_per_ns = watts_bound(s) * 1e-3; /* 1 W = 1e-3 uJ/ns */
	f->pace_ns = s->interval_ns > PACE_NS ? s->interval_ns : PACE_NS;
	if (f->n > MANY_PARTS && f->pace_ns < SLOW_PACE_NS)
		f->pace_ns = SLOW_PACE_NS;
	f->longest_ns = 3 * f->pace_ns > LONGEST_NS ? 3 * f->pace_ns : LONGEST_NS;
	f->sure_ns = sure_ns(f, s);
	return 0;
}

/* An average is that of the time before it; between two instants power changes evenly. */
static void integrate(struct sensor_part *p, uint64_t power_uw, uint64_t ns)
{
	uint64_t before = p->sensor->way == SENSOR_AVERAGE ? power_uw : p->power_uw;
	unsigned __int128 work = (unsigned __int128)(before + power_uw) * ns + p->rest;

	p->uj += (uint64_t)(work / UW_2NS_PER_UJ);
	p->rest = (uint64_t)(work % UW_2NS_PER_UJ);
}

static int read_part(const struct sensor_feed *f, struct sensor_part *p, uint64_t now_ns, uint64_t boot_ns)
{
	uint64_t v;
	int rc = p->fd < 0 ? -ENODEV : read_value(p->sensor, p->fd, &v);

	if (rc)
		return rc;
	if (p->sensor->way == SENSOR_COUNTER) {
		energy_accumulate(&p->counter, v, now_ns, boot_ns);
		return 0;
	}
	if (p->have_power && now_ns - f->time_ns <= f->longest_ns)
		integrate(p, v, now_ns - f->time_ns);
	p->power_uw = v;
	p->have_power = true;
	return 0;
}

/* The sensor may have another number now, and its old number may be another sensor's. A counter begins anew. */
static void find_again(struct sensor_part *p, const struct fsroot *root)
{
	const struct sensor *s = p->sensor;
	struct sensor_list l;

	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	if (sensor_list_find(root, &l) == 0) {
		for (unsigned i = 0; i < l.n && p->fd < 0; i++) {
			const struct sensor *o = &l.v[i];

			if (o->interface != s->interface || o->way != s->way || strcmp(o->chip, s->chip) != 0 ||
			    strcmp(o->label, s->label) != 0 || strcmp(o->file, s->file) != 0)
				continue;
			p->fd = open_place(root, s, o->place);
			if (p->fd >= 0)
				memcpy(p->place, o->place, sizeof(p->place));
		}
	}
	sensor_list_free(&l);
	p->counter.have_prev = false;
	p->have_power = false;
}

static void warn(struct sensor_feed *f, const char *what)
{
	const struct sensor *s = f->parts[0].sensor;
	char name[64], text[512];

	energy_domain_name(name, sizeof(name), s->is.kind, s->is.package, ENERGY_NO_DIE);
	snprintf(text, sizeof(text), "%s: %s %s (%s %s): %.160s", name, f->parts[0].place, s->file, s->chip, s->label,
		 what);
	text_escape(f->warning, sizeof(f->warning), text);
}

static void fail(struct sensor_feed *f, int rc, uint64_t now_ns)
{
	uint64_t pause = NS_PER_S << (f->failures < 5 ? f->failures : 5);
	char text[160];

	f->errors++;
	if (!f->failures) {
		snprintf(text, sizeof(text), "cannot be read (%s); tried again until it answers", error_text(rc));
		warn(f, text);
	}
	f->failures++;
	f->due_ns = now_ns + (pause < BACKOFF_MAX_NS ? pause : BACKOFF_MAX_NS);
}

static struct rapl_feed_events events_of(const struct sensor_feed *f)
{
	struct rapl_feed_events e = { .resets = f->restarts, .dropped = f->gaps };

	for (unsigned i = 0; i < f->n; i++) {
		e.wraps += f->parts[i].counter.wraps;
		e.resets += f->parts[i].counter.resets;
		e.dropped += f->parts[i].counter.dropped;
	}
	return e;
}

/* A counter that stands still is frozen, and its 0 is no measurement. */
static void watch_still(struct sensor_feed *f, bool moved, uint64_t now_ns)
{
	const struct sensor *s = f->parts[0].sensor;

	if (moved || !is_whole(s) || s->way != SENSOR_COUNTER || !f->time_ns) {
		f->moved_ns = now_ns;
		if (f->still) {
			f->restarts++;
			warn(f, "moves again; what it missed is not known");
		}
		f->still = false;
	} else if (!f->still && now_ns - f->moved_ns >= STILL_NS) {
		f->still = true;
		warn(f, "stands still; its value is marked stale until it moves");
	}
}

static void say_events(struct sensor_feed *f, const struct rapl_feed_events *before)
{
	struct rapl_feed_events now = events_of(f);

	if (now.resets != before->resets)
		warn(f, "went back (sleep, another driver or another unit); energy in between is not known");
	if (now.dropped != before->dropped)
		warn(f, "jumped, or was read too late; energy in between is partial");
}

void sensor_feed_read(struct sensor_feed *f, const struct fsroot *root, uint64_t now_ns, uint64_t boot_ns)
{
	struct rapl_feed_events before = events_of(f);
	uint64_t units = 0, due = f->due_ns ? f->due_ns : now_ns;

	for (unsigned i = 0; f->failures && i < f->n; i++)
		find_again(&f->parts[i], root);
	for (unsigned i = 0; i < f->n; i++) {
		struct sensor_part *p = &f->parts[i];
		int rc = read_part(f, p, now_ns, boot_ns);

		if (rc) {
			fail(f, rc, now_ns);
			return;
		}
		units += p->sensor->way == SENSOR_COUNTER ? p->counter.units : p->uj;
	}
	if (f->failures)
		f->restarts++;
	else if (f->time_ns && now_ns - f->time_ns > f->sure_ns)
		f->gaps++;
	if (f->failures)
		warn(f, "answers again; what it measured meanwhile is not known");
	else
		say_events(f, &before);
	watch_still(f, units != f->units, now_ns);
	f->failures = 0;
	f->units = units;
	f->time_ns = now_ns;
	f->due_ns = due + f->pace_ns > now_ns ? due + f->pace_ns : now_ns + f->pace_ns;
}

void sensor_feed_publish(const struct sensor_feed *f, struct reading_domain *ret)
{
	struct rapl_feed_events e = events_of(f);

	*ret = (struct reading_domain){
		.units = f->units,
		.uj_num = 1,
		.uj_den = 1,
		.time_ns = f->time_ns,
		.stale = f->failures || f->still || !f->time_ns,
		.errors = f->errors,
		.wraps = e.wraps,
		.resets = e.resets,
		.dropped = e.dropped,
		.estimated = f->parts[0].sensor->way >= SENSOR_INSTANT,
	};
}

void sensor_feed_free(struct sensor_feed *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->parts[i].fd >= 0)
			close(f->parts[i].fd);
	free(f->parts);
	*f = (struct sensor_feed){ 0 };
}
