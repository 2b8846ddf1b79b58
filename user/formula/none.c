/* SPDX-License-Identifier: Apache-2.0 */
/* Formula none: counters and machine energy only. No row is charged, so all energy is residual. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "formula.h"

void formula_all_residual(struct snapshot *s)
{
	size_t values = (size_t)s->n_rows * s->schema->n_domains;

	memset(s->energy_uj, 0, values * sizeof(*s->energy_uj));
	memset(s->uncertainty_ppm, 0xff, values * sizeof(*s->uncertainty_ppm)); /* unknown */
	for (unsigned i = 0; i < s->schema->n_domains; i++) {
		struct snap_domain *d = &s->domains[i];

		d->idle_uj = 0;
		d->residual_uj = d->energy_uj;
		d->idle_power_uw = 0;
		d->idle_quality = d->quality | QUALITY_ESTIMATED; /* idle power is not learned here */
		d->share_quality = 0;
		d->scale = 1;
		d->uncertainty = d->idle_uncertainty = NAN;
		d->learned = (struct snap_learned){ .ready = false };
		d->price = (struct snap_price){ 0 };
	}
}

struct formula {
	char unused;
};

static struct formula *none_create(const struct formula_options *o)
{
	static struct formula only;

	(void)o;
	return &only;
}

static int none_apply(struct formula *f, struct snapshot *s)
{
	(void)f;
	snprintf(s->formula, sizeof(s->formula), "%s", formula_none.name);
	s->idle_policy = IDLE_OWN;
	formula_all_residual(s);
	return 0;
}

static void none_destroy(struct formula *f)
{
	(void)f;
}

const struct formula_ops formula_none = { "none", none_create, none_apply, none_destroy, NULL };
