/* SPDX-License-Identifier: Apache-2.0 */
/* A random machine whose readings go through consumer and formula: CPUs come and go, cgroups live
 * and end, counters are zero, small, usual or huge, reads fail, domains wrap, reset and fall silent. */
#ifndef LEDGER_WORLD_H
#define LEDGER_WORLD_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "formula/formula.h"
#include "model/cgroup.h"

#define WORLD_CPUS 4
#define WORLD_DOMAINS 5
#define WORLD_CGROUPS 6
#define S 1000000000ull

enum { EV_CYCLES, EV_MISSES, EV_OTHER };

struct world {
	struct schema schema;
	struct cpu_desc cpus[WORLD_CPUS];
	struct reading r;
	struct consumer *c;
	struct formula *f;
	struct formula_options o;
	const struct formula_ops *ops;
	struct cgroup cg[WORLD_CGROUPS];
	int64_t row[WORLD_CGROUPS]; /* -1: not born */
	uint64_t next_id;
	bool has_cycles, has_misses, has_msr;
	bool clean; /* nothing is ever lost here */
};

static uint64_t world_seed = 88172645463325252ull;

static uint64_t random64(void)
{
	world_seed ^= world_seed << 13;
	world_seed ^= world_seed >> 7;
	world_seed ^= world_seed << 17;
	return world_seed;
}

static unsigned random_below(unsigned n)
{
	return (unsigned)(((random64() >> 32) * n) >> 32);
}

static bool one_in(unsigned n)
{
	return random_below(n) == 0;
}

/* Zero, tiny, or of any size up to `bits` bits. */
static uint64_t any_value(unsigned bits)
{
	switch (random_below(4)) {
	case 0:
		return random_below(3);
	case 1:
		return random64() >> (64 - bits) >> random_below(bits);
	default:
		return random64() >> (64 - bits / 2);
	}
}

static void world_domains(struct world *w)
{
	static const enum domain_kind kinds[] = { DOMAIN_PACKAGE, DOMAIN_CORE, DOMAIN_UNCORE,   DOMAIN_DRAM,
						  DOMAIN_PSYS,    DOMAIN_GPU,  DOMAIN_EXTERNAL, DOMAIN_DRAM };

	w->schema.n_domains = random_below(WORLD_DOMAINS + 1);
	for (unsigned d = 0; d < w->schema.n_domains; d++) {
		struct domain_desc *desc = &w->schema.domains[d];

		desc->kind = kinds[random_below(8)];
		desc->package = (uint16_t)random_below(2);
		desc->has_die = one_in(4);
		desc->die = desc->has_die ? (uint16_t)random_below(2) : 0;
		w->r.domains[d].uj_num = one_in(3) ? 1 : 1000000;
		w->r.domains[d].uj_den = w->r.domains[d].uj_num == 1 ? 1 : 1ull << (10 + random_below(12));
	}
}

static void world_events(struct world *w)
{
	unsigned n = 0;

	w->has_cycles = !one_in(4);
	w->has_misses = !one_in(3);
	w->has_msr = one_in(2);
	if (w->has_cycles)
		snprintf(w->schema.core.ev[n++].name, SCHEMA_NAME_MAX, "CYCLES");
	snprintf(w->schema.core.ev[n++].name, SCHEMA_NAME_MAX, "INSTRUCTIONS");
	if (w->has_misses)
		snprintf(w->schema.core.ev[n++].name, SCHEMA_NAME_MAX, "LLC_MISSES");
	w->schema.core.n = n;
	if (w->has_msr) {
		snprintf(w->schema.msr.ev[0].name, SCHEMA_NAME_MAX, "MPERF");
		snprintf(w->schema.msr.ev[1].name, SCHEMA_NAME_MAX, "APERF");
		w->schema.msr.n = 2;
	}
}

static int world_new(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->clean = one_in(2);
	w->schema.multiplexed = !w->clean;
	w->schema.n_cpus = 1 + random_below(WORLD_CPUS);
	w->schema.cpus = w->cpus;
	for (unsigned i = 0; i < w->schema.n_cpus; i++)
		w->cpus[i] = (struct cpu_desc){ .cpu = (uint16_t)i,
						.present = true,
						.package = (uint16_t)random_below(2),
						.die = (uint16_t)random_below(2) };
	if (reading_init(&w->r, &w->schema))
		return -1;
	world_domains(w);
	world_events(w);
	for (unsigned i = 0; i < WORLD_CGROUPS; i++)
		w->row[i] = -1;
	for (unsigned i = 0; i < w->schema.n_cpus; i++)
		w->r.cpus[i].online = true;
	w->o.idle = (enum idle_policy)random_below(3);
	w->o.weight = (enum share_weight)random_below(3);
	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		w->o.idle_watts[k] = one_in(2) ? (double)NAN : one_in(5) ? 0 : (double)random_below(1000000) / 1e4;
	w->ops = one_in(20) ? &formula_none : one_in(4) ? &formula_model : &formula_share;
	w->f = w->ops->create(&w->o);
	w->c = consumer_new(&w->r);
	return w->f && w->c ? 0 : -1;
}

static void world_free(struct world *w)
{
	w->ops->destroy(w->f);
	consumer_free(w->c);
	reading_free(&w->r);
}

static void world_charge(struct world *w, uint32_t row, uint16_t cpu)
{
	struct cell *v = reading_cell(&w->r, row, cpu);
	struct cell_rest *rest = reading_rest(&w->r, (uint32_t)reading_cell_number(&w->r, row, cpu));
	uint64_t time = one_in(8) ? 0 : random64() % S;
	bool counts = row != ROW_IDLE && row != ROW_IRQ_STEAL;

	v->time_ns += time;
	rest->enabled_ns += time;
	rest->running_ns += w->clean || !one_in(10) ? time : one_in(2) ? 0 : time / 2;
	rest->lost += !w->clean && one_in(20);
	for (unsigned e = 0; e < w->schema.core.n && counts; e++)
		*cell_counter(v, rest, e) += one_in(50) ? any_value(62) : any_value(40);
	w->r.cpus[cpu].elapsed_ns += time;
}

static void world_cgroups(struct world *w)
{
	unsigned i = random_below(WORLD_CGROUPS);

	if (w->row[i] < 0) {
		w->cg[i] = (struct cgroup){ .id = ++w->next_id, .path = (char *)"/x" };
		w->row[i] = reading_add_row(&w->r, &w->cg[i]);
	} else if (!w->cg[i].ended) {
		w->cg[i].ended = true;
		reading_drop_row(&w->r, (uint32_t)w->row[i]);
	} else if (!w->cg[i].in_use) { /* the consumer has seen it and the row is gone */
		w->row[i] = -1;
	}
	reading_reap(&w->r);
}

static void world_domain_step(struct world *w, struct reading_domain *d)
{
	d->stale = !w->clean && one_in(30);
	if (d->stale)
		return;
	d->time_ns = w->r.mono_ns;
	/* A second of up to 2^24 units, or now and then something absurd of up to 2^45 uJ. */
	d->units += one_in(200) ? any_value(45) : any_value(24);
	d->wraps += one_in(20);
	d->resets += !w->clean && one_in(50);
	d->errors += !w->clean && one_in(50);
}

/* One interval; what it holds is told by the snapshot. NULL = no memory. */
static struct snapshot *world_step(struct world *w)
{
	w->r.number++;
	w->r.mono_ns += one_in(10) ? 10000000 + random64() % S : S;
	if (one_in(4))
		world_cgroups(w);
	for (unsigned cpu = 0; cpu < w->schema.n_cpus; cpu++) {
		struct reading_cpu *c = &w->r.cpus[cpu];

		if (!w->clean && one_in(100)) {
			c->online = !c->online;
			c->online_changes++;
			c->elapsed_ns += random64() % S; /* busy time that nobody counted */
		}
		if (!c->online || one_in(12))
			continue;
		world_charge(w, ROW_IDLE, (uint16_t)cpu);
		for (uint32_t row = ROW_KERNEL; row < READING_SPECIAL_ROWS; row++)
			if (one_in(3))
				world_charge(w, row, (uint16_t)cpu);
		for (unsigned i = 0; i < WORLD_CGROUPS; i++)
			if (w->row[i] >= 0 && !w->cg[i].ended && one_in(2))
				world_charge(w, (uint32_t)w->row[i], (uint16_t)cpu);
		if (w->has_msr && !one_in(5)) {
			c->msr[0] += 1 + any_value(40);
			c->msr[1] += 1 + any_value(40);
		}
	}
	for (unsigned d = 0; d < w->schema.n_domains; d++)
		world_domain_step(w, &w->r.domains[d]);
	return consumer_snapshot(w->c, &w->r);
}

#endif
