/* SPDX-License-Identifier: Apache-2.0 */
/* Event names to perf_event_attr: libpfm4 names, "pmu/event/" with sysfs terms, and our aliases
 * (LLC_MISSES, TSC, APERF, MPERF, TASK_CLOCK, SIBLING_BUSY, CYCLES, INSTRUCTIONS ...). Hybrid PMUs: one event
 * becomes cpu_core and cpu_atom with the CPUs of each. */
#ifndef JD_EVENTS_H
#define JD_EVENTS_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/config/config.h"
#include "model/schema.h"

/* The perf seam: the answers of perf_event_open. The live one calls the kernel; a captured machine has a recorded
 * one (file perf-seam in its root), so that every case is a test. */
struct perf_seam {
	/* A descriptor or -errno. */
	int (*open)(void *ctx, const struct event_variant *event, int cpu, bool pinned);
	void *ctx;
};

/* Names that are known but absent on this machine. */
struct absent_events {
	unsigned n;
	struct {
		char name[SCHEMA_NAME_MAX];
		char reason[160];
	} ev[16];
};
/* One group of configured names: where they are looked up and where the result goes. All pointers are the caller's. */
struct event_group {
	const struct fsroot *root;
	const struct perf_seam *seam;
	bool msr; /* events.msr, read at a flush; otherwise events.core */
	struct event_set *set;
	struct event_variants *variants; /* [SCHEMA_MAX_EVENTS], beside the set's events */
	struct absent_events *absent;
	const char *file; /* that the names come from; NULL = from none */
	enum trigger_mode trigger; /* NONE and PERF_EVENT lack the events that the switch program counts */
};
/* Resolves the configured names into the group's set. A known name that this machine lacks goes to `absent` with the
 * reason. An unknown name is -EINVAL, and err has the nearest known name. When no core event is left, the set gets
 * TASK_CLOCK with the reason, so that a weight exists. */
int events_resolve(const struct str_list *names, const struct event_group *group, struct err *err);
/* A CPU came online: a PMU names the CPUs that have it, of those that were on line, so the events of this one's PMUs get it. */
void events_cpu_came(const struct fsroot *root, struct event_set *set, struct event_variants *variants, unsigned cpu);
/* Adds an event of the switch program (SIBLING_BUSY, IDLE_EXITS) that was not configured, marked `added`. Nothing
 * happens where this machine lacks it, it is there already, or the set is full. */
void events_add(const char *name, const struct event_group *group);
/* No switch program could be loaded: takes its events out of the set. Those configured go to `absent`. */
void events_lose_switches(const struct event_group *group);
struct perf_seam perf_seam_live(void);
/* Reads ROOT/perf-seam (format: perf_seam.c); root must outlive it. -ENOENT when there is none,
 * -EINVAL when a line is not understood. */
int perf_seam_recorded(const struct fsroot *root, struct perf_seam *ret);
/* Value, enabled ns and running ns of a descriptor of either seam. -ENODATA: a pinned event that lost its counter. */
int perf_seam_read(int fd, uint64_t ret_words[3]);
void perf_seam_free(struct perf_seam *s);
/* 1 when all events of the set fit on the PMU of `cpu` at once as pinned events, 0 when they must
 * multiplex, -errno when none opens. */
int events_fit(const struct perf_seam *seam, const struct event_set *set, int cpu);
/* The same on any CPU of a hybrid machine: variants[i] belongs to set->ev[i]. */
int events_fit_variants(const struct perf_seam *seam, const struct event_set *set,
			const struct event_variants *variants, int cpu);

#endif
