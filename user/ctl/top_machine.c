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

/* What "all" means: the largest kinds that do not contain one another (formats/rapl: psys holds package
 * and dram, package holds core and uncore). */
static void choose_counted(struct top_machine *m)
{
	bool *c = m->counted;
	const bool *has = m->has;

	memset(m->counted, 0, sizeof(m->counted));
	c[DOMAIN_PACKAGE] = has[DOMAIN_PACKAGE];
	c[DOMAIN_CORE] = c[DOMAIN_UNCORE] = false;
	if (!has[DOMAIN_PACKAGE] && !has[DOMAIN_PSYS]) {
		c[DOMAIN_CORE] = has[DOMAIN_CORE];
		c[DOMAIN_UNCORE] = has[DOMAIN_UNCORE];
	}
	c[DOMAIN_PSYS] = has[DOMAIN_PSYS] && !has[DOMAIN_PACKAGE];
	c[DOMAIN_DRAM] = has[DOMAIN_DRAM] && !c[DOMAIN_PSYS];
	c[DOMAIN_GPU] = has[DOMAIN_GPU];
	c[DOMAIN_EXTERNAL] = has[DOMAIN_EXTERNAL] && !c[DOMAIN_PACKAGE] && !c[DOMAIN_PSYS] && !c[DOMAIN_CORE];
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
	choose_counted(m);
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
