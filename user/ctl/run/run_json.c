/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for programs: one object. A single run has its keys in this object. With repeats `runs` has an object per run,
 * and `statistics` has the means. A value that is not known has no key. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/format/csv.h"
#include "base/format/json.h"
#include "base/statistics.h"
#include "result.h"

struct writer {
	struct json j;
	const struct run_report *r;
	double *v;
};

static bool has_energy(const struct run_facts *f)
{
	return f->n_domains && f->split;
}

static double power(const struct run_result *r, unsigned d)
{
	return r->wall_ns ? (double)r->value[d] * 1e3 / (double)r->wall_ns : NAN;
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

static void add_run(struct json *j, const struct run_facts *f, const struct run_result *r)
{
	json_key_u64(j, "exit_status", (uint64_t)r->exit_status);
	if (r->signal)
		json_key_u64(j, "signal", (uint64_t)r->signal);
	if (*r->error)
		json_key_str(j, "error", r->error);
	if (!r->started)
		return;
	for (unsigned k = 0; k < RUN_MEMORY_PEAK; k++)
		json_key_u64(j, run_figure_name[k], run_figure(f, r, k));
	json_key_str(j, "quality", quality_name(run_quality(f, r)));
	if (r->measured)
		add_measured(j, f, r);
	json_key_u64(j, run_figure_name[RUN_MEMORY_PEAK], r->memory_peak);
	json_key_str(j, "memory_peak_of", r->memory_of_cgroup ? "cgroup" : "largest process");
	if (r->left.n)
		add_left(j, &r->left);
}

/* Columns of statistics: figures, then values of the agent, then their power. */
enum { VALUES = RUN_FIGURES, POWERS = VALUES + RUN_VALUES_MAX };

static void add_stats(struct writer *w, const char *key, unsigned column)
{
	const struct run_facts *f = w->r->facts;
	struct statistics s;
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
	s = statistics_of(w->v, n);
	json_key(&w->j, key);
	json_object_begin(&w->j);
	json_key_u64(&w->j, "n", n);
	json_key(&w->j, "mean");
	json_double(&w->j, s.mean);
	json_key(&w->j, "stddev");
	json_double(&w->j, n > 1 ? s.stddev : NAN);
	json_key(&w->j, "ci95");
	json_double(&w->j, n > 1 ? s.ci95 : NAN);
	json_object_end(&w->j);
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

static void add_facts(struct json *j, const struct run_report *r)
{
	json_key(j, "command");
	json_array_begin(j);
	for (char *const *word = r->command; *word; word++)
		json_str(j, *word);
	json_array_end(j);
	json_key_str(j, "agent", r->facts->private_agent ? "private" : "running");
	json_key_str(j, "formula", r->facts->formula);
	json_key_str(j, "idle", r->facts->idle);
	json_key(j, "in_total");
	json_array_begin(j);
	for (unsigned d = 0; d < r->facts->n_domains; d++)
		if (r->facts->domain[d].summed)
			json_str(j, r->facts->domain[d].name);
	json_array_end(j);
	json_key(j, "idle_power_w");
	json_object_begin(j);
	for (unsigned d = 0; d < r->facts->n_domains; d++) {
		json_key(j, r->facts->domain[d].name);
		json_double(j, (double)r->facts->domain[d].idle_power_uw / 1e6);
	}
	json_object_end(j);
}

void run_write_json(const struct run_report *r, struct buf *b)
{
	struct writer w = { .r = r, .v = calloc(r->n, sizeof(double)) };
	unsigned quality = 0;

	if (!w.v) {
		b->failed = true;
		return;
	}
	json_init(&w.j, b);
	json_object_begin(&w.j);
	add_facts(&w.j, r);
	if (r->n == 1) {
		add_run(&w.j, r->facts, &r->runs[0]);
	} else {
		for (unsigned i = 0; i < r->n; i++)
			quality |= run_quality(r->facts, &r->runs[i]);
		json_key_u64(&w.j, "exit_status", (uint64_t)r->exit_status);
		json_key_str(&w.j, "quality", quality_name(quality));
		json_key(&w.j, "runs");
		json_array_begin(&w.j);
		for (unsigned i = 0; i < r->n; i++) {
			json_object_begin(&w.j);
			add_run(&w.j, r->facts, &r->runs[i]);
			json_object_end(&w.j);
		}
		json_array_end(&w.j);
		add_statistics(&w);
	}
	json_object_end(&w.j);
	buf_add_char(b, '\n');
	free(w.v);
}

/* CSV for tables: a head, then a line per run. The cell of a value that is not known is empty. Names of domains and
 * counters may hold commas (pmu/event=1,umask=2/): such a name is quoted (RFC 4180). */

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

static void add_heads(const struct run_facts *f, struct buf *b)
{
	buf_add_str(b, "run,exit_status,quality");
	for (unsigned k = 0; k < RUN_FIGURES; k++)
		add_head(b, "", run_figure_name[k]);
	for (unsigned d = 0; d < f->n_domains; d++)
		add_head(b, "energy_uj:", f->domain[d].name);
	for (unsigned i = 0; i < f->n_counters; i++)
		add_head(b, "", f->counter[i]);
	for (unsigned i = RUN_SWITCHES; i < RUN_FIXED; i++)
		add_head(b, "", total_columns.list[i].name);
	buf_add_char(b, '\n');
}

static void csv_add_run(const struct run_facts *f, const struct run_result *r, struct buf *b)
{
	buf_printf(b, "%d,%s", r->exit_status, r->started ? quality_name(run_quality(f, r)) : "");
	for (unsigned k = 0; k < RUN_FIGURES; k++)
		add_cell(b, r->started, run_figure(f, r, k));
	for (unsigned d = 0; d < f->n_domains; d++)
		add_cell(b, r->measured && f->split, r->value[d]);
	for (unsigned i = 0; i < f->n_counters; i++)
		add_cell(b, run_counter_known(f, r, i), run_counter(f, r, i));
	add_cell(b, r->measured && f->switches, run_fixed(f, r, RUN_SWITCHES));
	for (unsigned i = RUN_RX_BYTES; i <= RUN_TX_PACKETS; i++)
		add_cell(b, r->measured && f->network, run_fixed(f, r, i));
	buf_add_char(b, '\n');
}

void run_write_csv(const struct run_report *r, struct buf *b)
{
	add_heads(r->facts, b);
	for (unsigned i = 0; i < r->n; i++) {
		buf_printf(b, "%u,", i + 1);
		csv_add_run(r->facts, &r->runs[i], b);
	}
}
