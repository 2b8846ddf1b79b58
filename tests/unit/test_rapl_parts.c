/* SPDX-License-Identifier: Apache-2.0 */
/* rapl: domains that are sums of cores, and what CPU hotplug does to each interface. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "rapl_machine.h"

#define AMD_UNIT "* 0xc0010299 0xa1003\n" /* 2^-16 J */

/* Two cores of two threads: CPUs 0 and 2 are core 0, 1 and 3 core 1. */
static void make_amd(struct machine *m, uint64_t package, uint64_t core0, uint64_t core1)
{
	machine_init(m, "AuthenticAMD", 25, 97, "0:0 0:1 0:0 0:1");
	machine_msr(m, AMD_UNIT "* 0xc001029b %llu\n0 0xc001029a %llu\n1 0xc001029a %llu\n* 0xc001029a 5\n",
		    (unsigned long long)package, (unsigned long long)core0, (unsigned long long)core1);
}

static void set_amd(struct machine *m, uint64_t package, const char *core0, const char *core1)
{
	machine_msr(m, AMD_UNIT "* 0xc001029b %llu\n0 0xc001029a %s\n1 0xc001029a %s\n* 0xc001029a 5\n",
		    (unsigned long long)package, core0, core1);
}

static void cores_are_summed(void **state)
{
	const struct reading_domain *d;
	struct machine m;

	make_amd(&m, 1000, UINT32_MAX - 9, 77);
	machine_open(&m, RAPL_AUTO, false, 0);
	assert_int_equal(m.s.n_domains, 2);
	d = machine_read(&m, 1 * S, "core-0");
	assert_int_equal(d->units, 0);
	assert_int_equal(d->uj_den / (d->uj_num / 1000000), 65536);
	/* core 0 turns: 10 units to 0, 90 more; core 1: 23. The upper half of a register is no energy */
	set_amd(&m, 3000, "0xff0000005a", "100");
	d = machine_read(&m, 2 * S, "core-0");
	assert_int_equal(d->units, 100 + 23);
	assert_int_equal(d->wraps, 1);
	assert_int_equal(m.r.domains[0].units, 2000);
	/* 125 W is too much for a core: 10 M units are 152 J. The other core counts on */
	set_amd(&m, 3001, "10000090", "101");
	d = machine_read(&m, 3 * S, "core-0");
	assert_int_equal(d->units, 123 + 1);
	assert_int_equal(d->dropped, 1);
	expect_warning(&m, "core-0: msr register 0xc001029a on CPU 0 and others jumped");
	machine_free(&m);
}

static void core_goes_offline(void **state)
{
	const struct reading_domain *d;
	struct machine m;
	uint8_t online;

	make_amd(&m, 1000, 100, 200);
	machine_open(&m, RAPL_AUTO, false, 0);
	machine_read(&m, 1 * S, "core-0");
	/* CPU 1 went; its core goes on on CPU 3 (which reads 5 here: a reset to the accumulator) */
	online = 1 << 0 | 1 << 2 | 1 << 3;
	rapl_hotplug(m.rp, &online, 4);
	set_amd(&m, 1000, "110", "ENXIO");
	d = machine_read(&m, 2 * S, "core-0");
	assert_int_equal(d->units, 10);
	assert_int_equal(d->resets, 1);
	assert_false(d->stale);
	/* the whole core is off: the other one counts on and nothing is stale */
	online = 1 << 0 | 1 << 2;
	rapl_hotplug(m.rp, &online, 4);
	set_amd(&m, 1000, "115", "ENXIO");
	d = machine_read(&m, 3 * S, "core-0");
	assert_int_equal(d->units, 15);
	assert_false(d->stale);
	/* it comes back on CPU 1 */
	online = 1 << 0 | 1 << 1 | 1 << 2;
	rapl_hotplug(m.rp, &online, 4);
	set_amd(&m, 1000, "116", "7");
	d = machine_read(&m, 4 * S, "core-0");
	assert_int_equal(d->units, 16 + 2);
	/* all gone: stale, and said */
	online = 0;
	rapl_hotplug(m.rp, &online, 4);
	assert_true(machine_read(&m, 5 * S, "core-0")->stale);
	machine_free(&m);
}

/* Intel, two packages: the register is the package's, any of its CPUs will do. */
static void package_moves_cpu(void **state)
{
	const struct reading_domain *d;
	struct machine m;
	uint8_t online = 1 << 1 | 1 << 2 | 1 << 3;

	machine_init(&m, "GenuineIntel", 6, 85, "0:0 0:1 1:0 1:1");
	machine_msr(&m, "* 0x606 0xa0e03\n0 0x611 1000\n2 0x611 50\n");
	machine_open(&m, RAPL_AUTO, false, 0);
	assert_int_equal(m.s.n_domains, 2);
	machine_read(&m, 1 * S, "package-0");
	rapl_hotplug(m.rp, &online, 4);
	machine_msr(&m, "* 0x606 0xa0e03\n0 0x611 ENXIO\n1 0x611 1500\n2 0x611 51\n");
	d = machine_read(&m, 2 * S, "package-0");
	assert_int_equal(d->units, 500);
	assert_int_equal(d->resets + d->dropped + d->errors, 0);
	assert_int_equal(m.r.domains[1].units, 1);
	machine_free(&m);
}

/* A seam whose counters the test turns: one memfd per open, the newest per CPU. */
struct turned_seam {
	int fd[4];
	unsigned opens;
	int refuse;
};

static int turned_open(void *ctx, const struct event_variant *event, int cpu, bool pinned)
{
	struct turned_seam *t = ctx;
	uint64_t words[3] = { 0 };

	if (t->refuse)
		return t->refuse;
	assert_true(cpu >= 0 && cpu < 4);
	assert_int_equal(event->config, 2);
	t->fd[cpu] = memfd_create("turned", MFD_CLOEXEC);
	assert_int_equal(pwrite(t->fd[cpu], words, sizeof(words), 0), sizeof(words));
	t->opens++;
	return t->fd[cpu];
}

static void turn_to(const struct turned_seam *t, int cpu, uint64_t value)
{
	assert_int_equal(pwrite(t->fd[cpu], &value, sizeof(value), 0), sizeof(value));
}

static void make_perf(struct machine *m, struct turned_seam *t)
{
	machine_init(m, "GenuineIntel", 6, 85, "0:0 0:1 1:0 1:1");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/type", "23\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/cpumask", "0,2\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg", "event=0x02\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg.unit", "Joules\n");
	temp_root_put(&m->t, "/sys/bus/event_source/devices/power/events/energy-pkg.scale",
		      "2.3283064365386962890625e-10\n");
	m->seam = (struct perf_seam){ .open = turned_open, .ctx = t };
}

static void perf_reopens(void **state)
{
	const struct reading_domain *d;
	struct turned_seam t = { 0 };
	struct machine m;
	uint8_t online = 1 << 1 | 1 << 2 | 1 << 3;

	make_perf(&m, &t);
	machine_open(&m, RAPL_AUTO, false, 0);
	assert_int_equal(t.opens, 2);
	machine_read(&m, 1 * S, "package-0");
	turn_to(&t, 0, 1000);
	turn_to(&t, 2, 30);
	d = machine_read(&m, 2 * S, "package-0");
	assert_int_equal(d->units, 1000);
	assert_int_equal(d->uj_den, 1ull << 32);
	/* CPU 0 goes: what its event still had is taken, CPU 1 goes on from 0, and the gap is said */
	turn_to(&t, 0, 1004);
	rapl_hotplug(m.rp, &online, 4);
	assert_int_equal(t.opens, 3);
	turn_to(&t, 1, 7);
	d = machine_read(&m, 3 * S, "package-0");
	assert_int_equal(d->units, 1011);
	assert_int_equal(d->resets, 1);
	assert_int_equal(m.r.domains[1].resets, 0);
	expect_warning(&m, "package-0: perf power/energy-pkg/ on CPU 0 began anew");
	/* nothing left of the package, then it is back */
	online = 1 << 2 | 1 << 3;
	rapl_hotplug(m.rp, &online, 4);
	assert_true(machine_read(&m, 4 * S, "package-0")->stale);
	expect_warning(&m, "cannot be read");
	online = 0xf;
	rapl_hotplug(m.rp, &online, 4);
	turn_to(&t, 0, 5);
	d = machine_read(&m, 5 * S, "package-0");
	assert_false(d->stale);
	assert_int_equal(d->units, 1016);
	expect_warning(&m, "answers again");
	machine_free(&m);
}

/* CPUs that carry no event come and go: nothing is opened anew. And a machine that refuses. */
static void perf_keeps_good_events(void **state)
{
	struct turned_seam t = { 0 };
	uint8_t online = 1 << 0 | 1 << 2;
	struct machine m;

	make_perf(&m, &t);
	machine_open(&m, RAPL_AUTO, false, 0);
	rapl_hotplug(m.rp, &online, 4);
	assert_int_equal(t.opens, 2);
	machine_free(&m);
	make_perf(&m, &t);
	t.refuse = -EACCES;
	machine_open(&m, RAPL_AUTO, false, 0);
	assert_int_equal(m.s.n_domains, 0);
	expect_warning(&m, "package-0: not measured: powercap absent");
	machine_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cores_are_summed),       cmocka_unit_test(core_goes_offline),
		cmocka_unit_test(package_moves_cpu),      cmocka_unit_test(perf_reopens),
		cmocka_unit_test(perf_keeps_good_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
