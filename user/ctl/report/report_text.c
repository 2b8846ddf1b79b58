/* SPDX-License-Identifier: Apache-2.0 */
/* A block per run: a line per source with mean and spread over repetitions, then a line per repetition. */
#include <stdio.h>
#include <string.h>
#include "../base/text.h"
#include "report.h"

static const char *safe(char *dst, size_t size, const char *s)
{
	return text_escape(dst, size, s);
}

/* Six digits that count; a dash for what is not known. */
static void cell(struct buf *b, int width, double v)
{
	if (isnan(v))
		buf_printf(b, " %*s", width, "-");
	else
		buf_printf(b, " %*.6g", width, v);
}

static void head(struct buf *b, const char *first)
{
	buf_printf(b, "  %-18s %12s %7s %10s %10s %12s %12s\n", first, "energy J", "+-", "time s", "power W", "EDP Js",
		   "ED2P Js2");
}

static void source_line(const struct report *r, const struct report_run *run, enum report_source s, struct buf *b)
{
	struct run_stats v[REPORT_VALUES];
	unsigned n = report_stats(r, run, s, REPORT_ENERGY, &v[REPORT_ENERGY]);

	for (unsigned k = 0; k < REPORT_VALUES; k++)
		if (!report_stats(r, run, s, k, &v[k]))
			v[k].mean = NAN;
	if (!n)
		return;
	buf_printf(b, "  %-18s", report_source_name[s]);
	cell(b, 12, v[REPORT_ENERGY].mean);
	if (n > 1 && v[REPORT_ENERGY].mean > 0)
		buf_printf(b, " %6.2f%%", 100 * v[REPORT_ENERGY].stddev / v[REPORT_ENERGY].mean);
	else
		buf_printf(b, " %7s", "");
	cell(b, 10, v[REPORT_TIME].mean);
	cell(b, 10, v[REPORT_POWER].mean);
	cell(b, 12, v[REPORT_EDP].mean);
	cell(b, 12, v[REPORT_ED2P].mean);
	buf_add_char(b, '\n');
}

static void repetition_lines(const struct report_repetition *t, struct buf *b)
{
	char name[64], left[96];

	safe(name, sizeof(name), t->place->name[TREE_REPETITION]);
	for (unsigned s = 0; s < REPORT_SOURCES; s++) {
		const double *v = t->source[s].value;

		if (!t->source[s].known)
			continue;
		snprintf(left, sizeof(left), "  %.12s %s", name, report_source_name[s]);
		buf_printf(b, "  %-18s", left);
		cell(b, 12, v[REPORT_ENERGY]);
		buf_printf(b, " %7s", "");
		cell(b, 10, v[REPORT_TIME]);
		cell(b, 10, v[REPORT_POWER]);
		cell(b, 12, v[REPORT_EDP]);
		cell(b, 12, v[REPORT_ED2P]);
		buf_add_char(b, '\n');
	}
	if (!t->usable)
		buf_printf(b, "    %.12s: left out, see the warnings\n", name);
}

static void means_line(const struct report *r, const struct report_run *run, struct buf *b)
{
	static const struct {
		const char *text, *unit;
		double by;
	} shown[REPORT_MEANS] = {
		[REPORT_UTIL_GPU] = { "GPU", "%", 1 },       [REPORT_UTIL_MEM] = { "GPU memory busy", "%", 1 },
		[REPORT_CLOCK_GPU] = { "clock", " MHz", 1 }, [REPORT_CLOCK_MEM] = { "memory clock", " MHz", 1 },
		[REPORT_LIMIT] = { "limit", " W", 1000 },    [REPORT_TEMPERATURE] = { "", " C", 1 },
	};
	const char *before = "  ";
	struct run_stats v;

	for (unsigned m = 0; m < REPORT_MEANS; m++)
		if (report_mean_stats(r, run, m, &v)) {
			buf_printf(b, "%s%s%s%.4g%s", before, shown[m].text, *shown[m].text ? " " : "",
				   v.mean / shown[m].by, shown[m].unit);
			before = ", ";
		}
	if (strcmp(before, ", ") == 0)
		buf_add_char(b, '\n');
}

static void domains_lines(const struct report_repetition *t, struct buf *b)
{
	char names[600];

	for (unsigned k = 0; k < 2; k++)
		if (t->source[REPORT_RAPL + k].known)
			buf_printf(b, "  %s is %s\n", report_source_name[REPORT_RAPL + k],
				   safe(names, sizeof(names), t->domains[k]));
}

static void window_line(const struct report_repetition *t, struct buf *b)
{
	if (t->window.by_epochs)
		buf_printf(b, "  epochs 1 to %u of 0 to %u, %.6g s\n", t->window.epochs >= 3 ? t->window.epochs - 2 : 1,
			   t->window.epochs - 1, (double)(t->window.end_ns - t->window.start_ns) / 1e9);
	else
		buf_printf(b, "  all that was recorded: no epochs to choose from, %.6g s\n",
			   (double)(t->window.end_ns - t->window.start_ns) / 1e9);
}

static void write_run(const struct report *r, const struct report_run *run, struct buf *b)
{
	const struct report_repetition *first = &r->list[run->first];
	char e[256], m[256], n[256];

	while (!first->usable && first < &r->list[run->first + run->n - 1])
		first++;
	buf_printf(b, "%s / %s / %s: %u repetition%s\n", safe(e, sizeof(e), first->place->name[TREE_EXPERIMENT]),
		   safe(m, sizeof(m), first->place->name[TREE_BENCHMARK]),
		   safe(n, sizeof(n), first->place->name[TREE_RUN]), run->n, run->n == 1 ? "" : "s");
	if (first->usable)
		window_line(first, b);
	head(b, run->n > 1 ? "mean of" : "source");
	for (unsigned s = 0; s < REPORT_SOURCES; s++)
		source_line(r, run, s, b);
	for (unsigned i = 0; run->n > 1 && i < run->n; i++)
		repetition_lines(&r->list[run->first + i], b);
	means_line(r, run, b);
	domains_lines(first, b);
}

void report_write_text(const struct report *r, struct buf *b)
{
	for (unsigned i = 0; i < r->n_runs; i++) {
		if (i)
			buf_add_char(b, '\n');
		write_run(r, &r->runs[i], b);
	}
	if (r->o.compat)
		buf_printf(b, "\nas the original reader: external counts are %d mW, %.3f W are taken off\n",
			   REPORT_COMPAT_UNIT, r->o.external_idle_w);
}
