/* SPDX-License-Identifier: Apache-2.0 */
/* Finds events under the many names of configurations: libpfm4 ("PMU::NAME:modifier"), perf's ("cpu/cpu-cycles/u") and
 * our aliases. Only the name proper is compared. */
#include <string.h>
#include <strings.h>
#include "event_find.h"

/* Unhalted cycles at the real clock. Reference cycles and the TSC run at their own rate whatever the frequency is; bus
 * cycles and stalls count other things. */
static const char *const cycles[] = {
	"CYCLES",
	"CPU_CYCLES",
	"CPU-CYCLES",
	"PERF_COUNT_HW_CPU_CYCLES",
	"UNHALTED_CORE_CYCLES",
	"CPU_CLK_UNHALTED",
	"CYCLES_NOT_IN_HALT",
	"LS_NOT_HALTED_CYC",
};
/* Sub-events of CPU_CLK_UNHALTED that count reference or selected cycles. */
static const char *const not_cycles[] = {
	"REF", "ONE_THREAD", "RING0", "C01", "C02", "C0_WAIT", "PAUSE", "DISTRIBUTED"
};

static const char *const misses[] = {
	"LLC_MISSES",      "CACHE_MISSES", "CACHE-MISSES",     "PERF_COUNT_HW_CACHE_MISSES", "LAST_LEVEL_CACHE_MISSES",
	"LLC-LOAD-MISSES", "LLC-MISSES",   "LL_CACHE_MISS_RD", "L3D_CACHE_REFILL",           "LL_CACHE_MISS",
};
static const char *const miss_units[] = { "LONGEST_LAT_CACHE", "PERF_COUNT_HW_CACHE_LL" };

struct name {
	const char *base, *unit;
	size_t base_len;
};

/* "skl::CPU_CLK_UNHALTED:REF_P:u" -> base CPU_CLK_UNHALTED, unit "REF_P:u"; "cpu/cpu-cycles/u" -> base cpu-cycles. */
static struct name take_apart(const char *text)
{
	const char *slash = strchr(text, '/'), *pmu = strstr(text, "::");
	struct name n = { .base = slash ? slash + 1 : pmu ? pmu + 2 : text };

	n.base_len = strcspn(n.base, slash ? "/,." : ":.");
	n.unit = n.base[n.base_len] ? n.base + n.base_len + 1 : "";
	return n;
}

static bool is_one_of(const struct name *n, const char *const *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (strlen(list[i]) == n->base_len && !strncasecmp(n->base, list[i], n->base_len))
			return true;
	return false;
}

bool event_is_cycles(const char *text)
{
	struct name n = take_apart(text);

	if (!is_one_of(&n, cycles, sizeof(cycles) / sizeof(cycles[0])))
		return false;
	for (unsigned i = 0; i < sizeof(not_cycles) / sizeof(not_cycles[0]); i++)
		if (!strncasecmp(n.unit, not_cycles[i], strlen(not_cycles[i])))
			return false;
	return true;
}

bool event_is_misses(const char *text)
{
	struct name n = take_apart(text);

	return is_one_of(&n, misses, sizeof(misses) / sizeof(misses[0])) ||
	       (is_one_of(&n, miss_units, sizeof(miss_units) / sizeof(miss_units[0])) && strcasestr(n.unit, "MISS"));
}

static int find(const struct event_set *set, bool (*is)(const char *text))
{
	for (unsigned i = 0; i < set->n && i < SCHEMA_MAX_EVENTS; i++)
		if (set->ev[i].kind == EVENT_PERF && is(set->ev[i].name))
			return (int)i;
	return -1;
}

int event_find_cycles(const struct event_set *set)
{
	return find(set, event_is_cycles);
}

int event_find_misses(const struct event_set *set)
{
	return find(set, event_is_misses);
}
