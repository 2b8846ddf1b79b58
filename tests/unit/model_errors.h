/* SPDX-License-Identifier: Apache-2.0 */
/* A formula's answers against the truth of a model_world, the ledger checked on the way. */
#ifndef JD_TEST_MODEL_ERRORS_H
#define JD_TEST_MODEL_ERRORS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "unit/model_world.h"

#define SMALL 0.02 /* cgroups below this part of the total are not judged */

struct errors {
	double miss[MW_ROWS][MW_DOMAINS], truth[MW_ROWS][MW_DOMAINS]; /* joules, summed */
	double idle[MW_DOMAINS], idle_stated[MW_DOMAINS]; /* relative, summed */
	double width; /* uncertainty, summed */
	double stated[MW_ROWS][MW_DOMAINS]; /* the same in joules */
	unsigned by_domain[MW_DOMAINS], covered_by_domain[MW_DOMAINS];
	unsigned intervals, values, covered, unknown, idle_values, idle_covered;
	unsigned waits; /* intervals in which waits for memory are in use */
};

static struct formula_options learn_options(void)
{
	struct formula_options o = { .idle = IDLE_OWN };

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		o.idle_watts[k] = NAN;
	return o;
}

static void ledger_closes(const struct snapshot *s)
{
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		unsigned __int128 sum = (unsigned __int128)s->domains[d].idle_uj + s->domains[d].residual_uj;

		for (unsigned i = 0; i < s->n_rows; i++)
			sum += *snapshot_energy(s, i, d);
		assert_true(sum == s->domains[d].energy_uj);
	}
}

static void add_value(struct errors *e, const struct mw *w, unsigned row, unsigned d, bool judged)
{
	double got = (double)*snapshot_energy(&w->s, row, d) / 1e6, miss = fabs(got - w->truth[row][d]);
	uint32_t ppm = *snapshot_uncertainty(&w->s, row, d);

	e->miss[row][d] += miss;
	e->truth[row][d] += w->truth[row][d];
	e->stated[row][d] += ppm == SNAPSHOT_UNKNOWN ? 0 : got * ppm / 1e6;
	if (!judged)
		return;
	if (ppm == SNAPSHOT_UNKNOWN) {
		e->unknown += got > 0; /* relative to nothing, nothing can be said */
		return;
	}
	e->values++;
	e->by_domain[d]++;
	if (miss <= got * ppm / 1e6 + 1e-6) { /* microjoules are whole */
		e->covered++;
		e->covered_by_domain[d]++;
	}
	e->width += ppm / 1e6;
}

static void add_idle(struct errors *e, const struct mw *w, unsigned d)
{
	const struct snap_domain *dom = &w->s.domains[d];
	double got = (double)dom->idle_power_uw / 1e6, idle = w->truth_idle[d] / w->c.seconds, miss = fabs(got - idle);

	e->idle[d] += miss / idle;
	if (isnan(dom->idle_uncertainty))
		return;
	e->idle_values++;
	e->idle_stated[d] += got * dom->idle_uncertainty / idle;
	e->idle_covered += miss <= got * dom->idle_uncertainty + 1e-6;
}

static void add_interval(struct errors *e, const struct mw *w)
{
	e->intervals++;
	e->waits += w->s.domains[MW_DRAM].learned.in_use >> SNAP_TRY_WAIT & 1;
	for (unsigned d = 0; d < MW_DOMAINS; d++) {
		double total = 0;

		for (unsigned i = 0; i < w->s.n_rows; i++)
			total += w->truth[i][d];
		for (unsigned i = READING_SPECIAL_ROWS; i < w->s.n_rows; i++)
			add_value(e, w, i, d, w->truth[i][d] > SMALL * total);
		add_idle(e, w, d);
	}
}

/* Joules (missed or stated) of each cgroup that matters, relative to its true energy: the largest, and the mean. */
static double relative_to_truth(const struct errors *e, const double (*joules)[MW_DOMAINS], unsigned d,
				double *ret_mean)
{
	double total = 0, most = 0, sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < MW_ROWS; i++)
		total += e->truth[i][d];
	for (unsigned i = 0; i < MW_ROWS; i++) {
		if (!(e->truth[i][d] > SMALL * total))
			continue;
		most = fmax(most, joules[i][d] / e->truth[i][d]);
		sum += joules[i][d] / e->truth[i][d];
		n++;
	}
	if (ret_mean)
		*ret_mean = n ? sum / n : 0;
	return most;
}

static double error_of(const struct errors *e, unsigned d, double *ret_mean)
{
	return relative_to_truth(e, e->miss, d, ret_mean);
}

/* The mean stated uncertainty, in the way of the mean error: joules by joules. */
static double stated_of(const struct errors *e, unsigned d)
{
	double mean;

	relative_to_truth(e, e->stated, d, &mean);
	return mean;
}

static void step(struct mw *w, const struct formula_ops *ops, struct formula *f)
{
	mw_step(w);
	assert_int_equal(ops->apply(f, &w->s), 0);
	ledger_closes(&w->s);
}

/* n intervals after `before` others that are not judged. */
static void run(const struct mw_config *c, const struct formula_ops *ops, unsigned before, unsigned n,
		struct errors *ret)
{
	struct formula_options o = learn_options();
	struct formula *f = ops->create(&o);
	static struct mw w;

	memset(ret, 0, sizeof(*ret));
	assert_non_null(f);
	assert_int_equal(mw_init(&w, c), 0);
	for (unsigned k = 0; k < 60 && c->leak > 0 && !c->cold; k++)
		mw_step(&w); /* the machine is warm before anybody looks */
	for (unsigned k = 0; k < before + n; k++) {
		step(&w, ops, f);
		if (k >= before)
			add_interval(ret, &w);
	}
	ops->destroy(f);
	mw_free(&w);
}

#endif
