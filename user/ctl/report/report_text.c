/* SPDX-License-Identifier: Apache-2.0 */
/* The text has a block per run: a line per source with mean and spread over repetitions, then lines per repetition. */
#include <stdio.h>
#include <string.h>
#include "base/format/csv.h"
#include "base/format/json.h"
#include "base/text.h"
#include "encode/table.h"
#include "report.h"

static const char *safe(char *dst, size_t size, const char *s)
{
	return text_escape(dst, size, s);
}

/* Writes a number with six significant digits; a dash for one that is not known. */
static void cell(struct buf *b, int width, double v)
{
	if (isnan(v))
		buf_printf(b, " %*s", width, "-");
	else
		buf_printf(b, " %*.6g", width, v);
}

static void head(const struct report *r, const char *first, struct buf *b)
{
	buf_printf(b, "  %-18s %12s %7s %10s %10s %12s %12s", first, "energy J", "+-", "time s", "power W", "EDP Js",
		   "ED2P Js2");
	if (report_shows(r, REPORT_COST))
		buf_printf(b, " %12s", "cost");
	if (report_shows(r, REPORT_CO2))
		buf_printf(b, " %12s", "CO2 g");
	buf_add_char(b, '\n');
}

/* Writes the values behind the energy. */
static void cells(const struct report *r, const double v[REPORT_VALUES], struct buf *b)
{
	for (unsigned k = REPORT_TIME; k < REPORT_VALUES; k++)
		if (report_shows(r, k))
			cell(b, k <= REPORT_POWER ? 10 : 12, v[k]);
	buf_add_char(b, '\n');
}

static void source_line(const struct report *r, const struct report_run *run, enum report_source s, struct buf *b)
{
	struct statistics v[REPORT_VALUES];
	double mean[REPORT_VALUES];
	unsigned n = report_stats(r, run, s, REPORT_ENERGY, &v[REPORT_ENERGY]);
	char mark = table_mark(report_quality(r, run, s));

	for (unsigned k = 0; k < REPORT_VALUES; k++)
		if (!report_stats(r, run, s, k, &v[k]))
			v[k].mean = NAN;
	if (!n)
		return;
	buf_printf(b, "  %-18s", report_source_name[s]);
	cell(b, 12, v[REPORT_ENERGY].mean);
	if (n > 1 && v[REPORT_ENERGY].mean > 0)
		buf_printf(b, "%c%6.2f%%", mark, 100 * v[REPORT_ENERGY].stddev / v[REPORT_ENERGY].mean);
	else
		buf_printf(b, "%c%7s", mark, "");
	for (unsigned k = 0; k < REPORT_VALUES; k++)
		mean[k] = v[k].mean;
	cells(r, mean, b);
}

static void repetition_lines(const struct report *r, const struct report_repetition *t, struct buf *b)
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
		buf_printf(b, "%c%7s", table_mark(t->source[s].quality), "");
		cells(r, v, b);
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
	struct statistics v;

	for (unsigned m = 0; m < REPORT_MEANS; m++)
		if (report_mean_stats(r, run, m, &v)) {
			buf_printf(b, "%s%s%s%.4g%s", before, shown[m].text, *shown[m].text ? " " : "",
				   v.mean / shown[m].by, shown[m].unit);
			before = ", ";
		}
	if (strcmp(before, ", ") == 0)
		buf_add_char(b, '\n');
}

/* Writes a line for each source that needs one: its domains, and the word for its mark. */
static void source_lines(const struct report *r, const struct report_run *run, const struct report_repetition *t,
			 struct buf *b)
{
	char what[REPORT_WHAT_MAX], shown[2 * REPORT_WHAT_MAX];

	for (unsigned s = 0; s < REPORT_SOURCES; s++) {
		unsigned quality = report_quality(r, run, s);

		if (t->source[s].known && (quality || s == REPORT_RAPL || s == REPORT_CGROUP))
			buf_printf(b, "  %s%s is %s\n", report_source_name[s],
				   quality ? (char[]){ table_mark(quality), '\0' } : "",
				   safe(shown, sizeof(shown), report_what(t, s, quality, what)));
	}
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
	head(r, run->n > 1 ? "mean of" : "source", b);
	for (unsigned s = 0; s < REPORT_SOURCES; s++)
		source_line(r, run, s, b);
	for (unsigned i = 0; run->n > 1 && i < run->n; i++)
		repetition_lines(r, &r->list[run->first + i], b);
	means_line(r, run, b);
	source_lines(r, run, first, b);
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

/* CSV: a line per repetition and source. The lines of a run end with those whose repetition is "mean" and "stddev". */

static void name_cell(struct buf *b, const char *text)
{
	char safe[1100];

	csv_add_cell(b, text_escape(safe, sizeof(safe), text));
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

static void repetition(const struct report *r, const struct report_repetition *t, enum report_source s, struct buf *b)
{
	begin(t->place, t->place->name[TREE_REPETITION], s, b);
	for (unsigned v = 0; v < REPORT_VALUES; v++)
		if (report_shows(r, v))
			number(b, t->source[s].value[v]);
	for (unsigned m = 0; m < REPORT_MEANS; m++)
		number(b, t->mean[m]);
	number(b, s == REPORT_SD ? t->counter_j : NAN);
	buf_printf(b, ",%s\n", quality_name(t->source[s].quality));
}

static void whole_run(const struct report *r, const struct report_run *run, enum report_source s, bool spread,
		      struct buf *b)
{
	struct statistics stats;

	begin(r->list[run->first].place, spread ? "stddev" : "mean", s, b);
	for (unsigned v = 0; v < REPORT_VALUES; v++)
		if (report_shows(r, v))
			number(b, !report_stats(r, run, s, v, &stats) ? NAN : spread ? stats.stddev : stats.mean);
	for (unsigned m = 0; m < REPORT_MEANS; m++)
		number(b, !report_mean_stats(r, run, m, &stats) ? NAN : spread ? stats.stddev : stats.mean);
	buf_printf(b, ",,%s\n", quality_name(report_quality(r, run, s)));
}

void report_write_csv(const struct report *r, struct buf *b)
{
	struct statistics any;

	buf_add_str(b, "experiment,benchmark,run,repetition,source");
	for (unsigned v = 0; v < REPORT_VALUES; v++)
		if (report_shows(r, v))
			buf_printf(b, ",%s", report_value_name[v]);
	for (unsigned m = 0; m < REPORT_MEANS; m++)
		buf_printf(b, ",%s", report_mean_name[m]);
	buf_add_str(b, ",gpu_counter_j,quality\n");
	for (unsigned i = 0; i < r->n_runs; i++)
		for (unsigned s = 0; s < REPORT_SOURCES; s++) {
			const struct report_run *run = &r->runs[i];

			if (!report_stats(r, run, s, REPORT_TIME, &any))
				continue;
			for (unsigned k = 0; k < run->n; k++)
				if (r->list[run->first + k].source[s].rows || r->list[run->first + k].source[s].known)
					repetition(r, &r->list[run->first + k], s, b);
			whole_run(r, run, s, false, b);
			if (run->n > 1)
				whole_run(r, run, s, true, b);
		}
}

static void key_double(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v);
}

static void write_stats(struct json *j, const char *key, const struct statistics *s, unsigned n)
{
	json_key(j, key);
	json_object_begin(j);
	json_key_u64(j, "n", n);
	key_double(j, "mean", s->mean);
	key_double(j, "stddev", s->stddev);
	key_double(j, "ci95", s->ci95);
	json_object_end(j);
}

static void write_result(struct json *j, const struct report *report, const struct report_result *r)
{
	json_object_begin(j);
	for (unsigned v = 0; v < REPORT_VALUES; v++)
		if (report_shows(report, v))
			key_double(j, report_value_name[v], r->value[v]);
	json_key_u64(j, "rows", r->rows);
	json_key_str(j, "quality", quality_name(r->quality));
	json_object_end(j);
}

static void write_repetition(struct json *j, const struct report *r, const struct report_repetition *t)
{
	json_object_begin(j);
	json_key_str(j, "repetition", t->place->name[TREE_REPETITION]);
	json_key(j, "usable");
	json_bool(j, t->usable);
	if (t->usable) {
		json_key(j, "window_start_unix_ns");
		json_i64(j, t->window.start_ns);
		json_key(j, "window_end_unix_ns");
		json_i64(j, t->window.end_ns);
		json_key_u64(j, "epochs", t->window.epochs);
		json_key(j, "sources");
		json_object_begin(j);
		for (unsigned s = 0; s < REPORT_SOURCES; s++)
			if (t->source[s].rows || t->source[s].known) {
				json_key(j, report_source_name[s]);
				write_result(j, r, &t->source[s]);
			}
		json_object_end(j);
		for (unsigned m = 0; m < REPORT_MEANS; m++)
			key_double(j, report_mean_name[m], t->mean[m]);
		key_double(j, "gpu_counter_j", t->counter_j);
		if (*t->domains[0])
			json_key_str(j, "rapl_domains", t->domains[0]);
		if (*t->domains[1])
			json_key_str(j, "cgroup_domains", t->domains[1]);
	}
	json_object_end(j);
}

static void write_sources(struct json *j, const struct report *r, const struct report_run *run)
{
	struct statistics stats;
	unsigned n;

	json_key(j, "sources");
	json_object_begin(j);
	for (unsigned s = 0; s < REPORT_SOURCES; s++) {
		if (!report_stats(r, run, s, REPORT_TIME, &stats))
			continue;
		json_key(j, report_source_name[s]);
		json_object_begin(j);
		for (unsigned v = 0; v < REPORT_VALUES; v++)
			if ((n = report_stats(r, run, s, v, &stats)))
				write_stats(j, report_value_name[v], &stats, n);
		json_key_str(j, "quality", quality_name(report_quality(r, run, s)));
		json_object_end(j);
	}
	json_object_end(j);
}

static void json_write_run(struct json *j, const struct report *r, const struct report_run *run)
{
	const struct tree_place *p = r->list[run->first].place;
	struct statistics stats;
	unsigned n;

	json_object_begin(j);
	json_key_str(j, "experiment", p->name[TREE_EXPERIMENT]);
	json_key_str(j, "benchmark", p->name[TREE_BENCHMARK]);
	json_key_str(j, "run", p->name[TREE_RUN]);
	write_sources(j, r, run);
	for (unsigned m = 0; m < REPORT_MEANS; m++)
		if ((n = report_mean_stats(r, run, m, &stats)))
			write_stats(j, report_mean_name[m], &stats, n);
	json_key(j, "repetitions");
	json_array_begin(j);
	for (unsigned i = 0; i < run->n; i++)
		write_repetition(j, r, &r->list[run->first + i]);
	json_array_end(j);
	json_object_end(j);
}

void report_write_json(const struct report *r, struct buf *b)
{
	struct json j;

	json_init(&j, b);
	json_object_begin(&j);
	json_key(&j, "compat");
	json_bool(&j, r->o.compat);
	key_double(&j, "external_idle_w", r->o.external_idle_w);
	json_key(&j, "runs");
	json_array_begin(&j);
	for (unsigned i = 0; i < r->n_runs; i++)
		json_write_run(&j, r, &r->runs[i]);
	json_array_end(&j);
	json_key(&j, "warnings");
	json_array_begin(&j);
	for (unsigned i = 0; i < r->warnings.n; i++) {
		json_object_begin(&j);
		json_key_str(&j, "where", r->warnings.list[i].file);
		json_key_str(&j, "text", r->warnings.list[i].text);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	buf_add_char(b, '\n');
}
