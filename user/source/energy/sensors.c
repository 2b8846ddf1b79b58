// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/text.h"
#include "domain.h"
#include "sensor_feed.h"
#include "sensors.h"
#include "source/pacer.h"

#define MAX_FINDINGS 64

struct finding {
	enum energy_state state;
	char text[240];
};

struct sensors {
	const struct fsroot *root;
	struct sensor_list list;
	unsigned n;
	struct sensor_feed feeds[SCHEMA_MAX_DOMAINS];
	uint16_t domain[SCHEMA_MAX_DOMAINS]; /* of the schema */
	unsigned n_findings;
	struct finding findings[MAX_FINDINGS];
	struct pacer *pacer;
	pthread_mutex_t lock; /* the rest: what the thread publishes */
	struct reading_domain published[SCHEMA_MAX_DOMAINS];
	struct rapl_warnings warnings;
};

static void __attribute__((format(printf, 3, 4)))
find(struct sensors *all, enum energy_state state, const char *fmt, ...)
{
	struct finding *f = &all->findings[all->n_findings];
	char text[400];
	va_list ap;

	if (all->n_findings == MAX_FINDINGS)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_escape(f->text, sizeof(f->text), text);
	f->state = state;
	all->n_findings++;
}

const char *sensors_finding(const struct sensors *all, unsigned i, enum energy_state *ret_state)
{
	if (i >= all->n_findings)
		return NULL;
	*ret_state = all->findings[i].state;
	return all->findings[i].text;
}

static bool same_domain(const struct sensor *a, const struct sensor *b)
{
	return a->is.kind == b->is.kind && a->is.package == b->is.package;
}

static const char *named(const struct sensor *s, char ret[64])
{
	energy_domain_name(ret, 64, s->is.kind, s->is.package, ENERGY_NO_DIE);
	return ret;
}

static void find_sensor(struct sensors *all, enum energy_state state, const struct sensor *s, const char *why)
{
	char name[64];

	find(all, state, "%s %s (%s%s%s): %s, %s", s->place, s->file, s->chip, *s->label ? " " : "", s->label,
	     named(s, name), why);
}

/* Zones stand in a tree, and arm-scmi:0 holds arm-scmi:0:1. */
static bool holds(const struct sensor *a, const struct sensor *b)
{
	size_t len = strlen(a->place);

	return a->interface == ENERGY_POWERCAP && b->interface == ENERGY_POWERCAP &&
	       strncmp(a->place, b->place, len) == 0 && b->place[len] == ':';
}

/* Parts are numbered alike by one chip and are read in the same way. A sensor without a number is the whole. */
static bool is_other_part(const struct sensor_feed *f, const struct sensor *s)
{
	const struct sensor *first = f->parts[0].sensor;

	if (!first->is.has_part || !s->is.has_part || strcmp(first->chip, s->chip) != 0 || first->way != s->way ||
	    strcspn(first->label, "0123456789") != strcspn(s->label, "0123456789") ||
	    strncasecmp(first->label, s->label, strcspn(s->label, "0123456789")) != 0)
		return false;
	for (unsigned i = 0; i < f->n; i++)
		if (f->parts[i].sensor->is.part == s->is.part || holds(f->parts[i].sensor, s))
			return false;
	return true;
}

static bool in_schema(const struct schema *s, const char *name)
{
	for (unsigned i = 0; i < s->n_domains; i++)
		if (strcmp(s->domains[i].name, name) == 0)
			return true;
	return false;
}

/* A chip that counts, before one that averages, before one that tells the power of an instant or of a model. */
static const struct sensor *best_of(const struct sensors *all, const struct sensor *like)
{
	const struct sensor *best = NULL;

	for (unsigned i = 0; i < all->list.n; i++) {
		const struct sensor *s = &all->list.v[i];

		if (same_domain(s, like) && !s->refused && (!best || s->way < best->way))
			best = s;
	}
	return best;
}

static int gather_one(struct sensors *all, struct sensor_feed *f, const struct sensor *s)
{
	char why[120];
	int rc = sensor_feed_add(f, all->root, s, why, sizeof(why));

	if (rc && rc != -ENOMEM)
		find_sensor(all, rc == -EACCES ? ENERGY_DENIED : ENERGY_BROKEN, s, why);
	return rc;
}

/* The parts of the domain of `first`, each read once. A part that does not answer spoils the sum. */
static int gather(struct sensors *all, struct sensor_feed *f, const struct sensor *first)
{
	int rc = gather_one(all, f, first);

	for (unsigned i = 0; i < all->list.n && !rc; i++) {
		const struct sensor *s = &all->list.v[i];

		if (s != first && same_domain(s, first) && is_other_part(f, s))
			rc = gather_one(all, f, s);
	}
	if (!rc || rc == -ENOMEM)
		return rc;
	for (unsigned i = 0; i < all->list.n; i++) {
		struct sensor *s = &all->list.v[i];

		s->refused |= same_domain(s, first) && s->way == first->way && strcmp(s->chip, first->chip) == 0;
	}
	sensor_feed_free(f);
	return rc;
}

static void find_unused(struct sensors *all, const struct sensor_feed *f)
{
	const struct sensor *first = f->parts[0].sensor;

	for (unsigned i = 0; i < all->list.n; i++) {
		const struct sensor *s = &all->list.v[i];
		bool used = s->refused || !same_domain(s, first);

		for (unsigned k = 0; k < f->n; k++)
			used |= f->parts[k].sensor == s;
		if (!used)
			find_sensor(all, ENERGY_ABSENT, s, "told by another sensor already; not used");
	}
}

static void describe(struct sensors *all, struct schema *s, const struct sensor_feed *f, const char *name)
{
	const struct sensor *first = f->parts[0].sensor;
	struct domain_desc *d = &s->domains[s->n_domains];
	char more[24] = "", text[300];

	*d = (struct domain_desc){ .kind = first->is.kind,
				   .package = first->is.package,
				   .interface = first->interface };
	snprintf(d->name, sizeof(d->name), "%s", name);
	if (f->n > 1)
		snprintf(more, sizeof(more), " and %u more", f->n - 1);
	snprintf(text, sizeof(text), "%s of %s %s (%s%s%s)%s; RAPL has no such domain", sensor_way_text(first->way),
		 first->place, first->file, first->chip, *first->label ? ": " : "", first->label, more);
	text_escape(d->reason, sizeof(d->reason), text);
	find(all, ENERGY_OK, "%s: %s", name, text);
	all->domain[all->n++] = (uint16_t)s->n_domains++;
	if (d->package >= s->n_packages)
		s->n_packages = d->package + 1u;
}

static int add_domain(struct sensors *all, struct schema *s, const struct sensor *like)
{
	const struct sensor *first;
	char name[64];
	int rc = -ENODEV;

	if (in_schema(s, named(like, name))) {
		find_sensor(all, ENERGY_ABSENT, like, "told by RAPL already; not used");
		return 0;
	}
	if (s->n_domains == SCHEMA_MAX_DOMAINS) {
		find_sensor(all, ENERGY_ABSENT, like, "not used: there are too many domains");
		return 0;
	}
	while (rc && rc != -ENOMEM && (first = best_of(all, like)))
		rc = gather(all, &all->feeds[all->n], first);
	if (!rc) {
		describe(all, s, &all->feeds[all->n], name);
		find_unused(all, &all->feeds[all->n - 1]);
	}
	return rc == -ENOMEM ? rc : 0;
}

/* Each domain once, with the first of its sensors. */
static int add_domains(struct sensors *all, struct schema *s)
{
	int rc = 0;

	for (unsigned i = 0; i < all->list.n && !rc; i++) {
		bool seen = false;

		for (unsigned k = 0; k < i; k++)
			seen |= same_domain(&all->list.v[k], &all->list.v[i]);
		if (!seen)
			rc = add_domain(all, s, &all->list.v[i]);
	}
	for (unsigned i = 0; i < all->list.n_unknown && i < sizeof(all->list.unknown) / sizeof(all->list.unknown[0]);
	     i++)
		find(all, ENERGY_ABSENT, "%s: of no domain known here; name it in meters: to use it",
		     all->list.unknown[i]);
	if (all->list.cut)
		find(all, ENERGY_ABSENT, "more than %d files tell energy; the rest is not used", SENSORS_MAX);
	return rc;
}

int sensors_open(const struct fsroot *root, struct schema *s, struct sensors **ret, struct err *err)
{
	struct sensors *all = calloc(1, sizeof(*all));
	unsigned before = s->n_domains;
	int rc = -ENOMEM;

	*ret = NULL;
	if (all) {
		all->root = root;
		pthread_mutex_init(&all->lock, NULL);
		rc = sensor_list_find(root, &all->list);
	}
	if (!rc)
		rc = add_domains(all, s);
	if (rc) {
		s->n_domains = before;
		sensors_close(all);
		return err_set(err, rc, "energy sensors: out of memory; free some");
	}
	sensors_step(all, clock_mono_ns(), clock_boot_ns());
	*ret = all;
	return 0;
}

/* Only the thread writes to the feeds, so that they are read without the lock, which the measuring thread would miss. */
uint64_t sensors_step(struct sensors *all, uint64_t now_ns, uint64_t boot_ns)
{
	uint64_t next = NS_PER_S;

	for (unsigned i = 0; i < all->n; i++) {
		struct sensor_feed *f = &all->feeds[i];
		struct reading_domain d;
		char text[sizeof(f->warning)];

		if (now_ns >= f->due_ns) {
			sensor_feed_read(f, all->root, now_ns, boot_ns);
			sensor_feed_publish(f, &d);
			memcpy(text, f->warning, sizeof(text));
			f->warning[0] = '\0';
			pthread_mutex_lock(&all->lock);
			all->published[i] = d;
			if (*text)
				rapl_warn(&all->warnings, "%s", text);
			pthread_mutex_unlock(&all->lock);
		}
		if (f->due_ns - now_ns < next)
			next = f->due_ns - now_ns;
	}
	return next;
}

static uint64_t step(void *ctx)
{
	return sensors_step(ctx, clock_mono_ns(), clock_boot_ns());
}

int sensors_start(struct sensors *all)
{
	return all && all->n ? pacer_start("sensors", step, all, &all->pacer) : 0;
}

void sensors_read(struct sensors *all, struct reading *r)
{
	if (!all || pthread_mutex_trylock(&all->lock) != 0)
		return;
	for (unsigned i = 0; i < all->n; i++) {
		struct reading_domain *d = &r->domains[all->domain[i]];

		*d = all->published[i];
		d->stale |= r->mono_ns > d->time_ns + all->feeds[i].longest_ns;
	}
	pthread_mutex_unlock(&all->lock);
}

bool sensors_next_warning(struct sensors *all, char *ret_text, size_t size)
{
	struct rapl_warnings *w;
	bool any;

	if (!all || pthread_mutex_trylock(&all->lock) != 0)
		return false;
	w = &all->warnings;
	any = w->n > 0;
	if (any) {
		snprintf(ret_text, size, "%s", w->text[w->first]);
		w->first = (w->first + 1) % RAPL_MAX_WARNINGS;
		w->n--;
	}
	pthread_mutex_unlock(&all->lock);
	return any;
}

bool sensors_cover_cpus(const struct schema *s)
{
	for (unsigned i = 0; i < s->n_domains; i++)
		if (s->domains[i].kind == DOMAIN_PACKAGE || s->domains[i].kind == DOMAIN_PSYS ||
		    s->domains[i].kind == DOMAIN_CORE)
			return true;
	return false;
}

void sensors_close(struct sensors *all)
{
	if (!all)
		return;
	pacer_stop(all->pacer);
	for (unsigned i = 0; i < SCHEMA_MAX_DOMAINS; i++)
		sensor_feed_free(&all->feeds[i]);
	sensor_list_free(&all->list);
	pthread_mutex_destroy(&all->lock);
	free(all);
}
