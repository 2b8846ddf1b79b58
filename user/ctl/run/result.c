/* SPDX-License-Identifier: Apache-2.0 */
#include "run_result.h"

unsigned run_quality(const struct run_facts *f, const struct run_result *r)
{
	unsigned q = r->measured && f->n_domains && f->split ? r->quality : QUALITY_LOST;

	for (unsigned d = 0; d < f->n_domains && r->measured; d++)
		q |= r->energy_quality[d];
	return q;
}

bool run_value_known(const struct run_facts *f, const struct run_result *r, unsigned column)
{
	if (!r->measured)
		return false;
	return column < f->n_domains + RUN_FIXED || r->value[column] || !(r->quality & QUALITY_LOST);
}

bool run_domain_adds_up(const struct run_domain *d)
{
	return d->kind == DOMAIN_PACKAGE || d->kind == DOMAIN_DRAM || d->kind == DOMAIN_GPU;
}

uint64_t run_cpu_ns(const struct run_facts *f, const struct run_result *r)
{
	return r->measured ? run_fixed(f, r, RUN_CPU) : r->user_ns + r->system_ns;
}
