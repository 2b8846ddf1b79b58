/* SPDX-License-Identifier: Apache-2.0 */
/* What stands below the figures for people: what is not in them, why they are no better, how it ended. */
#include <string.h>
#include "../base/text.h"
#include "run_result.h"

static void add_idle(const struct run_report *r, struct buf *b)
{
	const struct run_facts *f = r->facts;
	bool own = strcmp(f->idle, "own") == 0;
	double window_ns = 0, idle_uj;

	for (unsigned i = 0; i < r->n; i++)
		window_ns += (double)r->runs[i].window_ns;
	buf_printf(b, " Idle energy of the machine is %s (idle: %s",
		   own                             ? "not included" :
		   strcmp(f->idle, "by-time") == 0 ? "included by share of CPU time" :
						     "included by share of the rest",
		   f->idle);
	for (unsigned d = 0; d < f->n_domains; d++) {
		idle_uj = 0;
		for (unsigned i = 0; i < r->n; i++)
			idle_uj += (double)r->runs[i].idle_uj[d];
		if (!run_domain_adds_up(&f->domain[d]) || !own || window_ns <= 0)
			continue;
		buf_printf(b, ", %s %.3f W", f->domain[d].name, idle_uj * 1e3 / window_ns);
		if (f->domain[d].idle_quality != QUALITY_MEASURED)
			buf_printf(b, " %s", quality_name(f->domain[d].idle_quality));
	}
	buf_add_str(b, ").\n");
}

/* Each reason once. */
static void add_reasons(const struct run_report *r, struct buf *b)
{
	const struct run_facts *f = r->facts;

	for (unsigned d = 0; d < f->n_domains; d++) {
		bool said = !*f->domain[d].reason;

		for (unsigned k = 0; k < d && !said; k++)
			said = strcmp(f->domain[k].reason, f->domain[d].reason) == 0;
		if (!said)
			buf_printf(b, " Energy is not measured here: %s.\n", f->domain[d].reason);
	}
}

static void add_losses(const struct run_report *r, struct buf *b)
{
	unsigned lost = 0;

	for (unsigned i = 0; i < r->n; i++)
		lost += r->runs[i].measured && r->runs[i].quality & (QUALITY_LOST | QUALITY_PARTIAL);
	if (lost)
		buf_printf(b, " Counts were lost in %u of %u run%s: do other programs hold the machine's counters?\n",
			   lost, r->n, r->n == 1 ? "" : "s");
}

static void add_notes(const struct run_report *r, struct buf *b)
{
	const struct run_facts *f = r->facts;

	add_losses(r, b);
	if (f->n_domains && f->split) {
		add_idle(r, b);
		add_reasons(r, b);
	} else if (!f->n_domains) {
		buf_add_str(b, " No energy: this machine has no source of it; see jouled doctor.\n");
	} else {
		buf_printf(b, " No energy: the agent's formula '%s' gives none to cgroups; see --private.\n",
			   f->formula);
	}
}

static void add_left(const struct run_left *l, struct buf *b)
{
	char shown[64];

	if (!l->n)
		return;
	buf_printf(b, " %u process%s of it still ran, counted up to here:", l->n, l->n == 1 ? "" : "es");
	for (unsigned i = 0; i < l->n && i < RUN_LEFT_MAX; i++)
		buf_printf(b, "%s %s (%d)", i ? "," : "", text_escape(shown, sizeof(shown), l->comm[i]),
			   (int)l->pid[i]);
	buf_add_str(b, l->n > RUN_LEFT_MAX ? ", ...\n" : "\n");
}

static void add_ends(const struct run_report *r, struct buf *b)
{
	unsigned failures = 0;

	for (unsigned i = 0; i < r->n; i++) {
		const struct run_result *run = &r->runs[i];

		failures += run->exit_status != 0;
		if (*run->error && (!i || strcmp(run->error, run[-1].error) != 0))
			buf_printf(b, " No figures of the agent: %s\n", run->error);
		add_left(&run->left, b);
	}
	if (failures && r->n > 1)
		buf_printf(b, " %u of %u runs failed.\n", failures, r->n);
	if (r->n == 1 && r->runs[0].signal)
		buf_printf(b, " Ended by signal %d (%s).\n", r->runs[0].signal, strsignal(r->runs[0].signal));
	else if (r->n == 1 && r->exit_status)
		buf_printf(b, " Exit status %d.\n", r->exit_status);
}

bool run_any_measured(const struct run_report *r)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->runs[i].measured)
			return true;
	return false;
}

void run_write_notes(const struct run_report *r, struct buf *b)
{
	if (run_any_measured(r))
		add_notes(r, b);
	add_ends(r, b);
}
