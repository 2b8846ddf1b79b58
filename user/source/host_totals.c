/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../base/clock.h"
#include "host_internal.h"

/* No machine's share is larger: 10 kW a domain, in uJ per ns. It bounds what a broken host can make us believe. */
#define MAX_UJ_PER_NS 10.0
#define ESTIMATES (QUALITY_ESTIMATED | QUALITY_MULTIPLEXED)

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
			if (!l->skip && share_read(l->text, l->used, ret) == 0)
				*ret_any = true;
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
	*ret = (struct domain_desc){ .kind = d->kind, .package = d->package, .die = d->die, .has_die = d->has_die,
				     .interface = ENERGY_HOST };
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

static const struct share_domain *find(const struct share *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->domains[i].name, name) == 0)
			return &s->domains[i];
	return NULL;
}

static void add_domain(struct host_domain *d, const struct share_domain *told, bool anew, uint64_t now_ns, uint64_t boot_ns)
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
	d->estimated = told->quality & ESTIMATES;
}

bool host_totals_add(struct host_totals *t, const struct share *s, uint64_t now_ns, uint64_t boot_ns)
{
	bool anew = t->any && s->epoch != t->epoch;

	if (t->any && !anew && s->number <= t->number)
		return false;
	for (unsigned i = 0; i < t->n; i++) {
		const struct share_domain *told = find(s, t->domains[i].name);

		if (told)
			add_domain(&t->domains[i], told, anew, now_ns, boot_ns);
	}
	t->any = true;
	t->epoch = s->epoch;
	t->number = s->number;
	return true;
}

void host_totals_read(const struct host_totals *t, struct reading *r)
{
	for (unsigned i = 0; i < t->n; i++) {
		const struct host_domain *d = &t->domains[i];

		r->domains[d->column] = (struct reading_domain){
			.units = d->total.units, .uj_num = 1, .uj_den = 1, .time_ns = d->told_ns, .estimated = d->estimated,
			.resets = d->anew + d->total.resets, .dropped = d->partial + d->total.dropped,
		};
	}
}
