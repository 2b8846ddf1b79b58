/* SPDX-License-Identifier: Apache-2.0 */
/* What a snapshot holds: differences, order, qualities, CPUs, domains. */
#include "unit/consumer_fixture.h"

static void test_deltas_in_order(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a", .level = 1, .selected = true },
		      b = { .id = 12, .path = "/b", .level = 1 };
	struct snapshot *s;

	reading_add_row(&f->r, &a);
	reading_add_row(&f->r, &b);
	charge(&f->r, 5, 3, 100);
	charge(&f->r, 5, 0, 10);
	charge(&f->r, 5, 2, 1);
	charge(&f->r, ROW_IDLE, 1, 1000);
	reading_add_traffic(&f->r, 4, &(struct traffic){ .tx_bytes = 7 });
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->number, 1);
	assert_int_equal(s->n_rows, 6);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(s->rows[i].kind, i);
	assert_string_equal(s->rows[ROW_IRQ_STEAL].path, "irq+steal");
	assert_int_equal(s->rows[ROW_IDLE].time_ns, 1000);
	assert_string_equal(s->rows[4].path, "/a");
	assert_true(s->rows[4].selected);
	assert_int_equal(s->rows[4].n_cells, 0);
	assert_int_equal(s->rows[4].time_ns, 0); /* alive, did nothing: there, with zeros */
	assert_int_equal(s->rows[4].traffic.tx_bytes, 7);
	assert_int_equal(s->rows[5].key, 5);
	assert_int_equal(s->rows[5].id, 12);
	assert_int_equal(s->rows[5].time_ns, 111);
	assert_int_equal(s->rows[5].counters[0], 333);
	assert_int_equal(s->rows[5].switches, 3);
	assert_int_equal(s->rows[5].n_cells, 3);
	for (unsigned i = 0; i < 3; i++) {
		static const uint16_t cpu[] = { 0, 2, 3 };
		static const uint64_t time[] = { 10, 1, 100 };
		const struct snap_cell *cell = &s->cells[s->rows[5].first_cell + i];

		assert_int_equal(cell->row, 5);
		assert_int_equal(cell->cpu, cpu[i]);
		assert_int_equal(cell->time_ns, time[i]);
		assert_int_equal(cell->quality, 0);
	}
	f->r.number++;
	charge(&f->r, 5, 2, 4);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[5].time_ns, 4);
	assert_int_equal(s->n_cells, 1);
	assert_int_equal(s->rows[4].traffic.tx_bytes, 0);
	assert_int_equal(s->rows[ROW_IDLE].time_ns, 0);
}

/* A snapshot keeps the path it had, the next one shows the new name. */
static void test_rename(void **state)
{
	struct fixture *f = *state;
	char first[] = "/old", second[] = "/new";
	struct cgroup a = { .id = 11, .path = first };
	struct snapshot *s;

	reading_add_row(&f->r, &a);
	s = consumer_snapshot(f->c, &f->r);
	memset(first, 'x', sizeof(first) - 1);
	a.path = second;
	a.renamed++;
	assert_string_equal(s->rows[4].path, "/old");
	s = consumer_snapshot(f->c, &f->r);
	assert_string_equal(s->rows[4].path, "/new");
}

static void test_cell_quality(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a" };
	struct snapshot *s;

	schema.multiplexed = true;
	reading_add_row(&f->r, &a);
	for (uint16_t cpu = 0; cpu < 4; cpu++)
		charge(&f->r, 4, cpu, 100);
	rest_of(&f->r, 4, 0)->lost = 1;
	rest_of(&f->r, 4, 1)->running_ns = 60;
	rest_of(&f->r, 4, 2)->running_ns = 0;
	f->r.cpus[3].online_changes++;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->cells[0].quality, QUALITY_PARTIAL);
	assert_int_equal(s->cells[1].quality, QUALITY_MULTIPLEXED);
	assert_int_equal(s->cells[2].quality, QUALITY_LOST);
	assert_int_equal(s->cells[3].quality, QUALITY_PARTIAL);
	assert_int_equal(s->rows[4].quality, QUALITY_PARTIAL | QUALITY_MULTIPLEXED | QUALITY_LOST);
	assert_int_equal(s->cpus[3].quality, QUALITY_PARTIAL);
	assert_int_equal(s->cpus[2].quality, 0);
	f->r.number++;
	charge(&f->r, 4, 3, 1);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[4].quality, 0);
	/* A cell that only has a failed read is in the snapshot, too. */
	f->r.number++;
	rest_of(&f->r, 4, 1)->lost++;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[4].n_cells, 1);
	assert_int_equal(s->rows[4].quality, QUALITY_PARTIAL);
	schema.multiplexed = false;
}

/* Reads the CPUs so many ns after the reading began; 0 = not for this reading. */
static void read_cpus_at(struct reading *r, uint64_t start_ns, const uint64_t after_ns[CPUS])
{
	r->number++;
	r->mono_ns = start_ns;
	for (unsigned i = 0; i < CPUS; i++) {
		r->cpus[i].online = true;
		r->cpus[i].read_mono_ns = after_ns[i] ? start_ns + after_ns[i] : r->cpus[i].read_mono_ns;
	}
}

/* Energy is read when a reading begins, its CPUs later: said where that is more than 0.5 % of the interval, for both
 * intervals that the reading bounds. */
static void test_skew(void **state)
{
	struct fixture *f = *state;
	struct reading *r = &f->r;

	assert_int_equal(reading_instants(r).gap_ns, 0); /* no CPU was ever read */
	assert_int_equal(reading_instants(r).spread_ns, 0);
	read_cpus_at(r, 1000000, (const uint64_t[CPUS]){ 40, 10, 30, 20 });
	assert_int_equal(reading_instants(r).gap_ns, 40);
	assert_int_equal(reading_instants(r).spread_ns, 30);
	assert_int_equal(consumer_snapshot(f->c, r)->skew_ns, 0);
	read_cpus_at(r, 2000000, (const uint64_t[CPUS]){ 5000, 4900, 0, 4800 }); /* 0.5 % exactly */
	assert_int_equal(reading_instants(r).spread_ns, 200); /* without the CPU that was not read */
	assert_int_equal(consumer_snapshot(f->c, r)->skew_ns, 0);
	read_cpus_at(r, 3000000, (const uint64_t[CPUS]){ 5001, 1, 1, 1 });
	assert_int_equal(consumer_snapshot(f->c, r)->skew_ns, 5001);
	read_cpus_at(r, 4000000, (const uint64_t[CPUS]){ 1, 1, 1, 1 });
	assert_int_equal(consumer_snapshot(f->c, r)->skew_ns, 5001); /* it began with that reading */
	read_cpus_at(r, 5000000, (const uint64_t[CPUS]){ 1, 1, 9000, 1 });
	r->cpus[2].online = false;
	assert_int_equal(reading_instants(r).gap_ns, 1);
	assert_int_equal(consumer_snapshot(f->c, r)->skew_ns, 0);
}

/* Cells that have no rest, then one, then are those of another row. */
static void test_rest_of_cells(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a" }, b = { .id = 12, .path = "/b" };
	struct cell_rest *rest;
	struct snapshot *s;
	struct cell *v;
	uint32_t cell;

	assert_int_equal(reading_add_row(&f->r, &a), 4);
	cell = (uint32_t)reading_cell_number(&f->r, 4, 1);
	v = reading_touch(&f->r, cell);
	v->time_ns = 100;
	v->counters[CELL_EVENTS - 1] = 7;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[4].time_ns, 100);
	assert_int_equal(s->cells[0].enabled_ns, 100);
	assert_int_equal(s->cells[0].running_ns, 100);
	assert_int_equal(s->rows[4].enabled_ns, 100);
	assert_int_equal(s->rows[4].running_ns, 100);
	assert_int_equal(s->rows[4].counters[CELL_EVENTS - 1], 7);
	f->r.number++;
	rest = rest_of(&f->r, 4, 1);
	*cell_counter(v, rest, SCHEMA_MAX_EVENTS - 1) = 9;
	rest->lost = 3;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[4].counters[SCHEMA_MAX_EVENTS - 1], 9);
	assert_int_equal(s->rows[4].quality, QUALITY_PARTIAL);
	reading_drop_row(&f->r, 4);
	f->r.number++;
	assert_int_equal(reading_add_row(&f->r, &b), 4);
	assert_int_equal(reading_cell_number(&f->r, 4, 1), cell); /* the same cell, emptied */
	v = reading_touch(&f->r, cell);
	v->time_ns = 50;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[4].time_ns, 50);
	assert_int_equal(s->rows[4].quality, 0);
	f->r.number++;
	rest = rest_of(&f->r, 4, 1);
	*cell_counter(v, rest, SCHEMA_MAX_EVENTS - 1) += 2; /* of the row before nothing is left */
	rest->lost += 1;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[4].counters[SCHEMA_MAX_EVENTS - 1], 2);
	assert_int_equal(s->rows[4].quality, QUALITY_PARTIAL);
}

static void test_cpus(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a" };
	struct snapshot *s;

	reading_add_row(&f->r, &a);
	charge(&f->r, ROW_IDLE, 0, 700);
	charge(&f->r, ROW_IDLE, 2, 1000);
	charge(&f->r, ROW_IRQ_STEAL, 2, 5);
	charge(&f->r, 4, 0, 300);
	f->r.cpus[0] = (struct reading_cpu){
		.online = true, .elapsed_ns = 1000, .msr = { 42 }, .msr_enabled_ns = 9, .msr_running_ns = 8
	};
	f->r.cpus[2] = (struct reading_cpu){ .online = true, .elapsed_ns = 1005, .msr_stale = true };
	f->r.cpus[3] = (struct reading_cpu){ .offline_ns = 1000, .lost_ns = 1 };
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->cpus[0].idle_ns, 700);
	assert_int_equal(s->cpus[0].busy_ns, 300);
	assert_int_equal(s->cpus[0].msr[0], 42);
	assert_int_equal(s->cpus[0].msr_enabled_ns, 9);
	assert_int_equal(s->cpus[0].msr_running_ns, 8);
	assert_int_equal(s->cpus[1].busy_ns, 0);
	assert_false(s->cpus[1].online);
	assert_int_equal(s->cpus[2].idle_ns, 1000);
	assert_int_equal(s->cpus[2].irq_steal_ns, 5);
	assert_int_equal(s->cpus[2].busy_ns, 0);
	assert_int_equal(s->cpus[2].quality, QUALITY_STALE);
	assert_int_equal(s->cpus[3].offline_ns, 1000);
	assert_int_equal(s->cpus[3].quality, QUALITY_PARTIAL);
}

/* Where root and idle are one row, the root's time is idle time. */
static void test_root_and_idle_merged(void **state)
{
	struct fixture *f = *state;
	struct cgroup root = { .id = 1, .path = "/", .level = 0 }, a = { .id = 2, .path = "/a", .level = 1 };
	struct snapshot *s;

	reading_add_row(&f->r, &a);
	reading_add_row(&f->r, &root);
	charge(&f->r, ROW_IDLE, 1, 10);
	charge(&f->r, 4, 1, 200);
	charge(&f->r, 5, 1, 600);
	f->r.cpus[1] = (struct reading_cpu){ .online = true, .elapsed_ns = 810 };
	schema.idle_merged = true;
	s = consumer_snapshot(f->c, &f->r);
	schema.idle_merged = false;
	assert_int_equal(s->cpus[1].idle_ns, 610);
	assert_int_equal(s->cpus[1].busy_ns, 200);
}

static void test_domain_quality(void **state)
{
	static const struct {
		size_t field;
		unsigned quality;
	} cases[] = {
		{ offsetof(struct reading_domain, wraps), QUALITY_WRAPPED },
		{ offsetof(struct reading_domain, resets), QUALITY_PARTIAL },
		{ offsetof(struct reading_domain, dropped), QUALITY_PARTIAL },
		{ offsetof(struct reading_domain, errors), QUALITY_PARTIAL },
	};
	struct fixture *f = *state;
	struct reading_domain *d = &f->r.domains[1];
	struct snapshot *s;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		d->time_ns += 10;
		++*(uint64_t *)((char *)d + cases[i].field);
		s = consumer_snapshot(f->c, &f->r);
		assert_int_equal(s->domains[1].quality, cases[i].quality);
	}
	d->time_ns += 10;
	d->units += 5;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->domains[1].quality, 0);
	assert_int_equal(s->domains[1].energy_uj, 5);
	assert_int_equal(s->domains[1].end_ns - s->domains[1].start_ns, 10);
	assert_int_equal(s->domains[0].quality, QUALITY_STALE); /* nobody read it since */
	d->time_ns += 10;
	d->estimated = true;
	assert_int_equal(consumer_snapshot(f->c, &f->r)->domains[1].quality, QUALITY_ESTIMATED);
	d->time_ns += 10;
	d->stale = true;
	assert_int_equal(consumer_snapshot(f->c, &f->r)->domains[1].quality, QUALITY_ESTIMATED | QUALITY_STALE);
}

/* 16384 units of 2^-14 J one by one: each is 61.03515625 uJ, together exactly one joule. */
static void test_energy_quality(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a", .level = 1 };
	struct snapshot *s;

	reading_add_row(&f->r, &a);
	charge(&f->r, 4, 0, 100);
	s = consumer_snapshot(f->c, &f->r);
	s->rows[4].quality = QUALITY_LOST;
	s->domains[0].quality = QUALITY_WRAPPED;
	s->domains[0].share_quality = 0;
	*snapshot_energy(s, 4, 0) = 0; /* its counters were the weight: all of its energy is residual */
	assert_int_equal(snapshot_energy_quality(s, 4, 0), QUALITY_LOST | QUALITY_WRAPPED);
	*snapshot_energy(s, 4, 0) = 5; /* some of its cells were counted */
	assert_int_equal(snapshot_energy_quality(s, 4, 0), QUALITY_PARTIAL | QUALITY_WRAPPED);
	s->domains[0].share_quality = QUALITY_ESTIMATED; /* time was the weight */
	assert_int_equal(snapshot_energy_quality(s, 4, 0), QUALITY_ESTIMATED | QUALITY_WRAPPED);
	s->rows[4].quality = QUALITY_MULTIPLEXED;
	assert_int_equal(snapshot_energy_quality(s, 4, 0), QUALITY_MULTIPLEXED | QUALITY_ESTIMATED | QUALITY_WRAPPED);
}

static void test_energy_does_not_drift(void **state)
{
	struct fixture *f = *state;
	uint64_t uj = 0, q32 = 0;

	f->r.domains[0].uj_num = 1000000;
	f->r.domains[0].uj_den = 16384;
	for (unsigned i = 0; i < 16384; i++) {
		struct snapshot *s;

		f->r.domains[0].units++;
		s = consumer_snapshot(f->c, &f->r);
		assert_in_range(s->domains[0].energy_uj, 61, 62);
		uj += s->domains[0].energy_uj;
		q32 += s->domains[0].energy_q32;
	}
	assert_int_equal(uj, 1000000);
	assert_int_equal(q32, 1ull << 32);
}

static void test_machine(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;

	f->r.mono_ns = 4000;
	f->r.boot_ns = 18000;
	f->r.real_ns = 123456;
	f->r.losses = (struct losses){ .folded = 1, .lost_reads = 2, .lost_events = 3, .missed_switches = 4 };
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->start_ns, 1000);
	assert_int_equal(s->end_ns, 4000);
	assert_int_equal(s->suspended_ns, 10000);
	assert_int_equal(s->end_real_ns, 123456);
	assert_int_equal(s->losses.lost_events, 3);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->number, 2);
	assert_int_equal(s->losses.folded, 0);
	assert_int_equal(s->suspended_ns, 0);
}

/* What formula model tries has a name, but for the trial of all at once. */
static void test_trial_names(void **state)
{
	static const struct schema none;
	char name[32];

	assert_string_equal(snapshot_trial_name(&none, SNAP_TRY_WAIT, name, sizeof(name)), "wait");
	assert_string_equal(snapshot_trial_name(&none, SNAP_TRY_OWN, name, sizeof(name)), "cgroups");
	assert_string_equal(snapshot_trial_name(&none, SNAP_TRY_FREE, name, sizeof(name)), "load of each");
	assert_string_equal(snapshot_trial_name(&none, SNAP_TRY_FREE - 1, name, sizeof(name)), "queue");
	assert_string_equal(snapshot_trial_name(&none, SNAP_TRY_ALL, name, sizeof(name)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_deltas_in_order),
		test(test_rename),
		test(test_cell_quality),
		test(test_skew),
		test(test_rest_of_cells),
		test(test_cpus),
		test(test_root_and_idle_merged),
		test(test_energy_quality),
		test(test_domain_quality),
		test(test_energy_does_not_drift),
		test(test_machine),
		test(test_trial_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
