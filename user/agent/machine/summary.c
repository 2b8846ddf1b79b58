/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine measures and what it does not, in one line at the start. The reasons are for -v and the doctor. */
#include "base/log.h"
#include "machine.h"

struct list {
	struct buf *out;
	const char *before; /* what stands before the next name */
};

static void add(struct list *l, const char *name)
{
	buf_add_str(l->out, l->before);
	buf_add_str(l->out, name);
	l->before = ", ";
}

static void add_events(struct list *l, const struct event_set *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->ev[i].kind == EVENT_PERF || event_of_switches(set->ev[i].kind))
			add(l, set->ev[i].name);
}

/* "energy of package-0 (powercap), ..."; names of domains that follow each other share an interface. */
static void add_energy(struct list *l, const struct machine *m)
{
	const struct schema *s = &m->schema;

	if (m->estimate || !s->n_domains)
		return;
	add(l, "energy of ");
	for (unsigned i = 0; i < s->n_domains; i++) {
		bool last = i + 1 == s->n_domains || s->domains[i + 1].interface != s->domains[i].interface;

		buf_printf(l->out, "%s%s", i ? ", " : "", s->domains[i].name);
		if (last)
			buf_printf(l->out, " (%s)", energy_interface_name(s->domains[i].interface));
	}
}

static void add_absent(struct list *l, const struct absent_events *absent)
{
	for (unsigned i = 0; i < absent->n; i++)
		add(l, absent->ev[i].name);
}

/* "measured here: ...; not measured: ...", with a NUL. */
static void summarise(const struct machine *m, struct buf *ret)
{
	struct list l = { ret, "measured here: " };

	if (m->counters || m->cpustat)
		add(&l, "CPU time");
	add_events(&l, &m->schema.core);
	add_events(&l, &m->schema.msr);
	if (m->network)
		add(&l, "network bytes");
	if (m->block)
		add(&l, "block device bytes");
	add_energy(&l, m);
	if (m->estimate)
		buf_printf(ret,
			   "%sestimated: energy, from CPU time with %g W idle to %g W for a core "
			   "(estimate-idle-watts, estimate-max-watts)",
			   *l.before == ',' ? "; " : "", m->estimate_idle_watts, m->estimate_max_watts);
	l.before = ret->len ? "; not measured: " : "not measured: ";
	if (!m->counters && !m->cpustat)
		add(&l, "CPU time");
	if (!m->schema.n_domains)
		add(&l, "energy");
	add_absent(&l, &m->absent_core);
	add_absent(&l, &m->absent_msr);
	if (*l.before == ',')
		buf_add_str(ret, "; -v or jouled doctor says why");
	buf_add_char(ret, '\0');
}

static void say_absent(const struct absent_events *absent)
{
	for (unsigned i = 0; i < absent->n; i++)
		log_info("event %s is left out: %s", absent->ev[i].name, absent->ev[i].reason);
}

void machine_say_summary(const struct machine *m)
{
	struct buf text = { 0 };

	summarise(m, &text);
	if (!text.failed)
		log_note("%s", (const char *)text.data);
	buf_free(&text);
	say_absent(&m->absent_core);
	say_absent(&m->absent_msr);
	for (unsigned i = 0; i < m->schema.core.n; i++)
		if (m->schema.core.ev[i].kind == EVENT_TASK_CLOCK && *m->schema.core.ev[i].reason)
			log_info("event %s: %s", m->schema.core.ev[i].name, m->schema.core.ev[i].reason);
	for (unsigned i = 0; i < m->schema.n_domains; i++)
		log_info("energy of %s: %s", m->schema.domains[i].name, m->schema.domains[i].reason);
	if (!m->schema.n_domains)
		log_info("energy: no counter on this machine, and estimate is off; counters only");
}
