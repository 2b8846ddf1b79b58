/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

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

uint64_t run_total_uj(const struct run_facts *f, const struct run_result *r)
{
	uint64_t sum = 0;

	for (unsigned d = 0; d < f->n_domains; d++)
		sum += f->domain[d].summed ? r->value[d] : 0;
	return sum;
}

unsigned run_total_quality(const struct run_facts *f, const struct run_result *r)
{
	unsigned quality = 0;

	for (unsigned d = 0; d < f->n_domains; d++)
		quality |= f->domain[d].summed ? r->energy_quality[d] : 0;
	return quality;
}

double run_total_range(const struct run_facts *f, const struct run_result *r)
{
	uint64_t uj = run_total_uj(f, r);

	return uj && r->value[RUN_RANGED] == uj ? (double)r->value[RUN_RANGE] / (double)uj : (double)NAN;
}

static bool has_energy(const struct run_report *report, const struct run_result *r)
{
	return report->cost && r->measured && report->facts->split && report->facts->n_domains;
}

double run_money(const struct run_report *report, const struct run_result *r)
{
	return has_energy(report, r) ? cost_money(report->cost, (double)run_total_uj(report->facts, r)) : NAN;
}

double run_grams(const struct run_report *report, const struct run_result *r)
{
	if (!has_energy(report, r))
		return NAN;
	return cost_grams(report->cost, (double)run_total_uj(report->facts, r), r->real_ns - (int64_t)r->window_ns,
			  r->real_ns);
}

const char *const run_figure_name[RUN_FIGURES] = {
	[RUN_WALL_NS] = "wall_ns",
	[RUN_CPU_NS] = "cpu_ns",
	[RUN_USER_NS] = "user_ns",
	[RUN_SYSTEM_NS] = "system_ns",
	[RUN_MEMORY_PEAK] = "memory_peak_bytes",
};

const char *const run_attached_by_name[] = {
	[RUN_BY_ROWS] = "rows",
	[RUN_BY_ROW] = "row",
	[RUN_BY_CPU_SHARE] = "cpu-share",
};

uint64_t run_figure(const struct run_facts *f, const struct run_result *r, enum run_figure k)
{
	switch (k) {
	case RUN_WALL_NS:
		return r->wall_ns;
	case RUN_CPU_NS:
		return r->measured ? run_fixed(f, r, RUN_CPU) : r->user_ns + r->system_ns;
	case RUN_USER_NS:
		return r->user_ns;
	case RUN_SYSTEM_NS:
		return r->system_ns;
	default:
		return r->memory_peak;
	}
}
