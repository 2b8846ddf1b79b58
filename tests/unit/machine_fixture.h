/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots written by hand: two packages of two CPUs, special rows, and cgroup rows whose cells
 * the test adds in row order. */
#ifndef MACHINE_FIXTURE_H
#define MACHINE_FIXTURE_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formula/formula.h"

#define S 1000000000ull
#define MS 1000000ull

enum { CYC, INS, LLC }; /* events */
enum { PKG0, PKG1, DRAM0, PSYS, GPU, DOMAINS };
enum { A = READING_SPECIAL_ROWS, B, C }; /* cgroup rows */

static struct cpu_desc cpu_list[4] = {
	{ .cpu = 0, .package = 0, .present = true },
	{ .cpu = 1, .package = 0, .present = true },
	{ .cpu = 2, .package = 1, .present = true },
	{ .cpu = 3, .package = 1, .present = true },
};

struct machine {
	struct schema schema;
	struct snapshot s;
	struct formula *f;
};

static struct formula_options options(enum idle_policy idle, enum share_weight weight, double watts)
{
	struct formula_options o = { .idle = idle, .weight = weight };

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		o.idle_watts[k] = watts;
	return o;
}

/* An interval of a second with 3 cgroup rows, 10 J in every domain and no cells yet. */
static void machine_init(struct machine *m, const char *const *events)
{
	static const enum domain_kind kinds[DOMAINS] = { DOMAIN_PACKAGE, DOMAIN_PACKAGE, DOMAIN_DRAM, DOMAIN_PSYS,
							 DOMAIN_GPU };

	memset(m, 0, sizeof(*m));
	m->schema.n_cpus = 4;
	m->schema.cpus = cpu_list;
	m->schema.n_packages = 2;
	m->schema.n_domains = DOMAINS;
	for (; events[m->schema.core.n]; m->schema.core.n++)
		snprintf(m->schema.core.ev[m->schema.core.n].name, SCHEMA_NAME_MAX, "%s", events[m->schema.core.n]);
	for (unsigned d = 0; d < DOMAINS; d++) {
		m->schema.domains[d].kind = kinds[d];
		m->schema.domains[d].package = d == PKG1;
		m->s.domains[d] = (struct snap_domain){ .start_ns = S, .end_ns = 2 * S, .energy_uj = 10000000 };
	}
	m->s.schema = &m->schema;
	assert_int_equal(snapshot_reserve(&m->s, 7, 64), 0);
	for (unsigned i = 0; i < 7; i++)
		m->s.rows[i] = (struct snap_row){ .kind = i < ROW_CGROUP ? (enum row_kind)i : ROW_CGROUP, .key = i };
	m->s.n_rows = 7;
	for (unsigned i = 0; i < 4; i++)
		m->s.cpus[i] = (struct snap_cpu){ .online = true, .elapsed_ns = S };
}

static struct snap_cell *machine_cell(struct machine *m, uint32_t row, uint16_t cpu, uint64_t time_ns, uint64_t cycles)
{
	struct snap_cell *c = &m->s.cells[m->s.n_cells];

	if (!m->s.rows[row].n_cells)
		m->s.rows[row].first_cell = m->s.n_cells;
	m->s.rows[row].n_cells++;
	m->s.n_cells++;
	*c = (struct snap_cell){ .row = row,
				 .cpu = cpu,
				 .time_ns = time_ns,
				 .counters = { cycles, 2 * cycles },
				 .enabled_ns = time_ns,
				 .running_ns = time_ns };
	if (row != ROW_IDLE && row != ROW_IRQ_STEAL)
		m->s.cpus[cpu].busy_ns += time_ns;
	return c;
}

static void machine_apply(struct machine *m, enum idle_policy idle, enum share_weight weight, double idle_watts)
{
	struct formula_options o = options(idle, weight, idle_watts);

	if (!m->f)
		m->f = formula_share.create(&o);
	assert_non_null(m->f);
	assert_int_equal(formula_share.apply(m->f, &m->s), 0);
	for (unsigned d = 0; d < DOMAINS; d++) {
		uint64_t sum = m->s.domains[d].idle_uj + m->s.domains[d].residual_uj;

		for (unsigned i = 0; i < m->s.n_rows; i++)
			sum += *snapshot_energy(&m->s, i, d);
		assert_int_equal(sum, m->s.domains[d].energy_uj);
	}
}

static uint64_t energy(const struct machine *m, unsigned row, unsigned domain)
{
	return *snapshot_energy(&m->s, row, domain);
}

static void machine_free(struct machine *m)
{
	formula_share.destroy(m->f);
	snapshot_free(&m->s);
}

#endif
