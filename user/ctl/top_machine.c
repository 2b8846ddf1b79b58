/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's part of an interval: per domain measured = rows + idle + residual. */
#include <stdio.h>
#include <string.h>
#include "top.h"

static double watts(const struct snap_domain *d, uint64_t uj)
{
	return d->end_ns > d->start_ns ? (double)uj * 1000 / (double)(d->end_ns - d->start_ns) : 0;
}

static void take_domain(struct top_domain *t, const struct snap_domain *d, bool again, uint64_t total_uj)
{
	t->uj = d->energy_uj;
	t->idle_uj = d->idle_uj;
	t->residual_uj = d->residual_uj;
	t->watts = watts(d, d->energy_uj);
	t->idle_watts = watts(d, d->idle_uj);
	t->residual_watts = watts(d, d->residual_uj);
	t->quality = d->quality;
	t->idle_quality = d->quality | d->idle_quality;
	t->total_uj = (again ? total_uj : 0) + d->energy_uj;
}

void top_count_kinds(const bool has[DOMAIN_KINDS], bool ret_counted[DOMAIN_KINDS])
{
	bool package = has[DOMAIN_PACKAGE], psys = has[DOMAIN_PSYS] && !package, cores = !package && !psys;

	ret_counted[DOMAIN_PACKAGE] = package;
	ret_counted[DOMAIN_PSYS] = psys;
	ret_counted[DOMAIN_CORE] = has[DOMAIN_CORE] && cores;
	ret_counted[DOMAIN_UNCORE] = has[DOMAIN_UNCORE] && cores;
	ret_counted[DOMAIN_DRAM] = has[DOMAIN_DRAM] && !psys;
	ret_counted[DOMAIN_GPU] = has[DOMAIN_GPU];
	ret_counted[DOMAIN_EXTERNAL] = has[DOMAIN_EXTERNAL] && cores && !has[DOMAIN_CORE];
}

static void take_domains(struct top_machine *m, const struct snapshot *s, bool again)
{
	const struct schema *sc = s->schema;

	m->n_domains = sc->n_domains;
	memset(m->has, 0, sizeof(m->has));
	for (unsigned d = 0; d < sc->n_domains; d++) {
		struct top_domain *t = &m->domains[d];

		snprintf(t->name, sizeof(t->name), "%s", sc->domains[d].name);
		t->kind = sc->domains[d].kind;
		m->has[t->kind] = true;
		take_domain(t, &s->domains[d], again, t->total_uj);
	}
	top_count_kinds(m->has, m->counted);
}

static void take_cpus(struct top_machine *m, const struct snapshot *s)
{
	uint64_t busy = 0, elapsed = 0;

	m->cpus = 0;
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		busy += s->cpus[i].busy_ns;
		elapsed += s->cpus[i].elapsed_ns;
		m->cpus += s->cpus[i].online;
	}
	m->busy = elapsed ? (double)busy / (double)elapsed : 0;
}

static void take_history(struct top_view *v, const struct top_machine *m)
{
	float sums[DOMAIN_KINDS] = { 0 };

	for (unsigned d = 0; d < m->n_domains; d++)
		sums[m->domains[d].kind] += (float)m->domains[d].watts;
	for (unsigned k = 0; k < DOMAIN_KINDS; k++) {
		v->history[k][v->samples % TOP_HISTORY] = sums[k];
		if (m->has[k] && sums[k] > v->peak[k])
			v->peak[k] = sums[k];
	}
}

void top_machine_take(struct top_view *v, const struct snapshot *s)
{
	struct top_machine *m = &v->live_machine;
	bool again = m->n_domains == s->schema->n_domains;

	memcpy(m->sensor, s->schema->sensor, sizeof(m->sensor));
	m->time_ns = s->end_real_ns;
	m->interval_ns = s->end_ns - s->start_ns;
	m->split = s->schema->n_domains && s->formula[0] && strcmp(s->formula, "none") != 0;
	m->idle_merged = s->schema->idle_merged;
	m->suspended_ns = s->suspended_ns;
	m->missed = s->missed;
	m->lost = s->losses.folded + s->losses.lost_reads + s->losses.lost_events;
	m->cgroups = 0;
	for (unsigned i = 0; i < s->n_rows; i++)
		m->cgroups += s->rows[i].kind == ROW_CGROUP && !s->rows[i].ended;
	take_cpus(m, s);
	take_domains(m, s, again);
	if (!v->frozen)
		take_history(v, m);
}
