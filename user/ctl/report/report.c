/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/schema.h"
#include "report.h"

const char *const report_source_name[REPORT_SOURCES] = { "hd", "sd", "external", "rapl", "cgroup" };
const char *const report_value_name[REPORT_VALUES] = { "energy_j", "time_s", "power_w", "edp_js",
						       "ed2p_js2", "cost",   "co2_g" };
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
		tree_find(warnings, TREE_NOTE, "counter-reset", tree_at(ret->place->shown, 0),
			  "gpu-power.csv: total-energy went back or does not cover the window; it is not compared");
}

static void report_compare(const struct report_options *o, const struct report_repetition *r, struct tree_findings *f);

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
		tree_find(&r->warnings, TREE_SKIPPED, "unreadable", tree_at(ret->place->shown, 0), "%s", err.text);
		return rc == -ENOMEM ? rc : 0;
	}
	if (tree_window_of(&t, &ret->window, &err))
		tree_find(&r->warnings, TREE_SKIPPED, "no-window", tree_at(ret->place->shown, 0), "left out: %s",
			  err.text);
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

bool report_shows(const struct report *r, enum report_value v)
{
	const struct cost *c = r->o.cost;

	return v < REPORT_COST || (c && (v == REPORT_COST ? cost_has_price(c) : cost_has_carbon(c)));
}

/* Computes the statistics of one field over the repetitions of a run. The field is the double at `offset` in
 * report_repetition. Returns the number of repetitions that know it. */
static unsigned stats_at(const struct report *r, const struct report_run *run, size_t offset, struct statistics *ret)
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
		*ret = statistics_of(v, n);
	free(v);
	return n;
}

unsigned report_stats(const struct report *r, const struct report_run *run, enum report_source s, enum report_value v,
		      struct statistics *ret)
{
	return stats_at(r, run,
			offsetof(struct report_repetition, source[0]) + s * sizeof(struct report_result) +
				offsetof(struct report_result, value[0]) + v * sizeof(double),
			ret);
}

unsigned report_quality(const struct report *r, const struct report_run *run, enum report_source s)
{
	unsigned quality = 0;

	for (unsigned i = 0; i < run->n; i++) {
		const struct report_repetition *t = &r->list[run->first + i];

		quality |= t->usable && t->source[s].known ? t->source[s].quality : 0;
	}
	return quality;
}

unsigned report_mean_stats(const struct report *r, const struct report_run *run, enum report_mean m,
			   struct statistics *ret)
{
	return stats_at(r, run, offsetof(struct report_repetition, mean[0]) + m * sizeof(double), ret);
}

unsigned report_domains(const struct tree_table *t, bool *ret, char *names, size_t size)
{
	static const char suffix[] = "-energy";
	const char *domain[TREE_COLUMNS_MAX] = { NULL };
	unsigned column[TREE_COLUMNS_MAX], n = 0, chosen = 0;
	bool take[TREE_COLUMNS_MAX];
	size_t at = 0;

	memset(ret, 0, t->n_columns * sizeof(*ret));
	*names = '\0';
	for (unsigned i = 0; i < t->n_columns; i++) {
		size_t len = strlen(t->column[i]);

		if (len >= sizeof(suffix) && strcmp(t->column[i] + len + 1 - sizeof(suffix), suffix) == 0)
			continue;
		if (domain_kind_of(t->column[i]) == DOMAIN_EXTERNAL)
			continue; /* columns of an external meter belong to the source external */
		column[n] = i;
		domain[n++] = t->column[i];
	}
	domain_names_summed(domain, n, take);
	for (unsigned i = 0; i < n; i++) {
		ret[column[i]] = take[i];
		if (take[i] && at < size)
			at += (size_t)snprintf(names + at, size - at, "%s%.60s", at ? " + " : "", domain[i]);
		chosen += take[i];
	}
	return chosen;
}

const char *report_what(const struct report_repetition *t, enum report_source s, unsigned quality,
			char what[REPORT_WHAT_MAX])
{
	static const char *const words[REPORT_SOURCES] = {
		[REPORT_HD] = "GPU power (driver's samples)",  [REPORT_SD] = "GPU power (queries)",
		[REPORT_EXTERNAL] = "external power",          [REPORT_RAPL] = "power of the machine",
		[REPORT_CGROUP] = "power of the run's cgroup",
	};
	bool machine = s == REPORT_RAPL || (s == REPORT_HD && strcmp(t->samples_from, "rapl") == 0);
	bool cgroup = s == REPORT_CGROUP || (s == REPORT_HD && strcmp(t->samples_from, "cgroup") == 0);
	const char *domains = machine ? t->domains[0] : cgroup ? t->domains[1] : "";

	snprintf(what, REPORT_WHAT_MAX, "%s%s%s%s%s%s",
		 words[machine ? REPORT_RAPL :
		       cgroup  ? REPORT_CGROUP :
				 s],
		 *domains ? " (" : "", domains, *domains ? ")" : "", quality ? ", " : "",
		 quality ? quality_name(quality) : "");
	return what;
}

/* Comparison of the GPU's counter, the integral of its power and the external meter in one repetition. The bounds are
 * wide: counters step by up to 100 ms, and the driver's power is a mean over up to a second on many cards (arXiv
 * 2312.02741). */

#define AGREE 0.05
#define EDGE_S 0.2 /* possible error of the two ends of the window */
#define TENFOLD 12.0 /* a machine of eight GPUs with one in use is at 11; more suggests the wrong unit */

static double length_s(const struct report_result *r)
{
	return (double)(r->last_ns - r->first_ns) / 1e9;
}

static double mean_w(const struct report_result *r)
{
	return r->value[REPORT_ENERGY] / length_s(r);
}

static bool usable(const struct report_result *r)
{
	return r->known && r->last_ns > r->first_ns && r->value[REPORT_ENERGY] > 0;
}

static bool apart(double a, double b, double seconds)
{
	return fabs(a - b) > fmax(fabs(a), fabs(b)) * (AGREE + EDGE_S / seconds);
}

static void compare_external(const struct report_options *o, const struct report_repetition *r, double gpu_w,
			     struct tree_findings *f)
{
	double raw_w = mean_w(&r->source[REPORT_EXTERNAL]) + o->external_idle_w;
	bool tens = r->external_mw == 10;

	if (raw_w < gpu_w)
		tree_find(f, TREE_WRONG, "external-below-gpu", tree_at(r->place->shown, 0),
			  "external power (%.4g W) is below that of the GPU alone (%.4g W); %s", raw_w, gpu_w,
			  tens ? "does the meter measure the GPU?" : "is a count 10 mW? --external-unit 10mW");
	else if (raw_w > TENFOLD * gpu_w)
		tree_find(f, TREE_WRONG, "external-tenfold", tree_at(r->place->shown, 0),
			  "external power (%.4g W) is %.1f times that of the GPU (%.4g W); %s", raw_w, raw_w / gpu_w,
			  gpu_w,
			  !tens     ? "does the meter measure other machines too?" :
			  o->compat ? "is a count 1 mW? leave out --compat" :
				      "is a count 1 mW? --external-unit mW");
}

/* Warns of figures that should agree and do not. */
static void report_compare(const struct report_options *o, const struct report_repetition *r, struct tree_findings *f)
{
	const struct report_result *sd = &r->source[REPORT_SD], *hd = &r->source[REPORT_HD];
	const struct report_result *rapl = &r->source[REPORT_RAPL], *cgroup = &r->source[REPORT_CGROUP];

	if (usable(sd) && !isnan(r->counter_j) && apart(sd->value[REPORT_ENERGY], r->counter_j, length_s(sd)))
		tree_find(f, TREE_WRONG, "counter", tree_at(r->place->shown, 0),
			  "the GPU's counter says %.5g J, its power (sd) adds up to %.5g J", r->counter_j,
			  sd->value[REPORT_ENERGY]);
	if (usable(sd) && usable(hd) && apart(mean_w(sd), mean_w(hd), fmin(length_s(sd), length_s(hd))))
		tree_find(f, TREE_WRONG, "samples", tree_at(r->place->shown, 0),
			  "mean power is %.5g W by the driver's samples (hd), %.5g W by queries (sd)", mean_w(hd),
			  mean_w(sd));
	if (r->source[REPORT_EXTERNAL].known &&
	    r->source[REPORT_EXTERNAL].last_ns > r->source[REPORT_EXTERNAL].first_ns && (usable(sd) || usable(hd)))
		compare_external(o, r, mean_w(usable(sd) ? sd : hd), f);
	/* Only cgroup-power.csv has GPUs, so the domains can differ. */
	if (usable(rapl) && usable(cgroup) && strcmp(r->domains[0], r->domains[1]) == 0 &&
	    mean_w(cgroup) > mean_w(rapl) * (1 + AGREE))
		tree_find(f, TREE_WRONG, "cgroup-above-rapl", tree_at(r->place->shown, 0),
			  "the cgroup's power (%.5g W) is above the machine's (%.5g W)", mean_w(cgroup), mean_w(rapl));
}
