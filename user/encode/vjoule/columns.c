/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers: dense from 0, what belongs to the machine alone first, then the metrics of cgroups.
 * A metric whose event this machine does not count is filled by the nearest one, and noted. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include "../model/event_find.h"
#include "vjoule.h"

#define ROW_OFFSET(field) offsetof(struct snap_row, field)
#define TIME "TASK_CLOCK"

void vjoule_note(struct encoder *e, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_add(&e->notes, text, strlen(text) + 1);
}

static struct vjoule_column *add_column(struct encoder *e, const char *name, enum vjoule_kind kind, unsigned index)
{
	struct vjoule_column *c = &e->columns[e->n_columns++];

	*c = (struct vjoule_column){ .kind = kind, .index = index };
	memcpy(c->name, name, strnlen(name, sizeof(c->name) - 1));
	c->offset = kind == VJOULE_CORE ? ROW_OFFSET(counters) + index * sizeof(uint64_t) : ROW_OFFSET(time_ns);
	return c;
}

/* What a name asks for, taken apart at the first '=': the formula's name and our event. */
struct wanted {
	char name[SCHEMA_NAME_MAX];
	const char *event;
};

static int take_apart(const char *text, struct wanted *w, struct err *err)
{
	size_t len = strcspn(text, "=");

	if (!len || len >= sizeof(w->name) || (text[len] && !text[len + 1]))
		return err_set(err, -EINVAL,
			       "metrics: \"%s\" is no metric; write NAME or NAME=EVENT, the name shorter than %d bytes",
			       text, SCHEMA_NAME_MAX);
	memcpy(w->name, text, len);
	w->name[len] = '\0';
	w->event = text[len] ? text + len + 1 : text;
	return 0;
}

static int find_event(const struct event_set *set, const char *name)
{
	for (unsigned i = 0; i < set->n; i++)
		if (!strcasecmp(set->ev[i].name, name))
			return (int)i;
	return -1;
}

static int find_task_clock(const struct event_set *set)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->ev[i].kind == EVENT_TASK_CLOCK)
			return (int)i;
	return -1;
}

/* The event, another name of it, cycles: index in the set, -1 = only time is left, or asked for. */
static int nearest(const struct event_set *set, const char *event)
{
	int found = find_event(set, event);

	if (found < 0 && event_is_misses(event))
		found = event_find_misses(set);
	if (found < 0 && strcasecmp(event, TIME) != 0)
		found = event_find_cycles(set);
	return found < 0 ? find_task_clock(set) : found;
}

static void add_metric(struct encoder *e, const struct wanted *w)
{
	const struct event_set *set = &e->schema->core;
	int i = nearest(set, w->event);
	bool time = i < 0 || set->ev[i].kind == EVENT_TASK_CLOCK;
	const char *from = i < 0 ? TIME : set->ev[i].name;

	add_column(e, w->name, time ? VJOULE_TIME : VJOULE_CORE, time ? 0 : (unsigned)i);
	if (strcasecmp(from, w->event) != 0)
		vjoule_note(e, "metric %s: %s stands in, the nearest that this machine counts", w->name, from);
}

static bool has_column(const struct encoder *e, unsigned from, const char *name)
{
	for (unsigned i = from; i < e->n_columns; i++)
		if (!strcmp(e->columns[i].name, name))
			return true;
	return false;
}

static int add_wanted(struct encoder *e, char *const *metrics, unsigned n, struct err *err)
{
	for (unsigned i = 0; i < n; i++) {
		struct wanted w;
		int code = take_apart(metrics[i], &w, err);

		if (code)
			return code;
		if (vjoule_metrics(e) == VJOULE_METRICS)
			return err_set(err, -E2BIG, "metrics: more than %d; leave some out", VJOULE_METRICS);
		if (has_column(e, e->n_machine, w.name))
			return err_set(err, -EINVAL, "metrics: %s stands there twice; remove one", w.name);
		add_metric(e, &w);
	}
	return 0;
}

static void add_configured(struct encoder *e)
{
	const struct event_set *core = &e->schema->core;

	for (unsigned i = 0; i < core->n; i++)
		add_column(e, core->ev[i].name, core->ev[i].kind == EVENT_TASK_CLOCK ? VJOULE_TIME : VJOULE_CORE, i);
	if (!core->n)
		add_column(e, TIME, VJOULE_TIME, 0);
}

/* Will a cgroup metric have this name? It is a system metric then anyway. */
static bool is_wanted(const struct encoder *e, const struct encode_options *o, const char *name)
{
	for (unsigned i = 0; i < o->n_metrics; i++) {
		size_t len = strcspn(o->metrics[i], "=");

		if (strlen(name) == len && !memcmp(name, o->metrics[i], len))
			return true;
	}
	for (unsigned i = 0; !o->n_metrics && i < e->schema->core.n; i++)
		if (!strcmp(name, e->schema->core.ev[i].name))
			return true;
	return false;
}

static void add_machine(struct encoder *e, const struct encode_options *o)
{
	const struct schema *s = e->schema;
	bool package = false;

	for (unsigned i = 0; i < s->n_domains; i++)
		package |= s->domains[i].kind == DOMAIN_PACKAGE;
	if (package && !is_wanted(e, o, "RAPL_ENERGY_PKG"))
		add_column(e, "RAPL_ENERGY_PKG", VJOULE_RAPL, 0);
	for (unsigned i = 0; i < s->msr.n; i++)
		if (!is_wanted(e, o, s->msr.ev[i].name))
			add_column(e, s->msr.ev[i].name, VJOULE_MSR, i);
	e->n_machine = e->n_columns;
}

int vjoule_columns(struct encoder *e, const struct encode_options *o, struct err *err)
{
	/* what the released formulas look for, by these very names */
	static char cycles[] = "PERF_COUNT_HW_CPU_CYCLES", misses[] = "LLC_MISSES";
	static char *const v02[] = { cycles, misses };

	if (e->dialect == VJOULE_DOCUMENT)
		add_machine(e, o);
	if (o->n_metrics)
		return add_wanted(e, o->metrics, o->n_metrics, err);
	if (e->dialect == VJOULE_V02)
		return add_wanted(e, v02, 2, err);
	add_configured(e);
	return 0;
}
