/* SPDX-License-Identifier: Apache-2.0 */
/* How one event name is resolved: events.c by aliases, event_pmus.c by sysfs, event_pfm.c by libpfm. */
#ifndef JD_RESOLUTION_H
#define JD_RESOLUTION_H
#include "events.h"

#define EVENT_MAX_ENCODINGS 4 /* event_variants.v */
#define PMU_NAME_MAX 32

enum resolve_status {
	RESOLVE_UNKNOWN, /* no source knows the name */
	RESOLVE_OK,
	RESOLVE_ABSENT, /* known, not here: reason */
	RESOLVE_INVALID, /* known, but asked for in a way that cannot work: reason */
};

struct encoding {
	uint32_t type;
	uint64_t config[3];
	char pmu[PMU_NAME_MAX];
	bool cpus_known; /* only the CPUs in `cpus` */
	bool whole_package; /* from a cpumask: one CPU counts for many */
	uint8_t cpus[1024 / 8];
};

/* The known name most like the wanted one. */
struct nearest {
	char name[SCHEMA_NAME_MAX];
	unsigned distance;
};

struct resolution {
	enum resolve_status status;
	enum event_kind kind; /* PERF: as in enc; others have no encoding */
	unsigned n;
	struct encoding enc[EVENT_MAX_ENCODINGS];
	char reason[160];
	struct nearest near; /* only UNKNOWN; name "" = nothing like it */
};

/* Sets status and reason (ABSENT, INVALID). */
void resolution_set(struct resolution *r, enum resolve_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Offers a candidate; kept when it is nearer to `wanted` than the one before. */
void nearest_offer(struct nearest *n, const char *wanted, const char *candidate);

/* Type and CPUs of a sysfs PMU into e (config untouched). 0 or -errno. */
int pmu_load(const struct fsroot *root, const char *pmu, struct encoding *e);
/* Name of the PMU with that type into e, with its CPUs. 0 or -ENOENT. */
int pmu_load_by_type(const struct fsroot *root, uint32_t type, struct encoding *e);
/* The core PMUs of a hybrid machine (cpu_core, cpu_atom, ...): number, 0 on others. Sorted so that
 * cpu_core is first. */
unsigned pmu_hybrid(const struct fsroot *root, char ret_names[EVENT_MAX_ENCODINGS][PMU_NAME_MAX]);
/* True where core events come from an Arm PMU driver. */
bool pmu_is_arm(const struct fsroot *root);

/* A generic event (PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE): one encoding, or one per hybrid PMU. */
void resolve_generic(const struct fsroot *root, uint32_t type, uint64_t config, struct resolution *r);
/* Each leaves r alone and returns false when the name is not of its kind. */
bool resolve_alias(const struct fsroot *root, const char *name, struct resolution *r);
bool resolve_sysfs(const struct fsroot *root, const char *name, struct resolution *r);
/* The last one: always answers, UNKNOWN included. */
void resolve_libpfm(const struct fsroot *root, const char *name, struct resolution *r);
void alias_nearest(const char *wanted, struct nearest *n);

#endif
