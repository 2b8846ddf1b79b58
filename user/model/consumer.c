/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer keeps a copy of every cell it saw, by cell number, with the row, its generation and
 * the CPU beside it: when one of them moved, the cell number stands for something new, and the
 * difference begins at zero. Rows whose `changed` lies before the last snapshot are not looked
 * into, so an idle cgroup costs one line however many CPUs it once ran on. */
#include <stdlib.h>
#include <string.h>
#include "cgroup.h"
#include "consumer_internal.h"

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

	c->cells[i] = (struct seen_cell){ .row = cell->row,
					  .generation = r->rows[cell->row].generation,
					  .cpu = cell->cpu,
					  .known = true,
					  .v = cell->v };
}

static bool mark_row(struct consumer *c, const struct reading *r, uint32_t i)
{
	const struct reading_row *rr = &r->rows[i];
	struct seen_row *seen = &c->rows[i];

	seen->traffic = rr->traffic;
	if (!rr->cgroup)
		return true;
	names_set(&seen->names, rr->cgroup->names);
	if (seen->path && seen->generation == rr->generation && seen->renamed == rr->cgroup->renamed)
		return true;
	free(seen->path);
	seen->path = strdup(rr->cgroup->path);
	seen->generation = rr->generation;
	seen->renamed = rr->cgroup->renamed;
	return seen->path != NULL;
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
	consumer_mark_machine(c, r);
}

static unsigned cell_quality(const struct consumer *c, const struct reading *r, const struct snap_cell *d,
			     uint64_t lost)
{
	unsigned q = lost ? QUALITY_PARTIAL : 0;

	if (r->cpus[d->cpu].online_changes != c->cpus[d->cpu].online_changes)
		q |= QUALITY_PARTIAL;
	if (d->running_ns < d->enabled_ns)
		q |= d->running_ns ? QUALITY_MULTIPLEXED : QUALITY_LOST;
	return q;
}

/* What cell i counted since the mark. Returns whether that is anything. */
static bool difference(const struct consumer *c, const struct reading *r, uint32_t i, struct snap_cell *ret)
{
	static const struct cell_values zero;
	const struct cell *cell = &r->cells[i];
	const struct seen_cell *seen = &c->cells[i];
	bool same = seen->known && seen->row == cell->row && seen->cpu == cell->cpu &&
		    seen->generation == r->rows[cell->row].generation;
	const struct cell_values *old = same ? &seen->v : &zero;
	uint64_t lost = cell->v.lost - old->lost, any;

	ret->cpu = cell->cpu;
	ret->time_ns = cell->v.time_ns - old->time_ns;
	ret->switches = cell->v.switches - old->switches;
	ret->enabled_ns = cell->v.enabled_ns - old->enabled_ns;
	ret->running_ns = cell->v.running_ns - old->running_ns;
	any = ret->time_ns | ret->switches | ret->enabled_ns | ret->running_ns | lost;
	for (unsigned e = 0; e < SCHEMA_MAX_EVENTS; e++) {
		ret->counters[e] = cell->v.counters[e] - old->counters[e];
		any |= ret->counters[e];
	}
	ret->quality = (uint16_t)cell_quality(c, r, ret, lost);
	return any;
}

/* Appends what a cell brought since the mark; false when that is nothing. */
static bool add_cell(struct consumer *c, const struct reading *r, uint32_t i)
{
	struct snap_cell *d = &c->snap.cells[c->snap.n_cells];

	if (!difference(c, r, i, d))
		return false;
	d->row = c->snap.n_rows;
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

/* Takes d off what was seen of `other` on its CPU, so that it comes with the next difference. */
static void owe_other(struct consumer *c, struct reading *r, const struct snap_cell *d)
{
	struct cell_values *old;
	uint32_t i;

	if (!reading_cell(r, ROW_OTHER, d->cpu) || !follow_capacity(c, r))
		return;
	i = r->cell_of[(size_t)ROW_OTHER * r->schema->n_cpus + d->cpu] - 1;
	if (!c->cells[i].known || c->cells[i].row != ROW_OTHER || c->cells[i].cpu != d->cpu)
		c->cells[i] = (struct seen_cell){ .row = ROW_OTHER, .cpu = d->cpu, .known = true };
	old = &c->cells[i].v;
	old->time_ns -= d->time_ns;
	old->switches -= d->switches;
	old->enabled_ns -= d->enabled_ns;
	old->running_ns -= d->running_ns;
	old->lost -= d->quality & QUALITY_PARTIAL ? 1 : 0; /* enough to make `other` partial, too */
	for (unsigned e = 0; e < SCHEMA_MAX_EVENTS; e++)
		old->counters[e] -= d->counters[e];
}

/* A row goes before this consumer reported it: what it brought comes with `other`. */
static void absorb(struct reading_viewer *viewer, struct reading *r, uint32_t row)
{
	struct consumer *c = (struct consumer *)viewer; /* its first member */
	struct traffic t, *other;

	if (c->broken || !follow_capacity(c, r))
		return;
	for (uint32_t i = r->rows[row].first_cell; i != UINT32_MAX; i = r->cells[i].next_in_row) {
		struct snap_cell d;

		if (difference(c, r, i, &d))
			owe_other(c, r, &d);
	}
	if (!take_traffic(&c->rows[row], &r->rows[row], &t))
		return;
	other = &c->rows[ROW_OTHER].traffic;
	other->rx_bytes -= t.rx_bytes;
	other->rx_packets -= t.rx_packets;
	other->tx_bytes -= t.tx_bytes;
	other->tx_packets -= t.tx_packets;
}

/* The files that name a short life come when it is over. */
static bool named_late(const struct consumer *c, const struct reading_row *rr, uint32_t i)
{
	return rr->cgroup && rr->cgroup->names && c->rows[i].names != rr->cgroup->names;
}

/* Adds row i unless it has ended and brought nothing, not even a name. False when out of memory. */
static bool add_row(struct consumer *c, const struct reading *r, uint32_t i)
{
	const struct reading_row *rr = &r->rows[i];
	struct snap_row *d = &c->snap.rows[c->snap.n_rows];
	bool moved;

	*d = (struct snap_row){ .kind = rr->kind,
				.key = i,
				.generation = rr->generation,
				.id = rr->id,
				.path = row_kind_name(rr->kind),
				.selected = true };
	moved = named_late(c, rr, i);
	moved |= take_traffic(&c->rows[i], rr, &d->traffic);
	add_cells(c, r, i, d);
	if (!mark_row(c, r, i))
		return false;
	if (rr->cgroup) {
		d->path = c->rows[i].path;
		d->names = c->rows[i].names;
		d->renamed = rr->cgroup->renamed;
		d->level = rr->cgroup->level;
		d->ended = rr->cgroup->ended;
		d->selected = rr->cgroup->selected;
		if ((d->ended || rr->dropped) && !d->n_cells && !moved)
			return true;
	}
	c->snap.n_rows++;
	return true;
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
	consumer_add_machine(c, r);
	consumer_mark_machine(c, r);
	return s;
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
	c->viewer.absorb = absorb;
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
	for (uint32_t i = 0; i < c->cap_rows; i++) {
		free(c->rows[i].path);
		names_put(c->rows[i].names);
	}
	free(c->rows);
	free(c->cells);
	free(c->cpus);
	free(c->uses);
	free(c);
}
