/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the plan of a configuration, and decides which outputs survive a reload. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "plan.h"

#define AWAY_NS NS_PER_S /* how long the end waits for an absent reader */

static void choose_formula(struct plan *p)
{
	const struct formula_config *c = &p->config->formula;
	struct formula_options *o = &p->formula.options;

	p->formula.ops = formula_find(c->name);
	o->idle = strcmp(c->idle, "by-time") == 0  ? IDLE_BY_TIME :
		  strcmp(c->idle, "by-share") == 0 ? IDLE_BY_SHARE :
						     IDLE_OWN;
	o->weight = strcmp(c->weight, "time") == 0                ? WEIGHT_TIME :
		    strcmp(c->weight, "cycles-by-frequency") == 0 ? WEIGHT_CYCLES_BY_FREQUENCY :
								    WEIGHT_CYCLES;
	memcpy(o->idle_watts, c->idle_watts, sizeof(o->idle_watts));
}

static struct group *group_of(struct plan *p, uint64_t interval_ns)
{
	for (unsigned i = 0; i < p->n_groups; i++)
		if (p->groups[i].tap.interval_ns == interval_ns)
			return &p->groups[i];
	p->groups[p->n_groups].tap.interval_ns = interval_ns;
	return &p->groups[p->n_groups++];
}

static int make_groups(struct plan *p, unsigned n_outputs)
{
	p->groups = calloc(n_outputs, sizeof(*p->groups));
	if (!p->groups)
		return -ENOMEM;
	for (struct output *o = p->outputs; o; o = o->next) {
		struct group *g;

		if (output_place(o->config.to) == PLACE_HTTP_LISTEN)
			continue; /* the server has its totals */
		if (output_takes_profiles(&o->config))
			continue; /* it gets no snapshots */
		g = group_of(p, o->interval_ns);
		if (!g->outputs)
			g->outputs = calloc(n_outputs, sizeof(*g->outputs));
		if (!g->outputs)
			return -ENOMEM;
		g->outputs[g->n++] = o;
		g->gauges |= output_wants_gauges(o);
		g->self |= output_wants_self(o);
	}
	return 0;
}

/* True unless a collector of traces was told another formula than b's: it is told once in a session. */
static bool same_formula(const struct output *o, const struct config *a, const struct config *b)
{
	return !o->zico || output_place(o->config.to) != PLACE_COLLECTOR ||
	       strcmp(a->formula.name, b->formula.name) == 0;
}

/* Finds an output of old that is not kept yet. Its interval may have changed: that is no reason to cut its
 * connection. */
static struct output *find_same(struct plan *old, const struct config *c, const struct output_config *oc)
{
	for (struct output *o = old ? old->outputs : NULL; o; o = o->next)
		if (!o->twin && output_same(&o->config, oc) && same_formula(o, old->config, c))
			return o;
	return NULL;
}

/* Finds an output of old that listens where this one wants to listen. */
static struct output *find_place(struct plan *old, const struct output_config *oc)
{
	for (struct output *o = old ? old->outputs : NULL; o; o = o->next)
		if (!o->twin && !o->heir && output_same_place(&o->config, oc))
			return o;
	return NULL;
}

/* Makes the entry of a kept output in the new plan. It is in both plans until one is put in force. Until then
 * encoder and sinks stay with old, because the measuring thread uses them. */
static struct output *make_twin(struct output *o, const struct output_config *oc, uint64_t interval_ns)
{
	struct output *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->config = *oc;
	t->interval_ns = oc->interval_ns ? oc->interval_ns : interval_ns;
	t->twin = o;
	o->twin = t;
	return t;
}

static int add_outputs(struct plan *p, const struct plan_options *o, struct err *err)
{
	const struct config *c = p->config;
	const struct output_context context = output_context_of(c, o->schema, o->loop);
	unsigned n = c->outputs.n ? c->outputs.n : 1;
	struct output **last = &p->outputs;

	for (unsigned i = 0; i < n; i++) {
		const struct output_config *oc = c->outputs.n ? &c->outputs.v[i] : &output_default;
		struct output *same = find_same(o->old, c, oc), *place = same ? NULL : find_place(o->old, oc);
		int rc = 0;

		if (place)
			rc = output_open_at(oc, &context, place, last, err);
		else if (!same)
			rc = output_open(oc, &context, last, err);
		else if (!(*last = make_twin(same, oc, c->interval_ns)))
			rc = err_set(err, -ENOMEM, "configuration: out of memory; free some");
		if (rc)
			return rc;
		last = &(*last)->next;
		*last = NULL;
	}
	return make_groups(p, n) ? err_set(err, -ENOMEM, "configuration: out of memory; free some") : 0;
}

int plan_new(const struct plan_options *o, struct plan **ret, struct err *err)
{
	struct plan *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_set(err, -ENOMEM, "configuration: out of memory; free some");
	p->config = o->config;
	choose_formula(p);
	rc = add_outputs(p, o, err);
	if (rc) {
		p->config = NULL;
		plan_give_up(p);
		return rc;
	}
	*ret = p;
	return 0;
}

/* Frees the entries of a list whose outputs live on in the other plan. */
static void drop_twins(struct output **list)
{
	while (*list) {
		struct output *o = *list;

		if (!o->twin) {
			list = &o->next;
			continue;
		}
		o->twin->twin = NULL;
		*list = o->next;
		selection_free(&o->selection);
		free(o);
	}
}

void plan_take(struct plan *p, struct plan *old)
{
	for (struct output *o = p->outputs; o; o = o->next) {
		if (o->place)
			output_move_in(o);
		if (!o->twin)
			continue;
		o->n_parts = o->twin->n_parts;
		memcpy(o->parts, o->twin->parts, sizeof(o->parts));
		o->zico = o->twin->zico;
		if (o->zico) {
			zico_output_select(o->zico, &o->config, &p->config->machine.cgroups);
			zico_output_formula(o->zico, p->config->formula.name);
		}
		o->push = o->twin->push;
		o->page = o->twin->page;
		o->guests = o->twin->guests;
	}
	drop_twins(&old->outputs);
}

void plan_give_up(struct plan *p)
{
	drop_twins(&p->outputs);
	plan_free(p);
}

/* Waits longer for a sink with a reader than for one whose reader is away. */
bool plan_drained(struct plan *p, uint64_t waited_ns)
{
	for (struct output *o = p->outputs; o; o = o->next)
		if (output_waiting(o, waited_ns < AWAY_NS))
			return false;
	return true;
}

void plan_drain(struct plan *p, uint64_t timeout_ns)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	uint64_t start = clock_mono_ns(), waited = 0;

	while (waited < timeout_ns && !plan_drained(p, waited)) {
		nanosleep(&pause, NULL);
		waited = clock_mono_ns() - start;
	}
}

void plan_trace(const struct plan *p, const struct trace *t)
{
	for (struct output *o = p->outputs; o; o = o->next)
		output_trace(o, t);
}

bool plan_only_stdout(const struct plan *p)
{
	for (const struct output *o = p->outputs; o; o = o->next)
		if (strcmp(o->config.to, "stdout:") != 0)
			return false;
	return true;
}

void plan_free_groups(struct plan *p)
{
	for (unsigned i = 0; i < p->n_groups; i++) {
		tap_end(&p->groups[i].tap);
		free(p->groups[i].outputs);
	}
	free(p->groups);
	p->groups = NULL;
	p->n_groups = 0;
}

uint64_t plan_free(struct plan *p)
{
	uint64_t lost = 0;

	if (!p)
		return 0;
	for (struct output *o = p->outputs, *next; o; o = next) {
		next = o->next;
		lost += output_close(o);
	}
	plan_free_groups(p);
	config_free(p->config);
	free(p);
	return lost;
}
