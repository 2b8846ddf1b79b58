/* SPDX-License-Identifier: Apache-2.0 */
/* Estimate: idle watts per core while online, up to the full-load watts while busy, to the microjoule. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formula/formula.h"
#include "model/cgroup.h"
#include "source/energy/energy.h"

#define MS 1000000ull
#define S 1000000000ull

struct machine {
	struct schema s;
	struct reading r;
	struct estimate *e;
};

/* package, core per CPU */
static void machine_init(struct machine *m, const uint16_t (*cpus)[2], unsigned n, double idle_watts, double max_watts)
{
	memset(m, 0, sizeof(*m));
	m->s.n_cpus = n;
	m->s.cpus = calloc(n, sizeof(*m->s.cpus));
	assert_non_null(m->s.cpus);
	for (unsigned i = 0; i < n; i++) {
		m->s.cpus[i] = (struct cpu_desc){
			.cpu = (uint16_t)i, .package = cpus[i][0], .core = cpus[i][1], .present = true
		};
		if (cpus[i][0] >= m->s.n_packages)
			m->s.n_packages = cpus[i][0] + 1u;
	}
	assert_int_equal(estimate_open(&m->s, idle_watts, max_watts, &m->e), 0);
	assert_int_equal(reading_init(&m->r, &m->s), 0);
}

static void machine_free(struct machine *m)
{
	estimate_close(m->e);
	reading_free(&m->r);
	free(m->s.cpus);
}

/* Time passes on a CPU, part of it idle. */
static void pass(struct machine *m, uint16_t cpu, uint64_t elapsed_ns, uint64_t idle_ns)
{
	m->r.cpus[cpu].elapsed_ns += elapsed_ns;
	reading_cell(&m->r, ROW_IDLE, cpu)->time_ns += idle_ns;
	reading_cell(&m->r, ROW_KERNEL, cpu)->time_ns += elapsed_ns - idle_ns;
}

static const uint16_t two_cores[][2] = { { 0, 0 }, { 0, 1 } };

/* A CPU that is plugged in while jouled runs: a core of its own, or a thread of a core that was there. */
static void adopts_a_cpu(void **state)
{
	for (uint16_t core = 0; core < 2; core++) {
		struct machine m;

		machine_init(&m, two_cores, 2, 1.5, 8);
		estimate_close(m.e);
		m.s.domains[0].idle_uw = m.s.n_domains = 0;
		m.s.cpus[1].present = false;
		assert_int_equal(estimate_open(&m.s, 1.5, 8, &m.e), 0);
		pass(&m, 0, S, 0);
		estimate_read(m.e, &m.r);
		assert_int_equal(m.r.domains[0].units, 8000000);
		assert_int_equal(m.s.domains[0].idle_uw, 1500000);
		m.s.cpus[1].core = core;
		m.s.cpus[1].present = true;
		pass(&m, 1, S, S);
		estimate_read(m.e, &m.r);
		assert_int_equal(m.r.domains[0].units, core ? 9500000 : 8750000);
		assert_int_equal(m.s.domains[0].idle_uw, core ? 3000000 : 1500000);
		machine_free(&m);
	}
}

static void is_of_the_instant_its_cpus_were_read(void **state)
{
	struct machine m;

	machine_init(&m, two_cores, 2, 1.5, 8);
	m.r.mono_ns = 5 * S;
	m.r.cpus[0].online = m.r.cpus[1].online = true;
	m.r.cpus[0].read_mono_ns = 5 * S + 10 * MS;
	m.r.cpus[1].read_mono_ns = 5 * S + 30 * MS;
	estimate_read(m.e, &m.r);
	assert_int_equal(m.r.domains[0].time_ns, 5 * S + 20 * MS);
	m.r.cpus[1].read_mono_ns = 4 * S; /* could not be read this time */
	estimate_read(m.e, &m.r);
	assert_int_equal(m.r.domains[0].time_ns, 5 * S + 10 * MS);
	m.r.cpus[0].online = false;
	estimate_read(m.e, &m.r);
	assert_int_equal(m.r.domains[0].time_ns, 5 * S);
	machine_free(&m);
}

static void idle_and_busy(void **state)
{
	struct machine m;

	machine_init(&m, two_cores, 2, 2.0, 10.0);
	assert_int_equal(m.s.n_domains, 1);
	assert_string_equal(m.s.domains[0].name, "package-0");
	assert_int_equal(m.s.domains[0].interface, ENERGY_ESTIMATE);
	assert_true(m.s.domains[0].idle_known);
	assert_int_equal(m.s.domains[0].idle_uw, 4000000); /* 2 cores of 2 W */
	m.r.mono_ns = 5 * S;
	pass(&m, 0, 1 * S, 1 * S); /* 2 J */
	pass(&m, 1, 1 * S, 0); /* 10 J */
	estimate_read(m.e, &m.r);
	assert_int_equal(reading_domain_uj(&m.r.domains[0]), 12000000);
	assert_true(m.r.domains[0].estimated);
	assert_false(m.r.domains[0].stale);
	assert_int_equal(m.r.domains[0].time_ns, 5 * S);
	/* nothing passed: nothing added */
	estimate_read(m.e, &m.r);
	assert_int_equal(reading_domain_uj(&m.r.domains[0]), 12000000);
	pass(&m, 0, 1 * S, 250 * MS); /* 2 J + 3/4 of 8 J; CPU 1 is offline */
	estimate_read(m.e, &m.r);
	assert_int_equal(reading_domain_uj(&m.r.domains[0]), 12000000 + 2000000 + 6000000);
	machine_free(&m);
}

/* A million readings of 1001 ns each: 2.002 uJ idle every time, nothing rounded away. */
static void small_steps_are_carried(void **state)
{
	struct machine m;

	machine_init(&m, two_cores, 1, 2.0, 10.0);
	for (unsigned i = 0; i < 1000000; i++) {
		pass(&m, 0, 1001, 1001);
		estimate_read(m.e, &m.r);
	}
	assert_int_equal(reading_domain_uj(&m.r.domains[0]), 2002000);
	machine_free(&m);
}

/* Watts are per core: two threads of one core share them. */
static void threads_share_a_core(void **state)
{
	static const uint16_t smt[][2] = { { 0, 0 }, { 0, 1 }, { 0, 0 }, { 0, 1 },
					   { 1, 0 }, { 1, 1 }, { 1, 0 }, { 1, 1 } };
	struct machine m;

	machine_init(&m, smt, 8, 2.0, 10.0);
	assert_int_equal(m.s.n_domains, 2);
	assert_string_equal(m.s.domains[1].name, "package-1");
	assert_int_equal(m.s.domains[0].idle_uw, 4000000);
	assert_int_equal(m.s.domains[1].idle_uw, 4000000);
	for (uint16_t i = 0; i < 8; i++)
		pass(&m, i, 1 * S, i < 4 ? 0 : 1 * S);
	estimate_read(m.e, &m.r);
	assert_int_equal(reading_domain_uj(&m.r.domains[0]), 20000000);
	assert_int_equal(reading_domain_uj(&m.r.domains[1]), 4000000);
	machine_free(&m);
}

static void odd_watts(void **state)
{
	static const struct {
		double idle, max;
		uint64_t want_uj;
	} cases[] = {
		{ 0, 0, 0 },
		{ -5, -1, 0 },
		{ 3, 1, 3000000 },
		{ 0.5, 1e300, 100000000000ull },
		{ 0.0 / 0.0, 4, 4000000 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine m;

		machine_init(&m, two_cores, 1, cases[i].idle, cases[i].max);
		pass(&m, 0, 1 * S, 0);
		estimate_read(m.e, &m.r);
		assert_int_equal(reading_domain_uj(&m.r.domains[0]), cases[i].want_uj);
		machine_free(&m);
	}
}

/* Where root and idle are one row, the root's time is taken for idle. */
static void idle_merged(void **state)
{
	struct cgroup root = { .id = 1, .path = "/", .level = 0 };
	struct machine m;
	int64_t row;

	machine_init(&m, two_cores, 1, 2.0, 10.0);
	m.s.idle_merged = true;
	row = reading_add_row(&m.r, &root);
	assert_true(row >= 0);
	reading_cell(&m.r, (uint32_t)row, 0)->time_ns = 600 * MS;
	m.r.cpus[0].elapsed_ns = 1 * S;
	estimate_read(m.e, &m.r);
	assert_int_equal(reading_domain_uj(&m.r.domains[0]), 2000000 + 3200000);
	machine_free(&m);
}

/* Idle is what the estimate itself added for being on, from the first interval on and though no CPU
 * was ever idle; a CPU that was offline half the time drew half. */
static void idle_is_not_learned(void **state)
{
	struct formula_options o = { .idle = IDLE_OWN, .weight = WEIGHT_TIME };
	struct consumer *c;
	struct formula *f;
	struct snapshot *s;
	struct machine m;

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		o.idle_watts[k] = NAN;
	machine_init(&m, two_cores, 2, 2.0, 10.0);
	f = formula_share.create(&o);
	c = consumer_new(&m.r);
	assert_true(f && c);
	for (unsigned i = 1; i <= 3; i++) {
		m.r.number++;
		m.r.mono_ns += 1 * S;
		pass(&m, 0, 1 * S, 0);
		pass(&m, 1, i == 3 ? S / 2 : S, 0);
		estimate_read(m.e, &m.r);
		s = consumer_snapshot(c, &m.r);
		assert_non_null(s);
		assert_int_equal(formula_share.apply(f, s), 0);
		assert_int_equal(s->domains[0].energy_uj, i == 3 ? 15000000 : 20000000);
		assert_int_equal(s->domains[0].idle_uj, i == 3 ? 3000000 : 4000000);
		assert_int_equal(*snapshot_energy(s, ROW_KERNEL, 0), i == 3 ? 12000000 : 16000000);
		assert_int_equal(s->domains[0].idle_power_uw, 4000000);
		assert_int_equal(s->domains[0].idle_quality, s->domains[0].quality);
		assert_int_equal(s->domains[0].quality & QUALITY_ESTIMATED, QUALITY_ESTIMATED);
	}
	formula_share.destroy(f);
	consumer_free(c);
	machine_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_of_the_instant_its_cpus_were_read),
		cmocka_unit_test(adopts_a_cpu),
		cmocka_unit_test(idle_and_busy),
		cmocka_unit_test(small_steps_are_carried),
		cmocka_unit_test(threads_share_a_core),
		cmocka_unit_test(odd_watts),
		cmocka_unit_test(idle_merged),
		cmocka_unit_test(idle_is_not_learned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
