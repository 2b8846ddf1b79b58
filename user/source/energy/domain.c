/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/text.h"
#include "domain.h"

const char *energy_state_name(enum energy_state s)
{
	static const char *const names[] = { "ok", "absent", "denied", "broken" };

	return (unsigned)s < sizeof(names) / sizeof(names[0]) ? names[s] : "?";
}

unsigned energy_source_probes(const struct energy_source *e, const struct energy_probe **ret)
{
	*ret = e->probes;
	return e->n;
}

enum energy_state energy_source_state(const struct energy_source *e, const char **ret_reason)
{
	*ret_reason = e->reason;
	return e->state;
}

const char *energy_source_note(const struct energy_source *e, unsigned i)
{
	return i < e->n_notes ? e->notes[i] : NULL;
}

/* Zone and event names come from outside, so they are escaped here, for every place that shows them. */
static void __attribute__((format(printf, 3, 0))) set_text(char *dst, size_t size, const char *fmt, va_list ap)
{
	char text[256];

	vsnprintf(text, sizeof(text), fmt, ap);
	text_escape(dst, size, text);
}

void energy_source_add_note(struct energy_source *e, const char *fmt, ...)
{
	va_list ap;

	if (e->n_notes == ENERGY_MAX_NOTES)
		return;
	va_start(ap, fmt);
	set_text(e->notes[e->n_notes], sizeof(e->notes[0]), fmt, ap);
	va_end(ap);
	e->n_notes++;
}

void energy_source_set(struct energy_source *e, enum energy_state state, const char *fmt, ...)
{
	va_list ap;

	e->state = state;
	va_start(ap, fmt);
	set_text(e->reason, sizeof(e->reason), fmt, ap);
	va_end(ap);
}

void energy_probe_set(struct energy_probe *p, enum energy_state state, const char *fmt, ...)
{
	va_list ap;

	p->state = state;
	va_start(ap, fmt);
	set_text(p->reason, sizeof(p->reason), fmt, ap);
	va_end(ap);
}

/* psys of package 0 has no number, as in powercap (intel_rapl_common.c, rapl_init_domains). */
void energy_domain_name(char *name, size_t size, enum domain_kind kind, unsigned package, int die)
{
	if (kind == DOMAIN_PSYS && package == 0)
		snprintf(name, size, "psys");
	else if (die == ENERGY_NO_DIE)
		snprintf(name, size, "%s-%u", domain_kind_name(kind), package);
	else
		snprintf(name, size, "%s-%u-die-%d", domain_kind_name(kind), package, die);
}

struct energy_probe *energy_source_add(struct energy_source *e, enum domain_kind kind, unsigned package, int die)
{
	struct energy_probe *p = &e->probes[e->n];
	char name[sizeof(p->name)];

	energy_domain_name(name, sizeof(name), kind, package, die);
	for (unsigned i = 0; i < e->n; i++) {
		if (strcmp(e->probes[i].name, name) == 0) {
			energy_source_add_note(e, "%s: found twice; the second one is not used", name);
			return NULL;
		}
	}
	if (e->n == SCHEMA_MAX_DOMAINS) {
		energy_source_add_note(e, "%s: more than %d domains; not used", name, SCHEMA_MAX_DOMAINS);
		return NULL;
	}
	*p = (struct energy_probe){ .kind = kind,
				    .package = (uint16_t)package,
				    .state = ENERGY_OK,
				    .die = (uint16_t)(die == ENERGY_NO_DIE ? 0 : die),
				    .has_die = die != ENERGY_NO_DIE,
				    .uj_num = 1,
				    .uj_den = 1,
				    .cpu = -1,
				    .parts = 1 };
	memcpy(p->name, name, sizeof(name));
	e->n++;
	return p;
}

void energy_source_settle(struct energy_source *e)
{
	static const enum energy_state order[] = { ENERGY_OK, ENERGY_DENIED, ENERGY_BROKEN, ENERGY_ABSENT };

	for (unsigned s = 0; s < sizeof(order) / sizeof(order[0]); s++) {
		for (unsigned i = 0; i < e->n; i++) {
			if (e->probes[i].state != order[s])
				continue;
			e->state = order[s];
			memcpy(e->reason, e->probes[i].reason, sizeof(e->reason));
			return;
		}
	}
}

bool energy_per_socket(const struct cpu_model *m)
{
	return strcmp(m->vendor, "AuthenticAMD") == 0 || strcmp(m->vendor, "HygonGenuine") == 0;
}

int energy_die_of(const struct schema *s, const struct cpu_model *m, const struct cpu_desc *c)
{
	if (energy_per_socket(m))
		return ENERGY_NO_DIE;
	for (unsigned i = 0; i < s->n_cpus; i++) {
		const struct cpu_desc *o = &s->cpus[i];

		if (o->present && o->package == c->package && o->die != c->die)
			return c->die;
	}
	return ENERGY_NO_DIE;
}
