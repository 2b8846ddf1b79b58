/* SPDX-License-Identifier: Apache-2.0 */
/* Estimated energy, for machines without an energy counter. Every core draws its idle watts while it is online and,
 * while it works, up to its full-load watts. Hardware threads share their core's watts equally. The integral in uW x
 * ns = 1e-9 uJ is exact: fractions of a microjoule are carried. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/cgroup.h"
#include "energy.h"

#define FJ_PER_UJ 1000000000ull /* uW x ns */
#define MAX_WATTS 100000.0 /* per core; keeps uW in 64 bits */

struct estimate_cpu {
	int domain; /* index in schema, -1 = no such CPU, or not yet */
	uint64_t idle_uw, dynamic_uw; /* this thread's part */
	uint64_t elapsed_ns, busy_ns; /* as last seen */
};

struct estimate_domain {
	unsigned schema_index;
	uint64_t uj, rest; /* rest < FJ_PER_UJ */
};

struct estimate {
	unsigned n_cpus, n_domains;
	uint64_t idle_uw, max_uw; /* of a core */
	struct estimate_cpu *cpus;
	uint64_t *idle_ns; /* of this reading, per CPU */
	struct estimate_domain domains[SCHEMA_MAX_DOMAINS];
};

static bool same_core(const struct cpu_desc *a, const struct cpu_desc *b)
{
	return a->present && b->present && a->package == b->package && a->die == b->die && a->core == b->core;
}

static unsigned threads_of_core(const struct schema *s, const struct cpu_desc *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_cpus; i++)
		n += same_core(&s->cpus[i], c);
	return n;
}

static int find_domain(const struct estimate *e, const struct schema *s, unsigned package)
{
	for (unsigned i = 0; i < e->n_domains; i++)
		if (s->domains[e->domains[i].schema_index].package == package)
			return (int)i;
	return -1;
}

static int domain_of_package(struct estimate *e, struct schema *s, unsigned package)
{
	struct domain_desc *d;
	int found = find_domain(e, s, package);

	if (found >= 0)
		return found;
	if (s->n_domains == SCHEMA_MAX_DOMAINS)
		return -1;
	d = &s->domains[s->n_domains];
	*d = (struct domain_desc){
		.kind = DOMAIN_PACKAGE, .package = (uint16_t)package, .interface = ENERGY_ESTIMATE, .idle_known = true
	};
	snprintf(d->name, sizeof(d->name), "package-%u", package);
	snprintf(d->reason, sizeof(d->reason), "no energy counter here; from busy time per core");
	e->domains[e->n_domains].schema_index = s->n_domains++;
	return (int)e->n_domains++;
}

static uint64_t microwatts(double watts)
{
	if (!(watts > 0))
		return 0;
	return (uint64_t)((watts < MAX_WATTS ? watts : MAX_WATTS) * 1e6 + 0.5);
}

/* Sets the watts of a thread by the number of those in its core, and what it idles with in its domain. */
static void set_watts(struct estimate *e, struct schema *s, unsigned cpu)
{
	struct estimate_cpu *c = &e->cpus[cpu];
	unsigned threads = threads_of_core(s, &s->cpus[cpu]);
	struct domain_desc *d = &s->domains[e->domains[c->domain].schema_index];

	d->idle_uw -= c->idle_uw;
	c->idle_uw = threads ? e->idle_uw / threads : 0;
	c->dynamic_uw = threads && e->max_uw > e->idle_uw ? (e->max_uw - e->idle_uw) / threads : 0;
	d->idle_uw += c->idle_uw;
}

/* A CPU that was plugged in draws its part from now on, and threads of its core that were there before draw less. */
static void adopt(struct estimate *e, struct schema *s, unsigned cpu)
{
	e->cpus[cpu].domain = find_domain(e, s, s->cpus[cpu].package);
	for (unsigned i = 0; i < e->n_cpus && e->cpus[cpu].domain >= 0; i++)
		if (e->cpus[i].domain >= 0 && same_core(&s->cpus[i], &s->cpus[cpu]))
			set_watts(e, s, i);
}

int estimate_open(struct schema *s, double idle_watts_per_core, double max_watts_per_core, struct estimate **ret)
{
	struct estimate *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->idle_uw = microwatts(idle_watts_per_core);
	e->max_uw = microwatts(max_watts_per_core);
	e->cpus = calloc(s->n_cpus, sizeof(*e->cpus));
	e->idle_ns = calloc(s->n_cpus, sizeof(*e->idle_ns));
	if (!e->cpus || !e->idle_ns) {
		estimate_close(e);
		return -ENOMEM;
	}
	e->n_cpus = s->n_cpus;
	for (unsigned i = 0; i < s->n_cpus; i++) {
		e->cpus[i].domain = s->cpus[i].present ? domain_of_package(e, s, s->cpus[i].package) : -1;
		if (e->cpus[i].domain >= 0)
			set_watts(e, s, i);
	}
	*ret = e;
	return 0;
}

static void add_idle(struct estimate *e, const struct reading *r, const struct reading_row *row)
{
	for (uint32_t i = row->first_cell; i != UINT32_MAX; i = r->heads[i].next_in_row) {
		if (r->heads[i].cpu < e->n_cpus)
			e->idle_ns[r->heads[i].cpu] += r->cells[i].time_ns;
	}
}

/* Where the trigger cannot tell idle from the root cgroup, the root's time counts as idle: a
 * machine's work is in the cgroups below it. */
static void collect_idle(struct estimate *e, const struct reading *r)
{
	memset(e->idle_ns, 0, e->n_cpus * sizeof(*e->idle_ns));
	add_idle(e, r, &r->rows[ROW_IDLE]);
	for (uint32_t i = READING_SPECIAL_ROWS; r->schema->idle_merged && i < r->n_rows; i++) {
		if (r->rows[i].used && r->rows[i].cgroup && r->rows[i].cgroup->level == 0)
			add_idle(e, r, &r->rows[i]);
	}
}

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void add_cpu(struct estimate *e, const struct reading *r, unsigned i)
{
	struct estimate_cpu *c = &e->cpus[i];
	uint64_t elapsed = r->cpus[i].elapsed_ns, idle = e->idle_ns[i];
	uint64_t busy = elapsed > idle ? elapsed - idle : 0;
	struct estimate_domain *d = &e->domains[c->domain];
	unsigned __int128 fj;

	fj = (unsigned __int128)c->idle_uw * grown(elapsed, c->elapsed_ns);
	fj += (unsigned __int128)c->dynamic_uw * grown(busy, c->busy_ns) + d->rest;
	d->uj += (uint64_t)(fj / FJ_PER_UJ);
	d->rest = (uint64_t)(fj % FJ_PER_UJ);
	c->elapsed_ns = elapsed;
	c->busy_ns = busy;
}

/* The mean instant of the CPUs' readings: CPUs are read one after the other, some late on a busy machine. */
static uint64_t read_at(const struct estimate *e, const struct reading *r, int domain)
{
	unsigned __int128 sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < e->n_cpus; i++) {
		if (e->cpus[i].domain != domain || !r->cpus[i].online || r->cpus[i].read_mono_ns < r->mono_ns)
			continue;
		sum += r->cpus[i].read_mono_ns;
		n++;
	}
	return n ? (uint64_t)(sum / n) : r->mono_ns;
}

void estimate_read(struct estimate *e, struct reading *r)
{
	collect_idle(e, r);
	for (unsigned i = 0; i < e->n_cpus; i++) {
		if (e->cpus[i].domain < 0 && r->schema->cpus[i].present)
			adopt(e, r->schema, i);
		if (e->cpus[i].domain >= 0)
			add_cpu(e, r, i);
	}
	for (unsigned i = 0; i < e->n_domains; i++) {
		r->domains[e->domains[i].schema_index] = (struct reading_domain){
			.units = e->domains[i].uj,
			.uj_num = 1,
			.uj_den = 1,
			.time_ns = read_at(e, r, (int)i),
			.estimated = true,
		};
	}
}

void estimate_close(struct estimate *e)
{
	if (!e)
		return;
	free(e->cpus);
	free(e->idle_ns);
	free(e);
}
