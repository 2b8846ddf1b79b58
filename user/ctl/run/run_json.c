/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for programs: one object. A single run has its keys in this object. With repeats `runs` has an object per run,
 * and `statistics` has the means. A value that is not known has no key. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/format/json.h"
#include "base/statistics.h"
#include "result.h"
#include "run_outliers.h"

struct writer {
	struct json j;
	const struct run_report *r;
	double *v;
	uint64_t seed;
};

static bool has_energy(const struct run_facts *f)
{
	return f->n_domains && f->split;
}

static double power(const struct run_result *r, unsigned d)
{
	return r->wall_ns ? (double)r->value[d] * 1e3 / (double)r->wall_ns : NAN;
}

static void add_double(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v);
}

static void add_known(struct json *j, const char *key, double v)
{
	if (!isnan(v))
		add_double(j, key, v);
}

static void add_energy(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		json_key_u64(j, f->domain[d].name, r->value[d]);
	json_object_end(j);
	json_key(j, "energy_quality");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		json_key_str(j, f->domain[d].name, quality_name(r->energy_quality[d]));
	json_object_end(j);
	json_key_u64(j, "energy_total_uj", run_total_uj(f, r));
	json_key_str(j, "energy_total_quality", quality_name(run_total_quality(f, r)));
	add_known(j, "energy_total_uncertainty", run_total_range(f, r));
	json_key(j, "power_w");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++) {
		json_key(j, f->domain[d].name);
		json_double(j, power(r, d));
	}
	json_object_end(j);
}

/* Adds the energy of the whole machine between the readings before and after the run. */
static void add_machine(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	json_key(j, "machine");
	json_object_begin(j);
	json_key_u64(j, "interval_ns", r->window_ns);
	json_key(j, "energy_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		json_key_u64(j, f->domain[d].name, r->machine_uj[d]);
	json_object_end(j);
	json_key(j, "idle_uj");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		json_key_u64(j, f->domain[d].name, r->idle_uj[d]);
	json_object_end(j);
	json_object_end(j);
}

static void add_measured(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	if (has_energy(f))
		add_energy(j, f, r);
	json_key(j, "counters");
	json_object_begin(j);
	for (unsigned i = 0; i < f->n_counters; i++)
		if (run_counter_known(f, r, i))
			json_key_u64(j, f->counter[i], run_counter(f, r, i));
	json_object_end(j);
	json_key_str(j, "counters_quality", quality_name(r->quality));
	if (f->switches)
		json_key_u64(j, "switches", run_fixed(f, r, RUN_SWITCHES));
	if (f->network)
		json_key_fields(j, "network", &total_columns, &r->value[f->n_domains], COLUMNS_OF_NETWORK);
	if (f->block)
		json_key_fields(j, "block", &total_columns, &r->value[f->n_domains], COLUMNS_OF_BLOCK);
	if (f->n_domains)
		add_machine(j, f, r);
}

static void add_left(struct json *j, const struct run_left *l)
{
	json_key_u64(j, "left_running", l->n);
	json_key(j, "left");
	json_array_begin(j);
	for (unsigned i = 0; i < l->n && i < RUN_LEFT_MAX; i++) {
		json_object_begin(j);
		json_key_u64(j, "pid", (uint64_t)l->pid[i]);
		json_key_str(j, "name", l->comm[i]);
		json_object_end(j);
	}
	json_array_end(j);
}

/* Adds the figures that something which already ran has too. */
static void add_figures(struct json *j, const struct run_report *report, const struct run_result *r)
{
	const struct run_facts *f = report->facts;

	for (unsigned k = 0; k < RUN_MEMORY_PEAK; k++)
		if (run_figure_known(report, k))
			json_key_u64(j, run_figure_name[k], run_figure(f, r, k));
	json_key_str(j, "quality", quality_name(run_quality(f, r)));
	if (r->measured)
		add_measured(j, f, r);
	add_known(j, "cost", run_money(report, r));
	add_known(j, "co2_g", run_grams(report, r));
}

static void add_run(struct json *j, const struct run_report *report, const struct run_result *r)
{
	json_key_u64(j, "exit_status", (uint64_t)r->exit_status);
	if (r->signal)
		json_key_u64(j, "signal", (uint64_t)r->signal);
	if (*r->error)
		json_key_str(j, "error", r->error);
	if (!r->started)
		return;
	add_figures(j, report, r);
	json_key_u64(j, run_figure_name[RUN_MEMORY_PEAK], r->memory_peak);
	json_key_str(j, "memory_peak_of", r->memory_of_cgroup ? "cgroup" : "largest process");
	if (r->left.n)
		add_left(j, &r->left);
}

/* Columns of statistics: figures, then values of the agent, then their power. */
enum { VALUES = RUN_FIGURES, POWERS = VALUES + RUN_VALUES_MAX };

/* Adds an object about the n values of w->v. */
static void add_summary(struct writer *w, unsigned n)
{
	struct summary s = summary_of(w->v, n, w->seed);
	const struct {
		const char *key;
		double v;
	} list[] = {
		{ "mean", s.mean },
		{ "stddev", n > 1 ? s.stddev : NAN },
		{ "ci95", n > 1 ? statistics_of(w->v, n).ci95 : NAN },
		{ "median", s.median },
		{ "min", s.min },
		{ "max", s.max },
		{ "low", s.interval.low },
		{ "high", s.interval.high },
	};

	json_object_begin(&w->j);
	json_key_u64(&w->j, "n", n);
	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		add_double(&w->j, list[i].key, n > 1 || i < 6 ? list[i].v : NAN);
	json_object_end(&w->j);
}

static void add_stats(struct writer *w, const char *key, unsigned column)
{
	const struct run_facts *f = w->r->facts;
	unsigned n = 0;

	for (unsigned i = 0; i < w->r->n; i++) {
		const struct run_result *r = &w->r->runs[i];

		if (!r->started ||
		    (column >= POWERS ? !r->measured : column >= VALUES && !run_value_known(f, r, column - VALUES)))
			continue;
		w->v[n++] = column < VALUES ? (double)run_figure(f, r, column) :
			    column < POWERS ? (double)r->value[column - VALUES] :
					      power(r, column - POWERS);
	}
	if (!n)
		return;
	json_key(&w->j, key);
	add_summary(w, n);
}

static void add_group(struct writer *w, const char *key, unsigned first, unsigned n,
		      const char *(*name)(const struct run_facts *, unsigned))
{
	json_key(&w->j, key);
	json_object_begin(&w->j);
	for (unsigned i = 0; i < n; i++)
		add_stats(w, name(w->r->facts, i), first + i);
	json_object_end(&w->j);
}

static const char *domain_name(const struct run_facts *f, unsigned i)
{
	return f->domain[i].name;
}

static const char *counter_name(const struct run_facts *f, unsigned i)
{
	return f->counter[i];
}

static void add_statistics(struct writer *w)
{
	const struct run_facts *f = w->r->facts;

	json_key(&w->j, "statistics");
	json_object_begin(&w->j);
	add_stats(w, run_figure_name[RUN_WALL_NS], RUN_WALL_NS);
	add_stats(w, run_figure_name[RUN_CPU_NS], RUN_CPU_NS);
	if (has_energy(f)) {
		add_group(w, "energy_uj", VALUES, f->n_domains, domain_name);
		add_group(w, "power_w", POWERS, f->n_domains, domain_name);
	}
	add_group(w, "counters", VALUES + f->n_domains + RUN_FIXED, f->n_counters, counter_name);
	json_object_end(&w->j);
}

static void add_command(struct json *j, const struct run_report *r)
{
	json_key(j, "command");
	json_array_begin(j);
	for (char *const *word = r->command; *word; word++)
		json_str(j, *word);
	json_array_end(j);
	if (r->shell) {
		json_key(j, "shell");
		json_bool(j, true);
	}
}

static void add_attached(struct json *j, const struct run_attached *a)
{
	if (a->pid) {
		json_key_u64(j, "pid", (uint64_t)a->pid);
		json_key_str(j, "process", a->comm);
	}
	json_key_str(j, "cgroup", a->cgroup);
	json_key_str(j, "by", run_attached_by_name[a->by]);
	add_double(j, "share", a->share);
	json_key_str(j, "until", a->until);
}

static void add_facts(struct json *j, const struct run_facts *f)
{
	json_key_str(j, "agent", f->private_agent ? "private" : "running");
	json_key_str(j, "formula", f->formula);
	json_key_str(j, "idle", f->idle);
	json_key(j, "in_total");
	json_array_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		if (f->domain[d].summed)
			json_str(j, f->domain[d].name);
	json_array_end(j);
	json_key(j, "idle_power_w");
	json_object_begin(j);
	for (unsigned d = 0; d < f->n_domains; d++)
		add_double(j, f->domain[d].name, (double)f->domain[d].idle_power_uw / 1e6);
	json_object_end(j);
}

static void add_outlier(struct json *j, const struct run_report *report, const struct run_outlier *o)
{
	static const char *const key[] = {
		[OUTLIER_ENERGY] = "energy_total_uj", [OUTLIER_CPU] = "cpu_ns", [OUTLIER_WALL] = "wall_ns"
	};
	const struct run_result *r = &report->runs[o->run];

	json_object_begin(j);
	json_key_u64(j, "run", o->run + 1);
	json_key_str(j, "of", key[o->of]);
	add_double(j, "value", o->value);
	add_double(j, "median", o->median);
	if (r->others_known) {
		json_key(j, "beside");
		json_array_begin(j);
		for (unsigned i = 0; i < r->n_others; i++) {
			json_object_begin(j);
			json_key_str(j, "name", r->other[i].name);
			if (has_energy(report->facts))
				json_key_u64(j, "energy_uj", r->other[i].energy_uj);
			json_key_u64(j, "cpu_ns", r->other[i].cpu_ns);
			json_object_end(j);
		}
		json_array_end(j);
	}
	json_object_end(j);
}

static void add_outliers(struct writer *w)
{
	struct run_outlier *list;
	int n = run_outliers_find(w->r, &list);

	w->j.out->failed |= n < 0;
	json_key(&w->j, "outliers");
	json_array_begin(&w->j);
	for (int i = 0; i < n; i++)
		add_outlier(&w->j, w->r, &list[i]);
	json_array_end(&w->j);
	free(list);
}

static unsigned worst_quality(const struct run_report *r)
{
	unsigned quality = 0;

	for (unsigned i = 0; i < r->n; i++)
		quality |= run_quality(r->facts, &r->runs[i]);
	return quality;
}

/* Adds all runs of a command. order: the sequence of runs, of which this side's number is `side`; NULL = in a row. */
static void add_runs(struct writer *w, const struct run_comparison *c, unsigned side)
{
	json_key_u64(&w->j, "exit_status", (uint64_t)w->r->exit_status);
	json_key_str(&w->j, "quality", quality_name(worst_quality(w->r)));
	json_key(&w->j, "runs");
	json_array_begin(&w->j);
	for (unsigned i = 0; i < w->r->n; i++) {
		json_object_begin(&w->j);
		if (c)
			json_key_u64(&w->j, "order", run_comparison_place(c, side, i));
		add_run(&w->j, w->r, &w->r->runs[i]);
		json_object_end(&w->j);
	}
	json_array_end(&w->j);
	add_statistics(w);
	add_outliers(w);
}

void run_write_json(const struct run_report *r, struct buf *b)
{
	struct writer w = { .r = r, .v = calloc(r->n, sizeof(double)) };

	if (!w.v) {
		b->failed = true;
		return;
	}
	json_init(&w.j, b);
	json_object_begin(&w.j);
	if (r->attached)
		add_attached(&w.j, r->attached);
	else
		add_command(&w.j, r);
	add_facts(&w.j, r->facts);
	if (r->attached)
		add_figures(&w.j, r, &r->runs[0]);
	else if (r->n == 1)
		add_run(&w.j, r, &r->runs[0]);
	else
		add_runs(&w, NULL, 0);
	json_object_end(&w.j);
	buf_add_char(b, '\n');
	free(w.v);
}

static void add_ratio(struct json *j, const struct series *s, unsigned side, unsigned metric)
{
	struct series_ratio r = series_ratio(s, side, metric);

	if (!r.n)
		return;
	json_key(j, s->metric[metric].name);
	json_object_begin(j);
	json_key_u64(j, "n", r.n);
	add_double(j, "ratio", r.ratio);
	add_double(j, "low", r.interval.low);
	add_double(j, "high", r.interval.high);
	json_key_str(j, "quality", quality_name(s->metric[metric].quality));
	json_object_end(j);
}

static void add_comparisons(struct json *j, const struct series *s)
{
	unsigned judged = series_judged(s);
	char name[2] = "";

	json_key(j, "comparisons");
	json_array_begin(j);
	for (unsigned k = 1; k < s->n_sides; k++) {
		struct series_ratio r = series_ratio(s, k, judged);

		json_object_begin(j);
		name[0] = series_letter(k);
		json_key_str(j, "side", name);
		json_key_str(j, "to", "A");
		json_key_str(j, "of", s->metric[judged].name);
		add_double(j, "ratio", r.n ? r.ratio : NAN);
		add_double(j, "low", r.n ? r.interval.low : NAN);
		add_double(j, "high", r.n ? r.interval.high : NAN);
		json_key_str(j, "quality", quality_name(s->metric[judged].quality));
		json_key(j, "ratios");
		json_object_begin(j);
		for (unsigned m = 0; m < s->n_metrics; m++)
			add_ratio(j, s, k, m);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_side(struct writer *w, const struct run_comparison *c, unsigned side)
{
	const char name[2] = { series_letter(side), '\0' };

	w->r = &c->side[side];
	json_object_begin(&w->j);
	json_key_str(&w->j, "side", name);
	add_command(&w->j, w->r);
	add_runs(w, c, side);
	json_object_end(&w->j);
}

/* After an interruption one command has run more often than another. */
static unsigned most_runs(const struct run_comparison *c)
{
	unsigned n = 0;

	for (unsigned k = 0; k < c->n_sides; k++)
		n = c->side[k].n > n ? c->side[k].n : n;
	return n;
}

void run_write_comparison_json(const struct run_comparison *c, struct buf *b)
{
	struct writer w = { .v = calloc(most_runs(c) + 1, sizeof(double)), .seed = c->series->seed };

	if (!w.v) {
		b->failed = true;
		return;
	}
	json_init(&w.j, b);
	json_object_begin(&w.j);
	add_facts(&w.j, c->side[0].facts);
	json_key_u64(&w.j, "seed", c->series->seed);
	json_key_u64(&w.j, "rounds", c->series->n_rounds);
	json_key_u64(&w.j, "warmup", c->warmup);
	json_key_str(&w.j, "input", c->input);
	json_key(&w.j, "sides");
	json_array_begin(&w.j);
	for (unsigned k = 0; k < c->n_sides; k++)
		add_side(&w, c, k);
	json_array_end(&w.j);
	add_comparisons(&w.j, c->series);
	if (c->gate) {
		json_key(&w.j, "verdict");
		gate_add_json(c->gate, &w.j);
	}
	json_object_end(&w.j);
	buf_add_char(b, '\n');
	free(w.v);
}
