// SPDX-License-Identifier: Apache-2.0
/* The driver's counter is exact where there is one, moves in steps of 10 to 100 ms and begins anew with the driver.
 * Power is averaged over up to a second and, on some GPUs, measured a quarter of the time. Both are added up and the
 * counter is reported. A large difference of the two is told.
 *
 * The time of the energy is that of the counter's step. A reading between two steps has the same total and the same
 * time, so power does not drop.
 *
 * Where an answer of the counter costs much (Hopper: 3 to 8 ms of CPU), it is asked now and then. Power carries the
 * energy from one answer to the next. An answer is up to a step of the counter old, and the steps cannot be seen: so a
 * small difference is mended bit by bit, which keeps the total of the counter, and no watts jump. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "gpu_ops.h"

#define MAX_MW 10000000ull /* 10 kW: four times the largest module sold; a larger value is wrong */
#define LONGEST_STEP_NS (3 * NS_PER_S) /* values further apart say nothing of the time between them */
#define STILL_NS (500 * NS_PER_MS) /* a counter that does not move for so long stands */
#define COMPARE_NS (30 * NS_PER_S)
#define COMPARE_MIN_UJ 100000000ull /* 100 J: below, steps of the counter weigh too much */
#define MW_NS_PER_UJ 1000000ull
#define MEND_PARTS 4 /* of what power carried wrongly, an answer of the counter mends so much of it */
#define STRAY_NS (300 * NS_PER_MS) /* of the counter's mean power: what is further off is mended at once */

void gpu_energy_start(struct gpu_energy *e, uint64_t now_ns)
{
	memset(e, 0, sizeof(*e));
	e->time_ns = e->compare_ns = now_ns;
}

static void forget_comparison(struct gpu_energy *e, uint64_t now_ns)
{
	e->by_counter_uj = e->by_power_uj = 0;
	e->compare_ns = now_ns;
}

void gpu_energy_gap(struct gpu_energy *e)
{
	if (e->have_counter || e->have_power)
		e->gaps++;
	e->have_counter = e->have_power = false;
	e->behind_uj = e->mend_uj = 0;
	forget_comparison(e, 0);
}

void gpu_energy_carry(struct gpu_energy *e)
{
	e->carries = true;
}

static void add(struct gpu_energy *e, uint64_t uj, uint64_t now_ns)
{
	e->uj += uj;
	e->time_ns = now_ns;
}

/* An answer of the counter, ns after the one before, decides how much of the difference the next looks mend. */
static void mend(struct gpu_energy *e, uint64_t step_uj, uint64_t ns)
{
	int64_t stray_uj = (int64_t)((unsigned __int128)step_uj * STRAY_NS / (ns ? ns : 1));

	e->behind_uj += (int64_t)step_uj;
	e->mend_uj = llabs(e->behind_uj) > stray_uj ? e->behind_uj : e->behind_uj / MEND_PARTS;
}

static void count(struct gpu_energy *e, uint64_t step_uj, uint64_t ns, uint64_t now_ns)
{
	e->by_counter_uj += step_uj;
	if (e->carries)
		mend(e, step_uj, ns);
	else
		add(e, step_uj, now_ns);
}

void gpu_energy_counter(struct gpu_energy *e, uint64_t mj, uint64_t now_ns)
{
	uint64_t step = mj - e->counter_mj, ns = now_ns - e->counter_ns;
	bool first = !e->have_counter;

	if (first && !e->counting && e->uj == 0)
		e->time_ns = now_ns;
	e->counting = true;
	if (!first && mj == e->counter_mj && !e->carries) {
		if (ns >= STILL_NS)
			e->time_ns = e->counter_ns = now_ns;
		return;
	}
	if (!first && mj < e->counter_mj) {
		e->resets++; /* the driver was loaded anew: energy in its absence is not known */
		forget_comparison(e, now_ns);
		e->time_ns = now_ns;
	} else if (!first && (unsigned __int128)step * NS_PER_S > (unsigned __int128)MAX_MW * (ns + 100 * NS_PER_MS)) {
		e->dropped++;
		forget_comparison(e, now_ns);
		e->time_ns = now_ns;
	} else if (!first) {
		count(e, step * 1000, ns, now_ns);
	} else if (e->gaps) {
		e->time_ns = now_ns;
	}
	e->counter_mj = mj;
	e->counter_ns = now_ns;
	e->have_counter = e->begun = true;
}

/* uj by power, and what the counter's last answer mends. Energy never goes back: what is too much waits. */
static void carry(struct gpu_energy *e, uint64_t uj, uint64_t now_ns)
{
	int64_t more = (int64_t)uj + e->mend_uj;
	int64_t taken = more > 0 ? more : 0;

	e->mend_uj = more > 0 ? 0 : more;
	e->behind_uj -= taken;
	add(e, (uint64_t)taken, now_ns);
}

/* Trapezoid between two looks, the fraction of a microjoule carried. */
void gpu_energy_power(struct gpu_energy *e, uint64_t mw, uint64_t now_ns)
{
	unsigned __int128 work;
	uint64_t ns, uj;

	if (mw > MAX_MW) {
		e->dropped++;
		return;
	}
	if (e->have_power && now_ns < e->power_ns)
		now_ns = e->power_ns; /* a reading came between this look and its lock */
	ns = now_ns - e->power_ns;
	if (e->have_power && ns <= LONGEST_STEP_NS) {
		work = (unsigned __int128)(e->power_mw + mw) * ns / 2 + e->rest;
		uj = (uint64_t)(work / MW_NS_PER_UJ);
		e->rest = (uint64_t)(work % MW_NS_PER_UJ);
		e->by_power_uj += uj;
		if (e->counting && e->carries)
			carry(e, uj, now_ns);
		else if (!e->counting)
			add(e, uj, now_ns);
	} else {
		e->gaps += e->have_power;
		forget_comparison(e, now_ns);
		if (!e->counting)
			e->time_ns = now_ns;
	}
	e->power_mw = mw;
	e->power_ns = now_ns;
	e->have_power = e->begun = true;
}

void gpu_energy_reach(struct gpu_energy *e, uint64_t now_ns)
{
	if (e->carries && e->counting && e->have_power && now_ns > e->power_ns &&
	    now_ns - e->power_ns <= LONGEST_STEP_NS)
		gpu_energy_power(e, e->power_mw, now_ns);
}

bool gpu_energy_compare(struct gpu_energy *e, uint64_t now_ns, double *ret_gap)
{
	if (!e->have_counter || !e->have_power)
		return false;
	if (!e->compare_ns)
		forget_comparison(e, now_ns);
	if (now_ns - e->compare_ns < COMPARE_NS || e->by_counter_uj < COMPARE_MIN_UJ)
		return false;
	*ret_gap = ((double)e->by_power_uj - (double)e->by_counter_uj) / (double)e->by_counter_uj;
	forget_comparison(e, now_ns);
	return true;
}
