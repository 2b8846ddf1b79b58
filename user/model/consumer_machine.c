/* SPDX-License-Identifier: Apache-2.0 */
/* What a snapshot holds once for the machine: times, losses, energy domains, CPUs. */
#include <math.h>
#include <stddef.h>
#include <string.h>
#include "consumer_internal.h"

static void mark_domains(struct consumer *c, const struct reading *r)
{
	for (unsigned i = 0; i < r->schema->n_domains; i++) {
		const struct reading_domain *d = &r->domains[i];

		c->domains[i] = (struct seen_domain){ reading_domain_uj(d),
						      reading_domain_q32(d),
						      d->time_ns,
						      d->wraps,
						      d->resets,
						      d->errors,
						      d->dropped };
	}
}

void consumer_mark_machine(struct consumer *c, const struct reading *r)
{
	memcpy(c->cpus, r->cpus, c->n_cpus * sizeof(*c->cpus));
	mark_domains(c, r);
	if (r->n_uses)
		consumer_mark_uses(c, r);
	c->losses = r->losses;
	c->number = r->number;
	c->viewer.seen = r->number;
	c->mono_ns = r->mono_ns;
	c->boot_ns = r->boot_ns;
}

static void add_domain(const struct consumer *c, const struct reading *r, unsigned i, struct snap_domain *d)
{
	const struct reading_domain *now = &r->domains[i];
	const struct seen_domain *old = &c->domains[i];
	uint64_t uj = reading_domain_uj(now);

	*d = (struct snap_domain){ .start_ns = old->time_ns,
				   .end_ns = now->time_ns,
				   .energy_q32 = reading_domain_q32(now) - old->q32,
				   .scale = 1,
				   .uncertainty = NAN,
				   .idle_uncertainty = NAN };
	/* Floors of cumulative values: their differences add up to the floor of the whole. */
	d->energy_uj = uj - old->uj;
	if (now->wraps != old->wraps)
		d->quality |= QUALITY_WRAPPED;
	if (now->resets != old->resets || now->dropped != old->dropped || now->errors != old->errors)
		d->quality |= QUALITY_PARTIAL;
	if (now->stale || now->time_ns == old->time_ns)
		d->quality |= QUALITY_STALE;
	if (now->estimated)
		d->quality |= QUALITY_ESTIMATED;
}

/* Time of a row per CPU, added to a column of the CPUs; NULL row = none. */
static void add_row_time(struct snapshot *s, const struct snap_row *row, size_t column)
{
	for (unsigned i = 0; row && i < row->n_cells; i++) {
		const struct snap_cell *cell = &s->cells[row->first_cell + i];

		*(uint64_t *)((char *)&s->cpus[cell->cpu] + column) += cell->time_ns;
	}
}

/* The root cgroup, where the trigger cannot tell it from idle. */
static const struct snap_row *merged_root(const struct snapshot *s)
{
	for (unsigned i = READING_SPECIAL_ROWS; s->schema->idle_merged && i < s->n_rows; i++)
		if (s->rows[i].level == 0)
			return &s->rows[i];
	return NULL;
}

static void add_cpu(const struct reading_cpu *now, const struct reading_cpu *old, bool has_msr, struct snap_cpu *d)
{
	*d = (struct snap_cpu){ .online = now->online,
				.elapsed_ns = now->elapsed_ns - old->elapsed_ns,
				.offline_ns = now->offline_ns - old->offline_ns,
				.msr_enabled_ns = now->msr_enabled_ns - old->msr_enabled_ns,
				.msr_running_ns = now->msr_running_ns - old->msr_running_ns };
	for (unsigned e = 0; e < SCHEMA_MAX_MSR; e++)
		d->msr[e] = now->msr[e] - old->msr[e];
	if (now->online_changes != old->online_changes || now->lost_ns != old->lost_ns)
		d->quality |= QUALITY_PARTIAL;
	if (now->msr_stale && has_msr)
		d->quality |= QUALITY_STALE;
}

static void add_cpus(struct consumer *c, const struct reading *r)
{
	struct snapshot *s = &c->snap;

	for (unsigned i = 0; i < c->n_cpus; i++)
		add_cpu(&r->cpus[i], &c->cpus[i], r->schema->msr.n, &s->cpus[i]);
	add_row_time(s, &s->rows[ROW_IDLE], offsetof(struct snap_cpu, idle_ns));
	add_row_time(s, merged_root(s), offsetof(struct snap_cpu, idle_ns));
	add_row_time(s, &s->rows[ROW_IRQ_STEAL], offsetof(struct snap_cpu, irq_steal_ns));
	for (unsigned i = 0; i < c->n_cpus; i++) {
		struct snap_cpu *d = &s->cpus[i];
		uint64_t away = d->idle_ns + d->irq_steal_ns;

		d->busy_ns = d->elapsed_ns > away ? d->elapsed_ns - away : 0;
	}
}

void consumer_add_machine(struct consumer *c, const struct reading *r)
{
	struct snapshot *s = &c->snap;
	uint64_t mono = r->mono_ns - c->mono_ns, boot = r->boot_ns - c->boot_ns;

	s->start_ns = c->mono_ns;
	s->end_ns = r->mono_ns;
	s->suspended_ns = boot > mono ? boot - mono : 0;
	s->end_real_ns = r->real_ns;
	s->losses = (struct losses){ r->losses.folded - c->losses.folded, r->losses.lost_reads - c->losses.lost_reads,
				     r->losses.lost_events - c->losses.lost_events,
				     r->losses.missed_switches - c->losses.missed_switches };
	for (unsigned i = 0; i < r->schema->n_domains; i++)
		add_domain(c, r, i, &s->domains[i]);
	add_cpus(c, r);
	s->n_uses = 0;
	if (r->n_uses)
		consumer_add_uses(c, r);
	memset(s->energy_uj, 0, (size_t)s->n_rows * r->schema->n_domains * sizeof(*s->energy_uj));
}
