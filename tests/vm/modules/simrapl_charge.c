// SPDX-License-Identifier: GPL-2.0-only
/* The energy of a stretch: what its counts cost, then what no counter shows. README has the formula of each term. */
#include <linux/math64.h>
#include "simpmu.h"
#include "simrapl.h"

static u64 scaled(u64 pj, s64 permille)
{
	return permille <= 0 ? 0 : pj * (u64)permille / 1000;
}

/* Voltage of the lowest step that reaches the frequency; of the last one beyond. */
static u64 voltage_mv(u32 frequency_permille)
{
	uint i = 0;

	while (i + 1 < settings.n_steps && settings.step_permille[i] < frequency_permille)
		i++;
	return settings.step_mv[i];
}

static u64 at_voltage(u64 pj, u32 frequency_permille)
{
	u64 nominal, mv;

	if (settings.n_steps < 2)
		return pj;
	nominal = voltage_mv(1000);
	mv = voltage_mv(frequency_permille);
	return nominal ? mul_u64_u64_div_u64(pj, mv * mv, nominal * nominal) : pj;
}

static u64 core_pj(const struct sim_stretch *s)
{
	const u64 *n = s->count;
	s64 f2 = (s64)s->frequency_permille * s->frequency_permille / 1000;
	u64 pj = n[SIM_TIME] * settings.busy_mw + n[SIM_CYCLES] * settings.cycle_pj +
		 n[SIM_INSTRUCTIONS] * settings.instruction_pj + n[SIM_HIDDEN] * settings.hidden_pj;

	pj = scaled(pj, settings.class_permille[s->energy_class % 8]);
	pj = scaled(pj, 1000 + settings.square_permille * (f2 - 1000) / 1000);
	pj = at_voltage(pj, s->frequency_permille);
	if (s->small)
		pj = scaled(pj, settings.small_permille);
	if (s->siblings)
		pj = pj * settings.smt_permille / 2000;
	return pj;
}

void model_charge(const struct sim_stretch *s, u64 *ret_pj)
{
	const u64 *n = s->count;
	s64 shared;
	int i;

	if (settings.stop)
		return;
	ret_pj[SIM_CORE] = core_pj(s);
	ret_pj[SIM_UNCORE] = n[SIM_REFERENCES] * settings.reference_pj;
	ret_pj[SIM_DRAM] = scaled(n[SIM_MISSES] * settings.miss_pj,
				  1000 + (s64)settings.queue_permille * s->load_permille / 1000);
	if (s->cpus > 1 && s->others) {
		shared = 1000 + (s64)settings.saturate_permille * s->others / (s64)(s->cpus - 1);
		for (i = 0; i < SIM_ENERGIES; i++)
			ret_pj[i] = scaled(ret_pj[i], shared);
	}
	ret_pj[SIM_CORE] += n[SIM_EXITS] * settings.exit_nj * 1000;
	if (s->package_woke && settings.first_waker_pays)
		ret_pj[SIM_UNCORE] += (u64)settings.sleep_exit_nj * 1000;
}
