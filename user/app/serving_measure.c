/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring thread's part of the query socket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "../encode/totals_keep.h"
#include "../encode/totals_late.h"
#include "serving_internal.h"

#define KEPT_NS NS_PER_S /* between points of the history, where nobody asks for shorter ones */

int serving_fd(const struct serving *sv)
{
	return sv ? sv->wake_fd : -1;
}

uint64_t serving_feed_interval(const struct serving *sv, const struct plan *p)
{
	return sv->pages_only ? 0 : p->config->interval_ns;
}

/* Of the totals, beside the moments when they are made for feed 0 or for somebody who asks; 0 = never. */
static uint64_t sums_interval(const struct serving *sv)
{
	uint64_t own = sv->pages_only ? sv->plan->config->interval_ns : 0;
	bool kept = sv->history || sv->plan->tracing;

	return kept && (!own || own > KEPT_NS) ? KEPT_NS : own;
}

static bool sums_due(const struct serving *sv, uint64_t now_ns)
{
	return sums_interval(sv) && sv->sums.deadline_ns <= now_ns;
}

/* A formula that changed begins anew, consumers go on. */
void serving_use(struct serving *sv, const struct plan *p)
{
	if (!sv)
		return;
	if (sv->formula && (sv->formula != p->formula ||
			    memcmp(&sv->formula_options, &p->formula_options, sizeof(p->formula_options)) != 0)) {
		for (unsigned i = 0; i < SERVE_FEEDS; i++) {
			sv->formula->destroy(sv->taps[i].formula);
			sv->taps[i].formula = NULL;
		}
		sv->formula->destroy(sv->sums.formula);
		sv->sums.formula = NULL;
	}
	sv->plan = p;
	sv->formula = p->formula;
	sv->formula_options = p->formula_options;
	serve_set_interval(sv->serve, serving_feed_interval(sv, p));
	if (sv->pages_only)
		sv->sums.deadline_ns = 0; /* their interval may have become shorter */
}

static void follow_feed(struct serving *sv, struct machine *m, unsigned feed)
{
	uint64_t interval_ns = serve_feed_interval(sv->serve, feed);
	struct tap *t = &sv->taps[feed];

	if (t->interval_ns == interval_ns)
		return;
	if (!interval_ns) {
		consumer_free(t->consumer);
		sv->formula->destroy(t->formula);
		*t = (struct tap){ 0 };
		return;
	}
	if (!t->consumer)
		t->consumer = consumer_new(&m->reading);
	t->interval_ns = interval_ns;
	t->deadline_ns = m->reading.mono_ns + interval_ns;
}

uint64_t serving_deadline(struct serving *sv, struct machine *m)
{
	uint64_t first = UINT64_MAX;
	eventfd_t count;

	if (!sv)
		return first;
	eventfd_read(sv->wake_fd, &count);
	if (!sv->sums.consumer) {
		sv->sums.consumer = consumer_new(&m->reading);
		sv->sums.deadline_ns = m->reading.mono_ns + sums_interval(sv);
	}
	sv->reading |= serve_wants_reading(sv->serve);
	if (sv->reading)
		return 0;
	if (sums_interval(sv))
		first = sv->sums.deadline_ns;
	for (unsigned i = 0; i < SERVE_FEEDS; i++) {
		follow_feed(sv, m, i);
		if (sv->taps[i].interval_ns && sv->taps[i].deadline_ns < first)
			first = sv->taps[i].deadline_ns;
	}
	return first;
}

/* The interval that ends now, split; NULL = no memory, it is joined to the next one. */
static struct snapshot *take(struct serving *sv, struct tap *t, struct machine *m)
{
	struct snapshot *s = t->consumer ? consumer_snapshot(t->consumer, &m->reading) : NULL;

	if (!s)
		return NULL;
	if (!t->formula)
		t->formula = plan_formula(sv->plan);
	if (!t->formula || sv->formula->apply(t->formula, s) != 0)
		formula_all_residual(s);
	s->nominal_ns = t->interval_ns;
	s->missed = 0;
	s->khz = NULL;
	s->package_mc = 0;
	return s;
}

static void run_tap(struct serving *sv, unsigned feed, struct machine *m)
{
	struct tap *t = &sv->taps[feed];
	uint64_t missed = (m->reading.mono_ns - t->deadline_ns) / t->interval_ns;
	struct snapshot *s = take(sv, t, m);

	t->deadline_ns += (missed + 1) * t->interval_ns;
	if (!s)
		return;
	s->missed = missed;
	serve_publish(sv->serve, feed, s);
}

static void tell_facts(struct serving *sv, const struct machine *m)
{
	struct rapl_looks looks = { 0 };
	struct serve_facts f = { .map_bytes = m->counters ? counters_map_bytes(m->counters) : 0 };
	struct spans_stats spans;

	if (m->rapl)
		looks = rapl_looks(m->rapl);
	f.rapl_looks = looks.n;
	f.rapl_late = looks.left_out;
	if (m->counters) {
		uint64_t ns = counters_self_ns(m->counters, &f.switch_samples);

		f.switch_ns = cost_follow(&sv->switch_cost, ns, f.switch_samples);
	}
	if (m->spans) {
		spans_stats(m->spans, &spans);
		f.lost_records = spans.lost_records;
		f.lost_processes = spans.lost_processes;
		f.lost_ends = spans.open_books;
		f.lost_calls = spans.lost_calls;
		f.traces = tracing_figures(sv->plan->tracing);
		f.lost_spans = f.traces.lost_spans;
	}
	serve_tell_facts(sv->serve, &f);
}

void serving_trace(struct serving *sv, struct trace *t)
{
	if (sv)
		serve_publish_trace(sv->serve, t);
	else
		free(t);
}

static void name_late(struct totals *t, struct naming *n)
{
	struct names *names;
	uint64_t id;

	while (naming_late(n, &id, &names)) {
		totals_name_late(t, id, names);
		names_put(names);
	}
}

/* At absolute times where nothing else sets the pace, else counted from when the totals were last asked for. */
static uint64_t next_sums(const struct serving *sv, uint64_t now_ns)
{
	uint64_t every = sums_interval(sv), was = sv->sums.deadline_ns;

	if (!sv->pages_only || !every || !was || was > now_ns)
		return now_ns + every;
	return was + ((now_ns - was) / every + 1) * every;
}

void serving_run(struct serving *sv, struct machine *m)
{
	uint64_t seq = 0;
	struct snapshot *s;
	bool own;

	if (!sv)
		return;
	own = sums_due(sv, m->reading.mono_ns);
	for (unsigned i = 0; i < SERVE_FEEDS; i++) {
		if (!sv->taps[i].interval_ns || sv->taps[i].deadline_ns > m->reading.mono_ns)
			continue;
		run_tap(sv, i, m);
		own |= i == 0;
	}
	if (!own && !sv->reading)
		return;
	s = take(sv, &sv->sums, m);
	sv->sums.deadline_ns = next_sums(sv, m->reading.mono_ns);
	if (s) {
		totals_still(sv->totals, m->table);
		totals_add(sv->totals, s);
		name_late(sv->totals, m->naming);
		tracing_add(sv->plan->tracing, sv->plan, s);
		seq = serving_history_put(sv, s);
	}
	tell_facts(sv, m);
	serve_publish_totals(sv->serve, sv->totals, sv->reading, seq);
	sv->reading = false;
}
