/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "formula/span_energy.h"
#include "model/traces/traces.h"
#include "tracing.h"

#define SWEEP_NS (900 * NS_PER_MS) /* minimum time between two sweeps, because intervals may be short */
#define INTERVAL_NS NS_PER_S /* interval of its own readings */

struct tracing {
	struct machine *m;
	struct span_energy *energy;
	struct traces *traces;
	void (*deliver)(void *ctx, struct trace *trace);
	void *deliver_ctx;
	uint64_t swept_ns;
	uint64_t lost_said;
	struct tap tap; /* for snapshots of its own, when there are no totals */
};

static void finished(void *ctx, const struct span *s)
{
	traces_finished(((struct tracing *)ctx)->traces, s);
}

static void known(void *ctx, const struct span *s)
{
	traces_known(((struct tracing *)ctx)->traces, s);
}

static uint64_t charge(void *ctx, const struct span_use *use, uint64_t *energy_uj, unsigned *quality)
{
	return span_energy_take(((struct tracing *)ctx)->energy, use, energy_uj, quality);
}

static void ready(void *ctx, struct trace *trace)
{
	struct tracing *t = ctx;

	if (t->deliver)
		t->deliver(t->deliver_ctx, trace);
	else
		free(trace);
}

static void sweep(struct tracing *t, bool all)
{
	uint64_t now = clock_mono_ns();

	t->swept_ns = now;
	traces_begin(t->traces, now, span_energy_until(t->energy), all);
	spans_live(t->m->spans, now, known, t);
	spans_ending(t->m->spans, known, t);
	traces_end(t->traces);
	span_energy_cut(t->energy);
}

int tracing_open(struct machine *m, const struct spans_config *c, struct tracing **ret, struct err *err)
{
	struct tracing *t = m->spans ? calloc(1, sizeof(*t)) : NULL;
	const struct traces_options o = {
		.schema = &m->schema,
		.cgroups = m->table,
		.period_ns = c->period_ns,
		.max_spans = 2 * (uint32_t)c->max_processes,
		.charge = charge,
		.ready = ready,
		.ctx = t,
	};

	*ret = NULL;
	if (!m->spans)
		return 0;
	if (t) {
		t->m = m;
		t->energy = span_energy_new(&m->schema, (uint32_t)m->max_cgroups);
		t->traces = traces_new(&o);
	}
	if (!t || !t->energy || !t->traces) {
		tracing_close(t);
		return err_set(err, -ENOMEM, "spans: out of memory; free some");
	}
	m->span_finished = finished;
	m->span_ctx = t;
	/* processes that exist already: the CPU time they have used so far gets no energy */
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
	tap_end(&t->tap);
	traces_free(t->traces);
	span_energy_free(t->energy);
	free(t);
}

void tracing_deliver(struct tracing *t, void (*deliver)(void *ctx, struct trace *trace), void *ctx)
{
	if (!t)
		return;
	t->deliver = deliver;
	t->deliver_ctx = ctx;
}

uint64_t tracing_deadline(const struct tracing *t)
{
	return t ? t->tap.deadline_ns : UINT64_MAX;
}

static void say_losses(struct tracing *t)
{
	uint64_t lost = traces_figures(t->traces).lost_spans;

	if (!log_worth(lost, &t->lost_said))
		return;
	log_warn("spans: those that found no room in traces so far: %llu; their energy stays with their cgroups",
		 (unsigned long long)lost);
}

struct traces_stats tracing_figures(const struct tracing *t)
{
	return t ? traces_figures(t->traces) : (struct traces_stats){ 0 };
}

void tracing_add(struct tracing *t, const struct snapshot *s)
{
	if (!t)
		return;
	span_energy_add(t->energy, s);
	if (clock_mono_ns() - t->swept_ns < SWEEP_NS)
		return;
	sweep(t, false);
	say_losses(t);
}

void tracing_run(struct tracing *t, const struct formula_choice *by)
{
	const struct reading *r = t ? &t->m->reading : NULL;
	struct snapshot *s;

	if (!t || r->mono_ns < t->tap.deadline_ns)
		return;
	s = tap_take(&t->tap, r);
	tap_begin(&t->tap, r, INTERVAL_NS);
	if (!s)
		return; /* the first reading; or no memory, and the interval is joined to the next one */
	tap_use(&t->tap, by);
	tap_split(&t->tap, s);
	tracing_add(t, s);
}

void tracing_finish(struct tracing *t)
{
	if (!t)
		return;
	machine_poll_spans(t->m);
	sweep(t, true);
}
