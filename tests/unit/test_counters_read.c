// SPDX-License-Identifier: Apache-2.0
/* From the kernel's books to the reading, without a kernel: time reported ahead of its charge, steps back, the TSC of
 * CPUs that sleep, events that died. The flush is played here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <cmocka.h>

#include "base/clock.h"
#include "source/counters/rows.h"

#define SLOTS 8
#define ROWS JD_ROWS_ALIGN
#define S NS_PER_S

struct world {
	struct counters c;
	struct schema schema;
	struct reading r;
	struct cgroup_table *table;
	struct read_context x;
	struct cpu_desc desc;
	struct jd_cpu_state state;
	struct jd_row rows[JD_BANKS * ROWS];
	struct jd_mux_row mux_rows[JD_BANKS * ROWS];
	uint64_t row_slots[JD_BANKS * ROWS];
	struct jd_place places[SLOTS];
	struct jd_slot_info info[SLOTS];
	struct staged_row seen[ROWS], staged[ROWS];
	uint32_t slot_cells[SLOTS];
	struct cpu_source cpu;
	uint32_t slot_row[SLOTS];
	int fds[JD_MAX_EVENTS + JD_MAX_MSR_EVENTS];
};

static struct world *flushed;
static uint64_t next_msr, next_msr_ns;

/* Stands in for the flush of bpf/counters_body.bpf.h, as far as its results are read here. */
int bpf_prog_test_run_opts(int fd, struct bpf_test_run_opts *opts)
{
	struct jd_cpu_state *st = &flushed->state;

	st->msr_mono_ns = st->flush_mono_ns = next_msr_ns;
	st->msr[0] = next_msr;
	st->bank ^= 1;
	st->epoch++;
	st->n_rows[st->bank] = JD_FIRST_SLOT;
	memset(&flushed->rows[st->bank * ROWS], 0, JD_FIRST_SLOT * sizeof(flushed->rows[0]));
	memset(&flushed->mux_rows[st->bank * ROWS], 0, JD_FIRST_SLOT * sizeof(flushed->mux_rows[0]));
	opts->retval = JD_FLUSHED;
	return 0;
}

static struct world *world_new(bool multiplexed)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->desc = (struct cpu_desc){ .present = true };
	w->schema = (struct schema){ .n_cpus = 1, .cpus = &w->desc, .n_packages = 1, .multiplexed = multiplexed };
	w->schema.core.n = 2;
	w->schema.core.ev[0].kind = w->schema.core.ev[1].kind = EVENT_PERF;
	w->schema.msr.n = 1;
	w->schema.msr.ev[0].kind = EVENT_PERF;
	w->c = (struct counters){ .schema = &w->schema,
				  .n_cpus = 1,
				  .max_slots = SLOTS,
				  .bank_rows = ROWS,
				  .row_bytes = sizeof(w->rows[0]),
				  .states = &w->state,
				  .rows = (uint8_t *)w->rows,
				  .mux_rows = multiplexed ? w->mux_rows : NULL,
				  .row_slots = w->row_slots,
				  .info = w->info,
				  .seen = w->seen,
				  .staged = w->staged,
				  .slot_cells = w->slot_cells,
				  .cpus = &w->cpu,
				  .slot_row = w->slot_row,
				  .event_fds = w->fds,
				  .tsc_event = 0 };
	memset(w->slot_row, 0xff, sizeof(w->slot_row));
	w->info[JD_FIRST_SLOT].key = 4711;
	w->cpu.online = true;
	w->state.key = 4711;
	w->state.epoch = 1;
	w->state.n_rows[0] = w->state.n_rows[1] = JD_FIRST_SLOT;
	assert_int_equal(reading_init(&w->r, &w->schema), 0);
	w->table = cgroup_table_new();
	w->x = (struct read_context){ .c = &w->c, .r = &w->r, .table = w->table };
	flushed = w;
	return w;
}

static void world_free(struct world *w)
{
	reading_free(&w->r);
	cgroup_table_free(w->table);
	free(w);
}

/* The row of a slot in the active bank, as the kernel gives it out. */
static uint32_t row_of(struct world *w, uint32_t slot)
{
	struct jd_place *place = &w->places[slot];
	uint32_t bank = w->state.bank, at;

	if (slot < JD_FIRST_SLOT)
		return bank * ROWS + slot;
	if (place->epoch != w->state.epoch) {
		*place = (struct jd_place){ .row = w->state.n_rows[bank]++, .epoch = w->state.epoch };
		at = bank * ROWS + place->row;
		w->rows[at] = (struct jd_row){ 0 };
		w->mux_rows[at] = (struct jd_mux_row){ 0 };
		w->row_slots[at] = slot;
	}
	return bank * ROWS + place->row;
}

/* A charge, as the kernel books it. */
static struct jd_row *charge(struct world *w, uint32_t slot, int64_t ns)
{
	struct jd_row *row = &w->rows[row_of(w, slot)];

	row->time_ns += (uint64_t)ns;
	row->switches++;
	w->state.seq += 2;
	return row;
}

static void read_cpu(struct world *w)
{
	w->r.number++;
	assert_int_equal(counters_read_cpu(&w->x, 0), 0);
}

static uint64_t time_of(struct world *w, uint32_t row)
{
	return reading_cell(&w->r, row, 0)->time_ns;
}

static void test_settle(void **state)
{
	uint64_t credit = 0;

	assert_int_equal(counters_settle(&credit, 100), 100);
	assert_int_equal(counters_settle(&credit, (uint64_t)-30), 0);
	assert_int_equal(credit, 30);
	assert_int_equal(counters_settle(&credit, (uint64_t)-5), 0);
	assert_int_equal(counters_settle(&credit, 20), 0);
	assert_int_equal(credit, 15);
	assert_int_equal(counters_settle(&credit, 40), 25);
	assert_int_equal(credit, 0);
}

/* A flush ran ahead of the scheduler: the next charge takes it back, in the next reading or the one after. What was
 * reported is not reported twice, and nothing goes below zero. */
static void test_step_back(void **state)
{
	for (int taken = 0; taken < 2; taken++) { /* 1: with counts that are taken one by one */
		struct world *w = world_new(false);
		uint32_t row = READING_SPECIAL_ROWS;

		w->cpu.broken = taken;
		charge(w, JD_FIRST_SLOT, 1000);
		read_cpu(w);
		assert_int_equal(time_of(w, row), 1000);
		charge(w, JD_FIRST_SLOT, -300);
		read_cpu(w);
		assert_int_equal(time_of(w, row), 1000);
		charge(w, JD_FIRST_SLOT, 200);
		read_cpu(w);
		assert_int_equal(time_of(w, row), 1000);
		charge(w, JD_FIRST_SLOT, 500);
		read_cpu(w);
		assert_int_equal(time_of(w, row), 1400);
		assert_int_equal(w->r.cpus[0].elapsed_ns, 1400);
		world_free(w);
	}
}

/* A cgroup whose cell has no memory is lost, and says so: its CPU's time goes on. What comes after it has its row. */
static void test_no_memory(void **state)
{
	for (int taken = 0; taken < 2; taken++) {
		struct world *w = world_new(false);
		const uint32_t n = w->r.n_cells, cap = w->r.cap_cells;

		w->cpu.broken = taken;
		w->r.n_cells = w->r.cap_cells = UINT32_MAX; /* no more of them can be counted */
		charge(w, JD_SLOT_IDLE, 50);
		charge(w, JD_FIRST_SLOT, 1000);
		charge(w, JD_FIRST_SLOT, 200);
		read_cpu(w);
		w->r.n_cells = n;
		w->r.cap_cells = cap;
		assert_int_equal(w->r.losses.lost_reads, 2);
		assert_int_equal(w->r.cpus[0].lost_ns, 1200);
		assert_int_equal(w->r.cpus[0].elapsed_ns, 1200);
		charge(w, JD_FIRST_SLOT, 30);
		read_cpu(w);
		assert_int_equal(time_of(w, READING_SPECIAL_ROWS), 30);
		assert_int_equal(w->r.cpus[0].elapsed_ns, 1230);
		assert_int_equal(w->r.losses.lost_reads, 2);
		world_free(w);
	}
}

/* A CPU that sleeps is not woken: its TSC goes on at the rate that was seen, and the flush settles to the count. */
static void test_tsc_of_a_sleeping_cpu(void **state)
{
	struct world *w = world_new(false);
	uint64_t begin = clock_mono_ns() - 10 * S, carried, carried_ns;

	next_msr = 5;
	next_msr_ns = begin;
	read_cpu(w);
	next_msr += 3 * S;
	next_msr_ns += S;
	read_cpu(w);
	assert_int_equal(w->r.cpus[0].msr[0], 3 * S + 5);
	w->state.key = JD_KEY_IDLE;
	for (int i = 0; i < 3; i++)
		read_cpu(w);
	carried = w->r.cpus[0].msr[0] - 3 * S - 5;
	carried_ns = w->r.cpus[0].msr_enabled_ns - S;
	assert_true(w->r.cpus[0].msr_stale);
	assert_true(carried_ns >= 9 * S); /* since the flush */
	assert_true(carried <= 3 * carried_ns && carried >= 3 * carried_ns - 16);
	assert_int_equal(w->r.cpus[0].msr_running_ns, w->r.cpus[0].msr_enabled_ns);
	/* it counted a little less than was carried: nothing until the count has caught up */
	w->state.key = 4711;
	next_msr += carried - 1000;
	next_msr_ns += carried_ns;
	read_cpu(w);
	assert_int_equal(w->r.cpus[0].msr[0], 3 * S + 5 + carried);
	assert_int_equal(w->r.cpus[0].msr_enabled_ns, S + carried_ns);
	next_msr += 5000;
	next_msr_ns += 100;
	read_cpu(w);
	assert_int_equal(w->r.cpus[0].msr[0], next_msr);
	assert_int_equal(w->r.cpus[0].msr_enabled_ns, S + carried_ns + 100);
	assert_false(w->r.cpus[0].msr_stale);
	world_free(w);
}

/* An msr event that fails is told as lost time, and asks to be opened anew; one that was opened anew begins there. */
static void test_msr_that_fails(void **state)
{
	struct world *w = world_new(false);

	next_msr = 1000;
	next_msr_ns = S;
	read_cpu(w);
	next_msr = (uint64_t)-EBUSY;
	next_msr_ns = 2 * S;
	read_cpu(w);
	assert_int_equal(w->r.cpus[0].msr_enabled_ns, S);
	assert_int_equal(w->r.cpus[0].msr_running_ns, 0);
	assert_int_equal(w->r.cpus[0].lost_ns, S);
	assert_int_equal(w->cpu.msr_lost, 1);
	w->cpu.restarted = w->cpu.visit = true;
	w->cpu.msr[0] = 0;
	next_msr = 7;
	next_msr_ns = 3 * S;
	w->state.key = JD_KEY_IDLE; /* visited all the same */
	read_cpu(w);
	assert_int_equal(w->r.cpus[0].msr[0], 1000);
	assert_int_equal(w->r.cpus[0].msr_running_ns, 0);
	assert_int_equal(w->r.cpus[0].lost_ns, 2 * S);
	w->state.key = 4711;
	next_msr = 507;
	next_msr_ns = 4 * S;
	read_cpu(w);
	assert_int_equal(w->r.cpus[0].msr[0], 1500);
	assert_int_equal(w->r.cpus[0].msr_enabled_ns, 3 * S);
	assert_int_equal(w->r.cpus[0].msr_running_ns, S);
	world_free(w);
}

/* Back from a time offline that a reading saw: from its first charge on it is online, and a row that has the time away
 * too does not keep it. */
static void test_return(void **state)
{
	struct world *w = world_new(false);

	w->cpu.returned = w->cpu.restarted = w->cpu.visit = true;
	w->cpu.offline_since_ns = 100 * S;
	w->state.began_mono_ns = 103 * S;
	next_msr_ns = 103 * S + 1000;
	charge(w, JD_SLOT_KERNEL, 200);
	charge(w, JD_FIRST_SLOT, 3 * S + 800);
	read_cpu(w);
	assert_int_equal(w->r.cpus[0].offline_ns, 3 * S);
	assert_int_equal(w->r.cpus[0].elapsed_ns, 1000);
	assert_int_equal(time_of(w, ROW_KERNEL), 200);
	assert_int_equal(time_of(w, READING_SPECIAL_ROWS), 800);
	charge(w, JD_FIRST_SLOT, 5000);
	read_cpu(w);
	assert_int_equal(time_of(w, READING_SPECIAL_ROWS), 5800);
	world_free(w);
}

/* A CPU that went offline goes on in the same bank when it returns. */
static void test_bank_of_an_offline_cpu(void **state)
{
	struct world *w = world_new(false);

	charge(w, JD_SLOT_KERNEL, 70);
	charge(w, JD_FIRST_SLOT, 1000)->counters[0] = 5;
	counters_take_bank(&w->x, 0, w->state.bank);
	counters_void_bank(&w->c, 0, w->state.bank);
	charge(w, JD_SLOT_KERNEL, 30);
	charge(w, JD_FIRST_SLOT, 200)->counters[0] += 1;
	read_cpu(w);
	assert_int_equal(time_of(w, ROW_KERNEL), 100);
	assert_int_equal(time_of(w, READING_SPECIAL_ROWS), 1200);
	assert_int_equal(reading_cell(&w->r, READING_SPECIAL_ROWS, 0)->counters[0], 6);
	world_free(w);
}

/* Of the cell of the first cgroup. */
static struct cell_rest *rest_of(struct world *w)
{
	return reading_rest(&w->r, (uint32_t)reading_cell_number(&w->r, READING_SPECIAL_ROWS, 0));
}

static void put_mux(struct world *w, unsigned event, uint64_t count, uint64_t enabled, uint64_t running)
{
	uint32_t at = row_of(w, JD_FIRST_SLOT);

	w->rows[at].counters[event] += count;
	w->mux_rows[at].enabled_ns[event] += enabled;
	w->mux_rows[at].running_ns[event] += running;
}

/* What the switch program counts itself has no turns: it is taken as it is, and says nothing about the others. */
static void test_switch_events_beside_multiplexed(void **state)
{
	struct world *w = world_new(true);
	const struct cell_rest *rest;
	const struct cell *v;

	w->schema.core.n = 3;
	w->schema.core.ev[2].kind = EVENT_SIBLING_BUSY;
	charge(w, JD_FIRST_SLOT, 10000000)->counters[2] += 4000;
	put_mux(w, 0, 1000, 10000000, 5000000);
	put_mux(w, 1, 300, 10000000, 7500000);
	read_cpu(w);
	v = reading_cell(&w->r, READING_SPECIAL_ROWS, 0);
	rest = rest_of(w);
	assert_int_equal(v->counters[2], 4000);
	assert_int_equal(v->counters[0], 2000);
	assert_int_equal(rest->running_ns, 5000000);
	assert_int_equal(rest->lost, 0);
	world_free(w);
}

/* Of any number of events each comes to its own counter, straight from a flushed row and by way of a copy (a read failed). */
static void test_every_event(void **state)
{
	for (unsigned n = 1; n <= JD_MAX_EVENTS; n++) {
		struct world *w = world_new(false);

		w->schema.core.n = n;
		for (unsigned lost = 0; lost < 2; lost++) {
			struct jd_row *row = charge(w, JD_FIRST_SLOT, 100);

			row->lost = lost;
			for (unsigned i = 0; i < JD_MAX_EVENTS; i++)
				row->counters[i] = i < n ? 1000 * n + i : 77;
			read_cpu(w);
		}
		assert_int_equal(time_of(w, READING_SPECIAL_ROWS), 200);
		for (unsigned i = 0; i < JD_MAX_EVENTS; i++)
			assert_int_equal(*cell_counter(reading_cell(&w->r, READING_SPECIAL_ROWS, 0), rest_of(w), i),
					 i < n ? 2 * (1000 * n + i) : 0);
		assert_int_equal(rest_of(w)->lost, 1);
		world_free(w);
	}
}

/* Half of the time on its counter: twice the count. The row keeps the worst of its events. One that had no turn says
 * nothing: taken as it is, and the row is lost in part. */
static void test_multiplexed(void **state)
{
	struct world *w = world_new(true);
	const struct cell_rest *rest;
	const struct cell *v;

	charge(w, JD_FIRST_SLOT, 10000000);
	put_mux(w, 0, 1000, 10000000, 5000000);
	put_mux(w, 1, 300, 10000000, 7500000);
	read_cpu(w);
	v = reading_cell(&w->r, READING_SPECIAL_ROWS, 0);
	rest = rest_of(w);
	assert_int_equal(v->counters[0], 2000);
	assert_int_equal(v->counters[1], 400);
	assert_int_equal(rest->enabled_ns, 10000000);
	assert_int_equal(rest->running_ns, 5000000);
	assert_int_equal(rest->lost, 0);
	charge(w, JD_FIRST_SLOT, 10000000);
	put_mux(w, 0, 1000, 10000000, 10000000);
	put_mux(w, 1, 0, 10000000, 0);
	read_cpu(w);
	v = reading_cell(&w->r, READING_SPECIAL_ROWS, 0);
	rest = rest_of(w);
	assert_int_equal(v->counters[0], 3000);
	assert_int_equal(v->counters[1], 400);
	assert_int_equal(rest->lost, 1);
	assert_int_equal(w->r.losses.lost_reads, 1);
	/* nor is one of a CPU that was taken away between the reads of two events: 3 of 40 ms */
	charge(w, JD_FIRST_SLOT, 40000000);
	put_mux(w, 0, 1000, 40000000, 20000000);
	put_mux(w, 1, 1000, 43000000, 23000000);
	read_cpu(w);
	rest = rest_of(w);
	assert_int_equal(rest->lost, 2);
	charge(w, JD_FIRST_SLOT, 40000000);
	put_mux(w, 0, 1000, 40000000, 20000000);
	put_mux(w, 1, 1000, 41000000, 21000000);
	read_cpu(w);
	rest = rest_of(w);
	assert_int_equal(rest->lost, 2);
	/* all of them a tenth too long: before the first. Where interrupts are taken out of the row's time, that is usual */
	for (unsigned separate = 0; separate < 2; separate++) {
		w->schema.irq_separate = separate;
		charge(w, JD_FIRST_SLOT, 40000000);
		put_mux(w, 0, 1000, 44000000, 20000000);
		put_mux(w, 1, 1000, 44000000, 20000000);
		read_cpu(w);
		rest = rest_of(w);
		assert_int_equal(rest->lost, 3);
	}
	assert_int_equal(w->r.losses.lost_reads, 3);
	/* of a CPU that was away the same, but there is nothing to do about it */
	w->cpu.restarted = w->cpu.visit = true;
	charge(w, JD_FIRST_SLOT, 10000000);
	read_cpu(w);
	assert_int_equal(w->r.losses.lost_reads, 4);
	assert_int_equal(w->r.losses.away_reads, 1);
	world_free(w);
}

/* What the maps take on machines of each size, in MiB; docs/operation.md has this table. */
static void test_map_sizes(void **state)
{
	static const struct {
		unsigned cpus, cgroups, events, mib;
	} all[] = {
		{ 2, 4096, 6, 4 },    { 64, 4096, 6, 38 },    { 128, 4096, 6, 41 },   { 256, 4096, 6, 51 },
		{ 512, 4096, 6, 99 }, { 512, 10000, 6, 125 }, { 512, 16384, 6, 153 }, { 256, 65536, 8, 209 },
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct counters_options o = { .max_cgroups = all[i].cgroups };
		struct schema s = { .core.n = all[i].events };
		struct counters c = {
			.o = &o, .schema = &s, .n_cpus = all[i].cpus, .max_slots = all[i].cgroups + JD_FIRST_SLOT
		};
		unsigned mib;

		counters_set_sizes(&c);
		mib = (unsigned)((counters_map_bytes(&c) + (1 << 20) - 1) >> 20);
		printf("  %u CPUs, cgroups.max %u, %u events: %u MiB, %u rows a bank\n", all[i].cpus, all[i].cgroups,
		       all[i].events, mib, c.bank_rows);
		assert_int_equal(c.bank_rows % JD_ROWS_ALIGN, 0);
		assert_true(c.bank_rows >= 1024);
		assert_int_equal(mib, all[i].mib);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_step_back),
		cmocka_unit_test(test_tsc_of_a_sleeping_cpu),
		cmocka_unit_test(test_msr_that_fails),
		cmocka_unit_test(test_return),
		cmocka_unit_test(test_bank_of_an_offline_cpu),
		cmocka_unit_test(test_every_event),
		cmocka_unit_test(test_multiplexed),
		cmocka_unit_test(test_switch_events_beside_multiplexed),
		cmocka_unit_test(test_map_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
