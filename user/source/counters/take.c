// SPDX-License-Identifier: Apache-2.0
/* From the kernel's rows to the cells of the reading. A flushed bank has no writer: its rows are taken once. The active
 * bank of an idle CPU is copied and only taken when nothing moved meanwhile; it stays as it is, and `seen` remembers
 * what was taken until that bank is flushed.
 *
 * The rows lie in another CPU's cache, so the cost is misses, not arithmetic: they lie one after the other, and
 * prefetches overlap what belongs to them here. */
#include <string.h>
#include "base/counts.h"
#include "base/prefetch.h"
#include "rows.h"

#define LEAST_RUNNING 16 /* an event that counted for less than one part in so many is not scaled up */
#define LEAST_ENABLED 2 /* nor is one that was there for less than one part in so many of the time */
#define MOST_APART 32 /* times of a row's events that differ by more than one part in so many */
#define CLOCK_SLACK_NS 50000 /* perf's clock and the scheduler's, at both ends of a short run */
/* Rows before a line of memory is needed. docs/performance.md, "Builds in turn", has what they bring. */
#define AHEAD_ROWS 32
#define AHEAD_CELLS 24

static const struct staged_row nothing;

uint64_t counters_settle(uint64_t *credit, uint64_t brought)
{
	uint64_t settled;

	if ((int64_t)brought < 0) {
		*credit += -brought;
		return 0;
	}
	settled = brought < *credit ? brought : *credit;
	*credit -= settled;
	return brought - settled;
}

static uint32_t *cell_number(struct counters *c, unsigned cpu, uint32_t slot)
{
	return &c->slot_cells[(size_t)cpu * c->max_slots + slot];
}

/* Rows of a bank that were given out since its last flip. */
static unsigned given_out(const struct counters *c, unsigned cpu, unsigned bank)
{
	unsigned n = READ_ONCE(c->states[cpu].n_rows[bank]);

	return n < c->bank_rows ? n : c->bank_rows;
}

static void load_row(const struct counters *c, unsigned cpu, unsigned bank, struct staged_row *ret)
{
	size_t at = row_index(c, cpu, bank, ret->row);
	const struct jd_row *row = row_at(c, at);

	ret->now.time_ns = READ_ONCE(row->time_ns);
	ret->now.switches = READ_ONCE(row->switches);
	ret->now.lost = READ_ONCE(row->lost);
	for (unsigned i = 0; i < c->schema->core.n; i++)
		ret->now.counters[i] = READ_ONCE(row->counters[i]);
	if (c->mux_rows)
		ret->mux = c->mux_rows[at];
}

/* True when the event was on its counter long enough to stand for all of the row's time. Without this test an event
 * whose turn did not come, or that died with its CPU, would count as 0, and a very short turn would be scaled up to
 * any number. */
static bool speaks_for(uint64_t enabled, uint64_t running, uint64_t time_ns)
{
	return running >= enabled / LEAST_RUNNING && (running || !enabled) &&
	       enabled + CLOCK_SLACK_NS >= time_ns / LEAST_ENABLED;
}

static bool apart(uint64_t a_ns, uint64_t b_ns)
{
	uint64_t more = a_ns > b_ns ? a_ns : b_ns, less = a_ns > b_ns ? b_ns : a_ns;

	return more - less > CLOCK_SLACK_NS + more / MOST_APART;
}

/* True when all events of a CPU were read at one moment. They are enabled while the CPU works for the row, and are
 * read one after the other at a switch. Where their times differ, the host took a virtual CPU away in between: a
 * count and the times that scale it are then of different moments, and the next row's are off by as much in the
 * other direction. Where the scheduler takes interrupts and stolen time out of a row's time, that time is not
 * compared. */
static bool read_at_once(const struct counters *c, uint64_t least_enabled, uint64_t most_enabled, uint64_t time_ns)
{
	if (apart(least_enabled, most_enabled))
		return false;
	return c->schema->irq_separate || (!apart(least_enabled, time_ns) && !apart(most_enabled, time_ns));
}

/* Scales each counter by enabled / running of this step and keeps the worst ratio. False when a counter does not
 * stand for the whole step (its count is taken unscaled, and is too low), or they were not read at once. */
static bool add_multiplexed(const struct counters *c, struct cell *v, struct cell_rest *rest,
			    const struct staged_row *now, const struct staged_row *before, unsigned cpu)
{
	uint64_t worst_enabled = 0, worst_running = 0;
	int64_t time_ns = (int64_t)(now->now.time_ns - before->now.time_ns);
	uint64_t least_enabled = UINT64_MAX, most_enabled = 0;
	bool whole = true;

	time_ns = time_ns > 0 ? time_ns : 0;
	for (unsigned i = 0; i < c->schema->core.n; i++) {
		uint64_t raw = now->now.counters[i] - before->now.counters[i];
		uint64_t enabled = now->mux.enabled_ns[i] - before->mux.enabled_ns[i];
		uint64_t running = now->mux.running_ns[i] - before->mux.running_ns[i];
		bool speaks = speaks_for(enabled, running, (uint64_t)time_ns);

		if (c->schema->core.ev[i].kind != EVENT_PERF || c->event_fds[(size_t)i * c->n_cpus + cpu] < 0)
			continue; /* this CPU has no such event */
		if (speaks && running)
			raw = (uint64_t)((unsigned __int128)raw * enabled / running);
		*cell_counter(v, rest, i) += raw;
		whole &= speaks;
		least_enabled = enabled < least_enabled ? enabled : least_enabled;
		most_enabled = enabled > most_enabled ? enabled : most_enabled;
		if (!worst_enabled || (enabled && (unsigned __int128)running * worst_enabled <
							  (unsigned __int128)worst_running * enabled)) {
			worst_enabled = enabled;
			worst_running = running;
		}
	}
	rest->enabled_ns += worst_enabled;
	rest->running_ns += worst_running;
	return whole && (!most_enabled || read_at_once(c, least_enabled, most_enabled, (uint64_t)time_ns));
}

static void add_counters(const struct counters *c, struct cell *v, struct cell_rest *rest, const struct staged_row *now,
			 const struct staged_row *before, uint64_t time_ns)
{
	for (unsigned i = 0; i < c->schema->core.n; i++)
		if (c->schema->core.ev[i].kind == EVENT_TASK_CLOCK)
			*cell_counter(v, rest, i) += time_ns;
		else if (!c->schema->multiplexed || event_of_switches(c->schema->core.ev[i].kind))
			*cell_counter(v, rest, i) += now->now.counters[i] - before->now.counters[i];
}

int64_t counters_cell(struct read_context *x, unsigned cpu, uint32_t slot)
{
	uint32_t *number = cell_number(x->c, cpu, slot);

	if (!*number) {
		int64_t row = counters_row(x, slot);
		int64_t cell = row < 0 ? row : reading_cell_number(x->r, (uint32_t)row, (uint16_t)cpu);

		if (cell < 0)
			return cell;
		*number = (uint32_t)cell + 1;
	}
	return *number - 1;
}

/* Takes what was reported ahead of a cell off the time that came. */
static uint64_t settle_cell(struct reading *r, uint32_t cell, uint64_t time_ns)
{
	time_ns = counters_settle(&r->ahead_ns[cell], time_ns);
	r->heads[cell].ahead = r->ahead_ns[cell] != 0;
	return time_ns;
}

/* Adds the difference of a row to its earlier contents. Returns false when there was no memory for it. */
static bool take_row(struct read_context *x, unsigned cpu, const struct staged_row *now,
		     const struct staged_row *before)
{
	struct counters *c = x->c;
	uint64_t time_ns = now->now.time_ns - before->now.time_ns;
	uint64_t switches = now->now.switches - before->now.switches;
	uint64_t lost = c->cpus[cpu].broken ? switches : now->now.lost - before->now.lost;
	const bool has_rest = lost || c->schema->multiplexed || c->schema->core.n > CELL_EVENTS;
	struct cell_rest *rest;
	struct cell *v;
	int64_t cell;

	if (!switches)
		return true;
	cell = counters_cell(x, cpu, now->slot);
	rest = cell >= 0 && has_rest ? reading_rest(x->r, (uint32_t)cell) : NULL;
	if (cell < 0 || (has_rest && !rest))
		return false;
	v = reading_touch(x->r, (uint32_t)cell);
	time_ns = settle_cell(x->r, (uint32_t)cell, time_ns);
	v->time_ns += time_ns;
	v->switches += switches;
	if (lost)
		rest->lost += lost;
	add_counters(c, v, rest, now, before, time_ns);
	if (c->schema->multiplexed && !add_multiplexed(c, v, rest, now, before, cpu) && now->slot != JD_SLOT_IDLE) {
		rest->lost += switches;
		x->r->losses.lost_reads += switches;
		x->r->losses.away_reads += c->cpus[cpu].restarted ? switches : 0;
	}
	if (lost && now->slot != JD_SLOT_IDLE)
		x->r->cpus[cpu].lost_ns += (uint64_t)((unsigned __int128)time_ns * lost / switches);
	x->r->cpus[cpu].elapsed_ns += time_ns;
	return true;
}

/* There was no memory for what a row counted, and the kernel has it no more: it is said to be lost, and the energy of that time is in
 * no row's share (weight.c). */
static void lose_row(struct read_context *x, unsigned cpu, uint32_t slot, uint64_t time_ns, uint64_t switches)
{
	if (slot == JD_SLOT_IDLE || (int64_t)time_ns < 0)
		return;
	x->r->losses.lost_reads += switches;
	x->r->cpus[cpu].lost_ns += time_ns;
	x->r->cpus[cpu].elapsed_ns += time_ns;
}

/* A bank without a writer. What is the same for all of its rows lies here, so that the loop keeps it in registers. */
struct bank_run {
	const uint8_t *rows;
	const uint64_t *slots;
	uint32_t *cell_numbers; /* by slot */
	size_t row_bytes;
	unsigned cpu, bank, n, n_events;
	bool clock_events;
	uint64_t elapsed_ns; /* of the rows taken */
};

static PREFETCHING void prefetch(const struct read_context *x, const struct bank_run *b, unsigned at)
{
	__builtin_prefetch(b->rows + (at + AHEAD_ROWS) * b->row_bytes);
	if (at + AHEAD_ROWS < b->n)
		__builtin_prefetch(&b->cell_numbers[(uint32_t)b->slots[at + AHEAD_ROWS]]);
	if (at + AHEAD_CELLS < b->n) {
		uint32_t cell = b->cell_numbers[(uint32_t)b->slots[at + AHEAD_CELLS]];

		if (cell) {
			__builtin_prefetch(&x->r->cells[cell - 1], 1);
			__builtin_prefetch(&x->r->heads[cell - 1], 1);
		}
	}
}

/* Task clock counts nothing in a row: its event is the row's time. */
static void set_clock_events(const struct counters *c, struct cell *v, struct cell_rest *rest, const uint64_t *row,
			     uint64_t time_ns)
{
	for (unsigned i = 0; i < c->schema->core.n; i++)
		if (c->schema->core.ev[i].kind == EVENT_TASK_CLOCK)
			*cell_counter(v, rest, i) += time_ns - row[i];
}

static inline void add_fresh(struct cell *v, struct cell_rest *rest, const uint64_t *counts, unsigned n)
{
#pragma GCC unroll 4
	for (unsigned i = 0; i < CELL_EVENTS; i += 2)
		if (i + 1 < n)
			counts_add(&v->counters[i], &counts[i], 2);
		else if (i < n)
			v->counters[i] += counts[i];
	for (unsigned i = CELL_EVENTS; rest && i < n; i++)
		rest->counters[i - CELL_EVENTS] += counts[i];
}

/* The common case of take_row, straight from a row of which nothing was taken before: no scaling, no copy. */
static void take_fresh(struct read_context *x, struct bank_run *b, uint32_t slot, const struct jd_row *row)
{
	int64_t number = b->cell_numbers[slot] ? b->cell_numbers[slot] - 1 : counters_cell(x, b->cpu, slot);
	uint64_t time_ns = row->time_ns;
	struct cell_rest *rest = NULL;
	struct cell *v;
	uint32_t cell;

	cell = (uint32_t)number;
	if (number < 0 || (b->n_events > CELL_EVENTS && !(rest = reading_rest(x->r, cell)))) {
		lose_row(x, b->cpu, slot, time_ns, row->switches);
		return;
	}
	v = reading_touch(x->r, cell);
	if (x->r->heads[cell].ahead || (int64_t)time_ns < 0)
		time_ns = settle_cell(x->r, cell, time_ns);
	v->time_ns += time_ns;
	v->switches += row->switches;
	add_fresh(v, rest, (const uint64_t *)row->counters, b->n_events);
	if (b->clock_events)
		set_clock_events(x->c, v, rest, (const uint64_t *)row->counters, time_ns);
	b->elapsed_ns += time_ns;
}

/* The general case: some of the row was taken while the CPU was idle, or its counts are not what they should be. */
static void take_flushed(struct read_context *x, const struct bank_run *b, uint32_t number, uint32_t slot)
{
	struct counters *c = x->c;
	struct staged_row now, *seen = &c->seen[(size_t)b->cpu * c->bank_rows + number];
	const struct staged_row *before = c->cpus[b->cpu].taken ? seen : &nothing;

	now.row = number;
	now.slot = slot; /* the rest by load_row, as far as it is read */
	load_row(c, b->cpu, b->bank, &now);
	if (!take_row(x, b->cpu, &now, before))
		lose_row(x, b->cpu, slot, now.now.time_ns - before->now.time_ns,
			 now.now.switches - before->now.switches);
	if (c->cpus[b->cpu].taken)
		*seen = nothing;
}

void counters_take_bank(struct read_context *x, unsigned cpu, unsigned bank)
{
	struct counters *c = x->c;
	const size_t first = row_index(c, cpu, bank, 0);
	const bool fresh = !c->cpus[cpu].taken && !c->cpus[cpu].broken && !c->mux_rows;
	struct bank_run b = { c->rows + first * c->row_bytes,
			      c->row_slots + first,
			      cell_number(c, cpu, 0),
			      c->row_bytes,
			      cpu,
			      bank,
			      given_out(c, cpu, bank),
			      c->schema->core.n,
			      c->clock_events,
			      0 };

	for (unsigned i = 0; i < b.n; i++) {
		const struct jd_row *row = (const struct jd_row *)(b.rows + i * b.row_bytes);
		uint32_t slot = i < JD_FIRST_SLOT ? i : (uint32_t)b.slots[i];

		prefetch(x, &b, i);
		if (slot >= c->max_slots)
			continue;
		if (!fresh || row->lost)
			take_flushed(x, &b, i, slot);
		else if (row->switches)
			take_fresh(x, &b, slot, row);
	}
	x->r->cpus[cpu].elapsed_ns += b.elapsed_ns;
	c->cpus[cpu].taken = false;
}

void counters_void_bank(struct counters *c, unsigned cpu, unsigned bank)
{
	struct jd_cpu_state *st = &c->states[cpu];
	const size_t at = row_index(c, cpu, bank, 0);

	memset(row_at(c, at), 0, JD_FIRST_SLOT * c->row_bytes);
	if (c->mux_rows)
		memset(&c->mux_rows[at], 0, JD_FIRST_SLOT * sizeof(*c->mux_rows));
	st->n_rows[bank] = JD_FIRST_SLOT;
	st->epoch = st->epoch == UINT32_MAX ? 1 : st->epoch + 1;
}

void counters_trim_bank(struct counters *c, unsigned cpu, unsigned bank, uint64_t most_ns)
{
	struct jd_row *longest = NULL;
	uint64_t sum_ns = 0;
	unsigned n = given_out(c, cpu, bank);

	for (unsigned i = 0; i < n; i++) {
		struct jd_row *row = row_at(c, row_index(c, cpu, bank, i));

		if ((int64_t)row->time_ns <= 0)
			continue;
		sum_ns += row->time_ns;
		longest = longest && longest->time_ns >= row->time_ns ? longest : row;
	}
	if (longest && sum_ns > most_ns)
		longest->time_ns -= sum_ns - most_ns < longest->time_ns ? sum_ns - most_ns : longest->time_ns;
}

unsigned counters_stage_bank(struct counters *c, unsigned cpu, unsigned bank)
{
	unsigned n = given_out(c, cpu, bank), used = 0;

	for (unsigned i = 0; i < n; i++) {
		struct staged_row *s = &c->staged[used];

		s->row = i;
		s->slot = slot_at(c, cpu, bank, i);
		if (s->slot >= c->max_slots)
			continue;
		load_row(c, cpu, bank, s);
		used++;
	}
	return used;
}

void counters_take_staged(struct read_context *x, unsigned cpu, unsigned n)
{
	struct counters *c = x->c;

	for (unsigned i = 0; i < n; i++) {
		const struct staged_row *s = &c->staged[i];
		struct staged_row *seen = &c->seen[(size_t)cpu * c->bank_rows + s->row];

		if (take_row(x, cpu, s, seen))
			*seen = *s;
	}
	c->cpus[cpu].taken |= n > 0;
}
