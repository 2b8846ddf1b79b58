// SPDX-License-Identifier: Apache-2.0
/* The spans source of a machine. It is polled by the measuring thread, between readings and after each. */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "machine.h"

static void take(void *ctx, const struct span *s)
{
	struct machine *m = ctx;

	if (m->span_finished)
		m->span_finished(m->span_ctx, s);
}

static struct span_function *list_functions(const struct spans_config *c)
{
	struct span_function *list = calloc(c->n_functions + 1, sizeof(*list));

	for (unsigned i = 0; list && i < c->n_functions; i++)
		list[i] = (struct span_function){ c->functions[i].binary, c->functions[i].symbol };
	return list;
}

void machine_open_spans(struct machine *m, const struct spans_config *c, const char *btf)
{
	struct span_function *functions;
	struct err err = { 0 };

	if (!c->traces && !c->processes && !c->n_functions)
		return;
	if (!fsroot_is_live(m->root) || !m->have_hierarchy) {
		machine_note(m, "spans: only on a running machine with a cgroup hierarchy; left out");
		return;
	}
	functions = list_functions(c);
	if (!functions) {
		machine_note(m, "spans: out of memory; left out");
		return;
	}
	const struct spans_options o = {
		.root = m->root,
		.hierarchy = &m->hierarchy,
		.table = m->table,
		.btf = btf,
		.max_processes = (uint32_t)c->max_processes,
		.functions = functions,
		.n_functions = c->n_functions,
		.budget = c->budget,
		.finished = take,
		.ctx = m,
	};

	if (spans_open(&o, &m->spans, &err))
		machine_note(m, "%s", err.text);
	free(functions);
}

void machine_poll_spans(struct machine *m)
{
	if (m->spans)
		spans_poll(m->spans);
}

void machine_say_spans(struct machine *m)
{
	struct spans_stats st;
	char text[400];

	if (!m->spans)
		return;
	spans_stats(m->spans, &st);
	while (spans_next_warning(m->spans, text, sizeof(text)))
		log_warn("%s", text);
	if (log_worth(st.lost_records, &m->spans_said.lost_records))
		log_warn("spans: records that did not come through so far: %llu; give the agent more CPU time",
			 (unsigned long long)st.lost_records);
	if (log_worth(st.lost_processes, &m->spans_said.lost_processes))
		log_warn("spans: processes that found no room so far: %llu; raise spans.max-processes",
			 (unsigned long long)st.lost_processes);
	if (log_worth(st.lost_calls, &m->spans_said.lost_calls))
		log_warn(
			"spans: calls that found no room or lasted longer than their probe so far: %llu; probe fewer functions",
			(unsigned long long)st.lost_calls);
}
