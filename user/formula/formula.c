/* SPDX-License-Identifier: Apache-2.0 */
#include "formula.h"
#include <math.h>
#include <string.h>

const struct formula_ops *formula_find(const char *name)
{
	static const struct formula_ops *const all[] = { &formula_share, &formula_model, &formula_none, &formula_auto };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

static void mark_domain(struct snapshot *s, unsigned d)
{
	struct snap_domain *dom = &s->domains[d];

	dom->uncertainty = dom->audit_ppm / 1e6;
	for (unsigned i = 0; i < s->n_rows; i++)
		if (*snapshot_energy(s, i, d))
			*snapshot_uncertainty(s, i, d) = dom->audit_ppm;
}

void formula_audited(struct snapshot *s)
{
	if (strcmp(s->formula, s->audit.formula) != 0)
		return;
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		if (s->domains[d].audit_ppm && isnan(s->domains[d].uncertainty) &&
		    !(s->domains[d].quality & QUALITY_ESTIMATED))
			mark_domain(s, d);
}
