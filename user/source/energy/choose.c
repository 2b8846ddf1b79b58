/* SPDX-License-Identifier: Apache-2.0 */
/* Per domain, the first of powercap, perf and msr that answers is taken. A domain that a better interface denies or
 * cannot read, and no other interface gives, is a warning and not a domain. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "domain.h"
#include "rapl.h"

/* Twice the largest thermal design power sold for a socket (500 W). */
#define PACKAGE_WATTS 1000.0
#define CORE_PART_DIV 8 /* a physical core of its own counter */

/* Most power that a domain, or one of its parts, can draw, W: larger values are not believed. */
static double rapl_watts_bound(const struct rapl_options *o, const struct schema *s, const struct energy_probe *p)
{
	double watts = o->max_watts > 0 ? o->max_watts : PACKAGE_WATTS;

	if (p->kind == DOMAIN_PSYS) /* the whole board, all sockets */
		return 2 * watts * (s->n_packages ? s->n_packages : 1);
	return p->parts > 1 ? watts / CORE_PART_DIV : watts;
}

static const struct energy_probe *find(const struct rapl *rp, unsigned source, const char *name, unsigned *ret_index)
{
	const struct energy_probe *p;
	unsigned n = rp->ops[source]->probes(rp->src[source], &p);

	for (unsigned i = 0; i < n; i++) {
		if (strcmp(p[i].name, name) == 0) {
			*ret_index = i;
			return &p[i];
		}
	}
	return NULL;
}

/* perf opens psys on every package and cannot tell one that has none, while powercap leaves out a domain that reads
 * 0 (rapl_check_domain): where powercap has a psys, its list is the right one. */
static bool overruled(const struct rapl *rp, unsigned source, const struct energy_probe *p)
{
	const struct energy_probe *o;
	unsigned n, unused;

	if (p->kind != DOMAIN_PSYS || rp->ops[source]->interface == ENERGY_POWERCAP)
		return false;
	for (unsigned s = 0; s < source; s++) {
		if (rp->ops[s]->interface != ENERGY_POWERCAP || find(rp, s, p->name, &unused))
			continue;
		n = rp->ops[s]->probes(rp->src[s], &o);
		for (unsigned i = 0; i < n; i++) {
			if (o[i].kind == DOMAIN_PSYS)
				return true;
		}
	}
	return false;
}

/* First source from `from` on with that domain in state ok; n_sources = none. */
static unsigned next_ok(const struct rapl *rp, const char *name, unsigned from, unsigned *ret_index)
{
	unsigned s;

	for (s = from; s < rp->n_sources; s++) {
		const struct energy_probe *p = find(rp, s, name, ret_index);

		if (p && p->state == ENERGY_OK && !overruled(rp, s, p))
			break;
	}
	return s;
}

/* "powercap denied: ..." for every interface before `until` that does not give the domain. */
static void explain(const struct rapl *rp, const char *name, unsigned until, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned s = 0; s < until && len < size; s++) {
		const char *reason;
		unsigned i;
		const struct energy_probe *p = find(rp, s, name, &i);
		enum energy_state state = rp->ops[s]->state(rp->src[s], &reason);

		if (p) {
			state = p->state;
			reason = state == ENERGY_OK ? "set rapl: auto to take it" : p->reason;
		} else if (state == ENERGY_OK) {
			state = ENERGY_ABSENT;
			reason = "it has no such domain";
		}
		len += (size_t)snprintf(text + len, size - len, "%s%s %s: %s", len ? "; " : "",
					energy_interface_name(rp->ops[s]->interface), energy_state_name(state), reason);
	}
}

static void describe(const struct rapl *rp, const struct energy_probe *p, unsigned source, struct domain_desc *d)
{
	const char *chosen = energy_interface_name(rp->ops[source]->interface);
	char why[512];

	*d = (struct domain_desc){ .kind = p->kind,
				   .package = p->package,
				   .die = p->die,
				   .has_die = p->has_die,
				   .interface = rp->ops[source]->interface };
	memcpy(d->name, p->name, sizeof(d->name));
	explain(rp, p->name, source, why, sizeof(why));
	if (rp->options.mode != RAPL_AUTO)
		snprintf(d->reason, sizeof(d->reason), "configured: %s", chosen);
	else if (source == 0)
		snprintf(d->reason, sizeof(d->reason), "%s is the first that answers", chosen);
	else
		snprintf(d->reason, sizeof(d->reason), "%s answers; %.160s", chosen, why);
}

static bool known(const struct rapl *rp, const struct schema *s, unsigned first, const char *name)
{
	for (unsigned i = first; i < s->n_domains; i++) {
		if (strcmp(s->domains[i].name, name) == 0)
			return true;
	}
	return false;
}

static int feed_from(struct rapl *rp, const struct schema *s, unsigned source, unsigned index, struct rapl_feed *ret)
{
	const struct energy_probe *p;

	rp->ops[source]->probes(rp->src[source], &p);
	return rapl_feed_init(ret, rp->ops[source], rp->src[source], index,
			      rapl_watts_bound(&rp->options, s, &p[index]));
}

/* Another interface of the same counter, the first that answers. */
static int add_check(struct rapl *rp, const struct schema *s, const char *name, unsigned source, struct rapl_feed *ret)
{
	unsigned index, other = next_ok(rp, name, 0, &index);

	if (other == source)
		other = next_ok(rp, name, source + 1, &index);
	if (other < rp->n_sources)
		return feed_from(rp, s, other, index, ret);
	rapl_warn(&rp->warnings, "%s: cross-check: no second interface gives it; not checked", name);
	return 0;
}

/* p: the domain as any interface shows it; source and index: the probe that answers. */
static int add_domain(struct rapl *rp, struct schema *s, const struct energy_probe *p, unsigned source, unsigned index)
{
	struct rapl_domain *d = &rp->domains[rp->n_domains];
	int rc;

	if (s->n_domains == SCHEMA_MAX_DOMAINS) {
		rapl_warn(&rp->warnings, "%s: more than %d domains; not used", p->name, SCHEMA_MAX_DOMAINS);
		return 0;
	}
	rc = feed_from(rp, s, source, index, &d->feed);
	if (rc)
		return rc;
	rp->n_domains++;
	describe(rp, p, source, &s->domains[s->n_domains++]);
	if (p->package >= s->n_packages)
		s->n_packages = p->package + 1u;
	return rp->options.cross_check ? add_check(rp, s, p->name, source, &d->other) : 0;
}

bool rapl_wanted(const struct rapl *rp, unsigned source)
{
	static const enum energy_interface only[] = {
		[RAPL_POWERCAP] = ENERGY_POWERCAP,
		[RAPL_PERF] = ENERGY_PERF,
		[RAPL_MSR] = ENERGY_MSR,
		[RAPL_NONE] = ENERGY_NONE,
	};

	return rp->options.mode == RAPL_AUTO || rp->ops[source]->interface == only[rp->options.mode];
}

/* Warns once of a domain that no interface gives, when it exists and is denied or broken. */
static void say_missing(struct rapl *rp, const struct energy_probe *p, unsigned source)
{
	char why[RAPL_WARNING_SIZE - 80];
	unsigned unused;

	if (p->state != ENERGY_DENIED && p->state != ENERGY_BROKEN)
		return;
	for (unsigned i = 0; i < source; i++) {
		const struct energy_probe *o = rapl_wanted(rp, i) ? find(rp, i, p->name, &unused) : NULL;

		if (o && (o->state == ENERGY_DENIED || o->state == ENERGY_BROKEN))
			return;
	}
	explain(rp, p->name, rp->n_sources, why, sizeof(why));
	rapl_warn(&rp->warnings, "%s: not measured: %s", p->name, why);
}

static int choose_from(struct rapl *rp, struct schema *s, unsigned source, unsigned first)
{
	const struct energy_probe *p;
	unsigned n = rp->ops[source]->probes(rp->src[source], &p);
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		unsigned index = i, from = source;

		if (known(rp, s, first, p[i].name) || overruled(rp, source, &p[i]))
			continue;
		if (p[i].state != ENERGY_OK)
			from = rp->options.mode == RAPL_AUTO ? next_ok(rp, p[i].name, source + 1, &index) :
							       rp->n_sources;
		if (from < rp->n_sources)
			rc = add_domain(rp, s, &p[i], from, index);
		else
			say_missing(rp, &p[i], source);
	}
	return rc;
}

static unsigned rank(const struct domain_desc *d)
{
	return (d->package * 65536u + d->die) * DOMAIN_KINDS + d->kind;
}

/* Sorts by package, die, kind, because zone numbers and event lists have an order of their own. */
static void sort_domains(struct rapl *rp, struct schema *s, unsigned first)
{
	for (unsigned i = 1; i < rp->n_domains; i++) {
		struct domain_desc desc = s->domains[first + i];
		struct rapl_domain domain = rp->domains[i];
		unsigned j;

		for (j = i; j > 0 && rank(&s->domains[first + j - 1]) > rank(&desc); j--) {
			s->domains[first + j] = s->domains[first + j - 1];
			rp->domains[j] = rp->domains[j - 1];
		}
		s->domains[first + j] = desc;
		rp->domains[j] = domain;
	}
	for (unsigned i = 0; i < rp->n_domains; i++)
		rp->domains[i].schema_index = first + i;
}

static bool any_package(const struct rapl *rp)
{
	for (unsigned i = 0; i < rp->n_sources; i++)
		for (unsigned j = 0; j < rp->src[i]->n; j++)
			if (rp->src[i]->probes[j].kind == DOMAIN_PACKAGE && rp->src[i]->probes[j].state == ENERGY_OK)
				return true;
	return false;
}

/* Every part of the counter reads 0. One that cannot be read is not judged here. */
static bool reads_zero(const struct rapl *rp, unsigned source, unsigned index)
{
	for (unsigned part = 0; part < rp->src[source]->probes[index].parts; part++) {
		uint64_t units;

		if (rp->ops[source]->read(rp->src[source], index, part, &units) || units)
			return false;
	}
	return true;
}

/* The kernel offers perf's psys by the CPU model, without a look at its register (arch/x86/events/rapl.c, no_check); a
 * virtual machine of such a model has a psys that never counts, and no package. A real one moves every millisecond. */
static void refuse_dead_psys(struct rapl *rp)
{
	const struct timespec look = { .tv_nsec = 20 * NS_PER_MS };

	if (any_package(rp))
		return;
	for (unsigned i = 0; i < rp->n_sources; i++) {
		for (unsigned j = 0; j < rp->src[i]->n; j++) {
			struct energy_probe *p = &rp->src[i]->probes[j];

			if (p->kind != DOMAIN_PSYS || p->state != ENERGY_OK || !reads_zero(rp, i, j))
				continue;
			nanosleep(&look, NULL);
			if (reads_zero(rp, i, j))
				energy_probe_set(
					p, ENERGY_BROKEN,
					"it counts nothing and there is no package; a hypervisor that passes no "
					"energy counters on shows such a one");
		}
		energy_source_settle(rp->src[i]);
	}
}

int rapl_choose(struct rapl *rp, struct schema *s)
{
	unsigned first = s->n_domains;
	int rc = 0;

	refuse_dead_psys(rp);
	for (unsigned i = 0; i < rp->n_sources && !rc; i++) {
		if (rapl_wanted(rp, i))
			rc = choose_from(rp, s, i, first);
	}
	sort_domains(rp, s, first);
	return rc;
}
