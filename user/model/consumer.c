/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer keeps a copy of every cell it saw, by cell number, with the cell's generation. When that has changed, the
 * cell number stands for another cell, and the difference begins at zero. Rows whose `row_changed` lies before the last snapshot are skipped, so an idle cgroup costs one cache line however many CPUs it once
 * ran on. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/counts.h"
#include "base/heap.h"
#include "base/prefetch.h"
#include "cgroup.h"
#include "consumer_state.h"

#define CELL_VALUES (sizeof(struct cell) / sizeof(uint64_t)) /* time, switches, counters */
#define AHEAD_ROWS 20
#define AHEAD_CGROUPS 12
#define AHEAD_FIRST 8 /* rows: their first cells */
#define AHEAD_SECOND 4 /* and the cells after those */

/* The copies of cells, for as many as the reading has room for; new ones are zeroed. False = no memory. */
static bool grow_cells(struct consumer *c, uint32_t to)
{
	struct cell *cells;

	if (ARRAY_RESIZE(c->cell_generations, to) != 0)
		return false;
	cells = heap_grow_lines(c->cells, c->cap_cells * sizeof(*cells), to * sizeof(*cells));
	if (!cells)
		return false;
	c->cells = cells;
	memset(c->cell_generations + c->cap_cells, 0, (to - c->cap_cells) * sizeof(*c->cell_generations));
	c->cap_cells = to;
	return true;
}

static bool grow_rests(struct consumer *c, uint32_t to)
{
	if (ARRAY_RESIZE(c->rests, to) != 0)
		return false;
	memset(c->rests + c->cap_rests, 0, (to - c->cap_rests) * sizeof(*c->rests));
	c->cap_rests = to;
	return true;
}

/* Grows the copies to the capacity of the reading; new entries are zeroed. False = no memory. */
static bool follow_capacity(struct consumer *c, const struct reading *r)
{
	if (c->cap_cells < r->cap_cells && !grow_cells(c, r->cap_cells))
		return false;
	if (r->rests && c->cap_rests < r->cap_cells && !grow_rests(c, r->cap_cells))
		return false;
	if (c->cap_rows < r->cap_rows) {
		if (ARRAY_RESIZE(c->rows, r->cap_rows) != 0)
			return false;
		memset(c->rows + c->cap_rows, 0, (r->cap_rows - c->cap_rows) * sizeof(*c->rows));
		c->cap_rows = r->cap_rows;
	}
	return true;
}

/* True when reading number `changed` may hold values that the mark has not seen. An equal number counts: a source may
 * have written after the mark. The sign of the difference survives the number's wrap. */
static bool is_new(const struct consumer *c, uint32_t changed)
{
	return (int32_t)(changed - c->number) >= 0;
}

static void mark_cell(struct consumer *c, const struct reading *r, uint32_t i)
{
	const struct cell_head *h = &r->heads[i];

	c->cells[i] = r->cells[i];
	if (h->has_rest)
		c->rests[i] = r->rests[i];
	else if (c->rests && c->cell_generations[i] != h->generation)
		c->rests[i] = (struct cell_rest){ 0 };
	c->cell_generations[i] = h->generation;
}

/* Without memory for a new path the row keeps that from before its rename, and a new row has none until there is. */
static void mark_row(struct consumer *c, const struct reading *r, uint32_t i)
{
	const struct reading_row *rr = &r->rows[i];
	struct seen_row *seen = &c->rows[i];
	char *path;

	if (!rr->cgroup)
		return;
	if (seen->names != rr->cgroup->names)
		names_set(&seen->names, rr->cgroup->names);
	if (seen->path && seen->generation == rr->generation && seen->renamed == rr->cgroup->renamed)
		return;
	path = strdup(rr->cgroup->path);
	if (!path && seen->generation == rr->generation)
		return;
	free(seen->path);
	seen->path = path;
	if (seen->generation != rr->generation)
		seen->traffic = rr->traffic;
	seen->generation = rr->generation;
	seen->renamed = rr->cgroup->renamed;
}

static void consumer_mark_machine(struct consumer *c, const struct reading *r);

bool consumer_is_at(const struct consumer *c, const struct reading *r)
{
	return !c->broken && c->number == r->number;
}

void consumer_mark(struct consumer *c, const struct reading *r)
{
	c->broken = !follow_capacity(c, r);
	for (uint32_t i = 0; i < r->n_cells && !c->broken; i++)
		if (r->heads[i].used)
			mark_cell(c, r, i);
	for (uint32_t i = 0; i < r->n_rows && !c->broken; i++) {
		if (!r->rows[i].used)
			continue;
		c->rows[i].traffic = r->rows[i].traffic;
		mark_row(c, r, i);
	}
	consumer_mark_machine(c, r);
}

static inline unsigned cell_quality(const struct consumer *c, const struct reading *r, const struct snap_cell *d,
				    uint64_t lost)
{
	unsigned q = lost ? QUALITY_PARTIAL : 0;

	if (r->cpus[d->cpu].online_changes != c->cpus[d->cpu].online_changes)
		q |= QUALITY_PARTIAL;
	if (d->running_ns < d->enabled_ns)
		q |= d->running_ns ? QUALITY_MULTIPLEXED : QUALITY_LOST;
	return q;
}

/* Of the rest of a cell. Returns 0 when nothing is new there. */
static uint64_t rest_difference(const struct reading *r, uint32_t i, const struct cell_rest *old, struct snap_cell *ret,
				uint64_t *ret_lost)
{
	const struct cell_rest *v = &r->rests[i];
	uint64_t any = *ret_lost = v->lost - old->lost;

	for (unsigned e = CELL_EVENTS; e < SCHEMA_MAX_EVENTS; e++) {
		ret->counters[e] = v->counters[e - CELL_EVENTS] - old->counters[e - CELL_EVENTS];
		any |= ret->counters[e];
	}
	if (!r->schema->multiplexed)
		return any;
	ret->enabled_ns = v->enabled_ns - old->enabled_ns;
	ret->running_ns = v->running_ns - old->running_ns;
	return any | ret->enabled_ns | ret->running_ns;
}

/* Computes the counts of cell i since the mark. False when all are zero. */
static inline bool difference(const struct consumer *c, const struct reading *r, uint32_t i, struct snap_cell *ret)
{
	static const struct cell nothing;
	static const struct cell_rest no_rest;
	const struct cell_head *h = &r->heads[i];
	const bool same = c->cell_generations[i] == h->generation;
	const struct cell *old = same ? &c->cells[i] : &nothing;
	uint64_t lost = 0, any;

	ret->cpu = h->cpu;
	any = counts_difference(&ret->time_ns, &r->cells[i].time_ns, &old->time_ns, CELL_VALUES);
	ret->enabled_ns = ret->running_ns = ret->time_ns;
	for (unsigned e = CELL_EVENTS; e < SCHEMA_MAX_EVENTS; e++)
		ret->counters[e] = 0;
	if (h->has_rest)
		any |= rest_difference(r, i, same ? &c->rests[i] : &no_rest, ret, &lost);
	ret->quality = (uint16_t)cell_quality(c, r, ret, lost);
	return any;
}

/* Appends the counts of a cell since the mark; false when all are zero. */
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

/* Adds the row's cells in CPU order, and to the row their sums and qualities. */
static void add_cells(struct consumer *c, const struct reading *r, uint32_t row, struct snap_row *d)
{
	d->first_cell = c->snap.n_cells;
	if (!is_new(c, r->row_changed[row]))
		return;
	for (uint32_t i = r->rows[row].first_cell; i != UINT32_MAX; i = r->heads[i].next_in_row) {
		const struct snap_cell *cell = &c->snap.cells[c->snap.n_cells];

		if (!is_new(c, r->heads[i].changed) || !add_cell(c, r, i))
			continue;
		counts_add(&d->time_ns, &cell->time_ns, SNAP_COUNTS);
		d->quality |= cell->quality;
		d->n_cells++;
	}
}

static bool take_traffic(struct seen_row *seen, const struct reading_row *rr, struct traffic *ret)
{
	struct traffic old = seen->generation == rr->generation ? seen->traffic : (struct traffic){ 0 };

	*ret = rr->traffic;
	traffic_take_off(ret, &old);
	return traffic_any(ret, 0, TRAFFIC_VALUES);
}

/* Takes d off the copy of `other` on that CPU, so that the next difference of `other` includes it. */
static void owe_other(struct consumer *c, struct reading *r, const struct snap_cell *d)
{
	const int64_t i = reading_cell_number(r, ROW_OTHER, d->cpu);
	const bool partial = d->quality & QUALITY_PARTIAL,
		   has_rest = partial || r->schema->multiplexed || r->schema->core.n > CELL_EVENTS;
	struct cell *seen;

	if (i < 0 || (has_rest && !reading_rest(r, (uint32_t)i)) || !follow_capacity(c, r))
		return;
	reading_touch(r, (uint32_t)i);
	seen = &c->cells[i];
	if (c->cell_generations[i] != r->heads[i].generation) {
		*seen = (struct cell){ 0 };
		if (c->rests)
			c->rests[i] = (struct cell_rest){ 0 };
		c->cell_generations[i] = r->heads[i].generation;
	}
	seen->time_ns -= d->time_ns;
	seen->switches -= d->switches;
	for (unsigned e = 0; e < r->schema->core.n; e++)
		*cell_counter(seen, c->rests ? &c->rests[i] : NULL, e) -= d->counters[e];
	if (!has_rest)
		return;
	c->rests[i].enabled_ns -= d->enabled_ns;
	c->rests[i].running_ns -= d->running_ns;
	c->rests[i].lost -= partial ? 1 : 0; /* enough to make `other` partial, too */
}

/* Called when a row is freed before this consumer reported all of it: the rest comes with `other`. */
static void absorb(struct reading_viewer *viewer, struct reading *r, uint32_t row)
{
	struct consumer *c = (struct consumer *)viewer; /* its first member */
	struct traffic t;

	if (c->broken || !follow_capacity(c, r))
		return;
	for (uint32_t i = r->rows[row].first_cell; i != UINT32_MAX; i = r->heads[i].next_in_row) {
		struct snap_cell d;

		if (difference(c, r, i, &d))
			owe_other(c, r, &d);
	}
	if (!take_traffic(&c->rows[row], &r->rows[row], &t))
		return;
	traffic_take_off(&c->rows[ROW_OTHER].traffic, &t);
	r->rows[ROW_OTHER].moved = r->number;
}

/* True when the row got names after its last snapshot: the files that name a short-lived cgroup may come after its
 * end. */
static bool named_late(const struct consumer *c, const struct reading_row *rr, uint32_t i)
{
	return rr->cgroup && rr->cgroup->names && c->rows[i].names != rr->cgroup->names;
}

/* Adds row i, unless it has ended and has no new counts, traffic or names. */
static void add_row(struct consumer *c, const struct reading *r, uint32_t i)
{
	const struct reading_row *rr = &r->rows[i];
	struct snap_row *d = &c->snap.rows[c->snap.n_rows];
	bool moved;

	counts_clear(d, sizeof(*d) / sizeof(count_pair));
	d->first_cell = d->n_cells = 0; /* beyond the last pair */
	d->kind = rr->kind;
	d->key = i;
	d->generation = rr->generation;
	d->id = rr->id;
	d->path = rr->cgroup ? NULL : row_kind_name(rr->kind);
	d->selected = true;
	moved = named_late(c, rr, i);
	if (is_new(c, rr->moved)) {
		moved |= take_traffic(&c->rows[i], rr, &d->traffic);
		c->rows[i].traffic = rr->traffic;
	}
	add_cells(c, r, i, d);
	mark_row(c, r, i);
	if (rr->cgroup) {
		d->path = c->rows[i].path ? c->rows[i].path : "unnamed";
		d->names = c->rows[i].names;
		d->renamed = rr->cgroup->renamed;
		d->level = rr->cgroup->level;
		d->ended = rr->cgroup->ended;
		d->selected = rr->cgroup->selected;
		if ((d->ended || rr->dropped) && !d->n_cells && !moved)
			return;
	}
	c->snap.n_rows++;
}

static PREFETCHING void prefetch_cell(const struct consumer *c, const struct reading *r, uint32_t i)
{
	__builtin_prefetch(&r->heads[i]);
	__builtin_prefetch(&r->cells[i]);
	__builtin_prefetch(&c->cells[i], 1);
	__builtin_prefetch(&c->cell_generations[i]);
}

/* What belongs to a row lies apart, and other programs ran since it was used last: the time goes into waiting for memory.
 * So it is asked for some rows before it is needed. */
static PREFETCHING void prefetch_row(const struct consumer *c, const struct reading *r, uint32_t i)
{
	__builtin_prefetch(&r->rows[i + AHEAD_ROWS]);
	__builtin_prefetch(&c->rows[i + AHEAD_FIRST]);
	if (i + AHEAD_CGROUPS < r->n_rows && r->rows[i + AHEAD_CGROUPS].cgroup) {
		__builtin_prefetch(&r->rows[i + AHEAD_CGROUPS].cgroup->path);
		__builtin_prefetch(&r->rows[i + AHEAD_CGROUPS].cgroup->names);
	}
	if (i + AHEAD_FIRST < r->n_rows && r->rows[i + AHEAD_FIRST].first_cell != UINT32_MAX)
		prefetch_cell(c, r, r->rows[i + AHEAD_FIRST].first_cell);
	if (i + AHEAD_SECOND < r->n_rows && r->rows[i + AHEAD_SECOND].first_cell != UINT32_MAX) {
		uint32_t next = r->heads[r->rows[i + AHEAD_SECOND].first_cell].next_in_row;

		if (next != UINT32_MAX)
			prefetch_cell(c, r, next);
	}
}

static void consumer_add_machine(struct consumer *c, const struct reading *r);

struct snapshot *consumer_snapshot(struct consumer *c, const struct reading *r)
{
	struct snapshot *s = &c->snap;

	if (c->broken) {
		consumer_mark(c, r);
		return NULL;
	}
	if (!follow_capacity(c, r) || snapshot_reserve(s, r->n_rows, r->n_cells + 1))
		return NULL;
	s->n_rows = s->n_cells = 0;
	s->formula[0] = '\0';
	s->nominal_ns = s->missed = 0;
	for (uint32_t i = 0; i < r->n_rows; i++) {
		prefetch_row(c, r, i);
		if (r->rows[i].used)
			add_row(c, r, i);
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
	free(c->cell_generations);
	free(c->cells);
	free(c->rests);
	free(c->cpus);
	free(c->uses);
	free(c);
}

/* The values that a snapshot holds once for the machine: times, losses, energy domains, CPUs. */

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

/* Marks as seen the values that are not part of a row. */
static void consumer_mark_machine(struct consumer *c, const struct reading *r)
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
	c->gap_ns = reading_instants(r).gap_ns;
}

static void add_domain(const struct consumer *c, const struct reading *r, unsigned i, struct snap_domain *d)
{
	const struct reading_domain *now = &r->domains[i];
	const struct seen_domain *old = &c->domains[i];
	uint64_t uj = reading_domain_uj(now);

	*d = (struct snap_domain){ .start_ns = old->time_ns,
				   .end_ns = now->time_ns,
				   .energy_q32 = reading_domain_q32(now) - old->q32,
				   .uncertainty_ppm = now->uncertainty_ppm,
				   .work = now->work,
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

/* Adds the time of a row on each CPU to a column of the CPUs. column: offset of its uint64_t in struct snap_cpu; NULL
 * row = none. */
static void add_row_time(struct snapshot *s, const struct snap_row *row, size_t column)
{
	for (unsigned i = 0; row && i < row->n_cells; i++) {
		const struct snap_cell *cell = &s->cells[row->first_cell + i];

		*(uint64_t *)((char *)&s->cpus[cell->cpu] + column) += cell->time_ns;
	}
}

/* Returns the row of the root cgroup where the trigger cannot tell it from idle, else NULL. */
static const struct snap_row *merged_root(const struct snapshot *s)
{
	for (unsigned i = READING_SPECIAL_ROWS; s->schema->idle_merged && i < s->n_rows; i++)
		if (s->rows[i].kind == ROW_CGROUP && s->rows[i].level == 0)
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

static uint64_t stated_skew_ns(const struct consumer *c, const struct reading *r)
{
	uint64_t gap = reading_instants(r).gap_ns, interval = r->mono_ns - c->mono_ns;

	gap = gap > c->gap_ns ? gap : c->gap_ns;
	return (unsigned __int128)gap * 1000000 > (unsigned __int128)interval * SNAP_SKEW_PPM ? gap : 0;
}

/* Adds times, losses, domains and CPUs to a snapshot whose rows are complete, and zeroes its energy columns. */
static void consumer_add_machine(struct consumer *c, const struct reading *r)
{
	struct snapshot *s = &c->snap;
	uint64_t mono = r->mono_ns - c->mono_ns, boot = r->boot_ns - c->boot_ns;

	s->start_ns = c->mono_ns;
	s->end_ns = r->mono_ns;
	s->suspended_ns = boot > mono ? boot - mono : 0;
	s->end_real_ns = r->real_ns;
	s->skew_ns = stated_skew_ns(c, r);
	s->losses = (struct losses){ r->losses.folded - c->losses.folded, r->losses.lost_reads - c->losses.lost_reads,
				     r->losses.lost_events - c->losses.lost_events,
				     r->losses.missed_switches - c->losses.missed_switches,
				     r->losses.away_reads - c->losses.away_reads };
	for (unsigned i = 0; i < r->schema->n_domains; i++)
		add_domain(c, r, i, &s->domains[i]);
	add_cpus(c, r);
	s->n_uses = 0;
	if (r->n_uses)
		consumer_add_uses(c, r);
	memset(s->energy_uj, 0, (size_t)s->n_rows * r->schema->n_domains * sizeof(*s->energy_uj));
}
