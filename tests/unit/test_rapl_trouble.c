/* SPDX-License-Identifier: Apache-2.0 */
/* rapl: counters that fail, come back, stand still, are looked at late. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "rapl_machine.h"

/* An empty file stands for a driver that answers with an error. */
static void failing_comes_back(void **state)
{
	/* tried at 1 s, then after 1, 2, 4, 8 s */
	static const unsigned tried_at[] = { 2, 3, 5, 9, 17 };
	const struct reading_domain *d;
	struct machine m;
	unsigned tries = 0;

	make_laptop(&m);
	machine_open(&m, RAPL_POWERCAP, false, 0);
	machine_read(&m, 1 * S, "package-0");
	temp_root_put(&m.t, ZONE ENERGY, "");
	for (unsigned t = 2; t < 20; t++) {
		d = machine_read(&m, t * S, "package-0");
		if (tries < 5 && tried_at[tries] == t)
			tries++;
		assert_int_equal(d->errors, tries);
		assert_true(d->stale);
		assert_int_equal(d->time_ns, 1 * S);
		assert_int_equal(d->units, 0);
	}
	expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) cannot be read (Input/output error)");
	expect_warning(&m, NULL);
	/* 40 W all along; next try at 33 s */
	put_u64(&m, ZONE ENERGY, 1000000 + 31 * 40000000);
	assert_true(machine_read(&m, 32 * S, "package-0")->stale);
	put_u64(&m, ZONE ENERGY, 1000000 + 32 * 40000000);
	d = machine_read(&m, 33 * S, "package-0");
	assert_false(d->stale);
	assert_int_equal(d->units, 32 * 40000000);
	assert_int_equal(d->time_ns, 33 * S);
	assert_int_equal(d->resets + d->dropped, 0);
	expect_warning(&m, "answers again");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

/* Away for longer than a turn at the bound takes (262 s): what is there is added, and said to be partial. */
static void away_too_long(void **state)
{
	const struct reading_domain *d;
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_POWERCAP, false, 0);
	machine_read(&m, 1 * S, "package-0");
	temp_root_put(&m.t, ZONE ENERGY, "");
	for (unsigned t = 2; t < 1000; t++)
		d = machine_read(&m, t * S, "package-0");
	/* with a pace of 65 s the tries are no further apart than that: 1 2 4 8 16 32 64, then 65 s */
	assert_in_range(d->errors, 19, 22);
	put_u64(&m, ZONE ENERGY, 5000000);
	for (unsigned t = 1000; t < 1067 && d->stale; t++)
		d = machine_read(&m, t * S, "package-0");
	assert_false(d->stale);
	assert_int_equal(d->units, 4000000);
	assert_int_equal(d->dropped, 1);
	free_laptop(&m);
}

/* At the bound of 1000 W a turn of RANGE14 takes 262.143 s. A look within it sees every
 * turn; after it the counter may have turned once more than is seen, and the value says so, though it never failed. */
static void late_by_a_turn(void **state)
{
	const struct reading_domain *d;
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_POWERCAP, false, 0);
	machine_read(&m, 1 * S, "package-0");
	put_u64(&m, ZONE ENERGY, 3000000);
	d = machine_read(&m, 263 * S, "package-0"); /* 262 s later */
	assert_int_equal(d->units, 2000000);
	assert_int_equal(d->dropped, 0);
	expect_warning(&m, NULL);
	put_u64(&m, ZONE ENERGY, 6000000);
	d = machine_read(&m, 526 * S, "package-0"); /* 263 s later */
	assert_int_equal(d->units, 5000000);
	assert_int_equal(d->dropped, 1);
	expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) jumped or was read too late for one wrap");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

/* Its package went offline, or the driver was loaded anew: the zone has another number now. */
static void zone_comes_back(void **state)
{
	static const uint8_t online[1] = { 3 };
	const struct reading_domain *d;
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_POWERCAP, false, 0);
	machine_read(&m, 1 * S, "package-0");
	temp_root_put(&m.t, ZONE ENERGY, "");
	temp_root_put(&m.t, ZONE "intel-rapl:0/name", "gone\n");
	assert_true(machine_read(&m, 2 * S, "package-0")->stale);
	machine_zone(&m, "intel-rapl:1", "package-1\n", 7, RANGE14);
	machine_zone(&m, "intel-rapl:3", "package-0\n", 1000000 + 90 * 1000000, RANGE14);
	/* it would not be tried before 3 s */
	assert_true(machine_read(&m, 2 * S + 1, "package-0")->stale);
	rapl_hotplug(m.rp, online, 2);
	d = machine_read(&m, 2 * S + 2, "package-0");
	assert_false(d->stale);
	assert_int_equal(d->units, 90 * 1000000);
	expect_warning(&m, "cannot be read");
	expect_warning(&m, "answers again");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

/* The driver was loaded anew with another unit: the zone is another counter, and wraps where that one does. */
static void zone_comes_back_with_another_range(void **state)
{
	const struct reading_domain *d;
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_POWERCAP, false, 0);
	machine_read(&m, 1 * S, "package-0");
	put_u64(&m, ZONE ENERGY, 3000000);
	machine_read(&m, 2 * S, "package-0");
	temp_root_put(&m.t, ZONE ENERGY, "");
	temp_root_put(&m.t, ZONE "intel-rapl:0/name", "gone\n");
	assert_true(machine_read(&m, 3 * S, "package-0")->stale);
	machine_zone(&m, "intel-rapl:3", "package-0\n", RANGE16 - 9000000, RANGE16);
	d = machine_read(&m, 5 * S, "package-0");
	assert_false(d->stale);
	assert_int_equal(d->units, 2000000);
	assert_int_equal(d->resets, 1);
	put_u64(&m, ZONE "intel-rapl:3/energy_uj", 1000000);
	d = machine_read(&m, 6 * S, "package-0");
	assert_int_equal(d->units, 2000000 + 10000000 + 15);
	assert_int_equal(d->wraps, 1);
	assert_int_equal(d->resets, 1);
	expect_warning(&m, "cannot be read");
	expect_warning(&m, "answers again");
	expect_warning(&m, "began anew");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

/* A package that uses nothing for 3 s is not believed, nor is what its counter missed. */
static void frozen_counter(void **state)
{
	const struct reading_domain *d;
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_POWERCAP, false, 0);
	for (unsigned t = 1; t < 4; t++)
		assert_false(machine_read(&m, t * S, "package-0")->stale);
	assert_true(machine_read(&m, 4 * S, "package-0")->stale);
	d = machine_read(&m, 5 * S, "package-0");
	assert_true(d->stale);
	assert_int_equal(d->resets, 0);
	expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) stands still");
	expect_warning(&m, NULL);
	put_u64(&m, ZONE ENERGY, 1000001);
	d = machine_read(&m, 6 * S, "package-0");
	assert_false(d->stale);
	assert_int_equal(d->units, 1);
	assert_int_equal(d->resets, 1);
	expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) moves again; what it missed is not known");
	expect_warning(&m, NULL);
	put_u64(&m, ZONE ENERGY, 1000009);
	assert_int_equal(machine_read(&m, 7 * S, "package-0")->resets, 1);
	free_laptop(&m);
}

/* 1 kHz: what a late look makes fall out is counted, and told at each doubling. */
static void late_looks(void **state)
{
	static const struct {
		unsigned at_us;
		uint64_t left_out;
	} looks[] = {
		{ 1000, 0 }, { 2100, 0 }, { 4050, 0 }, { 6050, 1 }, { 7000, 1 }, { 10000, 3 }, { 14500, 6 },
	};
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_POWERCAP, false, S / 1000);
	for (unsigned i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		put_u64(&m, ZONE ENERGY, 1000000 + looks[i].at_us);
		rapl_poll(m.rp, 1000ull * looks[i].at_us, 1000ull * looks[i].at_us);
		assert_int_equal(rapl_looks(m.rp).n, i + 1);
		assert_int_equal(rapl_looks(m.rp).left_out, looks[i].left_out);
	}
	rapl_read(m.rp, &m.r, 15 * S / 1000, 15 * S / 1000);
	assert_int_equal(m.r.domains[0].units, 13500);
	expect_warning(&m, "rapl-poll: 1 looks every 1.000 ms were left out so far because they were late");
	expect_warning(&m, "rapl-poll: 3 looks");
	expect_warning(&m, "rapl-poll: 6 looks");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

/* No range: a turn cannot be told from a reset, so it is dropped and said; polled as the smallest one needs. */
static void no_range(void **state)
{
	const struct reading_domain *d;
	struct machine m;

	make_laptop(&m);
	temp_root_put(&m.t, ZONE "intel-rapl:0/max_energy_range_uj", "0\n");
	machine_open(&m, RAPL_POWERCAP, false, 0);
	expect_warning(&m, "max_energy_range_uj cannot be read");
	assert_int_equal(rapl_poll_interval_ns(m.rp) / 1000000, 16384);
	machine_read(&m, 1 * S, "package-0");
	put_u64(&m, ZONE ENERGY, 1500000);
	machine_read(&m, 2 * S, "package-0");
	put_u64(&m, ZONE ENERGY, 7);
	d = machine_read(&m, 3 * S, "package-0");
	assert_int_equal(d->units, 500000);
	assert_int_equal(d->resets, 1);
	put_u64(&m, ZONE ENERGY, 10);
	assert_int_equal(machine_read(&m, 4 * S, "package-0")->units, 500003);
	free_laptop(&m);
}

/* A counter that changes its unit under us: to a thousandth (its numbers are a thousand times as large) each step is refused, and said
 * to be partial for as long as that lasts; to a larger one it seems to begin anew. No joule is made up. */
static void unit_changes(void **state)
{
	const struct reading_domain *d;
	uint64_t nj = 2000000000;
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_POWERCAP, false, 0);
	machine_read(&m, 1 * S, "package-0");
	put_u64(&m, ZONE ENERGY, 2000000);
	assert_int_equal(machine_read(&m, 2 * S, "package-0")->units, 1000000);
	/* 2 J are 2 000 000 uJ, and from now on 2 000 000 000 nJ; then 50 J more each second */
	for (unsigned t = 3; t < 8; t++) {
		put_u64(&m, ZONE ENERGY, nj);
		d = machine_read(&m, t * S, "package-0");
		assert_int_equal(d->units, 1000000);
		assert_int_equal(d->dropped, t - 2);
		assert_int_equal(d->stale, t >= 5); /* nothing for 3 s: it is no measurement any more */
		expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) jumped");
		if (t == 5)
			expect_warning(&m, "stands still");
		nj += 50000000000;
	}
	/* the unit of before: it went back */
	put_u64(&m, ZONE ENERGY, 3000000);
	d = machine_read(&m, 9 * S, "package-0");
	assert_int_equal(d->units, 1000000);
	assert_int_equal(d->resets, 1);
	put_u64(&m, ZONE ENERGY, 5000000);
	d = machine_read(&m, 10 * S, "package-0");
	assert_int_equal(d->units, 3000000);
	assert_int_equal(d->resets, 2); /* it moves again, and what it missed is not known */
	assert_false(d->stale);
	/* mJ instead of uJ: it went back, and counts a thousandth from then on, which nothing can tell from a machine that uses less */
	put_u64(&m, ZONE ENERGY, 5000);
	d = machine_read(&m, 11 * S, "package-0");
	assert_int_equal(d->units, 3000000);
	assert_int_equal(d->resets, 3);
	put_u64(&m, ZONE ENERGY, 7000);
	assert_int_equal(machine_read(&m, 12 * S, "package-0")->units, 3002000);
	free_laptop(&m);
}

/* RAPL behind TPMI (drivers/powercap/intel_rapl_tpmi.c): zones as always, but no register answers and perf has no PMU. */
static void make_tpmi(struct machine *m)
{
	machine_init(m, "GenuineIntel", 6, 173, "0:0 0:1 1:0 1:1");
	machine_msr(m, "* 0x606 EIO\n");
	temp_root_put(&m->t, "/perf-seam", "\n");
	assert_int_equal(perf_seam_recorded(m->t.root, &m->seam), 0);
	machine_zone(m, "intel-rapl:0", "package-0\n", 5000000, RANGE14);
	machine_zone(m, "intel-rapl:0:0", "dram\n", 1000000, RANGE14);
	machine_zone(m, "intel-rapl:1", "package-1\n", 9000000, RANGE14);
	machine_zone(m, "intel-rapl:1:0", "dram\n", 2000000, RANGE14);
	machine_zone(m, "intel-rapl:2", "psys\n", 100000000, RANGE14);
}

static void use(struct machine *m, const char *zone, uint64_t uj)
{
	char path[128];

	snprintf(path, sizeof(path), ZONE "%s/energy_uj", zone);
	put_u64(m, path, uj);
}

/* Each zone of a package is its own domain, psys holds them and is not added to them. The driver goes and comes back with other
 * numbers for the packages: each domain follows its name. */
static void tpmi(void **state)
{
	struct machine m;

	make_tpmi(&m);
	machine_open(&m, RAPL_AUTO, false, 0);
	assert_int_equal(m.s.n_domains, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(m.s.domains[i].interface, ENERGY_POWERCAP);
		assert_int_equal(schema_sums(&m.s, i), m.s.domains[i].kind != DOMAIN_PSYS);
	}
	machine_read(&m, 1 * S, "psys");
	use(&m, "intel-rapl:0", 105000000);
	use(&m, "intel-rapl:0:0", 11000000);
	use(&m, "intel-rapl:1", 59000000);
	use(&m, "intel-rapl:1:0", 22000000);
	use(&m, "intel-rapl:2", 400000000);
	machine_read(&m, 2 * S, "psys");
	assert_int_equal(machine_read(&m, 2 * S, "package-0")->units, 100000000);
	assert_int_equal(machine_read(&m, 2 * S, "package-1")->units, 50000000);
	assert_int_equal(machine_read(&m, 2 * S, "dram-0")->units, 10000000);
	assert_int_equal(machine_read(&m, 2 * S, "dram-1")->units, 20000000);
	assert_int_equal(machine_read(&m, 2 * S, "psys")->units, 300000000);
	expect_warning(&m, NULL);
	/* the files that are open answer with an error */
	temp_root_put(&m.t, ZONE "intel-rapl:0/energy_uj", "");
	temp_root_put(&m.t, ZONE "intel-rapl:1/energy_uj", "");
	assert_true(machine_read(&m, 3 * S, "package-0")->stale);
	assert_false(machine_read(&m, 3 * S, "dram-0")->stale);
	expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) cannot be read");
	expect_warning(&m, "package-1: powercap intel-rapl:1 (package-1) cannot be read");
	use(&m, "intel-rapl:2", 500000000);
	machine_zone(&m, "intel-rapl:0", "package-1\n", 69000000, RANGE14);
	machine_zone(&m, "intel-rapl:1", "package-0\n", 135000000, RANGE14);
	assert_int_equal(machine_read(&m, 5 * S, "package-0")->units, 130000000);
	assert_int_equal(machine_read(&m, 5 * S, "package-1")->units, 60000000);
	assert_int_equal(m.r.domains[0].resets + m.r.domains[0].dropped, 0);
	assert_int_equal(m.r.domains[2].resets + m.r.domains[2].dropped, 0);
	expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) answers again");
	expect_warning(&m, "package-1: powercap intel-rapl:1 (package-1) answers again");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failing_comes_back),
		cmocka_unit_test(away_too_long),
		cmocka_unit_test(late_by_a_turn),
		cmocka_unit_test(zone_comes_back),
		cmocka_unit_test(zone_comes_back_with_another_range),
		cmocka_unit_test(frozen_counter),
		cmocka_unit_test(late_looks),
		cmocka_unit_test(no_range),
		cmocka_unit_test(unit_changes),
		cmocka_unit_test(tpmi),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
