/* SPDX-License-Identifier: Apache-2.0 */
/* The accumulator against a model of the hardware: a 32-bit register (seen as it is by msr, as
 * floor(raw * unit_nJ / 1000) by powercap, as 2^-32 J in 64 bits by perf) whose true energy the
 * model keeps unbounded, with wraps, resets, both kinds of sleep and jumps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "source/energy/energy.h"

#define MS 1000000ull
#define S 1000000000ull
#define WALKS 1000000
#define STEPS 12
#define WATTS 1000ull /* bound given to the accumulator */
#define SLACK_NS (10 * MS) /* energy.h */

static uint64_t seed;

static uint64_t rnd(void) /* xorshift64* */
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dull;
}

static uint64_t below(uint64_t n)
{
	return n ? rnd() % n : 0;
}

enum view { VIEW_MSR, VIEW_POWERCAP, VIEW_PERF, VIEWS };

/* One hardware counter. Energy of a register unit: unit_nj nanojoules. */
struct model {
	enum view view;
	uint64_t unit_nj;
	unsigned __int128 total; /* register units since it began, never wrapped */
	uint64_t mono, boot;
};

static const uint64_t units_nj[] = { 61035, 15258, 15300, 1000000000 /* whole joules */, 30518 };

static uint64_t view_of(const struct model *m, unsigned __int128 total)
{
	switch (m->view) {
	case VIEW_MSR:
		return (uint64_t)total & UINT32_MAX;
	case VIEW_POWERCAP:
		return (uint64_t)(total & UINT32_MAX) * m->unit_nj / 1000;
	default:
		return (uint64_t)total << 16; /* the kernel shifts 2^-16 J to 2^-32 J */
	}
}

/* Units of the view in 1 J, as a double: 10^6 uJ, 10^9 / unit_nJ, or 2^32. */
static double units_per_joule(const struct model *m)
{
	return m->view == VIEW_MSR ? 1e9 / (double)m->unit_nj : m->view == VIEW_POWERCAP ? 1e6 : 4294967296.0;
}

static uint64_t register_units(const struct model *m, uint64_t watts, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)watts * ns / m->unit_nj); /* W x ns = nJ */
}

static void start_walk(struct model *m, struct energy_accumulator *a, enum view view)
{
	uint64_t wrap;

	*m = (struct model){ .view = view,
			     .unit_nj = units_nj[below(sizeof(units_nj) / sizeof(units_nj[0]))],
			     .mono = below(1ull << 50) };
	if (view == VIEW_PERF)
		m->unit_nj = 15259; /* 2^-16 J, and counting from 0 */
	else
		m->total = below(3) ? UINT32_MAX - below(100000000) : below(1ull << 32);
	m->boot = m->mono + below(1ull << 40);
	/* powercap: range + one unit, as its driver prints them */
	wrap = (uint64_t)((unsigned __int128)UINT32_MAX * m->unit_nj / 1000);
	wrap += (wrap + UINT32_MAX / 2) / UINT32_MAX;
	*a = (struct energy_accumulator){
		.modulus = view == VIEW_MSR      ? 1ull << 32 :
			   view == VIEW_POWERCAP ? wrap :
						   0,
		.max_units_per_ns = (double)WATTS * 1e-9 * units_per_joule(m),
	};
	assert_int_equal(energy_accumulate(a, view_of(m, m->total), m->mono, m->boot), 0);
}

/* Between two polls: a quarter of the wrap time at the bound, at most. */
static uint64_t poll_time(const struct model *m)
{
	uint64_t wrap_ns = (uint64_t)((double)(1ull << 32) * (double)m->unit_nj / (double)WATTS);

	if (wrap_ns > 240 * S)
		wrap_ns = 240 * S;
	return below(4) ? 1 * MS + below(2 * S) : 1 * MS + below(wrap_ns / 4);
}

struct tally {
	uint64_t steps, wraps, resets, undetected, sleeps, jumps;
};

/* powercap cuts every value to whole microjoules, and its turn (range + one unit, both cut) to below
 * 1.5 uJ: a tenth of the smallest unit. The others are exact. */
static void check_exact(const struct model *m, uint64_t got, unsigned __int128 before, bool wrapped)
{
	__int128 off = (__int128)got * 1000 - (__int128)((m->total - before) * m->unit_nj);

	if (m->view == VIEW_POWERCAP)
		assert_true(off > -1000 - 1500 * wrapped && off < 1000 + 1500 * wrapped);
	else
		assert_int_equal(got, (uint64_t)(m->total - before) << (m->view == VIEW_PERF ? 16 : 0));
}

static void check_bounded(const struct model *m, uint64_t got, uint64_t span_ns)
{
	assert_true((double)got <=
		    (double)WATTS * 1e-9 * (double)(span_ns + SLACK_NS) * units_per_joule(m) * 1.000001 + 2);
}

/* Energy at up to the bound, or at most 2 W in suspend-to-idle (below one turn): exact whatever happens. */
static void step_counting(struct model *m, struct energy_accumulator *a, bool asleep, struct tally *t)
{
	unsigned __int128 before = m->total;
	struct energy_accumulator was = *a;
	uint64_t awake = asleep ? 1 * MS + below(1 * S) : poll_time(m), night = asleep ? below(8 * 3600 * S) : 0, got;
	bool wrapped;

	m->total += register_units(m, below(WATTS + 1), awake) + register_units(m, below(3), night);
	m->mono += awake;
	m->boot += awake + night;
	wrapped = m->total >> (m->view == VIEW_PERF ? 48 : 32) != before >> (m->view == VIEW_PERF ? 48 : 32);
	got = energy_accumulate(a, view_of(m, m->total), m->mono, m->boot);
	if (wrapped && asleep && got == 0 && a->resets == was.resets + 1)
		return; /* cannot be told from a register that sleep put to 0; said, not guessed */
	check_exact(m, got, before, wrapped);
	assert_int_equal(a->wraps, was.wraps + wrapped);
	assert_int_equal(a->resets + a->dropped, was.resets + was.dropped);
	t->wraps += wrapped;
	t->sleeps += asleep;
}

/* The register goes back to 0 (module reload, S3): 0 and said, or not more than the time allows. */
static void step_reset(struct model *m, struct energy_accumulator *a, bool asleep, struct tally *t)
{
	struct energy_accumulator was = *a;
	uint64_t awake = poll_time(m), night = asleep ? below(8 * 3600 * S) : 0, got;

	m->total = register_units(m, below(WATTS + 1), below(awake));
	m->mono += awake;
	m->boot += awake + night;
	got = energy_accumulate(a, view_of(m, m->total), m->mono, m->boot);
	t->resets++;
	if (a->resets == was.resets + 1) {
		assert_int_equal(got, 0);
		return;
	}
	t->undetected++;
	/* not seen: the step went forward, or looked like a wrap in the time awake */
	check_bounded(m, got, a->wraps == was.wraps ? awake + night : awake);
}

/* The register jumps to anywhere. */
static void step_jump(struct model *m, struct energy_accumulator *a, struct tally *t)
{
	struct energy_accumulator was = *a;
	uint64_t awake = poll_time(m), got;

	m->total = below(2) ? UINT32_MAX - below(100000000) : below(1ull << 32); /* often near the turn */
	if (m->view == VIEW_PERF)
		m->total = rnd() >> 16;
	m->mono += awake;
	m->boot += awake;
	got = energy_accumulate(a, view_of(m, m->total), m->mono, m->boot);
	t->jumps++;
	check_bounded(m, got, awake);
	if (got == 0 && m->total)
		assert_true(a->resets + a->dropped == was.resets + was.dropped + 1 ||
			    view_of(m, m->total) == was.prev_raw);
}

static void walk(enum view view, struct tally *t)
{
	struct energy_accumulator a;
	struct model m;
	uint64_t units = 0;

	start_walk(&m, &a, view);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t dice = below(100);

		if (dice < 75)
			step_counting(&m, &a, false, t);
		else if (dice < 85)
			step_counting(&m, &a, true, t);
		else if (dice < 95)
			step_reset(&m, &a, dice < 90, t);
		else
			step_jump(&m, &a, t);
		assert_true(a.units >= units); /* never negative */
		units = a.units;
		t->steps++;
	}
}

static void random_walks(enum view view)
{
	struct tally t = { 0 };

	seed = 0x9e3779b97f4a7c15ull + view;
	for (unsigned i = 0; i < WALKS; i++)
		walk(view, &t);
	print_message("%u walks, %llu steps: %llu wraps, %llu resets (%llu not to be seen), %llu sleeps, %llu jumps\n",
		      WALKS, (unsigned long long)t.steps, (unsigned long long)t.wraps, (unsigned long long)t.resets,
		      (unsigned long long)t.undetected, (unsigned long long)t.sleeps, (unsigned long long)t.jumps);
	/* the walks must have met what they are for */
	assert_true(t.resets > 500000 && t.jumps > 250000 && t.sleeps > 500000);
	assert_true(view == VIEW_PERF || t.wraps > 250000);
}

static void walks_msr(void **state)
{
	random_walks(VIEW_MSR);
}

static void walks_powercap(void **state)
{
	random_walks(VIEW_POWERCAP);
}

static void walks_perf(void **state)
{
	random_walks(VIEW_PERF);
}

/* formats: u32::max - prev + now is one unit short. */
static void wrap_is_exact(void **state)
{
	struct energy_accumulator msr = { .modulus = 1ull << 32, .max_units_per_ns = 1e-3 };
	struct energy_accumulator cap = { .modulus = 262143328850 + 61, .max_units_per_ns = 1 };
	struct energy_accumulator perf = { .max_units_per_ns = 1e3 };

	energy_accumulate(&msr, UINT32_MAX, 0, 0);
	assert_int_equal(energy_accumulate(&msr, 0, S, S), 1);
	assert_int_equal(energy_accumulate(&msr, 5, 2 * S, 2 * S), 5);
	assert_int_equal(msr.wraps, 1);
	energy_accumulate(&cap, 262143328850, 0, 0); /* 2^32 - 1 units of 61.035 uJ */
	assert_int_equal(energy_accumulate(&cap, 0, S, S), 61);
	energy_accumulate(&perf, UINT64_MAX, 0, 0);
	assert_int_equal(energy_accumulate(&perf, 9, S, S), 10);
}

static void reset_adds_nothing(void **state)
{
	/* 61 uJ a unit at 1000 W: 16384 units a millisecond */
	struct energy_accumulator a = { .modulus = 1ull << 32, .max_units_per_ns = 0.016384 };

	energy_accumulate(&a, 2000000000, 0, 0);
	assert_int_equal(energy_accumulate(&a, 100, S, S), 0);
	assert_int_equal(a.resets, 1);
	assert_int_equal(energy_accumulate(&a, 300, 2 * S, 2 * S), 200);
	/* a night makes a wrap plausible by its length alone: still a reset */
	energy_accumulate(&a, 2000000000, 2000 * S, 2000 * S);
	assert_int_equal(energy_accumulate(&a, 100, 2001 * S, 30001 * S), 0);
	assert_int_equal(a.resets, 2);
	/* a night in suspend-to-idle at 1 W counts on */
	assert_int_equal(energy_accumulate(&a, 100 + 16384 * 28000u, 2002 * S, 58002 * S), 16384 * 28000u);
	/* 20000 units in a millisecond are above 1000 W, even with 10 ms on top when it is 10 times that */
	assert_int_equal(energy_accumulate(&a, 100 + 16384 * 28000u + 2000000, 2002 * S + MS, 58002 * S + MS), 0);
	assert_int_equal(a.dropped, 1);
}

static void odd_clocks_and_values(void **state)
{
	struct energy_accumulator a = { .modulus = 1000, .max_units_per_ns = 1e-6 };

	energy_accumulate(&a, 500, 100 * S, 100 * S);
	/* clocks that went back allow the 10 ms only: 10 units and one */
	assert_int_equal(energy_accumulate(&a, 511, 50 * S, 20 * S), 11);
	assert_int_equal(energy_accumulate(&a, 523, 40 * S, 10 * S), 0);
	/* a value beyond the modulus is no energy, nor is the way back */
	assert_int_equal(energy_accumulate(&a, UINT64_MAX, 40 * S, 10 * S), 0);
	assert_int_equal(energy_accumulate(&a, 5, 40 * S, 10 * S), 0);
	assert_int_equal(a.units, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrap_is_exact),         cmocka_unit_test(reset_adds_nothing),
		cmocka_unit_test(odd_clocks_and_values), cmocka_unit_test(walks_msr),
		cmocka_unit_test(walks_powercap),        cmocka_unit_test(walks_perf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
