/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report.h"

const char *const report_source_name[REPORT_SOURCES] = { "hd", "sd", "external", "rapl", "cgroup" };
const char *const report_value_name[REPORT_VALUES] = { "energy_j", "time_s", "power_w", "edp_js", "ed2p_js2" };
const char *const report_mean_name[REPORT_MEANS] = {
	"util_gpu_percent", "util_mem_percent", "clock_gpu_mhz", "clock_mem_mhz", "power_limit_mw", "temperature_c",
};
static const char *const mean_column[REPORT_MEANS] = {
	"util-gpu", "util-mem", "clock-gpu", "clock-mem", "enforced-power-limit", "tmp"
};

static double mean_of(const struct tree_table *t, const char *name, const struct tree_window *w)
{
	int column = tree_column(t, name);
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; column >= 0 && i < t->n; i++) {
		double v = tree_cell(t, i, (unsigned)column);

		if (t->t_ns[i] < w->start_ns || t->t_ns[i] >= w->end_ns || isnan(v))
			continue;
		sum += v;
		n++;
	}
	return n ? sum / (double)n : NAN;
}

static void read_gpu(const struct tree_table *t, struct report_repetition *ret, struct tree_findings *warnings)
{
	const struct report_result *sd = &ret->source[REPORT_SD];
	int64_t from = sd->first_ns, to = sd->last_ns;
	int column = tree_column(t, "total-energy");
	double mj;

	for (unsigned m = 0; m < REPORT_MEANS; m++)
		ret->mean[m] = mean_of(t, mean_column[m], &ret->window);
	if (column < 0 || sd->rows < 2)
		return;
	if (report_counter(t, (unsigned)column, &from, &to, &mj) && from == sd->first_ns && to == sd->last_ns)
		ret->counter_j = mj / 1000;
	else
		tree_find(warnings, TREE_NOTE, "counter-reset", ret->place->shown, 0,
			  "gpu-power.csv: total-energy went back or does not cover the window; it is not compared");
}

static int read_one(struct report *r, unsigned i)
{
	struct report_repetition *ret = &r->list[i];
	struct tree_repetition t;
	struct err err = { 0 };
	int rc = tree_repetition_read(ret->place, &t, &r->found, &err);

	ret->counter_j = NAN;
	for (unsigned m = 0; m < REPORT_MEANS; m++)
		ret->mean[m] = NAN;
	if (rc) {
		tree_find(&r->warnings, TREE_SKIPPED, "unreadable", ret->place->shown, 0, "%s", err.text);
		return rc == -ENOMEM ? rc : 0;
	}
	if (tree_window_of(&t, &ret->window, &err))
		tree_find(&r->warnings, TREE_SKIPPED, "no-window", ret->place->shown, 0, "left out: %s", err.text);
	else
		ret->usable = true;
	if (ret->usable)
		rc = report_measure(&r->o, &t, ret, &r->warnings);
	if (ret->usable && !rc) {
		read_gpu(&t.table[TREE_GPU], ret, &r->warnings);
		report_compare(&r->o, ret, &r->warnings);
	}
	tree_repetition_free(&t);
	return rc;
}

static bool same_run(const struct tree_place *a, const struct tree_place *b)
{
	return !strcmp(a->name[TREE_EXPERIMENT], b->name[TREE_EXPERIMENT]) &&
	       !strcmp(a->name[TREE_BENCHMARK], b->name[TREE_BENCHMARK]) &&
	       !strcmp(a->name[TREE_RUN], b->name[TREE_RUN]);
}

int report_read(struct report *r, const char *dir, struct err *err)
{
	unsigned usable = 0;
	int rc = tree_walk(dir, &r->tree, &r->found, err);

	if (rc)
		return rc;
	r->list = calloc(r->tree.n + 1, sizeof(*r->list));
	r->runs = calloc(r->tree.n + 1, sizeof(*r->runs));
	if (!r->list || !r->runs)
		return err_set(err, -ENOMEM, "report: out of memory; name a directory below %s", dir);
	for (; r->n < r->tree.n; r->n++) {
		r->list[r->n].place = &r->tree.places[r->n];
		if (!r->n || !same_run(r->list[r->n].place, r->list[r->n - 1].place))
			r->runs[r->n_runs++].first = r->n;
		r->runs[r->n_runs - 1].n++;
		rc = read_one(r, r->n);
		if (rc)
			return err_set(err, rc, "report: out of memory; name a directory below %s", dir);
		usable += r->list[r->n].usable;
	}
	return usable ? 0 :
			err_set(err, -ENODATA, "%s: no repetition with energy in it; joulectl check %s says more", dir,
				dir);
}

void report_free(struct report *r)
{
	tree_free(&r->tree);
	free(r->list);
	free(r->runs);
	tree_findings_free(&r->found);
	tree_findings_free(&r->warnings);
}

/* One field of all repetitions of a run; fields of a report_repetition are doubles at an offset. */
static unsigned stats_at(const struct report *r, const struct report_run *run, size_t offset, struct run_stats *ret)
{
	double *v = malloc((run->n + 1) * sizeof(*v));
	unsigned n = 0;

	for (unsigned i = 0; v && i < run->n; i++) {
		double one;

		memcpy(&one, (const char *)&r->list[run->first + i] + offset, sizeof(one));
		if (r->list[run->first + i].usable && !isnan(one))
			v[n++] = one;
	}
	if (n)
		*ret = run_stats_of(v, n);
	free(v);
	return n;
}

unsigned report_stats(const struct report *r, const struct report_run *run, enum report_source s, enum report_value v,
		      struct run_stats *ret)
{
	return stats_at(r, run,
			offsetof(struct report_repetition, source[0]) + s * sizeof(struct report_result) +
				offsetof(struct report_result, value[0]) + v * sizeof(double),
			ret);
}

unsigned report_mean_stats(const struct report *r, const struct report_run *run, enum report_mean m,
			   struct run_stats *ret)
{
	return stats_at(r, run, offsetof(struct report_repetition, mean[0]) + m * sizeof(double), ret);
}
