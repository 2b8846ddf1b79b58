/* SPDX-License-Identifier: Apache-2.0 */
/* Formula auto: model where it is known to be better here, else share. The last audit decides where it told the two apart;
 * else the held-out errors do: what each formula makes of a point of power that it has not learned from. Both formulas see every
 * interval, so that either can take over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "formula.h"

#define POINTS_LEAST 32 /* of a domain: a mean over fewer points moves too much */
#define CLEARLY 0.9 /* model takes over below this part of share's error, and stays up to all of it */

struct formula {
	struct formula *share, *model;
	bool by_model; /* the choice */
	char why[FORMULA_WHY_MAX];
	unsigned cap;
	struct snap_learned *learned; /* [domain] of the interval at hand */
};

static void auto_destroy(struct formula *f)
{
	if (!f)
		return;
	formula_share.destroy(f->share);
	formula_model.destroy(f->model);
	free(f->learned);
	free(f);
}

static struct formula *auto_create(const struct formula_options *o)
{
	struct formula *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->share = formula_share.create(o);
	f->model = formula_model.create(o);
	if (f->share && f->model)
		return f;
	auto_destroy(f);
	return NULL;
}

/* Means of the domains' held-out errors, by energy; only of domains that are added up. False = too few points. */
static bool held_out(const struct snapshot *s, double *ret_model, double *ret_share)
{
	double energy = 0, model = 0, share = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		const struct snap_learned *l = &s->domains[d].learned;
		double uj = (double)s->domains[d].energy_uj;

		if (l->points < POINTS_LEAST || !schema_sums(s->schema, d))
			continue;
		energy += uj;
		model += uj * l->held_out;
		share += uj * l->held_out_share;
	}
	*ret_model = energy > 0 ? model / energy : 0;
	*ret_share = energy > 0 ? share / energy : 0;
	return energy > 0;
}

/* s: as model left it. */
static void choose(struct formula *f, const struct snapshot *s)
{
	const bool model_better = strcmp(s->audit.better, formula_model.name) == 0;
	double model, share;

	if (model_better || strcmp(s->audit.better, formula_share.name) == 0) {
		f->by_model = model_better;
		snprintf(f->why, sizeof(f->why), "the last audit found it better%s%s", s->audit.why[0] ? ": " : "",
			 s->audit.why);
		return;
	}
	if (!held_out(s, &model, &share)) {
		if (!f->why[0])
			snprintf(f->why, sizeof(f->why),
				 "no audit told the formulas apart, and too little was learned yet");
		return;
	}
	f->by_model = model < (f->by_model ? share : CLEARLY * share);
	snprintf(f->why, sizeof(f->why),
		 "no audit told the formulas apart; of power not learned from model misses %.1f %%, share %.1f %%",
		 100 * model, 100 * share);
}

static int reserve(struct formula *f, unsigned n)
{
	struct snap_learned *v = n > f->cap ? realloc(f->learned, n * sizeof(*v)) : f->learned;

	if (n && !v)
		return -ENOMEM;
	f->learned = v;
	f->cap = n > f->cap ? n : f->cap;
	return 0;
}

/* What share leaves, with what model has learned. */
static int apply_share_last(struct formula *f, struct snapshot *s)
{
	int rc;

	for (unsigned d = 0; d < s->schema->n_domains; d++)
		f->learned[d] = s->domains[d].learned;
	rc = formula_share.apply(f->share, s);
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		s->domains[d].learned = f->learned[d];
	return rc;
}

/* Both see the interval; the results of the last one stay. What it tells decides about the next interval. */
static int auto_apply(struct formula *f, struct snapshot *s)
{
	bool by_model = f->by_model;
	int rc = reserve(f, s->schema->n_domains);

	if (rc) {
		formula_all_residual(s);
		return rc;
	}
	if (by_model)
		rc = formula_share.apply(f->share, s);
	if (!rc)
		rc = formula_model.apply(f->model, s);
	if (rc)
		return rc;
	choose(f, s);
	return by_model ? 0 : apply_share_last(f, s);
}

static const char *auto_reason(const struct formula *f)
{
	return f->why;
}

const struct formula_ops formula_auto = { "auto", auto_create, auto_apply, auto_destroy, auto_reason };
