/* SPDX-License-Identifier: Apache-2.0 */
/* CSV for tables: a head, then a line per run. The cell of a value that is not known is empty. Names of domains and
 * counters may hold commas (pmu/event=1,umask=2/): such a name is quoted (RFC 4180). */
#include <math.h>
#include <stdio.h>
#include "base/format/csv.h"
#include "result.h"

static void add_head(struct buf *b, const char *prefix, const char *name)
{
	char head[sizeof("energy_uj:") + SCHEMA_NAME_MAX];

	snprintf(head, sizeof(head), "%s%s", prefix, name);
	buf_add_char(b, ',');
	csv_add_cell(b, head);
}

static void add_cell(struct buf *b, bool known, uint64_t v)
{
	buf_add_char(b, ',');
	if (known)
		buf_add_u64(b, v);
}

static void add_number(struct buf *b, double v)
{
	buf_add_char(b, ',');
	if (!isnan(v))
		buf_printf(b, "%.9f", v);
}

static void add_heads(const struct run_report *r, struct buf *b)
{
	const struct run_facts *f = r->facts;

	buf_add_str(b, "exit_status,quality");
	for (unsigned k = 0; k < RUN_FIGURES; k++)
		add_head(b, "", run_figure_name[k]);
	for (unsigned d = 0; d < f->n_domains; d++)
		add_head(b, "energy_uj:", f->domain[d].name);
	for (unsigned i = 0; i < f->n_counters; i++)
		add_head(b, "", f->counter[i]);
	for (unsigned i = RUN_SWITCHES; i < RUN_FIXED; i++)
		add_head(b, "", total_columns.list[i].name);
	if (r->cost && cost_has_price(r->cost))
		add_head(b, "", "cost");
	if (r->cost && cost_has_carbon(r->cost))
		add_head(b, "", "co2_g");
	buf_add_char(b, '\n');
}

static void csv_add_run(const struct run_report *report, const struct run_result *r, struct buf *b)
{
	const struct run_facts *f = report->facts;

	if (!report->attached)
		buf_printf(b, "%d", r->exit_status);
	buf_printf(b, ",%s", r->started ? quality_name(run_quality(f, r)) : "");
	for (unsigned k = 0; k < RUN_FIGURES; k++)
		add_cell(b, r->started && run_figure_known(report, k), run_figure(f, r, k));
	for (unsigned d = 0; d < f->n_domains; d++)
		add_cell(b, r->measured && f->split, r->value[d]);
	for (unsigned i = 0; i < f->n_counters; i++)
		add_cell(b, run_counter_known(f, r, i), run_counter(f, r, i));
	add_cell(b, r->measured && f->switches, run_fixed(f, r, RUN_SWITCHES));
	for (unsigned i = RUN_RX_BYTES; i <= RUN_TX_PACKETS; i++)
		add_cell(b, r->measured && f->network, run_fixed(f, r, i));
	for (unsigned i = RUN_BLOCK; i < RUN_FIXED; i++)
		add_cell(b, r->measured && f->block, run_fixed(f, r, i));
	if (report->cost && cost_has_price(report->cost))
		add_number(b, run_money(report, r));
	if (report->cost && cost_has_carbon(report->cost))
		add_number(b, run_grams(report, r));
	buf_add_char(b, '\n');
}

/* The columns before the figures say what was measured, and by what. */
static void add_attached(const struct run_report *r, struct buf *b)
{
	const struct run_attached *a = r->attached;

	buf_add_str(b, "pid,cgroup,by,share,until,");
	add_heads(r, b);
	if (a->pid)
		buf_printf(b, "%d", (int)a->pid);
	buf_add_char(b, ',');
	csv_add_cell(b, a->cgroup);
	buf_printf(b, ",%s,%.6f,%s,", run_attached_by_name[a->by], a->share, a->until);
	csv_add_run(r, &r->runs[0], b);
}

void run_write_csv(const struct run_report *r, struct buf *b)
{
	if (r->attached) {
		add_attached(r, b);
		return;
	}
	buf_add_str(b, "run,");
	add_heads(r, b);
	for (unsigned i = 0; i < r->n; i++) {
		buf_printf(b, "%u,", i + 1);
		csv_add_run(r, &r->runs[i], b);
	}
}

void run_write_comparison_csv(const struct run_comparison *c, struct buf *b)
{
	buf_add_str(b, "side,order,run,");
	add_heads(&c->side[0], b);
	for (unsigned k = 0; k < c->n_sides; k++)
		for (unsigned i = 0; i < c->side[k].n; i++) {
			buf_printf(b, "%c,%u,%u,", series_letter(k), run_comparison_place(c, k, i), i + 1);
			csv_add_run(&c->side[k], &c->side[k].runs[i], b);
		}
}
