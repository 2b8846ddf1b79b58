/* SPDX-License-Identifier: Apache-2.0 */
#include "../base/json.h"
#include "report.h"

static void key_double(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v);
}

static void write_stats(struct json *j, const char *key, const struct run_stats *s, unsigned n)
{
	json_key(j, key);
	json_object_begin(j);
	json_key_u64(j, "n", n);
	key_double(j, "mean", s->mean);
	key_double(j, "stddev", s->stddev);
	key_double(j, "ci95", s->ci95);
	json_object_end(j);
}

static void write_result(struct json *j, const struct report_result *r)
{
	json_object_begin(j);
	for (unsigned v = 0; v < REPORT_VALUES; v++)
		key_double(j, report_value_name[v], r->value[v]);
	json_key_u64(j, "rows", r->rows);
	json_object_end(j);
}

static void write_repetition(struct json *j, const struct report_repetition *t)
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
				write_result(j, &t->source[s]);
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
	struct run_stats stats;
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
		json_object_end(j);
	}
	json_object_end(j);
}

static void write_run(struct json *j, const struct report *r, const struct report_run *run)
{
	const struct tree_place *p = r->list[run->first].place;
	struct run_stats stats;
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
		write_repetition(j, &r->list[run->first + i]);
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
		write_run(&j, r, &r->runs[i]);
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
