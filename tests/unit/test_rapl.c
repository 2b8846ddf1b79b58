/* SPDX-License-Identifier: Apache-2.0 */
/* rapl: choice of interface, pace, cross-check, sources that fail and come back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "rapl_machine.h"

#define RANGE14 262143328850ull   /* (2^32 - 1) x 61035 nJ */
#define RANGE16 65532610987ull    /* (2^32 - 1) x 15258 nJ */
#define ENERGY "intel-rapl:0/energy_uj"

/* Skylake laptop, one package with powercap, perf (pkg 2) and msr (package 0x611), all at one value. */
static void make_laptop(struct machine *m)
{
	machine_init(m, "GenuineIntel", 6, 94, "0:0 0:1");
	machine_zone(m, "intel-rapl:0", "package-0\n", 1000000, RANGE14);
	machine_msr(m, "* 0x606 0xa0e03\n* 0x611 0x1000\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/type", "23\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/cpumask", "0\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg", "event=0x02\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg.unit", "Joules\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
	temp_root_put(&m->t, "/perf-seam", "23 2 0 ok\n");
	assert_int_equal(perf_seam_recorded(m->t.root, &m->seam), 0);
}

static void free_laptop(struct machine *m)
{
	machine_free(m);
	perf_seam_free(&m->seam);
}

static void modes(void **state)
{
	static const struct { enum rapl_mode mode; enum energy_interface want; } cases[] = {
		{ RAPL_AUTO, ENERGY_POWERCAP }, { RAPL_POWERCAP, ENERGY_POWERCAP }, { RAPL_PERF, ENERGY_PERF }, { RAPL_MSR, ENERGY_MSR },
	};
	const struct energy_source_ops *ops[4];
	struct energy_source *src[4];
	const char *reason;
	struct machine m;

	make_laptop(&m);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		machine_open(&m, cases[i].mode, false, 0);
		assert_int_equal(m.s.n_domains, 1);
		assert_int_equal(m.s.domains[0].interface, cases[i].want);
		assert_int_equal(m.s.domains[0].kind, DOMAIN_PACKAGE);
		expect_warning(&m, NULL);
		machine_close(&m);
	}
	machine_open(&m, RAPL_NONE, false, 0);
	assert_int_equal(m.s.n_domains, 0);
	assert_int_equal(rapl_poll_interval_ns(m.rp), 0);
	assert_int_equal(rapl_interfaces(m.rp, ops, src, 4), 1);
	assert_int_equal(ops[0]->state(src[0], &reason), ENERGY_ABSENT);
	assert_non_null(strstr(reason, "rapl: none"));
	machine_close(&m);
	/* configured and not there: said */
	machine_msr(&m, "* 0x606 0\n");
	machine_open(&m, RAPL_MSR, false, 0);
	assert_int_equal(m.s.n_domains, 0);
	expect_warning(&m, "rapl: msr is absent: the unit register reads 0");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

/* Domains of others that are in the schema already stay. */
static void schema_is_added_to(void **state)
{
	struct machine m;

	make_laptop(&m);
	m.s.n_domains = 1;
	m.s.domains[0] = (struct domain_desc){ .kind = DOMAIN_GPU, .name = "gpu-0" };
	machine_open(&m, RAPL_AUTO, false, 0);
	assert_int_equal(m.s.n_domains, 2);
	assert_string_equal(m.s.domains[0].name, "gpu-0");
	machine_read(&m, 1 * S, "package-0");
	put_u64(&m, "/sys/class/powercap/" ENERGY, 1000777);
	assert_int_equal(machine_read(&m, 2 * S, "package-0")->units, 777);
	assert_int_equal(m.r.domains[0].units, 0);
	free_laptop(&m);
}

static void powercap_counts_and_wraps(void **state)
{
	const struct reading_domain *d;
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_AUTO, false, 0);
	d = machine_read(&m, 1 * S, "package-0");
	assert_int_equal(d->units, 0);
	assert_int_equal(d->uj_num, d->uj_den);
	put_u64(&m, ZONE ENERGY, 6000000);
	d = machine_read(&m, 2 * S, "package-0");
	assert_int_equal(d->units, 5000000);
	assert_int_equal(d->time_ns, 2 * S);
	assert_int_equal(d->wraps, 0);
	/* to the last value before the turn, polled on the way, and one unit of 61.035 uJ on: the value is 0 */
	for (uint64_t i = 1; i <= 300; i++) {
		put_u64(&m, ZONE ENERGY, 6000000 + (RANGE14 - 6000000) * i / 300);
		rapl_poll(m.rp, (2 + i) * S, (2 + i) * S);
	}
	d = machine_read(&m, 303 * S, "package-0");
	assert_int_equal(d->units, RANGE14 - 1000000);
	put_u64(&m, ZONE ENERGY, 0);
	d = machine_read(&m, 304 * S, "package-0");
	assert_int_equal(d->units, RANGE14 - 1000000 + 61);
	assert_int_equal(d->wraps, 1);
	assert_int_equal(d->resets + d->dropped + d->errors, 0);
	assert_false(d->stale);
	expect_warning(&m, NULL);
	free_laptop(&m);
}

static void sleep_and_reload(void **state)
{
	const struct reading_domain *d;
	struct machine m;

	make_laptop(&m);
	put_u64(&m, ZONE ENERGY, 150000000000);
	machine_open(&m, RAPL_AUTO, false, 0);
	machine_read(&m, 1 * S, "package-0");
	/* a night, after which the counter began at 0: nothing is added, and it is said */
	m.asleep_ns = 8 * 3600 * S;
	put_u64(&m, ZONE ENERGY, 2000000);
	d = machine_read(&m, 2 * S, "package-0");
	assert_int_equal(d->units, 0);
	assert_int_equal(d->resets, 1);
	expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) began anew");
	/* 2000 J in a second on a socket */
	put_u64(&m, ZONE ENERGY, 2002000000);
	d = machine_read(&m, 3 * S, "package-0");
	assert_int_equal(d->units, 0);
	assert_int_equal(d->dropped, 1);
	expect_warning(&m, "package-0: powercap intel-rapl:0 (package-0) jumped");
	put_u64(&m, ZONE ENERGY, 2002000009);
	assert_int_equal(machine_read(&m, 4 * S, "package-0")->units, 9);
	expect_warning(&m, NULL);
	free_laptop(&m);
}

/* A quarter of the turn at 1000 W (twice 500 W): 2^32 x 2^-14 J, and 2^-16 J. */
static void pace(void **state)
{
	struct machine m;

	make_laptop(&m);
	machine_open(&m, RAPL_MSR, false, 0);
	assert_int_equal(rapl_poll_interval_ns(m.rp) / 1000000, 65536);
	machine_close(&m);
	machine_msr(&m, "* 0x606 0xa1003\n* 0x611 0x1000\n");
	machine_open(&m, RAPL_MSR, false, 0);
	assert_int_equal(rapl_poll_interval_ns(m.rp) / 1000000, 16384);
	machine_close(&m);
	machine_open(&m, RAPL_MSR, false, 5 * S);
	assert_int_equal(rapl_poll_interval_ns(m.rp), 5 * S);
	expect_warning(&m, NULL);
	machine_close(&m);
	machine_open(&m, RAPL_MSR, false, 60 * S);
	assert_int_equal(rapl_poll_interval_ns(m.rp) / 1000000, 16384);
	expect_warning(&m, "rapl-poll: 60.000 s would miss wraps of a counter; 16.384 s is used");
	machine_close(&m);
	/* the kernel takes care of the wraps behind perf */
	machine_open(&m, RAPL_PERF, false, 0);
	assert_int_equal(rapl_poll_interval_ns(m.rp), 0);
	machine_close(&m);
	/* the shortest of all domains decides: dram here */
	machine_zone(&m, "intel-rapl:0:0", "dram\n", 5, RANGE16);
	machine_open(&m, RAPL_POWERCAP, false, 0);
	assert_int_equal(rapl_poll_interval_ns(m.rp) / 1000000, 16383);
	free_laptop(&m);
}

/* 16384 units of msr are 1 J. */
static void turn(struct machine *m, uint64_t *now, uint64_t *uj, uint64_t *units, uint64_t add_uj, uint64_t add_units)
{
	for (unsigned i = 0; i < 6; i++) {
		*now += S;
		*uj += add_uj;
		*units += add_units;
		put_u64(m, ZONE ENERGY, *uj);
		machine_msr(m, "* 0x606 0xa0e03\n* 0x611 0x%llx\n", (unsigned long long)*units);
		machine_read(m, *now, "package-0");
	}
}

static void cross_check(void **state)
{
	uint64_t now = 1 * S, uj = 1000000, units = 0x1000;
	struct machine m;

	make_laptop(&m);
	/* so that the other one is msr */
	temp_root_put(&m.t, "/sys/bus/event_source/devices/power/cpumask", "");
	machine_open(&m, RAPL_AUTO, true, 0);
	expect_warning(&m, "type or cpumask");
	assert_int_equal(m.s.domains[0].interface, ENERGY_POWERCAP);
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384);
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384);
	expect_warning(&m, NULL);
	/* DRAM of servers: 15300 nJ against 2^-16 J is 0.27 % */
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384 * 1000 / 997);
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384 * 1000 / 997);
	expect_warning(&m, NULL);
	/* 1 %: once, not at every reading */
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384 * 100 / 99);
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384 * 100 / 99);
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384 * 100 / 99);
	expect_warning(&m, "package-0: powercap says");
	expect_warning(&m, NULL);
	/* agreeing again, then not: once more */
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384);
	turn(&m, &now, &uj, &units, 50000000, 50 * 16384);
	turn(&m, &now, &uj, &units, 1000000, 2 * 16384);
	turn(&m, &now, &uj, &units, 1000000, 2 * 16384);
	expect_warning(&m, "more than 0.5 % apart; powercap is used");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

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
	static const struct { unsigned at_us; uint64_t left_out; } looks[] = {
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

static void nothing_to_check_against(void **state)
{
	struct machine m;

	make_laptop(&m);
	machine_zone(&m, "intel-rapl:0:0", "uncore\n", 5, RANGE14);
	machine_open(&m, RAPL_AUTO, true, 0);
	expect_warning(&m, "uncore-0: cross-check: no second interface gives it; not checked");
	expect_warning(&m, NULL);
	free_laptop(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes), cmocka_unit_test(schema_is_added_to), cmocka_unit_test(powercap_counts_and_wraps),
		cmocka_unit_test(sleep_and_reload), cmocka_unit_test(pace), cmocka_unit_test(cross_check),
		cmocka_unit_test(failing_comes_back), cmocka_unit_test(away_too_long),
		cmocka_unit_test(zone_comes_back), cmocka_unit_test(frozen_counter), cmocka_unit_test(late_looks),
		cmocka_unit_test(no_range), cmocka_unit_test(nothing_to_check_against),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
