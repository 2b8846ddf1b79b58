/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer keeps a copy of every cell it saw, by cell number, with the row, its generation and
 * the CPU beside it: when one of them moved, the cell number stands for something new, and the
 * difference begins at zero. Rows whose `changed` lies before the last snapshot are not looked
 * into, so an idle cgroup costs one line however many CPUs it once ran on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cgroup.h"
#include "snapshot.h"

struct seen_cell {
	uint32_t row, generation;
	uint16_t cpu;
	bool known;
	struct cell_values v;
};

struct seen_row {
	uint32_t generation, renamed;
	struct traffic traffic;
	char *path;                /* own copy: a rename must not pull it from under a snapshot */
};

struct seen_domain {
	uint64_t uj, q32, time_ns, wraps, resets, errors, dropped;
};

struct consumer {
	struct reading_viewer viewer;
	bool broken;               /* no memory at the last mark: nothing to take a difference to */
	uint32_t number;           /* reading of the last mark */
	uint64_t mono_ns, boot_ns;
	uint32_t cap_cells, cap_rows;
	struct seen_cell *cells;
	struct seen_row *rows;
	struct reading_cpu *cpus;
	unsigned n_cpus;
	struct seen_domain domains[SCHEMA_MAX_DOMAINS];
	struct losses losses;
	struct snapshot snap;
};

/* Room for as many as the reading has room for; new entries zeroed. */
static bool follow_capacity(struct consumer *c, const struct reading *r)
{
	if (c->cap_cells < r->cap_cells) {
		struct seen_cell *p = realloc(c->cells, r->cap_cells * sizeof(*p));

		if (!p)
			return false;
		memset(p + c->cap_cells, 0, (r->cap_cells - c->cap_cells) * sizeof(*p));
		c->cells = p;
		c->cap_cells = r->cap_cells;
	}
	if (c->cap_rows < r->cap_rows) {
		struct seen_row *p = realloc(c->rows, r->cap_rows * sizeof(*p));

		if (!p)
			return false;
		memset(p + c->cap_rows, 0, (r->cap_rows - c->cap_rows) * sizeof(*p));
		c->rows = p;
		c->cap_rows = r->cap_rows;
	}
	return true;
}

/* May reading `changed` hold anything that the mark has not seen? Equal counts: a source may have
 * written after the mark. The sign of the difference survives the number's wrap. */
static bool is_new(const struct consumer *c, uint32_t changed)
{
	return (int32_t)(changed - c->number) >= 0;
}

static void mark_cell(struct consumer *c, const struct reading *r, uint32_t i)
{
	const struct cell *cell = &r->cells[i];

	c->cells[i] = (struct seen_cell){ .row = cell->row, .generation = r->rows[cell->row].generation,
					  .cpu = cell->cpu, .known = true, .v = cell->v };
}

static bool mark_row(struct consumer *c, const struct reading *r, uint32_t i)
{
	const struct reading_row *rr = &r->rows[i];
	struct seen_row *seen = &c->rows[i];

	seen->traffic = rr->traffic;
	if (!rr->cgroup || (seen->path && seen->generation == rr->generation && seen->renamed == rr->cgroup->renamed))
		return true;
	free(seen->path);
	seen->path = strdup(rr->cgroup->path);
	seen->generation = rr->generation;
	seen->renamed = rr->cgroup->renamed;
	return seen->path != NULL;
}

static void mark_domains(struct consumer *c, const struct reading *r)
{
	for (unsigned i = 0; i < r->schema->n_domains; i++) {
		const struct reading_domain *d = &r->domains[i];

		c->domains[i] = (struct seen_domain){ reading_domain_uj(d), reading_domain_q32(d), d->time_ns,
						      d->wraps, d->resets, d->errors, d->dropped };
	}
}

/* What is not taken row by row. */
static void mark_machine(struct consumer *c, const struct reading *r)
{
	memcpy(c->cpus, r->cpus, c->n_cpus * sizeof(*c->cpus));
	mark_domains(c, r);
	c->losses = r->losses;
	c->number = r->number;
	c->viewer.seen = r->number;
	c->mono_ns = r->mono_ns;
	c->boot_ns = r->boot_ns;
}

void consumer_mark(struct consumer *c, const struct reading *r)
{
	c->broken = !follow_capacity(c, r);
	for (uint32_t i = 0; i < r->n_cells && !c->broken; i++)
		if (r->cells[i].used)
			mark_cell(c, r, i);
	for (uint32_t i = 0; i < r->n_rows && !c->broken; i++)
		if (r->rows[i].used)
			c->broken = !mark_row(c, r, i);
	mark_machine(c, r);
}

struct consumer *consumer_new(const struct reading *r)
{
	struct consumer *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->snap.schema = r->schema;
	c->n_cpus = r->schema->n_cpus;
	c->cpus = calloc(c->n_cpus + 1, sizeof(*c->cpus));
	if (!c->cpus || snapshot_reserve(&c->snap, READING_SPECIAL_ROWS, 1)) {
		consumer_free(c);
		return NULL;
	}
	reading_view(r, &c->viewer);
	consumer_mark(c, r);
	return c;
}

void consumer_free(struct consumer *c)
{
	if (!c)
		return;
	reading_unview(&c->viewer);
	snapshot_free(&c->snap);
	for (uint32_t i = 0; i < c->cap_rows; i++)
		free(c->rows[i].path);
	free(c->rows);
	free(c->cells);
	free(c->cpus);
	free(c);
}

static unsigned cell_quality(const struct consumer *c, const struct reading *r, const struct snap_cell *d, uint64_t lost)
{
	unsigned q = lost ? QUALITY_PARTIAL : 0;

	if (r->cpus[d->cpu].online_changes != c->cpus[d->cpu].online_changes)
		q |= QUALITY_PARTIAL;
	if (d->running_ns < d->enabled_ns)
		q |= d->running_ns ? QUALITY_MULTIPLEXED : QUALITY_LOST;
	return q;
}

/* Appends what a cell brought since the mark; false when that is nothing. */
static bool add_cell(struct consumer *c, const struct reading *r, uint32_t i)
{
	static const struct cell_values zero;
	const struct cell *cell = &r->cells[i];
	const struct seen_cell *seen = &c->cells[i];
	struct snap_cell *d = &c->snap.cells[c->snap.n_cells];
	const struct cell_values *old = &zero;
	uint64_t any;

	if (seen->known && seen->row == cell->row && seen->cpu == cell->cpu &&
	    seen->generation == r->rows[cell->row].generation)
		old = &seen->v;
	d->time_ns = cell->v.time_ns - old->time_ns;
	d->switches = cell->v.switches - old->switches;
	d->enabled_ns = cell->v.enabled_ns - old->enabled_ns;
	d->running_ns = cell->v.running_ns - old->running_ns;
	any = d->time_ns | d->switches | d->enabled_ns | (cell->v.lost - old->lost);
	for (unsigned e = 0; e < SCHEMA_MAX_EVENTS; e++) {
		d->counters[e] = cell->v.counters[e] - old->counters[e];
		any |= d->counters[e];
	}
	if (!any)
		return false;
	d->row = c->snap.n_rows;
	d->cpu = cell->cpu;
	d->quality = (uint16_t)cell_quality(c, r, d, cell->v.lost - old->lost);
	c->snap.n_cells++;
	mark_cell(c, r, i);
	return true;
}

/* The row's cells in CPU order, their sums and their qualities together. */
static void add_cells(struct consumer *c, const struct reading *r, uint32_t row, struct snap_row *d)
{
	d->first_cell = c->snap.n_cells;
	if (!is_new(c, r->rows[row].changed))
		return;
	for (uint32_t i = r->rows[row].first_cell; i != UINT32_MAX; i = r->cells[i].next_in_row) {
		const struct snap_cell *cell = &c->snap.cells[c->snap.n_cells];

		if (!is_new(c, r->cells[i].changed) || !add_cell(c, r, i))
			continue;
		d->time_ns += cell->time_ns;
		d->switches += cell->switches;
		d->enabled_ns += cell->enabled_ns;
		d->running_ns += cell->running_ns;
		for (unsigned e = 0; e < SCHEMA_MAX_EVENTS; e++)
			d->counters[e] += cell->counters[e];
		d->quality |= cell->quality;
		d->n_cells++;
	}
}

static bool take_traffic(struct seen_row *seen, const struct reading_row *rr, struct traffic *ret)
{
	struct traffic old = seen->generation == rr->generation ? seen->traffic : (struct traffic){ 0 };

	*ret = (struct traffic){ rr->traffic.rx_bytes - old.rx_bytes, rr->traffic.rx_packets - old.rx_packets,
				 rr->traffic.tx_bytes - old.tx_bytes, rr->traffic.tx_packets - old.tx_packets };
	return ret->rx_bytes | ret->rx_packets | ret->tx_bytes | ret->tx_packets;
}

/* Adds row i unless it has ended and brought nothing. False when out of memory. */
static bool add_row(struct consumer *c, const struct reading *r, uint32_t i)
{
	const struct reading_row *rr = &r->rows[i];
	struct snap_row *d = &c->snap.rows[c->snap.n_rows];
	bool moved;

	*d = (struct snap_row){ .kind = rr->kind, .key = i, .generation = rr->generation, .id = rr->id,
				.path = row_kind_name(rr->kind), .selected = true };
	moved = take_traffic(&c->rows[i], rr, &d->traffic);
	add_cells(c, r, i, d);
	if (!mark_row(c, r, i))
		return false;
	if (rr->cgroup) {
		d->path = c->rows[i].path;
		d->level = rr->cgroup->level;
		d->ended = rr->cgroup->ended;
		d->selected = rr->cgroup->selected;
		if ((d->ended || rr->dropped) && !d->n_cells && !moved)
			return true;
	}
	c->snap.n_rows++;
	return true;
}

static void add_domain(const struct consumer *c, const struct reading *r, unsigned i, struct snap_domain *d)
{
	const struct reading_domain *now = &r->domains[i];
	const struct seen_domain *old = &c->domains[i];
	uint64_t uj = reading_domain_uj(now);

	*d = (struct snap_domain){ .start_ns = old->time_ns, .end_ns = now->time_ns,
				   .energy_q32 = reading_domain_q32(now) - old->q32, .scale = 1, .uncertainty = NAN };
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

/* What row k did on a CPU: its cells are few and sorted, and the CPUs are asked in order. */
static uint64_t time_on(const struct snapshot *s, enum row_kind k, unsigned cpu, unsigned *pos)
{
	const struct snap_row *row = &s->rows[k];

	while (*pos < row->n_cells && s->cells[row->first_cell + *pos].cpu < cpu)
		++*pos;
	if (*pos < row->n_cells && s->cells[row->first_cell + *pos].cpu == cpu)
		return s->cells[row->first_cell + *pos].time_ns;
	return 0;
}

static void add_cpus(struct consumer *c, const struct reading *r)
{
	unsigned idle_pos = 0, irq_pos = 0;

	for (unsigned i = 0; i < c->n_cpus; i++) {
		const struct reading_cpu *now = &r->cpus[i], *old = &c->cpus[i];
		struct snap_cpu *d = &c->snap.cpus[i];
		uint64_t away;

		*d = (struct snap_cpu){ .online = now->online, .elapsed_ns = now->elapsed_ns - old->elapsed_ns,
					.offline_ns = now->offline_ns - old->offline_ns,
					.msr_enabled_ns = now->msr_enabled_ns - old->msr_enabled_ns,
					.msr_running_ns = now->msr_running_ns - old->msr_running_ns };
		d->idle_ns = time_on(&c->snap, ROW_IDLE, i, &idle_pos);
		d->irq_steal_ns = time_on(&c->snap, ROW_IRQ_STEAL, i, &irq_pos);
		away = d->idle_ns + d->irq_steal_ns;
		d->busy_ns = d->elapsed_ns > away ? d->elapsed_ns - away : 0;
		for (unsigned e = 0; e < SCHEMA_MAX_MSR; e++)
			d->msr[e] = now->msr[e] - old->msr[e];
		if (now->online_changes != old->online_changes || now->lost_ns != old->lost_ns)
			d->quality |= QUALITY_PARTIAL;
		if (now->msr_stale && r->schema->msr.n)
			d->quality |= QUALITY_STALE;
	}
}

static void add_machine(struct consumer *c, const struct reading *r)
{
	struct snapshot *s = &c->snap;
	uint64_t mono = r->mono_ns - c->mono_ns, boot = r->boot_ns - c->boot_ns;

	s->start_ns = c->mono_ns;
	s->end_ns = r->mono_ns;
	s->suspended_ns = boot > mono ? boot - mono : 0;
	s->end_real_ns = r->real_ns;
	s->losses = (struct losses){ r->losses.folded - c->losses.folded, r->losses.lost_reads - c->losses.lost_reads,
				     r->losses.lost_events - c->losses.lost_events,
				     r->losses.clamped_ns - c->losses.clamped_ns };
	for (unsigned i = 0; i < r->schema->n_domains; i++)
		add_domain(c, r, i, &s->domains[i]);
	add_cpus(c, r);
	memset(s->energy_uj, 0, (size_t)s->n_rows * r->schema->n_domains * sizeof(*s->energy_uj));
}

struct snapshot *consumer_snapshot(struct consumer *c, const struct reading *r)
{
	struct snapshot *s = &c->snap;

	if (c->broken || !follow_capacity(c, r) || snapshot_reserve(s, r->n_rows, r->n_cells + 1)) {
		consumer_mark(c, r);
		return NULL;
	}
	s->n_rows = s->n_cells = 0;
	s->formula[0] = '\0';
	s->nominal_ns = s->missed = 0;
	for (uint32_t i = 0; i < r->n_rows; i++) {
		if (r->rows[i].used && !add_row(c, r, i)) {
			consumer_mark(c, r);
			return NULL;
		}
	}
	s->number++;
	add_machine(c, r);
	mark_machine(c, r);
	return s;
}
