/* SPDX-License-Identifier: Apache-2.0 */
/* Our own names, first in the search: the same on every machine, and on those whose tables
 * libpfm does not have. */
#include <ctype.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "events_internal.h"
#include "../base/text.h"

/* PERF_TYPE_HW_CACHE: cache | operation << 8 | result << 16 (perf_event_open(2)). */
#define LLC_READ_ACCESS \
	(PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16)
#define LLC_READ_MISS \
	(PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

enum alias_kind { ALIAS_HARDWARE, ALIAS_LLC, ALIAS_MSR, ALIAS_TASK_CLOCK };

/* LLC_*: the generic cache events are the last level on Intel and what leaves the L2 on AMD; Arm
 * drivers map them to the L1 data cache (arch/arm64 armv8_pmuv3_perf_map), so there the
 * last-level entry of the cache events is taken and absent stays absent. */
static const struct alias {
	const char *name;
	enum alias_kind kind;
	uint64_t config;
	uint64_t arm_config; /* LLC: PERF_TYPE_HW_CACHE */
	const char *msr; /* MSR: sysfs name */
} aliases[] = {
	{ "CYCLES", ALIAS_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, NULL },
	{ "CPU_CYCLES", ALIAS_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, NULL },
	{ "INSTRUCTIONS", ALIAS_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, NULL },
	{ "CACHE_REFERENCES", ALIAS_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 0, NULL },
	{ "CACHE_MISSES", ALIAS_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 0, NULL },
	{ "LLC_REFERENCES", ALIAS_LLC, PERF_COUNT_HW_CACHE_REFERENCES, LLC_READ_ACCESS, NULL },
	{ "LLC_MISSES", ALIAS_LLC, PERF_COUNT_HW_CACHE_MISSES, LLC_READ_MISS, NULL },
	{ "BRANCHES", ALIAS_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0, NULL },
	{ "BRANCH_INSTRUCTIONS", ALIAS_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0, NULL },
	{ "BRANCH_MISSES", ALIAS_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 0, NULL },
	{ "BUS_CYCLES", ALIAS_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, 0, NULL },
	{ "REF_CYCLES", ALIAS_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 0, NULL },
	{ "STALLED_CYCLES_FRONTEND", ALIAS_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, 0, NULL },
	{ "STALLED_CYCLES_BACKEND", ALIAS_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 0, NULL },
	{ "TSC", ALIAS_MSR, 0, 0, "msr/tsc/" },
	{ "APERF", ALIAS_MSR, 0, 0, "msr/aperf/" },
	{ "MPERF", ALIAS_MSR, 0, 0, "msr/mperf/" },
	{ "TASK_CLOCK", ALIAS_TASK_CLOCK, 0, 0, NULL },
};

static int fold(char c)
{
	return c == '-' ? '_' : toupper((unsigned char)c);
}

bool event_name_equal(const char *a, const char *b)
{
	while (*a && fold(*a) == fold(*b))
		a++, b++;
	return !*a && !*b;
}

void nearest_offer(struct nearest *n, const char *wanted, const char *candidate)
{
	unsigned distance = text_distance(wanted, candidate);
	size_t a = strlen(wanted), b = strlen(candidate), longer = a > b ? a : b;

	/* With less than a third in common it is a guess, not a correction. */
	if (b >= sizeof(n->name) || distance * 3 > longer * 2 || (n->name[0] && distance >= n->distance))
		return;
	n->distance = distance;
	memcpy(n->name, candidate, b + 1);
}

void alias_nearest(const char *wanted, struct nearest *n)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		nearest_offer(n, wanted, aliases[i].name);
}

void resolution_set(struct resolution *r, enum resolve_status status, const char *fmt, ...)
{
	va_list ap;

	r->status = status;
	va_start(ap, fmt);
	vsnprintf(r->reason, sizeof(r->reason), fmt, ap);
	va_end(ap);
}

/* On hybrid machines bits 63:32 of a generic event's config choose the PMU by its type
 * (perf_event.h, PERF_HW_EVENT_MASK). */
void resolve_generic(const struct fsroot *root, uint32_t type, uint64_t config, struct resolution *r)
{
	char names[EVENT_MAX_ENCODINGS][PMU_NAME_MAX];
	unsigned n = pmu_hybrid(root, names);

	r->status = RESOLVE_OK;
	r->n = 0;
	for (unsigned i = 0; i < n; i++) {
		struct encoding *e = &r->enc[r->n];

		memset(e, 0, sizeof(*e));
		if (pmu_load(root, names[i], e) < 0)
			continue;
		e->config[0] = config | (uint64_t)e->type << PERF_PMU_TYPE_SHIFT;
		e->type = type;
		r->n++;
	}
	if (r->n == 0) {
		memset(&r->enc[0], 0, sizeof(r->enc[0]));
		r->enc[0].type = type;
		r->enc[0].config[0] = config;
		r->n = 1;
	}
}

bool resolve_alias(const struct fsroot *root, const char *name, struct resolution *r)
{
	const struct alias *a = NULL;

	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]) && !a; i++)
		if (event_name_equal(aliases[i].name, name))
			a = &aliases[i];
	if (!a)
		return false;
	switch (a->kind) {
	case ALIAS_TASK_CLOCK:
		r->status = RESOLVE_OK;
		r->task_clock = true;
		break;
	case ALIAS_MSR:
		resolve_sysfs(root, a->msr, r);
		break;
	case ALIAS_LLC:
		if (pmu_is_arm(root)) {
			resolve_generic(root, PERF_TYPE_HW_CACHE, a->arm_config, r);
			break;
		}
		resolve_generic(root, PERF_TYPE_HARDWARE, a->config, r);
		break;
	case ALIAS_HARDWARE:
		resolve_generic(root, PERF_TYPE_HARDWARE, a->config, r);
		break;
	}
	return true;
}
