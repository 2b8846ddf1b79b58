/* SPDX-License-Identifier: Apache-2.0 */
/* What the status says of the sources: each by name, with its state and why it is so. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "serving_internal.h"

#define FACTS_MAX (SCHEMA_MAX_DOMAINS + 4 * SCHEMA_MAX_EVENTS + 8)

struct facts {
	struct serve_source *v;
	unsigned n;
};

static void add(struct facts *f, const char *name, const char *state, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void add(struct facts *f, const char *name, const char *state, const char *fmt, ...)
{
	struct serve_source *s = &f->v[f->n];
	va_list ap;

	if (f->n == FACTS_MAX)
		return;
	f->n++;
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->state, sizeof(s->state), "%s", state);
	va_start(ap, fmt);
	vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
	va_end(ap);
}

static void add_domains(struct facts *f, const struct schema *s)
{
	char name[80];

	for (unsigned i = 0; i < s->n_domains; i++) {
		const struct domain_desc *d = &s->domains[i];

		snprintf(name, sizeof(name), "energy %s", d->name);
		add(f, name, d->interface == ENERGY_ESTIMATE ? "estimated" : "ok", "%s: %s",
		    energy_interface_name(d->interface), d->reason);
	}
	if (!s->n_domains)
		add(f, "energy", "absent", "no source of energy; see jouled doctor");
}

static void add_events(struct facts *f, const char *group, const struct event_set *set,
		       const struct absent_events *absent)
{
	char name[80];

	for (unsigned i = 0; i < set->n; i++) {
		snprintf(name, sizeof(name), "%s %.60s", group, set->ev[i].name);
		add(f, name, "ok", "%s%s%s", set->ev[i].kind == EVENT_TASK_CLOCK ? "CPU time" : "perf",
		    *set->ev[i].reason ? ": " : "", set->ev[i].reason);
	}
	for (unsigned i = 0; i < absent->n; i++) {
		snprintf(name, sizeof(name), "%s %.60s", group, absent->ev[i].name);
		add(f, name, "absent", "%s", absent->ev[i].reason);
	}
}

struct serve_source *serving_sources(const struct machine *m, unsigned *ret_n)
{
	struct facts f = { .v = calloc(FACTS_MAX, sizeof(*f.v)) };

	if (!f.v || !ret_n) {
		free(f.v);
		return NULL;
	}
	add(&f, "trigger", m->counters || m->cpustat ? "ok" : "absent", "%s, clock %s", m->schema.trigger,
	    m->schema.clock);
	if (m->have_hierarchy)
		add(&f, "hierarchy", "ok", "%s at %.150s", m->hierarchy.v2 ? "v2" : "v1 perf_event",
		    m->hierarchy.mount);
	else
		add(&f, "hierarchy", "absent", "no cgroup hierarchy is accounted");
	add(&f, "lifecycle", m->lifecycle && lifecycle_fd(m->lifecycle) >= 0 ? "ok" : "absent",
	    m->lifecycle && lifecycle_fd(m->lifecycle) >= 0 ? "births and ends as they happen" :
							      "cgroups are looked for at each reading");
	add(&f, "network", m->network ? "ok" : "absent",
	    m->network ? "bytes and packets per cgroup" : "not counted; see jouled doctor");
	add(&f, "spans", m->spans ? "ok" : "absent",
	    m->spans ? "processes and functions, with energy" :
		       "nobody asked (spans: in the configuration), or the log says why");
	add_events(&f, "core", &m->schema.core, &m->absent_core);
	add_events(&f, "msr", &m->schema.msr, &m->absent_msr);
	add_domains(&f, &m->schema);
	*ret_n = f.n;
	return f.v;
}
