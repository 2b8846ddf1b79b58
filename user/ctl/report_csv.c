/* SPDX-License-Identifier: Apache-2.0 */
/* For tables: a line per repetition and source; then, for the run, lines whose repetition is mean and stddev. */
#include <string.h>
#include "../base/text.h"
#include "report.h"

static void name_cell(struct buf *b, const char *text)
{
	char safe[1100];
	const char *name = text_escape(safe, sizeof(safe), text);
	bool quote = name[strcspn(name, ",\"")] != '\0';

	if (quote)
		buf_add_char(b, '"');
	for (; *name; name++) {
		if (*name == '"')
			buf_add_char(b, '"');
		buf_add_char(b, *name);
	}
	if (quote)
		buf_add_char(b, '"');
	buf_add_char(b, ',');
}

static void number(struct buf *b, double v)
{
	buf_add_char(b, ',');
	if (isfinite(v))
		buf_printf(b, "%.12g", v);
}

static void begin(const struct tree_place *p, const char *repetition, enum report_source s, struct buf *b)
{
	name_cell(b, p->name[TREE_EXPERIMENT]);
	name_cell(b, p->name[TREE_BENCHMARK]);
	name_cell(b, p->name[TREE_RUN]);
	name_cell(b, repetition);
	buf_add_str(b, report_source_name[s]);
}

static void repetition(const struct report_repetition *t, enum report_source s, struct buf *b)
{
	begin(t->place, t->place->name[TREE_REPETITION], s, b);
	for (unsigned v = 0; v < REPORT_VALUES; v++)
		number(b, t->source[s].value[v]);
	for (unsigned m = 0; m < REPORT_MEANS; m++)
		number(b, t->mean[m]);
	number(b, s == REPORT_SD ? t->counter_j : NAN);
	buf_add_char(b, '\n');
}

static void whole_run(const struct report *r, const struct report_run *run, enum report_source s, bool spread,
		      struct buf *b)
{
	struct run_stats stats;

	begin(r->list[run->first].place, spread ? "stddev" : "mean", s, b);
	for (unsigned v = 0; v < REPORT_VALUES; v++)
		number(b, !report_stats(r, run, s, v, &stats) ? NAN : spread ? stats.stddev : stats.mean);
	for (unsigned m = 0; m < REPORT_MEANS; m++)
		number(b, !report_mean_stats(r, run, m, &stats) ? NAN : spread ? stats.stddev : stats.mean);
	buf_add_str(b, ",\n");
}

void report_write_csv(const struct report *r, struct buf *b)
{
	struct run_stats any;

	buf_add_str(b, "experiment,benchmark,run,repetition,source");
	for (unsigned v = 0; v < REPORT_VALUES; v++)
		buf_printf(b, ",%s", report_value_name[v]);
	for (unsigned m = 0; m < REPORT_MEANS; m++)
		buf_printf(b, ",%s", report_mean_name[m]);
	buf_add_str(b, ",gpu_counter_j\n");
	for (unsigned i = 0; i < r->n_runs; i++)
		for (unsigned s = 0; s < REPORT_SOURCES; s++) {
			const struct report_run *run = &r->runs[i];

			if (!report_stats(r, run, s, REPORT_TIME, &any))
				continue;
			for (unsigned k = 0; k < run->n; k++)
				if (r->list[run->first + k].source[s].rows || r->list[run->first + k].source[s].known)
					repetition(&r->list[run->first + k], s, b);
			whole_run(r, run, s, false, b);
			if (run->n > 1)
				whole_run(r, run, s, true, b);
		}
}
