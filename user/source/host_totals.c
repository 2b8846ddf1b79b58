/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/clock.h"
#include "host_internal.h"

/* No machine's share is larger: 10 kW a domain, in uJ per ns. It bounds what a broken host can make us believe. */
#define MAX_UJ_PER_NS 10.0
#define ESTIMATES (QUALITY_ESTIMATED | QUALITY_MULTIPLEXED)
/* Lines that waited while this machine stood still come at once: their time is the host's word, up to this much. */
#define AHEAD_NS (86400 * NS_PER_S)

static const struct share_domain *find(const struct share *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->domains[i].name, name) == 0)
			return &s->domains[i];
	return NULL;
}

/* What a line says of its interval holds for that of the line which takes its place too. */
static void pass_over(const struct share *old, struct share *next)
{
	for (unsigned i = 0; i < next->n && old->epoch == next->epoch; i++) {
		struct share_domain *d = &next->domains[i];
		const struct share_domain *o = find(old, d->name);
		unsigned both = o ? o->quality | d->quality : 0;

		if (!o)
			continue;
		d->quality |= o->quality & ESTIMATES;
		if (both & (QUALITY_PARTIAL | QUALITY_LOST))
			d->quality |= QUALITY_PARTIAL;
		if (!(o->quality & (QUALITY_STALE | QUALITY_LOST)))
			d->quality &= ~(unsigned)(QUALITY_STALE | QUALITY_LOST);
	}
}

static void take_line(struct host_lines *l, struct share *ret, bool *ret_any)
{
	struct share next;

	if (share_read(l->text, l->used, &next) != 0)
		return;
	if (*ret_any)
		pass_over(ret, &next);
	*ret = next;
	*ret_any = true;
}

void host_lines_add(struct host_lines *l, const char *data, size_t n, struct share *ret, bool *ret_any)
{
	while (n) {
		const char *end = memchr(data, '\n', n);
		size_t len = end ? (size_t)(end - data) : n;

		l->skip |= len > SHARE_LINE_MAX - l->used;
		if (!l->skip) {
			memcpy(l->text + l->used, data, len);
			l->used += len;
		}
		if (end) {
			if (!l->skip)
				take_line(l, ret, ret_any);
			l->used = 0;
			l->skip = false;
			len++;
		}
		data += len;
		n -= len;
	}
}

static bool schema_has(const struct schema *schema, const char *name)
{
	for (unsigned i = 0; i < schema->n_domains; i++)
		if (strcmp(schema->domains[i].name, name) == 0)
			return true;
	return false;
}

static void describe(const struct share_domain *d, const char *place, struct domain_desc *ret)
{
	*ret = (struct domain_desc){
		.kind = d->kind, .package = d->package, .die = d->die, .has_die = d->has_die, .interface = ENERGY_HOST
	};
	memcpy(ret->name, d->name, sizeof(ret->name));
	snprintf(ret->reason, sizeof(ret->reason), "%s (host): this machine's share, told at %.120s",
		 d->quality & ESTIMATES ? "estimated" : "measured", place);
}

int host_totals_init(struct host_totals *t, const struct share *s, const char *place, struct schema *schema)
{
	if (s->n > SCHEMA_MAX_DOMAINS - schema->n_domains)
		return -E2BIG;
	for (unsigned i = 0; i < s->n; i++)
		if (schema_has(schema, s->domains[i].name))
			return -EEXIST;
	*t = (struct host_totals){ .n = s->n };
	for (unsigned i = 0; i < s->n; i++) {
		struct host_domain *d = &t->domains[i];

		memcpy(d->name, s->domains[i].name, sizeof(d->name));
		d->column = schema->n_domains;
		d->total.max_units_per_ns = MAX_UJ_PER_NS;
		if (s->domains[i].package >= schema->n_packages)
			schema->n_packages = s->domains[i].package + 1u;
		describe(&s->domains[i], place, &schema->domains[schema->n_domains++]);
	}
	return 0;
}

static void add_domain(struct host_domain *d, const struct share_domain *told, bool anew, uint64_t now_ns,
		       uint64_t boot_ns)
{
	if (anew && d->total.have_prev) {
		d->total.have_prev = false;
		d->anew++;
	}
	energy_accumulate(&d->total, told->uj, now_ns, boot_ns);
	/* A total whose time stands still is stale to whoever differences it; here energy of the line before may not
	 * have been taken yet. */
	if (!(told->quality & (QUALITY_STALE | QUALITY_LOST)) || !d->told_ns)
		d->told_ns = now_ns;
	d->partial += !!(told->quality & (QUALITY_PARTIAL | QUALITY_LOST));
	/* of all lines since the last reading */
	d->estimated = (d->estimated && !d->read) || told->quality & ESTIMATES;
	d->read = false;
}

/* How far the host's time runs ahead of ours with this line: what it tells may have been used in either. */
static void follow_time(struct host_totals *t, const struct share *s, uint64_t boot_ns)
{
	uint64_t here = boot_ns > t->boot_ns ? boot_ns - t->boot_ns : 0, lines = s->number - t->number, more;
	uint64_t there = s->interval_ns && lines > AHEAD_NS / s->interval_ns ? AHEAD_NS : lines * s->interval_ns;

	if (there <= here) {
		t->ahead_ns -= here - there < t->ahead_ns ? here - there : t->ahead_ns;
		return;
	}
	more = there - here < AHEAD_NS - t->ahead_ns ? there - here : AHEAD_NS - t->ahead_ns;
	t->ahead_ns += more;
	t->granted_ns += more;
}

bool host_totals_add(struct host_totals *t, const struct share *s, uint64_t now_ns, uint64_t boot_ns)
{
	bool anew = t->any && s->epoch != t->epoch;

	if (t->any && !anew && s->number <= t->number)
		return false;
	if (t->any && !anew)
		follow_time(t, s, boot_ns);
	for (unsigned i = 0; i < t->n; i++) {
		const struct share_domain *told = find(s, t->domains[i].name);

		if (told)
			add_domain(&t->domains[i], told, anew, now_ns, boot_ns + t->granted_ns);
	}
	t->any = true;
	t->epoch = s->epoch;
	t->number = s->number;
	t->boot_ns = boot_ns;
	return true;
}

void host_totals_read(struct host_totals *t, struct reading *r)
{
	for (unsigned i = 0; i < t->n; i++) {
		struct host_domain *d = &t->domains[i];

		r->domains[d->column] = (struct reading_domain){
			.units = d->total.units,
			.uj_num = 1,
			.uj_den = 1,
			.time_ns = d->told_ns,
			.estimated = d->estimated,
			.resets = d->anew + d->total.resets,
			.dropped = d->partial + d->total.dropped,
		};
		d->read = true;
	}
}
