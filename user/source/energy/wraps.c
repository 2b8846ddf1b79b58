/* SPDX-License-Identifier: Apache-2.0 */
#include "energy.h"

/* Counters move about once a millisecond and not in phase with us (Intel SDM 3B, 15.10.1), later in deep
 * package sleep: two reads close together may see energy of before the first one. */
#define UPDATE_SLACK_NS 10000000ull

/* True when so many units can have been counted in the time; one more is allowed because counters move in whole
 * units. */
static bool plausible(const struct energy_accumulator *a, uint64_t units, uint64_t span_ns)
{
	return (double)units <= a->max_units_per_ns * (double)(span_ns + UPDATE_SLACK_NS) + 1;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Units since the previous raw value, or 0 when that cannot have been energy. Sleep (S3) may put a counter back to
 * 0, and a night is long enough to make any wrap plausible. So a step back is judged by the time awake alone. A step
 * forward is energy used in suspend-to-idle or before. */
static uint64_t step(struct energy_accumulator *a, uint64_t raw, uint64_t awake_ns, uint64_t wall_ns)
{
	uint64_t units = raw - a->prev_raw;

	if (raw >= a->prev_raw) {
		if (plausible(a, units, wall_ns))
			return units;
		a->dropped++;
		return 0;
	}
	units += a->modulus; /* mod 2^64: exact for every modulus, and modulus 0 is 2^64 */
	if (!plausible(a, units, awake_ns)) {
		a->resets++;
		return 0;
	}
	a->wraps++;
	return units;
}

uint64_t energy_accumulate(struct energy_accumulator *a, uint64_t raw, uint64_t now_ns, uint64_t boot_ns)
{
	uint64_t units = 0;

	if (a->have_prev) {
		uint64_t awake = since(now_ns, a->prev_ns), wall = since(boot_ns, a->prev_boot_ns);

		units = step(a, raw, awake, wall > awake ? wall : awake);
	}
	a->prev_raw = raw;
	a->prev_ns = now_ns;
	a->prev_boot_ns = boot_ns;
	a->have_prev = true;
	a->units += units;
	return units;
}
