/* SPDX-License-Identifier: Apache-2.0 */
/* The share formula on a machine small enough to work out each joule by hand. */
#include "unit/machine_fixture.h"

static const char *const usual[] = { "CYCLES", "INSTRUCTIONS", "LLC_MISSES", NULL };
static const char *const no_pmu[] = { "INSTRUCTIONS", NULL };

/* Package 0: A 3000 and B 1000 cycles, kernel 400; package 1: only C. */
static void busy_machine(struct machine *m, const char *const *events)
{
	machine_init(m, events);
	machine_cell(m, ROW_IDLE, 0, 700 * MS, 999999);
	machine_cell(m, ROW_KERNEL, 1, 100 * MS, 400);
	machine_cell(m, ROW_IRQ_STEAL, 0, 50 * MS, 0);
	machine_cell(m, A, 0, 100 * MS, 2000);
	machine_cell(m, A, 1, 100 * MS, 1000)->counters[LLC] = 70;
	machine_cell(m, B, 1, 200 * MS, 1000)->counters[LLC] = 30;
	machine_cell(m, C, 2, 100 * MS, 5)->counters[LLC] = 1;
}

static void test_cycles(void **state)
{
	struct machine m;

	busy_machine(&m, usual);
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 5.6);
	assert_string_equal(m.s.formula, "share");
	assert_int_equal(m.s.idle_policy, IDLE_OWN);
	assert_int_equal(m.s.domains[PKG0].idle_uj, 5600000);
	assert_int_equal(m.s.domains[PKG0].idle_power_uw, 5600000);
	assert_int_equal(m.s.domains[PKG0].idle_quality, 0);
	assert_int_equal(m.s.domains[PKG0].share_quality, 0);
	assert_int_equal(energy(&m, A, PKG0), 3000000);
	assert_int_equal(energy(&m, B, PKG0), 1000000);
	assert_int_equal(energy(&m, ROW_KERNEL, PKG0), 400000);
	assert_int_equal(energy(&m, ROW_IDLE, PKG0) + energy(&m, ROW_IRQ_STEAL, PKG0) + energy(&m, C, PKG0), 0);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 0);
	assert_int_equal(energy(&m, C, PKG1), 4400000);
	assert_int_equal(energy(&m, A, PKG1), 0);
	/* psys: 4405 cycles of the whole machine share 4.4 J. */
	assert_in_range(energy(&m, C, PSYS), 4994, 4995);
	assert_in_range(energy(&m, A, PSYS), 2996594, 2996595);
	/* No source tells which cgroup used the GPU. */
	assert_int_equal(m.s.domains[GPU].residual_uj, 4400000);
	machine_free(&m);
}

static void test_dram(void **state)
{
	static const char *const no_misses[] = { "CYCLES", "INSTRUCTIONS", NULL };
	struct machine m;

	busy_machine(&m, usual);
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(energy(&m, A, DRAM0), 7000000);
	assert_int_equal(energy(&m, B, DRAM0), 3000000);
	assert_int_equal(m.s.domains[DRAM0].share_quality, QUALITY_ESTIMATED);
	machine_free(&m);
	busy_machine(&m, no_misses);
	m.s.domains[DRAM0].energy_uj = 4400;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(energy(&m, A, DRAM0), 3000);
	assert_int_equal(m.s.domains[DRAM0].share_quality, QUALITY_ESTIMATED);
	machine_free(&m);
}

/* irq+steal pays where time is the weight: 550 ms of package 0. */
static void test_time(void **state)
{
	struct machine m;

	busy_machine(&m, usual);
	m.s.domains[PKG0].energy_uj = 550;
	machine_apply(&m, IDLE_OWN, WEIGHT_TIME, 0);
	assert_int_equal(energy(&m, A, PKG0), 200);
	assert_int_equal(energy(&m, B, PKG0), 200);
	assert_int_equal(energy(&m, ROW_KERNEL, PKG0), 100);
	assert_int_equal(energy(&m, ROW_IRQ_STEAL, PKG0), 50);
	assert_int_equal(energy(&m, ROW_IDLE, PKG0), 0);
	assert_int_equal(m.s.domains[PKG0].share_quality, 0);
	machine_free(&m);
}

/* A is the root and one with idle: its cycles count, its time does not. */
static void test_root_merged_with_idle(void **state)
{
	struct machine m;

	busy_machine(&m, usual);
	m.schema.idle_merged = true;
	for (unsigned i = B; i <= C; i++)
		m.s.rows[i].level = 1;
	m.s.domains[PKG0].energy_uj = 350;
	m.s.domains[PKG1].energy_uj = 4400;
	m.schema.domains[PKG1].package = 0;
	machine_apply(&m, IDLE_OWN, WEIGHT_TIME, 0);
	assert_int_equal(energy(&m, A, PKG0), 0);
	assert_int_equal(energy(&m, B, PKG0), 200);
	assert_int_equal(energy(&m, ROW_IRQ_STEAL, PKG0), 50);
	formula_share.destroy(m.f);
	m.f = NULL;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(energy(&m, A, PKG1), 3000);
	machine_free(&m);
}

/* Cycles asked for, only time there: done, and said. */
static void test_time_for_want_of_cycles(void **state)
{
	struct machine m;

	busy_machine(&m, no_pmu);
	m.s.domains[PKG0].energy_uj = 550;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(energy(&m, A, PKG0), 200);
	assert_int_equal(m.s.domains[PKG0].share_quality, QUALITY_ESTIMATED);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 0);
	machine_free(&m);
	/* The event is there but CPU 1 does not have it (another kind of core). */
	busy_machine(&m, usual);
	m.schema.core.ev[CYC].cpus_only_known = 1;
	m.schema.core.ev[CYC].cpus[0] = 0xd;
	m.s.domains[PKG0].energy_uj = 550;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(energy(&m, A, PKG0), 200);
	assert_int_equal(m.s.domains[PKG0].share_quality, QUALITY_ESTIMATED);
	assert_int_equal(m.s.domains[PKG1].share_quality, 0);
	machine_free(&m);
	/* The counter stands still. */
	busy_machine(&m, usual);
	for (unsigned i = 0; i < m.s.n_cells; i++)
		m.s.cells[i].counters[CYC] = 0;
	m.s.domains[PKG0].energy_uj = 550;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(energy(&m, A, PKG0), 200);
	assert_int_equal(m.s.domains[PKG0].share_quality, QUALITY_ESTIMATED);
	machine_free(&m);
}

/* CPU 0 at twice, CPU 1 at half the base clock: A 4000 + 500, B 500, kernel 200. */
static void test_cycles_by_frequency(void **state)
{
	static const char *const msr[] = { "TSC", "APERF", "MPERF" };
	struct machine m;

	busy_machine(&m, usual);
	for (m.schema.msr.n = 0; m.schema.msr.n < 3; m.schema.msr.n++)
		snprintf(m.schema.msr.ev[m.schema.msr.n].name, SCHEMA_NAME_MAX, "%s", msr[m.schema.msr.n]);
	m.s.cpus[0].msr[1] = 4000000000;
	m.s.cpus[0].msr[2] = 2000000000;
	m.s.cpus[1].msr[1] = 1000000000;
	m.s.cpus[1].msr[2] = 2000000000;
	m.s.domains[PKG0].energy_uj = 5200;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES_BY_FREQUENCY, 0);
	assert_int_equal(energy(&m, A, PKG0), 4500);
	assert_int_equal(energy(&m, B, PKG0), 500);
	assert_int_equal(energy(&m, ROW_KERNEL, PKG0), 200);
	assert_int_equal(m.s.domains[PKG0].share_quality, 0);
	assert_int_equal(m.s.domains[PKG1].share_quality, QUALITY_ESTIMATED); /* its CPUs were not read */
	assert_int_equal(energy(&m, C, PKG1), 10000000);
	machine_free(&m);
}

/* 5.5 or 8.8 mJ of idle, 4.4 mJ by cycles; by time package 0 has 500 ms in rows and 50 in irq+steal. */
static void test_who_pays_for_idle(void **state)
{
	struct machine m;

	busy_machine(&m, usual);
	m.s.domains[PKG0].energy_uj = 4400 + 5500;
	machine_apply(&m, IDLE_BY_TIME, WEIGHT_CYCLES, 0.0055);
	assert_int_equal(m.s.domains[PKG0].idle_uj, 0);
	assert_int_equal(m.s.domains[PKG0].idle_power_uw, 5500);
	assert_int_equal(energy(&m, A, PKG0), 3000 + 2000);
	assert_int_equal(energy(&m, B, PKG0), 1000 + 2000);
	assert_int_equal(energy(&m, ROW_KERNEL, PKG0), 400 + 1000);
	assert_int_equal(energy(&m, ROW_IRQ_STEAL, PKG0), 500);
	machine_free(&m);
	busy_machine(&m, usual);
	m.s.domains[PKG0].energy_uj = 4400 + 8800;
	machine_apply(&m, IDLE_BY_SHARE, WEIGHT_CYCLES, 0.0088);
	assert_int_equal(m.s.domains[PKG0].idle_uj, 0);
	assert_int_equal(energy(&m, A, PKG0), 9000);
	assert_int_equal(energy(&m, B, PKG0), 3000);
	assert_int_equal(energy(&m, ROW_KERNEL, PKG0), 1200);
	assert_int_equal(m.s.idle_policy, IDLE_BY_SHARE);
	machine_free(&m);
}

static void test_nothing_ran(void **state)
{
	for (enum idle_policy p = IDLE_OWN; p <= IDLE_BY_SHARE; p++) {
		struct machine m;

		machine_init(&m, usual);
		machine_cell(&m, ROW_IDLE, 0, S, 5);
		machine_apply(&m, p, WEIGHT_CYCLES, 6);
		assert_int_equal(m.s.domains[PKG0].idle_uj, 6000000);
		assert_int_equal(m.s.domains[PKG0].residual_uj, 4000000);
		machine_free(&m);
	}
}

/* A's cell on CPU 1 is lost. Whole cells: 400 + 2000 + 1000 cycles in 100 + 100 + 200 ms, so the
 * 100 ms that were lost stand for 850 cycles: 850 / 4250 of the energy. */
static void test_lost_cell(void **state)
{
	struct machine m;

	busy_machine(&m, usual);
	m.s.cells[4].quality = QUALITY_LOST;
	m.s.domains[PKG0].energy_uj = 4250;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 850);
	assert_int_equal(energy(&m, A, PKG0), 2000);
	assert_int_equal(energy(&m, B, PKG0), 1000);
	/* Time is whole: by time nothing is missing. */
	formula_share.destroy(m.f);
	m.f = NULL;
	machine_apply(&m, IDLE_OWN, WEIGHT_TIME, 0);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 0);
	machine_free(&m);
}

/* The same cell counted 250 of its 850 cycles: 600 of 4250 are missing. A rich partial cell lacks nothing. */
static void test_partial_cell(void **state)
{
	struct machine m;

	busy_machine(&m, usual);
	m.s.cells[4].quality = QUALITY_PARTIAL;
	m.s.cells[4].counters[CYC] = 250;
	m.s.domains[PKG0].energy_uj = 4250;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 600);
	assert_int_equal(energy(&m, A, PKG0), 2250);
	m.s.cells[4].counters[CYC] = 5000;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 0);
	machine_free(&m);
}

/* CPU 1 went offline: 100 ms of its busy time are in no row. */
static void test_partial_cpu(void **state)
{
	struct machine m;

	busy_machine(&m, usual);
	m.s.cpus[1].busy_ns += 100 * MS;
	m.s.domains[PKG0].energy_uj = 650;
	machine_apply(&m, IDLE_OWN, WEIGHT_TIME, 0);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 0); /* not flagged: fully measured */
	m.s.cpus[1].quality = QUALITY_PARTIAL;
	formula_share.destroy(m.f);
	m.f = NULL;
	machine_apply(&m, IDLE_OWN, WEIGHT_TIME, 0);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 100);
	assert_int_equal(energy(&m, A, PKG0), 200);
	machine_free(&m);
}

/* Somebody else has the whole PMU: as without one, time is the weight. */
/* Seconds of one load and power of package 0, whose energy has this quality. */
static void learn_idle(struct machine *m, unsigned quality, uint64_t busy_ns, uint64_t energy_uj)
{
	for (unsigned i = 0; i < 60; i++) {
		struct snap_domain *d = &m->s.domains[PKG0];

		d->start_ns = d->end_ns;
		d->end_ns += S;
		d->quality = (uint16_t)quality;
		d->energy_uj = energy_uj;
		m->s.cpus[0].busy_ns = m->s.cpus[1].busy_ns = busy_ns;
		machine_apply(m, IDLE_OWN, WEIGHT_CYCLES, -1);
	}
}

/* An interval whose energy is not known whole teaches nothing of idle. Idle is estimated until less than half was busy. */
static void test_learned_idle(void **state)
{
	static const unsigned bad[] = { QUALITY_PARTIAL, QUALITY_STALE, QUALITY_LOST };
	struct machine m;

	for (unsigned i = 0; i < 3; i++) {
		busy_machine(&m, usual);
		learn_idle(&m, bad[i], 100 * MS, 1000000);
		assert_int_equal(m.s.domains[PKG0].idle_power_uw, 0);
		assert_int_equal(m.s.domains[PKG0].idle_quality, QUALITY_ESTIMATED | bad[i]);
		machine_free(&m);
	}
	busy_machine(&m, usual);
	learn_idle(&m, 0, 900 * MS, 10000000);
	assert_true(m.s.domains[PKG0].idle_power_uw > 0);
	assert_int_equal(m.s.domains[PKG0].idle_quality, QUALITY_ESTIMATED);
	learn_idle(&m, 0, 100 * MS, 2000000);
	assert_int_equal(m.s.domains[PKG0].idle_quality, 0);
	assert_in_range(m.s.domains[PKG0].idle_power_uw, 999000,
			1001000); /* the line through (0.9, 10 W), (0.1, 2 W) */
	machine_free(&m);
}

static void test_everything_lost(void **state)
{
	struct machine m;

	busy_machine(&m, usual);
	for (unsigned i = 0; i < m.s.n_cells; i++)
		m.s.cells[i].quality = QUALITY_LOST;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 6);
	assert_int_equal(m.s.domains[PKG0].idle_uj, 6000000);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 0);
	assert_true(m.s.domains[PKG0].share_quality & QUALITY_ESTIMATED);
	formula_share.destroy(m.f);
	m.f = NULL;
	uint64_t by_cycles = energy(&m, A, PKG0);
	machine_apply(&m, IDLE_OWN, WEIGHT_TIME, 6);
	assert_int_equal(energy(&m, A, PKG0), by_cycles);
	machine_free(&m);
}

static void test_dies(void **state)
{
	static struct cpu_desc dies[4] = {
		{ .cpu = 0, .die = 0, .present = true },
		{ .cpu = 1, .die = 1, .present = true },
		{ .cpu = 2, .die = 1, .present = true },
		{ .cpu = 3, .die = 0, .present = false },
	};
	struct machine m;

	busy_machine(&m, usual);
	m.schema.cpus = dies;
	m.schema.domains[PKG0].has_die = m.schema.domains[PKG1].has_die = true;
	m.schema.domains[PKG1].package = 0;
	m.schema.domains[PKG1].die = 1;
	m.s.domains[PKG1].energy_uj = 2405;
	machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
	assert_int_equal(energy(&m, A, PKG0), 10000000);
	assert_int_equal(energy(&m, A, PKG1), 1000);
	assert_int_equal(energy(&m, C, PKG1), 5);
	machine_free(&m);
}

/* A key far beyond reason (hostile recording) must not cost memory: all is residual. */
static void test_unreasonable_key(void **state)
{
	struct formula_options o = options(IDLE_OWN, WEIGHT_CYCLES, 1);
	struct formula *f = formula_share.create(&o);
	struct machine m;

	busy_machine(&m, usual);
	m.s.rows[A].key = UINT32_MAX;
	assert_int_equal(formula_share.apply(f, &m.s), -12);
	for (unsigned d = 0; d < DOMAINS; d++) {
		assert_int_equal(m.s.domains[d].residual_uj, 10000000);
		assert_int_equal(m.s.domains[d].idle_uj, 0);
	}
	assert_int_equal(energy(&m, A, PKG0), 0);
	formula_share.destroy(f);
	machine_free(&m);
}

/* Each interval 10 cgroups that live only then, worth 0.02 uJ each, beside 40 that stay and have
 * larger fractions: no newcomer alone earns a microjoule, together they get theirs all the same. */
static void test_short_lives_are_not_rounded_away(void **state)
{
	enum { STAY = 40, COME = 10, TIMES = 20000 };
	static uint64_t given[STAY + COME];
	double weights = 0, come = 0;
	struct machine m;

	machine_init(&m, usual);
	assert_int_equal(snapshot_reserve(&m.s, 4 + STAY + COME, 64), 0);
	for (unsigned i = 0; i < STAY + COME; i++) {
		uint64_t weight = i < STAY ? 1000 + 37 * i : 20;

		m.s.rows[4 + i] = (struct snap_row){ .kind = ROW_CGROUP, .key = 4 + i };
		machine_cell(&m, 4 + i, 0, MS, weight);
		weights += (double)weight;
	}
	m.s.n_rows = 4 + STAY + COME;
	m.s.domains[PKG0].energy_uj = (uint64_t)(weights / 1000);
	for (unsigned k = 0; k < TIMES; k++) {
		for (unsigned i = 0; i < COME; i++)
			m.s.rows[4 + STAY + i].generation = k;
		machine_apply(&m, IDLE_OWN, WEIGHT_CYCLES, 0);
		for (unsigned i = 0; i < STAY + COME; i++)
			given[i] += energy(&m, 4 + i, PKG0);
	}
	for (unsigned i = 0; i < STAY; i++) {
		double exact = (1000 + 37 * i) / weights * (double)m.s.domains[PKG0].energy_uj * TIMES;

		assert_true(fabs((double)given[i] - exact) < 8);
	}
	for (unsigned i = STAY; i < STAY + COME; i++)
		come += (double)given[i];
	assert_true(fabs(come - COME * 20 / weights * (double)m.s.domains[PKG0].energy_uj * TIMES) < 40);
	machine_free(&m);
}

static void test_none(void **state)
{
	struct formula *f = formula_find("none")->create(NULL);
	struct machine m;

	busy_machine(&m, usual);
	*snapshot_energy(&m.s, A, PKG0) = 77;
	assert_int_equal(formula_none.apply(f, &m.s), 0);
	assert_string_equal(m.s.formula, "none");
	assert_int_equal(energy(&m, A, PKG0), 0);
	assert_int_equal(m.s.domains[PKG0].residual_uj, 10000000);
	formula_none.destroy(f);
	formula_none.destroy(NULL);
	formula_share.destroy(NULL);
	assert_ptr_equal(formula_find("share"), &formula_share);
	assert_null(formula_find("Share"));
	machine_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_dram),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_root_merged_with_idle),
		cmocka_unit_test(test_time_for_want_of_cycles),
		cmocka_unit_test(test_cycles_by_frequency),
		cmocka_unit_test(test_who_pays_for_idle),
		cmocka_unit_test(test_nothing_ran),
		cmocka_unit_test(test_lost_cell),
		cmocka_unit_test(test_partial_cell),
		cmocka_unit_test(test_partial_cpu),
		cmocka_unit_test(test_learned_idle),
		cmocka_unit_test(test_everything_lost),
		cmocka_unit_test(test_dies),
		cmocka_unit_test(test_unreasonable_key),
		cmocka_unit_test(test_short_lives_are_not_rounded_away),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
