// SPDX-License-Identifier: GPL-2.0-only
/* What a task's name means, and what it does in a given time. */
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include "simpmu.h"

#define STRETCH_NS 2000000ull /* the frequency is taken as constant for so long */
#define REFERENCES_PER_MISS 4
#define INSTRUCTIONS_PER_BRANCH 5
#define BRANCHES_PER_MISS 50

static uint khz = 2000000, swing_permille, swing_period_ms = 3000, bandwidth;

/* Settles the work done so far with the old value, before the new one holds. */
static int set_settled(const char *val, const struct kernel_param *kp)
{
	uint v;
	int err = kstrtouint(strim((char *)val), 0, &v);

	if (err)
		return err;
	if (kp->arg == &swing_permille ? v > 900 : v > 10000000 || (v == 0 && kp->arg != &bandwidth))
		return -EINVAL;
	simpmu_settle();
	WRITE_ONCE(*(uint *)kp->arg, v);
	return 0;
}

static const struct kernel_param_ops settled_ops = { .set = set_settled, .get = param_get_uint };
module_param_cb(khz, &settled_ops, &khz, 0644);
module_param_cb(swing_permille, &settled_ops, &swing_permille, 0644);
module_param_cb(swing_period_ms, &settled_ops, &swing_period_ms, 0644);
module_param_cb(bandwidth, &settled_ops, &bandwidth, 0644);

static const char *number(const char *s, u32 most, u32 *ret)
{
	u32 v = 0;

	if (*s < '0' || *s > '9')
		return NULL;
	while (*s >= '0' && *s <= '9')
		v = v * 10 + (u32)(*s++ - '0'); /* at most 12 digits in a name: cut below */
	*ret = min(v, most);
	return s;
}

void sim_work_parse(const char *comm, struct sim_work *ret)
{
	const char *s = strncmp(comm, "ipc", 3) ? NULL : comm + 3;

	*ret = (struct sim_work){ .ipc_tenths = 10, .misses = 1, .busy = true };
	if (s)
		s = number(s, 1000, &ret->ipc_tenths);
	while (s) {
		switch (*s) {
		case 'm':
			s = number(s + 1, 1000, &ret->misses);
			break;
		case 'h':
			s = number(s + 1, 1000, &ret->hidden);
			break;
		case 'e':
			s = number(s + 1, 7, &ret->energy_class);
			break;
		default:
			s = NULL;
		}
	}
}

/* -1000 to 1000 and back, over one period. */
static s64 triangle(u64 t_ns, u64 period_ns)
{
	u64 at = t_ns % period_ns * 4000 / period_ns;

	return at < 2000 ? (s64)at - 1000 : 3000 - (s64)at;
}

static u32 frequency_permille(int cpu, u64 t_ns)
{
	u64 period_ns = (u64)READ_ONCE(swing_period_ms) * 1000000;
	s64 swing = READ_ONCE(swing_permille);

	if (!swing)
		return 1000;
	return (u32)(1000 + swing * triangle(t_ns + (u64)(2 - cpu % 3) * period_ns / 3, period_ns) / 1000);
}

u64 sim_work_end(u64 from)
{
	return READ_ONCE(swing_permille) ? (from / STRETCH_NS + 1) * STRETCH_NS : U64_MAX;
}

bool sim_work_shared(void)
{
	return READ_ONCE(bandwidth) != 0;
}

/* Misses per millisecond that the tasks of all CPUs would have with a memory that never makes them wait, at the nominal
 * frequency. */
static u64 demand(void)
{
	u64 sum = 0;
	int cpu;

	for_each_online_cpu(cpu)
	{
		const struct sim_work *w = &sim_cpu_of(cpu)->work;

		if (READ_ONCE(w->busy))
			sum += (u64)READ_ONCE(khz) * READ_ONCE(w->ipc_tenths) * READ_ONCE(w->misses) / 10000;
	}
	return sum;
}

/* With a demand D and a bandwidth B all get B / (B + D) of what they want: the longer the queue, the longer each waits. */
static u32 load_permille(void)
{
	u64 wanted = sim_work_shared() ? demand() : 0;

	return wanted ? (u32)(wanted * 1000 / (wanted + (u64)READ_ONCE(bandwidth) * 1000)) : 0;
}

/* The remainder that makes no whole count is kept for the next time. */
static u64 carry(struct sim_cpu *c, enum sim_count which, u64 amount, u64 per)
{
	u64 have = c->rest[which] + amount;

	c->rest[which] = have % per;
	return have / per;
}

void sim_work_do(const struct sim_work *w, struct sim_cpu *c, u64 from, u64 dt, struct sim_stretch *s)
{
	u64 *n = s->count, nominal = READ_ONCE(khz);

	memset(n, 0, sizeof(s->count));
	n[SIM_TIME] = dt;
	s->frequency_permille = frequency_permille(c->cpu, from + dt / 2);
	s->energy_class = w->energy_class;
	if (!w->busy)
		return;
	n[SIM_CYCLES] = carry(c, SIM_CYCLES, dt * (nominal * s->frequency_permille / 1000), 1000000);
	n[SIM_REF_CYCLES] = carry(c, SIM_REF_CYCLES, dt * nominal, 1000000);
	s->load_permille = load_permille();
	n[SIM_INSTRUCTIONS] = carry(c, SIM_INSTRUCTIONS, n[SIM_CYCLES] * w->ipc_tenths * (1000 - s->load_permille),
				    10000);
	n[SIM_MISSES] = carry(c, SIM_MISSES, n[SIM_INSTRUCTIONS] * w->misses, 1000);
	n[SIM_REFERENCES] = n[SIM_MISSES] * REFERENCES_PER_MISS;
	n[SIM_BRANCHES] = carry(c, SIM_BRANCHES, n[SIM_INSTRUCTIONS], INSTRUCTIONS_PER_BRANCH);
	n[SIM_BRANCH_MISSES] = carry(c, SIM_BRANCH_MISSES, n[SIM_BRANCHES], BRANCHES_PER_MISS);
	n[SIM_HIDDEN] = carry(c, SIM_HIDDEN, n[SIM_INSTRUCTIONS] * w->hidden, 1000);
}

/* Counts per millisecond. */
static u64 per_ms(const struct sim_work *w, int cpu, u64 at, enum sim_count which)
{
	u64 khz_now = (u64)READ_ONCE(khz) * frequency_permille(cpu, at) / 1000,
	    instructions = khz_now * w->ipc_tenths / 10;

	switch (which) {
	case SIM_TIME:
		return 1000000;
	case SIM_CYCLES:
		return khz_now;
	case SIM_REF_CYCLES:
		return READ_ONCE(khz);
	case SIM_INSTRUCTIONS:
		return instructions;
	case SIM_MISSES:
		return instructions * w->misses / 1000;
	case SIM_REFERENCES:
		return instructions * w->misses / 1000 * REFERENCES_PER_MISS;
	case SIM_BRANCHES:
		return instructions / INSTRUCTIONS_PER_BRANCH;
	case SIM_BRANCH_MISSES:
		return instructions / INSTRUCTIONS_PER_BRANCH / BRANCHES_PER_MISS;
	default:
		return 0;
	}
}

u64 sim_work_ns(const struct sim_work *w, int cpu, u64 from, enum sim_count which, u64 count)
{
	u64 rate = w->busy ? per_ms(w, cpu, from, which) : 0;

	return rate ? mul_u64_u64_div_u64(count, 1000000, rate) : U64_MAX;
}
