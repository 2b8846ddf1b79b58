/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "../formula/span_energy.h"
#include "../model/traces.h"
#include "pipeline.h"
#include "tracing.h"

#define SWEEP_NS (900 * NS_PER_MS) /* between two sweeps at least: intervals may be short */
#define INTERVAL_NS NS_PER_S /* of its own readings */

struct tracing {
	struct machine *m;
	struct span_energy *energy;
	struct traces *traces;
	const struct plan *plan; /* during a sweep */
	uint64_t swept_ns;
	uint64_t lost_said;
	/* without totals */
	struct consumer *consumer;
	struct formula *formula;
	const struct formula_ops *formula_ops;
	struct formula_options formula_options;
	uint64_t deadline_ns;
};

static void finished(void *ctx, const struct span *s)
{
	traces_finished(((struct tracing *)ctx)->traces, s);
}

static void known(void *ctx, const struct span *s)
{
	traces_known(((struct tracing *)ctx)->traces, s);
}

static uint64_t charge(void *ctx, uint64_t cgroup_id, uint64_t from_ns, uint64_t until_ns, uint64_t cpu_ns,
		       uint64_t *energy_uj, unsigned *quality)
{
	const struct span_use u = { .cgroup_id = cgroup_id, .from_ns = from_ns, .until_ns = until_ns, .cpu_ns = cpu_ns };

	return span_energy_take(((struct tracing *)ctx)->energy, &u, energy_uj, quality);
}

static void ready(void *ctx, struct trace *trace)
{
	struct tracing *t = ctx;

	plan_trace(t->plan, trace);
	serving_trace(t->plan->serving, trace); /* takes it */
}

static void sweep(struct tracing *t, const struct plan *p, bool all)
{
	uint64_t now = clock_mono_ns();

	t->plan = p;
	t->swept_ns = now;
	traces_begin(t->traces, now, span_energy_until(t->energy), all);
	spans_live(t->m->spans, now, known, t);
	spans_ending(t->m->spans, known, t);
	traces_end(t->traces);
	span_energy_cut(t->energy);
}

int tracing_open(struct machine *m, const struct config *c, struct tracing **ret, struct err *err)
{
	struct tracing *t = m->spans ? calloc(1, sizeof(*t)) : NULL;
	const struct traces_options o = {
		.schema = &m->schema,
		.cgroups = m->table,
		.period_ns = c->spans_period_ns,
		.max_spans = 2 * (uint32_t)c->spans_max,
		.charge = charge,
		.ready = ready,
		.ctx = t,
	};

	*ret = NULL;
	if (!m->spans)
		return 0;
	if (t) {
		t->m = m;
		t->energy = span_energy_new(&m->schema, (uint32_t)c->max_cgroups);
		t->traces = traces_new(&o);
	}
	if (!t || !t->energy || !t->traces) {
		tracing_close(t);
		return err_set(err, -ENOMEM, "spans: out of memory; free some");
	}
	m->span_finished = finished;
	m->span_ctx = t;
	/* who is there already: what they used before has no energy */
	traces_begin(t->traces, clock_mono_ns(), 0, false);
	spans_live(m->spans, clock_mono_ns(), known, t);
	*ret = t;
	return 0;
}

void tracing_close(struct tracing *t)
{
	if (!t)
		return;
	t->m->span_finished = NULL;
	consumer_free(t->consumer);
	if (t->formula)
		t->formula_ops->destroy(t->formula);
	traces_free(t->traces);
	span_energy_free(t->energy);
	free(t);
}

uint64_t tracing_deadline(const struct tracing *t, const struct plan *p)
{
	return t && !p->serving ? t->deadline_ns : UINT64_MAX;
}

static void say_losses(struct tracing *t)
{
	uint64_t lost = traces_figures(t->traces).lost_spans;

	if (lost == t->lost_said || lost < 2 * t->lost_said)
		return;
	t->lost_said = lost;
	log_warn("spans: %llu found no room in traces so far; their energy stays with their cgroups",
		 (unsigned long long)lost);
}

struct traces_stats tracing_figures(const struct tracing *t)
{
	return t ? traces_figures(t->traces) : (struct traces_stats){ 0 };
}

void tracing_add(struct tracing *t, const struct plan *p, const struct snapshot *s)
{
	if (!t)
		return;
	span_energy_add(t->energy, s);
	if (clock_mono_ns() - t->swept_ns < SWEEP_NS)
		return;
	sweep(t, p, false);
	say_losses(t);
}

/* After a reload the formula may be another one; it begins anew. */
static bool use_formula(struct tracing *t, const struct plan *p)
{
	if (t->formula && (t->formula_ops != p->formula ||
			   memcmp(&t->formula_options, &p->formula_options, sizeof(p->formula_options)) != 0)) {
		t->formula_ops->destroy(t->formula);
		t->formula = NULL;
	}
	if (!t->formula)
		t->formula = plan_formula(p);
	t->formula_ops = p->formula;
	t->formula_options = p->formula_options;
	return t->formula;
}

void tracing_run(struct tracing *t, const struct plan *p)
{
	const struct reading *r = t ? &t->m->reading : NULL;
	struct snapshot *s;

	if (!t || p->serving || r->mono_ns < t->deadline_ns)
		return;
	t->deadline_ns = r->mono_ns + INTERVAL_NS;
	if (!t->consumer) {
		t->consumer = consumer_new(r);
		return;
	}
	s = consumer_snapshot(t->consumer, r);
	if (!s)
		return; /* no memory: joined to the next one */
	if (!use_formula(t, p) || p->formula->apply(t->formula, s) != 0)
		formula_all_residual(s);
	tracing_add(t, p, s);
}

void tracing_finish(struct tracing *t, const struct plan *p)
{
	if (!t)
		return;
	machine_poll_spans(t->m);
	sweep(t, p, true);
}
