/* SPDX-License-Identifier: Apache-2.0 */
/* A million random intervals: for every domain, formula and idle policy the ledger closes exactly,
 * nothing is negative, residual is there only when something was lost or nothing ran, and what a row
 * got over its life is its exact share within a few microjoules. The exact share is worked out
 * here, from the rules of docs/attribution.md, in 128-bit integers and long doubles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "unit/ledger_world.h"

#ifndef INTERVALS
#define INTERVALS 1000000u
#endif
#define LIFE 500u /* intervals a machine lives */
#define KEYS 64
#define BOUND_UJ 4.0L
#define NOISE_UJ 1.5 /* idle energy carries less than one from interval to interval, noise is rounded */

typedef unsigned __int128 u128;

struct account {
	uint32_t generation;
	long double exact;
	u128 given;
};

/* The results that the rules demand for one domain of one interval. */
struct rules {
	uint64_t weight[KEYS], time[KEYS], missing;
	u128 sum, time_sum;
	bool lossy;
};

struct tally {
	struct account row[KEYS], residual;
	uint64_t rest;
}; /* per domain */

static struct tally tally[WORLD_DOMAINS];
static struct rules rules;
static long double worst;
static uint64_t checked, closed, residuals, modelled, noises;

static bool on_domain(const struct snapshot *s, const struct domain_desc *d, unsigned cpu)
{
	const struct cpu_desc *c = &s->schema->cpus[cpu];

	if (d->kind == DOMAIN_PSYS || d->kind == DOMAIN_EXTERNAL)
		return true;
	return d->kind != DOMAIN_GPU && c->package == d->package && (!d->has_die || c->die == d->die);
}

static u128 least(u128 a, u128 b)
{
	return a < b ? a : b;
}

/* APERF / MPERF in 2^-16, rounded down, between 2^-16 and 16; the domain's mean where a CPU has none. */
static uint64_t ratio(const struct snapshot *s, const struct domain_desc *d, unsigned cpu)
{
	u128 a = s->cpus[cpu].msr[1], m = s->cpus[cpu].msr[0], r;

	if (!a || !m) {
		a = m = 0;
		for (unsigned i = 0; i < s->schema->n_cpus; i++) {
			if (on_domain(s, d, i) && s->cpus[i].msr[0]) {
				a += s->cpus[i].msr[1];
				m += s->cpus[i].msr[0];
			}
		}
	}
	if (!a || !m)
		return 65536;
	r = least(a * 65536 / m, 16 * 65536);
	return r ? (uint64_t)r : 1;
}

static bool any_ratio(const struct snapshot *s, const struct domain_desc *d)
{
	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		if (on_domain(s, d, i) && s->cpus[i].msr[0] && s->cpus[i].msr[1])
			return true;
	return false;
}

/* event -1: time. */
static uint64_t worth(const struct snapshot *s, const struct domain_desc *d, const struct snap_cell *c, int event,
		      bool scaled)
{
	if (event < 0)
		return c->time_ns;
	if (c->quality & QUALITY_LOST)
		return 0;
	if (!scaled)
		return c->counters[event];
	return (uint64_t)least((u128)c->counters[event] * ratio(s, d, c->cpu) / 65536, 1ull << 63);
}

static long double missing_of(const struct snapshot *s, const struct domain_desc *d, int event, bool scaled,
			      long double rate)
{
	long double missing = 0, busy = 0;

	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		if (on_domain(s, d, i) && s->cpus[i].quality & QUALITY_PARTIAL)
			busy += s->cpus[i].busy_ns;
	for (unsigned i = 0; i < s->n_cells; i++) {
		const struct snap_cell *c = &s->cells[i];
		enum row_kind kind = s->rows[c->row].kind;

		if (!on_domain(s, d, c->cpu) || kind == ROW_IDLE || kind == ROW_IRQ_STEAL)
			continue;
		if (s->cpus[c->cpu].quality & QUALITY_PARTIAL)
			busy -= c->time_ns;
		if (event >= 0 && c->quality & (QUALITY_PARTIAL | QUALITY_LOST))
			missing += fmaxl(0, rate * c->time_ns - worth(s, d, c, event, scaled));
	}
	return missing + rate * fmaxl(0, busy);
}

/* Weights by one event; false when it says nothing at all. */
static bool by_event(const struct snapshot *s, const struct domain_desc *d, int event, bool scaled)
{
	u128 w[2] = { 0 }, t[2] = { 0 }; /* whole, partial */
	long double missing;

	memset(&rules, 0, sizeof(rules));
	for (unsigned i = 0; i < s->schema->n_cpus; i++)
		rules.lossy |= on_domain(s, d, i) && s->cpus[i].quality & QUALITY_PARTIAL;
	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];
		u128 sum = 0, time = 0;

		for (unsigned k = 0; k < row->n_cells && row->kind != ROW_IDLE; k++) {
			const struct snap_cell *c = &s->cells[row->first_cell + k];
			bool loss = event >= 0 && c->quality & (QUALITY_PARTIAL | QUALITY_LOST);

			if (!on_domain(s, d, c->cpu))
				continue;
			time += c->time_ns;
			if (row->kind == ROW_IRQ_STEAL && event >= 0)
				continue;
			sum += worth(s, d, c, event, scaled);
			rules.lossy |= loss;
			if (!(c->quality & QUALITY_LOST) || !loss) {
				w[loss] += worth(s, d, c, event, scaled);
				t[loss] += c->time_ns;
			}
		}
		rules.sum += rules.weight[i] = (uint64_t)least(sum, 1ull << 63);
		rules.time_sum += rules.time[i] = (uint64_t)time;
	}
	if (event >= 0 && !w[0] && !w[1])
		return false;
	if (!rules.lossy)
		return true;
	missing = missing_of(s, d, event, scaled,
			     event < 0 ? 1 :
			     t[0]      ? (long double)w[0] / t[0] :
			     t[1]      ? (long double)w[1] / t[1] :
					 0);
	rules.missing = missing < 0x1p63L ? (uint64_t)missing : 1ull << 63;
	return true;
}

static void apply_rules(const struct world *w, const struct snapshot *s, const struct domain_desc *d)
{
	bool scaled = w->o.weight == WEIGHT_CYCLES_BY_FREQUENCY && w->has_msr && any_ratio(s, d);

	if (d->kind == DOMAIN_DRAM && w->has_misses && by_event(s, d, w->has_cycles ? 2 : 1, false))
		return;
	if (w->o.weight != WEIGHT_TIME && w->has_cycles && by_event(s, d, 0, scaled))
		return;
	by_event(s, d, -1, false);
}

static void account(struct account *a, long double exact, uint64_t given)
{
	long double error;

	a->exact += exact;
	a->given += given;
	error = fabsl((long double)a->given - a->exact);
	if (error > worst)
		worst = error;
	if (error > BOUND_UJ)
		fail_msg("%.3Lf uJ away from the exact share %.3Lf", error, a->exact);
}

static void check_rows(const struct world *w, const struct snapshot *s, unsigned d, uint64_t idle)
{
	const struct snap_domain *dom = &s->domains[d];
	u128 all = rules.sum + rules.missing;
	long double dynamic = all ? dom->energy_uj - idle : 0;
	bool by_time = w->o.idle == IDLE_BY_TIME;
	u128 idle_all = w->o.idle == IDLE_OWN ? 0 : by_time ? rules.time_sum : rules.sum;

	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];
		struct account *a = &tally[d].row[row->key];
		long double exact = all ? dynamic * rules.weight[i] / all : 0;

		if (idle_all)
			exact += (long double)idle * (by_time ? rules.time[i] : rules.weight[i]) / idle_all;
		if (a->generation != row->generation)
			*a = (struct account){ .generation = row->generation };
		account(a, exact, *snapshot_energy(s, i, d));
		if (!exact)
			assert_int_equal(*snapshot_energy(s, i, d), 0);
	}
	account(&tally[d].residual, all ? dynamic * rules.missing / all : dom->energy_uj - idle, dom->residual_uj);
	assert_int_equal(dom->idle_uj, idle_all ? 0 : idle);
	if (!rules.lossy && rules.sum)
		assert_int_equal(dom->residual_uj, 0);
}

/* Idle energy as charged: power x time, cut to microjoules with the rest carried, at most all. */
static uint64_t idle_of(unsigned d, const struct snap_domain *dom)
{
	u128 work = (u128)dom->idle_power_uw * (dom->end_ns - dom->start_ns) + tally[d].rest;

	if (work / S >= dom->energy_uj) {
		tally[d].rest = 0;
		return dom->energy_uj;
	}
	tally[d].rest = (uint64_t)(work % S);
	return (uint64_t)(work / S);
}

/* Idle costs what is said, and has of noise no more than there is: what was measured above, or below, idle power and prediction. */
static void check_noise(const struct snap_domain *dom, uint64_t idle)
{
	const double noise = (double)dom->idle_uj - (double)idle, above = (double)(dom->energy_uj - idle);
	const double left = above - above / dom->scale;

	if (!noise)
		return;
	noises++;
	if (above == 0) { /* less than idle power was measured, so nobody knows here what was predicted */
		assert_true(noise < 0);
		return;
	}
	assert_true(noise * left > 0);
	assert_true(fabs(noise) <= fabs(left) * (1 + 1e-9) + NOISE_UJ);
}

/* Its shares are another test's subject (test_model.c): here that nobody is charged who did nothing,
 * that idle costs what is said, and that all of the rest is placed when everything was measured. */
static void check_model(const struct snapshot *s, unsigned d, uint64_t idle)
{
	const struct domain_desc *desc = &s->schema->domains[d];
	uint64_t time = 0;

	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];
		uint64_t did = 0;

		for (unsigned k = 0; k < row->n_cells && row->kind != ROW_IDLE; k++) {
			const struct snap_cell *c = &s->cells[row->first_cell + k];

			if (!on_domain(s, desc, c->cpu))
				continue;
			time += c->time_ns;
			did |= c->time_ns;
			for (unsigned e = 0; e < s->schema->core.n; e++)
				did |= c->counters[e];
		}
		if (!did)
			assert_int_equal(*snapshot_energy(s, i, d), 0);
	}
	if (s->idle_policy == IDLE_OWN)
		check_noise(&s->domains[d], idle);
	modelled += time && s->domains[d].scale != 1;
}

static void check_domain(const struct world *w, const struct snapshot *s, unsigned d)
{
	const struct snap_domain *dom = &s->domains[d];
	double watts = w->o.idle_watts[s->schema->domains[d].kind];
	u128 sum = (u128)dom->idle_uj + dom->residual_uj;

	for (unsigned i = 0; i < s->n_rows; i++)
		sum += *snapshot_energy(s, i, d);
	assert_true(sum == dom->energy_uj); /* in 128 bits: nothing wrapped, so nothing was negative */
	closed++;
	residuals += dom->residual_uj != 0;
	if (w->ops == &formula_none) {
		assert_int_equal(dom->residual_uj, dom->energy_uj);
		return;
	}
	if (!isnan(watts))
		assert_int_equal(dom->idle_power_uw, (uint64_t)llround(watts * 1e6));
	if (w->ops == &formula_model) {
		check_model(s, d, idle_of(d, dom));
		return;
	}
	apply_rules(w, s, &s->schema->domains[d]);
	check_rows(w, s, d, idle_of(d, dom));
}

static void one_machine(void)
{
	static struct world w;

	assert_int_equal(world_new(&w), 0);
	memset(tally, 0, sizeof(tally));
	for (unsigned k = 0; k < LIFE; k++) {
		struct snapshot *s = world_step(&w);

		assert_non_null(s);
		assert_in_range(w.r.n_rows, 4, KEYS);
		assert_int_equal(w.ops->apply(w.f, s), 0);
		for (unsigned d = 0; d < s->schema->n_domains; d++)
			check_domain(&w, s, d);
		checked++;
	}
	world_free(&w);
}

static void test_ledger(void **state)
{
	while (checked < INTERVALS)
		one_machine();
	printf("ledger: %llu random intervals, %llu domains closed, %llu with a residual, %llu split by a model, "
	       "%llu with noise, largest distance from an exact share %.2Lf uJ\n",
	       (unsigned long long)checked, (unsigned long long)closed, (unsigned long long)residuals,
	       (unsigned long long)modelled, (unsigned long long)noises, worst);
	assert_true(modelled > closed / 100);
	assert_true(noises > closed / 1000);
	assert_true(residuals > closed / 100); /* the losses were really there */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_ledger) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
