/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "rapl.h"

#define MIN_POLL_NS (10 * NS_PER_MS)

void rapl_warn(struct rapl_warnings *w, const char *fmt, ...)
{
	va_list ap;

	if (w->n == RAPL_MAX_WARNINGS) {
		w->lost++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(w->text[(w->first + w->n++) % RAPL_MAX_WARNINGS], RAPL_WARNING_SIZE, fmt, ap);
	va_end(ap);
}

bool rapl_next_warning(struct rapl *rp, char *ret_text, size_t size)
{
	struct rapl_warnings *w = &rp->warnings;

	if (!w->n && !w->lost)
		return false;
	if (!w->n) {
		snprintf(ret_text, size, "rapl: %llu more warnings were not kept", (unsigned long long)w->lost);
		w->lost = 0;
		return true;
	}
	snprintf(ret_text, size, "%s", w->text[w->first]);
	w->first = (w->first + 1) % RAPL_MAX_WARNINGS;
	w->n--;
	return true;
}

static int open_source(struct rapl *rp, const struct energy_source_ops *ops, const struct schema *s, struct err *err)
{
	const char *note;
	int rc = ops->open(rp->options.root, rp->options.seam, s, &rp->src[rp->n_sources], err);

	if (rc)
		return rc;
	rp->ops[rp->n_sources] = ops;
	for (unsigned i = 0; (note = ops->note(rp->src[rp->n_sources], i)); i++)
		rapl_warn(&rp->warnings, "%s: %s", energy_interface_name(ops->interface), note);
	rp->n_sources++;
	return 0;
}

/* Warns of a configured interface that gives nothing. In auto mode the doctor tells. */
static void say_empty(struct rapl *rp)
{
	const char *reason;

	for (unsigned i = 0; i < rp->n_sources; i++) {
		enum energy_state state = rp->ops[i]->state(rp->src[i], &reason);

		if (rp->n_domains == 0 && rapl_wanted(rp, i))
			rapl_warn(&rp->warnings, "rapl: %s is %s: %s", energy_interface_name(rp->ops[i]->interface),
				  energy_state_name(state), reason);
	}
}

/* The pace of polls: a quarter of the time in which the fastest counter can wrap. */
static void set_pace(struct rapl *rp)
{
	uint64_t safe = 0, asked = rp->options.poll_ns;

	for (unsigned i = 0; i < rp->n_domains; i++) {
		const struct rapl_feed *feeds[] = { &rp->domains[i].feed, &rp->domains[i].other };

		for (unsigned j = 0; j < 2; j++) {
			if (feeds[j]->ops && feeds[j]->wrap_ns && (!safe || feeds[j]->wrap_ns / 4 < safe))
				safe = feeds[j]->wrap_ns / 4;
		}
	}
	if (safe && safe < MIN_POLL_NS)
		safe = MIN_POLL_NS;
	rp->poll_ns = asked ? asked : safe;
	if (safe && asked > safe) {
		rapl_warn(&rp->warnings, "rapl-poll: %.3f s would miss wraps of a counter; %.3f s is used",
			  (double)asked / 1e9, (double)safe / 1e9);
		rp->poll_ns = safe;
	}
}

int rapl_open(const struct rapl_options *o, struct schema *s, struct rapl **ret, struct err *err)
{
	static const struct energy_source_ops *const all[] = { &energy_powercap, &energy_perf, &energy_msr };
	struct rapl *rp = calloc(1, sizeof(*rp));
	unsigned before = s->n_domains;
	int rc = 0;

	if (!rp)
		return err_set(err, -ENOMEM, "rapl: out of memory; free some");
	rp->options = *o;
	if (o->mode == RAPL_NONE)
		rc = open_source(rp, &energy_null, s, err);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]) && o->mode != RAPL_NONE && !rc; i++)
		rc = open_source(rp, all[i], s, err);
	if (rc)
		goto fail;
	rc = rapl_choose(rp, s);
	if (rc) {
		err_set(err, rc, "rapl: out of memory; free some");
		goto fail;
	}
	if (o->mode != RAPL_AUTO && o->mode != RAPL_NONE)
		say_empty(rp);
	set_pace(rp);
	*ret = rp;
	return 0;
fail:
	s->n_domains = before;
	rapl_close(rp);
	return rc;
}

/* A configured pace that cannot be kept is told the first time and at each doubling. */
static void count_look(struct rapl *rp, uint64_t now_ns)
{
	uint64_t gap = rp->looks.n && now_ns > rp->looked_ns ? now_ns - rp->looked_ns : 0;

	rp->looks.n++;
	rp->looked_ns = now_ns;
	if (rp->poll_ns && gap >= 2 * rp->poll_ns)
		rp->looks.left_out += gap / rp->poll_ns - 1;
	if (!rp->options.poll_ns || rp->looks.left_out == rp->told_left_out ||
	    rp->looks.left_out < 2 * rp->told_left_out)
		return;
	rp->told_left_out = rp->looks.left_out;
	rapl_warn(&rp->warnings,
		  "rapl-poll: %llu looks every %.3f ms were left out so far because they were late; ask for fewer",
		  (unsigned long long)rp->looks.left_out, (double)rp->poll_ns / 1e6);
}

static void rapl_check_step(struct rapl_check *c, const struct rapl_feed *main, const struct rapl_feed *other,
			    uint64_t now_ns, struct rapl_warnings *w);

void rapl_poll(struct rapl *rp, uint64_t now_ns, uint64_t boot_ns)
{
	count_look(rp, now_ns);
	for (unsigned i = 0; i < rp->n_domains; i++) {
		struct rapl_domain *d = &rp->domains[i];
		bool fresh = rapl_feed_read(&d->feed, now_ns, boot_ns, rp->poll_ns, &rp->warnings);

		if (!d->other.ops)
			continue;
		fresh &= rapl_feed_read(&d->other, now_ns, boot_ns, rp->poll_ns, &rp->warnings);
		if (fresh)
			rapl_check_step(&d->check, &d->feed, &d->other, now_ns, &rp->warnings);
		else
			d->check.started = false;
	}
}

void rapl_read(struct rapl *rp, struct reading *r, uint64_t now_ns, uint64_t boot_ns)
{
	rapl_poll(rp, now_ns, boot_ns);
	for (unsigned i = 0; i < rp->n_domains; i++) {
		const struct rapl_feed *f = &rp->domains[i].feed;
		struct rapl_feed_events e = rapl_feed_events(f);

		r->domains[rp->domains[i].schema_index] = (struct reading_domain){
			.units = f->units,
			.uj_num = f->probe->uj_num,
			.uj_den = f->probe->uj_den,
			.time_ns = f->time_ns,
			.stale = f->failing || f->still || !f->have_time,
			.errors = f->errors,
			.wraps = e.wraps,
			.resets = e.resets,
			.dropped = e.dropped,
		};
	}
}

uint64_t rapl_poll_interval_ns(const struct rapl *rp)
{
	return rp->poll_ns;
}

struct rapl_looks rapl_looks(const struct rapl *rp)
{
	return rp->looks;
}

void rapl_hotplug(struct rapl *rp, const uint8_t *online, unsigned n)
{
	for (unsigned i = 0; i < rp->n_sources; i++)
		rp->ops[i]->hotplug(rp->src[i], online, n);
	for (unsigned i = 0; i < rp->n_domains; i++) {
		rapl_feed_retry(&rp->domains[i].feed);
		rapl_feed_retry(&rp->domains[i].other);
	}
}

unsigned rapl_interfaces(const struct rapl *rp, const struct energy_source_ops **ret_ops,
			 struct energy_source **ret_src, unsigned max)
{
	unsigned n = rp->n_sources < max ? rp->n_sources : max;

	for (unsigned i = 0; i < n; i++) {
		ret_ops[i] = rp->ops[i];
		ret_src[i] = rp->src[i];
	}
	return n;
}

void rapl_close(struct rapl *rp)
{
	if (!rp)
		return;
	for (unsigned i = 0; i < SCHEMA_MAX_DOMAINS; i++) {
		rapl_feed_free(&rp->domains[i].feed);
		rapl_feed_free(&rp->domains[i].other);
	}
	for (unsigned i = 0; i < rp->n_sources; i++)
		rp->ops[i]->close(rp->src[i]);
	free(rp);
}

/* Cross-check. Two interfaces of one counter are read some microseconds apart, and the counter moves
 * once a millisecond: over 5 s that is below 0.1 %. Known differences stay inside the 0.5 %:
 * powercap cuts its unit to whole nanojoules (-2.6 ppm at ESU 14, -52 ppm at ESU 16), and takes
 * 15300 nJ for server DRAM where perf takes 2^-16 J (+0.27 %) (intel_rapl_common.c, events/rapl.c). */

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

static void rapl_check_step(struct rapl_check *c, const struct rapl_feed *main, const struct rapl_feed *other,
			    uint64_t now_ns, struct rapl_warnings *w)
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
