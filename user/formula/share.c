/* SPDX-License-Identifier: Apache-2.0 */
/* Formula share, the default: energy above idle is split by one weight per domain (weight.c). */
#include <stdio.h>
#include <stdlib.h>
#include "charge.h"
#include "wall_charge.h"

struct formula {
	struct formula_options options;
	struct charge charge;
	struct weights weights;
};

static void share_destroy(struct formula *f)
{
	if (!f)
		return;
	charge_free(&f->charge);
	weights_free(&f->weights);
	free(f);
}

static struct formula *share_create(const struct formula_options *o)
{
	struct formula *f = calloc(1, sizeof(*f));

	if (f)
		f->options = *o;
	return f;
}

static int share_apply(struct formula *f, struct snapshot *s)
{
	bool anew;
	int rc;

	snprintf(s->formula, sizeof(s->formula), "%s", formula_share.name);
	s->idle_policy = f->options.idle;
	formula_all_residual(s);
	rc = charge_prepare(&f->charge, s, &anew);
	if (!rc)
		rc = weights_reserve(&f->weights, s);
	if (rc)
		return rc;
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		uint64_t work;

		if (wall_charge(&f->charge, s, d, &f->weights))
			continue;
		work = work_take_off(&f->charge, s, d);
		weights_of(&f->weights, s, d, f->options.weight);
		s->domains[d].share_quality = f->weights.quality;
		charge_find_idle(&f->charge, s, d, &f->weights, &f->options);
		charge_domain(&f->charge, s, d, &f->weights, &f->options, 0);
		s->domains[d].price = weights_price(&f->weights, s, s->domains[d].energy_uj - f->charge.idle_uj);
		work_put_back(&f->charge, s, d, work);
	}
	formula_audited(s);
	return 0;
}

const struct formula_ops formula_share = { "share", share_create, share_apply, share_destroy, NULL };
