/* SPDX-License-Identifier: Apache-2.0 */
/* rapl: choice of interface, wraps, pace, cross-check. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "source/energy/rapl.h"
#include "rapl_machine.h"

static void modes(void **state)
{
	static const struct {
		enum rapl_mode mode;
		enum energy_interface want;
	} cases[] = {
		{ RAPL_AUTO, ENERGY_POWERCAP },
		{ RAPL_POWERCAP, ENERGY_POWERCAP },
		{ RAPL_PERF, ENERGY_PERF },
		{ RAPL_MSR, ENERGY_MSR },
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

/* The next warning begins so, and ends with the whole reason of the last interface. */
static void expect_end(struct machine *m, const char *start)
{
	const struct energy_source_ops *ops[4];
	struct energy_source *src[4];
	unsigned n = rapl_interfaces(m->rp, ops, src, 4);
	const char *reason;
	char text[RAPL_WARNING_SIZE];
	size_t len;

	ops[n - 1]->state(src[n - 1], &reason);
	assert_true(rapl_next_warning(m->rp, text, sizeof(text)));
	len = strlen(text);
	if (strncmp(text, start, strlen(start)) != 0 || len < strlen(reason) ||
	    strcmp(text + len - strlen(reason), reason) != 0)
		fail_msg("\"%s\" does not begin with \"%s\" and end with \"%s\"", text, start, reason);
}

/* A virtual machine whose kernel shows perf's psys by the CPU model: the register behind it reads 0 (msr), or the event never
 * counts (perf). With a package beside it, psys is believed. */
static void test_psys_that_counts_nothing(void **state)
{
	static const char *const psys[] = { "energy-psys", "event=0x05\n",      "energy-psys.unit",
					    "Joules\n",    "energy-psys.scale", "2.3283064365386962890625e-10\n" };
	struct machine m;
	const struct energy_source_ops *ops[4];
	struct energy_source *src[4];
	const char *reason;

	for (unsigned with_package = 0; with_package < 2; with_package++) {
		machine_init(&m, "GenuineIntel", 6, 94, "0:0 0:1");
		temp_root_put(&m.t, "/sys/bus/event_source/devices/power/type", "23\n");
		temp_root_put(&m.t, "/sys/bus/event_source/devices/power/cpumask", "0\n");
		for (unsigned i = 0; i < 6; i += 2) {
			char path[128];

			snprintf(path, sizeof(path), "/sys/bus/event_source/devices/power/events/%s", psys[i]);
			temp_root_put(&m.t, path, psys[i + 1]);
		}
		if (with_package)
			machine_zone(&m, "intel-rapl:0", "package-0\n", 1000000, RANGE14);
		temp_root_put(&m.t, "/perf-seam", "23 5 0 ok\n");
		assert_int_equal(perf_seam_recorded(m.t.root, &m.seam), 0);
		machine_open(&m, RAPL_AUTO, false, 0);
		assert_int_equal(m.s.n_domains, 2 * with_package);
		assert_int_equal(rapl_interfaces(m.rp, ops, src, 4), 3);
		assert_int_equal(ops[1]->state(src[1], &reason), with_package ? ENERGY_OK : ENERGY_BROKEN);
		assert_true(with_package || strstr(reason, "counts nothing"));
		if (!with_package) /* the reasons of all three interfaces, to the end of the last */
			expect_end(&m, "psys: not measured: powercap absent: ");
		machine_free(&m);
		perf_seam_free(&m.seam);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_psys_that_counts_nothing),
		cmocka_unit_test(modes),
		cmocka_unit_test(schema_is_added_to),
		cmocka_unit_test(powercap_counts_and_wraps),
		cmocka_unit_test(sleep_and_reload),
		cmocka_unit_test(pace),
		cmocka_unit_test(cross_check),
		cmocka_unit_test(nothing_to_check_against),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
