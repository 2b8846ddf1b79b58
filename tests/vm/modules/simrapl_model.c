// SPDX-License-Identifier: GPL-2.0-only
/* The truth, and the counters that follow it. One lock holds both; the lock of simpmu's CPUs is
 * taken inside it. */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/topology.h>
#include "simpmu.h"
#include "simrapl.h"

#define WARM_STEP_NS 5000000ull /* in which the temperature moves, ... */
#define WARM_STEPS 1000 /* ... at most so many at once */

struct rapl_unit rapl_units[RAPL_UNITS];
int rapl_n_units;
bool rapl_multi_die;

static DEFINE_RAW_SPINLOCK(lock);
static u64 last_ns;
static struct rnd_state noise;
static u64 start_pj;
static u64 cpu_pj[NR_CPUS][SIM_ENERGIES]; /* as last seen */
static u64 core_pj[NR_CPUS]; /* AMD's counter, at the first CPU of each core */

const char *model_kind_name(enum rapl_kind kind)
{
	static const char *const names[] = { [RAPL_CORE] = "core",
					     [RAPL_PACKAGE] = "package",
					     [RAPL_DRAM] = "dram",
					     [RAPL_UNCORE] = "uncore",
					     [RAPL_PSYS] = "psys" };

	return names[kind];
}

struct rapl_unit *model_unit_of(int cpu)
{
	int i;

	for (i = 0; i < rapl_n_units; i++) {
		if (cpumask_test_cpu(cpu, &rapl_units[i].cpus))
			return &rapl_units[i];
	}
	return NULL;
}

u64 model_raw(u64 pj)
{
	return mul_u64_u64_div_u64(pj, 1ull << settings.esu, PJ_PER_J);
}

static int core_leader(int cpu)
{
	return cpumask_first(topology_sibling_cpumask(cpu));
}

static bool is_core_leader(int cpu)
{
	int leader = core_leader(cpu);

	return leader == cpu || leader >= nr_cpu_ids;
}

/* The part of the true energy that the counter shows: none, all, or nearly all. */
static u64 sensed(u64 pj)
{
	s64 off;

	if (settings.freeze)
		return 0;
	if (!settings.noise_permille || !pj)
		return pj;
	off = (s64)(prandom_u32_state(&noise) % 2001) - 1000;
	return pj + (u64)((s64)pj / 1000 * off / 1000 * (s64)settings.noise_permille);
}

static void draw(struct rapl_domain *d, u64 static_pj, u64 dynamic_pj)
{
	d->static_pj += static_pj;
	d->dynamic_pj += dynamic_pj;
	d->counter_pj += sensed(static_pj + dynamic_pj);
}

static void add_cpu(int cpu, u64 dyn[SIM_ENERGIES])
{
	int leader = core_leader(cpu), i;
	u64 pj[SIM_ENERGIES];

	simpmu_cpu_energy(cpu, pj);
	for (i = 0; i < SIM_ENERGIES; i++)
		dyn[i] += pj[i] - cpu_pj[cpu][i];
	if (leader >= nr_cpu_ids)
		leader = cpu;
	if (!settings.freeze)
		core_pj[leader] += pj[SIM_CORE] - cpu_pj[cpu][SIM_CORE];
	memcpy(cpu_pj[cpu], pj, sizeof(pj));
}

static void add_core_idle(const struct rapl_unit *u, u64 idle_pj)
{
	int cpu, cores = 0;

	for_each_cpu(cpu, &u->draws) cores += is_core_leader(cpu);
	for_each_cpu(cpu, &u->draws)
	{
		if (is_core_leader(cpu) && !settings.freeze)
			core_pj[cpu] += idle_pj / cores;
	}
}

/* What the package did not draw while all its CPUs slept, and what waking up cost if nobody pays for it. */
static u64 less_by_sleep(struct rapl_unit *u, u64 now, u64 dt, u64 static_pj)
{
	u64 asleep, exits, less;

	simpmu_package_sleep(u->package, now, &asleep, &exits);
	asleep = min(asleep - u->asleep_ns, dt);
	u->asleep_ns += asleep;
	less = min(asleep * settings.sleep_mw, static_pj);
	exits -= u->exits;
	u->exits += exits;
	return static_pj - less + (settings.first_waker_pays ? 0 : exits * settings.sleep_exit_nj * 1000);
}

/* The temperature follows the dynamic power with a time constant, and leakage is a part of it. The power of dt was even. */
static u64 leak(struct rapl_unit *u, u64 dt, u64 dynamic_pj)
{
	u64 tau = (u64)settings.leak_ms * 1000000, now_uw = dt ? mul_u64_u64_div_u64(dynamic_pj, 1000, dt) : 0;
	u64 steps = clamp_val(div64_u64(dt, WARM_STEP_NS), 1, WARM_STEPS), step = div64_u64(dt, steps), sum_uw = 0, i;

	if (!settings.leak_permille || !dt)
		return 0;
	for (i = 0; i < steps; i++) {
		sum_uw += u->warm_uw;
		if (now_uw > u->warm_uw)
			u->warm_uw += mul_u64_u64_div_u64(now_uw - u->warm_uw, step, tau + step);
		else
			u->warm_uw -= mul_u64_u64_div_u64(u->warm_uw - now_uw, step, tau + step);
	}
	return mul_u64_u64_div_u64(div64_u64(sum_uw, steps) * settings.leak_permille, dt, PJ_PER_UJ);
}

/* Adds to psys what the unit drew; mW x ns = pJ. */
static void advance_unit(struct rapl_unit *u, u64 now, u64 dt, u64 *psys_static, u64 *psys_dynamic)
{
	u64 dyn[SIM_ENERGIES] = { 0 }, idle[RAPL_KINDS], awake_pj;
	int cpu, i;

	for_each_cpu(cpu, &u->draws) add_cpu(cpu, dyn);
	for (i = 0; i < RAPL_KINDS; i++)
		idle[i] = settings.stop ? 0 : dt * settings.idle_mw[i];
	awake_pj = less_by_sleep(u, now, dt, idle[RAPL_PACKAGE]);
	if (!settings.stop)
		idle[RAPL_PACKAGE] = awake_pj + leak(u, dt, dyn[SIM_CORE] + dyn[SIM_UNCORE]);
	add_core_idle(u, idle[RAPL_CORE]);
	draw(&u->domain[RAPL_CORE], idle[RAPL_CORE], dyn[SIM_CORE]);
	draw(&u->domain[RAPL_UNCORE], idle[RAPL_UNCORE], dyn[SIM_UNCORE]);
	draw(&u->domain[RAPL_PACKAGE], idle[RAPL_PACKAGE], dyn[SIM_CORE] + dyn[SIM_UNCORE]);
	draw(&u->domain[RAPL_DRAM], idle[RAPL_DRAM], dyn[SIM_DRAM]);
	*psys_static += idle[RAPL_PACKAGE] + idle[RAPL_DRAM];
	*psys_dynamic += dyn[SIM_CORE] + dyn[SIM_UNCORE] + dyn[SIM_DRAM];
}

static struct rapl_unit *first_of(int package)
{
	struct rapl_unit *u = rapl_units;

	while (u->package != package)
		u++;
	return u;
}

/* The first unit of the same package, which the others show when dies are mirrors. */
static struct rapl_unit *mirrored(struct rapl_unit *u)
{
	struct rapl_unit *first = first_of(u->package);

	return settings.mirror && first != u ? first : NULL;
}

static void mirror_unit(struct rapl_unit *u, const struct rapl_unit *of)
{
	int i;

	for (i = 0; i < RAPL_KINDS; i++) {
		u->domain[i].static_pj = of->domain[i].static_pj;
		u->domain[i].dynamic_pj = of->domain[i].dynamic_pj;
		u->domain[i].injected_pj = of->domain[i].injected_pj;
		u->domain[i].counter_pj = of->domain[i].counter_pj;
	}
}

static u64 advance(void)
{
	u64 now = simpmu_settle(), psys_static, psys_dynamic = 0;
	u64 dt = now > last_ns ? now - last_ns : 0;
	int i;

	psys_static = settings.stop ? 0 : dt * settings.idle_mw[RAPL_PSYS];
	for (i = 0; i < rapl_n_units; i++) {
		struct rapl_unit *u = &rapl_units[i], *of = mirrored(u);

		if (of)
			mirror_unit(u, of);
		else
			advance_unit(u, now, dt, &psys_static, &psys_dynamic);
	}
	draw(&rapl_units[0].domain[RAPL_PSYS], psys_static, psys_dynamic);
	last_ns = max(last_ns, now);
	return now;
}

u64 model_settle(void)
{
	unsigned long flags;
	u64 now;

	raw_spin_lock_irqsave(&lock, flags);
	now = advance();
	raw_spin_unlock_irqrestore(&lock, flags);
	return now;
}

static u64 polled(const u64 *counter)
{
	unsigned long flags;
	u64 pj;

	raw_spin_lock_irqsave(&lock, flags);
	if (ktime_get_mono_fast_ns() >= last_ns + settings.quantum_us * 1000ull)
		simpmu_mark(advance());
	pj = *counter;
	raw_spin_unlock_irqrestore(&lock, flags);
	return pj;
}

u64 model_counter_pj(struct rapl_domain *d, enum rapl_door door)
{
	u64 pj = polled(&d->counter_pj);

	d->reads[door]++;
	return pj;
}

u64 model_core_counter_pj(int cpu)
{
	int leader = core_leader(cpu);

	return polled(&core_pj[leader >= nr_cpu_ids ? cpu : leader]);
}

static void step(struct rapl_domain *d, s64 uj)
{
	u64 pj = (u64)(uj < 0 ? -uj : uj) * PJ_PER_UJ;
	u64 *core = d->kind == RAPL_CORE ? &core_pj[cpumask_first(&rapl_units[d->unit].cpus)] : NULL;

	if (uj >= 0) {
		d->injected_pj += pj;
		d->counter_pj += pj;
		if (core)
			*core += pj;
		return;
	}
	d->counter_pj -= min(pj, d->counter_pj);
	if (core)
		*core -= min(pj, *core);
}

static struct rapl_domain *find(int unit, const char *kind)
{
	int i;

	if (unit < 0 || unit >= rapl_n_units)
		return NULL;
	for (i = 0; i < RAPL_KINDS; i++) {
		if (!strcmp(kind, model_kind_name(i)) && rapl_units[unit].domain[i].exists)
			return &rapl_units[unit].domain[i];
	}
	return NULL;
}

int model_inject(const char *text)
{
	struct rapl_domain *d;
	unsigned long flags;
	char kind[8];
	long long uj;
	int unit;

	if (sscanf(text, "%d %7s %lld", &unit, kind, &uj) != 3)
		return -EINVAL;
	d = find(unit, kind);
	if (!d)
		return -EINVAL;
	raw_spin_lock_irqsave(&lock, flags);
	step(d, uj);
	raw_spin_unlock_irqrestore(&lock, flags);
	return 0;
}

void model_seed(u64 seed)
{
	prandom_seed_state(&noise, seed);
}

void model_reset_counters(void)
{
	unsigned long flags;
	int i, k;

	raw_spin_lock_irqsave(&lock, flags);
	advance();
	for (i = 0; i < rapl_n_units; i++) {
		for (k = 0; k < RAPL_KINDS; k++)
			rapl_units[i].domain[k].counter_pj = 0;
	}
	memset(core_pj, 0, sizeof(core_pj));
	raw_spin_unlock_irqrestore(&lock, flags);
}

static struct rapl_unit *unit_for(int package, int die)
{
	int i;

	for (i = 0; i < rapl_n_units; i++) {
		if (rapl_units[i].package == package && rapl_units[i].die == die)
			return &rapl_units[i];
	}
	if (rapl_n_units == RAPL_UNITS)
		return NULL;
	rapl_units[rapl_n_units] = (struct rapl_unit){ .package = package, .die = die };
	return &rapl_units[rapl_n_units++];
}

static void name_domain(struct rapl_unit *u, struct rapl_domain *d)
{
	if (d->kind != RAPL_PACKAGE)
		strscpy(d->name, model_kind_name(d->kind), sizeof(d->name));
	else if (rapl_multi_die)
		snprintf(d->name, sizeof(d->name), "package-%d-die-%d", u->package, u->die);
	else
		snprintf(d->name, sizeof(d->name), "package-%d", u->package);
}

static void init_domains(struct rapl_unit *u, uint domains)
{
	/* of the parameter: core, uncore, package, dram, psys */
	static const u8 bit[] = {
		[RAPL_CORE] = 1, [RAPL_UNCORE] = 2, [RAPL_PACKAGE] = 4, [RAPL_DRAM] = 8, [RAPL_PSYS] = 16
	};
	int i;

	for (i = 0; i < RAPL_KINDS; i++) {
		struct rapl_domain *d = &u->domain[i];

		d->kind = i;
		d->unit = u - rapl_units;
		d->exists = domains & bit[i] && (i != RAPL_PSYS || u == rapl_units);
		d->counter_pj = start_pj;
		name_domain(u, d);
	}
}

/* 0: none; 1: as the CPU says; more: dealt out. */
static int die_of(int cpu, uint packages, uint dies)
{
	if (dies > 1)
		return cpu / (packages ? packages : 1) % dies;
	return dies && !packages ? topology_die_id(cpu) : 0;
}

int model_init(uint packages, uint dies, uint domains, u64 start_uj)
{
	int cpu, i;

	start_pj = start_uj * PJ_PER_UJ;
	for_each_present_cpu(cpu)
	{
		int package = packages ? cpu % packages : topology_physical_package_id(cpu);
		struct rapl_unit *u = unit_for(package, die_of(cpu, packages, dies));

		if (!u)
			return -E2BIG;
		cpumask_set_cpu(cpu, &u->cpus);
		cpumask_set_cpu(cpu, settings.mirror ? &first_of(package)->draws : &u->draws);
		core_pj[cpu] = start_pj;
		simpmu_cpu_energy(cpu, cpu_pj[cpu]);
	}
	for (i = 1; i < rapl_n_units; i++)
		rapl_multi_die |= rapl_units[i].package == rapl_units[i - 1].package;
	for (i = 0; i < rapl_n_units; i++)
		init_domains(&rapl_units[i], domains);
	last_ns = simpmu_settle();
	for (i = 0; i < rapl_n_units; i++)
		simpmu_package_sleep(rapl_units[i].package, last_ns, &rapl_units[i].asleep_ns, &rapl_units[i].exits);
	return 0;
}
