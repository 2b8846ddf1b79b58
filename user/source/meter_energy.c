// SPDX-License-Identifier: Apache-2.0
#include "meter_internal.h"
#include <math.h>

#define UW_NS_PER_UJ 1000000000ull

void meter_energy_add(struct meter_energy *e, int64_t power_uw, uint64_t now_ns, uint64_t longest_ns)
{
	uint64_t ns = now_ns - e->power_ns;
	int64_t sum = e->power_uw + power_uw;
	unsigned __int128 work;

	if (e->have && now_ns <= e->power_ns)
		return;
	if (e->have && ns <= longest_ns && sum > 0) {
		work = (unsigned __int128)(uint64_t)sum * ns / 2 + e->rest;
		e->uj += (uint64_t)(work / UW_NS_PER_UJ);
		e->rest = (uint64_t)(work % UW_NS_PER_UJ);
	} else if (e->have && ns > longest_ns) {
		e->gaps++;
	}
	e->have = true;
	e->power_uw = power_uw;
	e->power_ns = now_ns;
}

bool meter_watts(double watts, int64_t *ret_uw)
{
	if (!isfinite(watts) || fabs(watts) * 1e6 > (double)METER_MAX_UW)
		return false;
	*ret_uw = llround(watts * 1e6);
	return true;
}
