/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of any content whose indices are in range, as a recording may bring them: every formula
 * closes the ledger. The input's bytes are taken as they come; where they end, zeros follow. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "formula/formula.h"

#define MAX_ROWS 8
#define MAX_CELLS 24
#define MAX_CPUS 6
#define MAX_DOMAINS 5
#define MAX_USES 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *next;
static size_t left;

static void take(void *p, size_t n)
{
	size_t have = n < left ? n : left;

	memset(p, 0, n);
	if (have)
		memcpy(p, next, have);
	next += have;
	left -= have;
}

static unsigned below(unsigned n)
{
	uint8_t b;

	take(&b, 1);
	return b % n;
}

static void take_schema(struct schema *s, struct cpu_desc *cpus)
{
	static const char *const names[] = { "CYCLES", "LLC_MISSES", "INSTRUCTIONS", "CPU_CLK_UNHALTED:REF_P",
					     "a/b,c" };

	s->cpus = cpus;
	s->n_cpus = 1 + below(MAX_CPUS);
	s->n_domains = below(MAX_DOMAINS + 1);
	s->core.n = below(4);
	s->idle_merged = below(2);
	for (unsigned i = 0; i < s->core.n; i++) {
		snprintf(s->core.ev[i].name, SCHEMA_NAME_MAX, "%s", names[below(5)]);
		s->core.ev[i].cpus_only_known = (uint8_t)below(2);
		take(s->core.ev[i].cpus, 1);
	}
	s->msr.n = 2 * below(2);
	snprintf(s->msr.ev[0].name, SCHEMA_NAME_MAX, "APERF");
	snprintf(s->msr.ev[1].name, SCHEMA_NAME_MAX, "MPERF");
	for (unsigned i = 0; i < s->n_cpus; i++)
		cpus[i] = (struct cpu_desc){ .cpu = (uint16_t)i,
					     .package = (uint16_t)below(2),
					     .die = (uint16_t)below(2),
					     .present = below(8) };
	for (unsigned i = 0; i < s->n_domains; i++) {
		s->domains[i].kind = (enum domain_kind)below(DOMAIN_KINDS);
		s->domains[i].package = (uint16_t)below(2);
		s->domains[i].has_die = below(2);
	}
}

static void take_rows(struct snapshot *s)
{
	s->n_rows = below(MAX_ROWS + 1);
	s->n_cells = 0;
	for (unsigned i = 0; i < s->n_rows; i++) {
		struct snap_row *row = &s->rows[i];
		unsigned cells = below(4);

		*row = (struct snap_row){ .kind = (enum row_kind)below(ROW_KINDS),
					  .key = i,
					  .level = (uint16_t)below(2),
					  .first_cell = s->n_cells };
		if (!below(50))
			take(&row->key, sizeof(row->key));
		if (!below(3))
			take(&row->traffic, sizeof(row->traffic));
		row->id = below(MAX_ROWS); /* some of them twice */
		row->generation = below(2);
		row->quality = below(3) ? 0 : below(64);
		if (below(3))
			take(row->counters, sizeof(row->counters));
		for (; row->n_cells < cells && s->n_cells < MAX_CELLS; row->n_cells++, s->n_cells++) {
			struct snap_cell *c = &s->cells[s->n_cells];

			take(c, sizeof(*c));
			c->row = i;
			c->cpu = (uint16_t)below(s->schema->n_cpus);
		}
	}
}

static void take_machine(struct snapshot *s)
{
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		struct snap_cpu *c = &s->cpus[i];

		c->online = below(2);
		c->quality = below(64);
		take(&c->elapsed_ns, sizeof(c->elapsed_ns));
		take(&c->busy_ns, sizeof(c->busy_ns));
		take(c->msr, 2 * sizeof(c->msr[0]));
	}
	for (unsigned i = 0; i < s->schema->n_domains; i++) {
		struct snap_domain *d = &s->domains[i];

		d->quality = below(64);
		take(&d->start_ns, sizeof(d->start_ns));
		take(&d->end_ns, sizeof(d->end_ns));
		take(&d->energy_uj, sizeof(d->energy_uj));
		if (s->schema->domains[i].kind == DOMAIN_WALL)
			take(&d->work, sizeof(d->work));
	}
}

static void take_uses(struct snapshot *s)
{
	s->n_uses = s->schema->n_domains ? below(MAX_USES + 1) : 0;
	for (unsigned i = 0; i < s->n_uses; i++) {
		unsigned row = below(s->n_rows + 1); /* the reader takes no others */

		s->uses[i] = (struct snap_use){ .row = row < s->n_rows ? row : USE_NOBODY,
						.domain = (uint16_t)below(s->schema->n_domains) };
		take(&s->uses[i].ns, sizeof(s->uses[i].ns));
	}
}

static void check(const struct snapshot *s)
{
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		unsigned __int128 sum = (unsigned __int128)s->domains[d].idle_uj + s->domains[d].residual_uj;

		for (unsigned i = 0; i < s->n_rows; i++)
			sum += *snapshot_energy(s, i, d);
		if (sum != s->domains[d].energy_uj)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct schema schema;
	static struct snapshot s;
	struct cpu_desc cpus[MAX_CPUS];
	struct formula_options o = { 0 };
	const struct formula_ops *ops;
	struct formula *f;

	next = data;
	left = size;
	memset(&schema, 0, sizeof(schema));
	take_schema(&schema, cpus);
	o.idle = (enum idle_policy)below(3);
	o.weight = (enum share_weight)below(3);
	take(o.idle_watts, sizeof(o.idle_watts));
	ops = below(16) ? below(2) ? &formula_model : &formula_share : &formula_none;
	s.schema = &schema;
	f = ops->create(&o);
	if (!f || snapshot_reserve(&s, MAX_ROWS, MAX_CELLS) || snapshot_reserve_uses(&s, MAX_USES))
		abort();
	for (unsigned k = 0; k < 8 && left; k++) {
		take_rows(&s);
		take_machine(&s);
		take(&s.end_ns, sizeof(s.end_ns));
		take_uses(&s);
		ops->apply(f, &s);
		check(&s);
	}
	ops->destroy(f);
	snapshot_free(&s);
	memset(&s, 0, sizeof(s));
	return 0;
}
