/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and CPU time per (row, CPU) from bpf/counters.bpf.c: loads, opens the perf events,
 * flushes every CPU that is not idle and adds what changed to the reading. */
#ifndef JD_COUNTERS_SOURCE_H
#define JD_COUNTERS_SOURCE_H
#include "base/err.h"
#include "base/fsroot.h"
#include "model/cgroup.h"
#include "model/config/config.h"
#include "model/reading.h"
#include "events.h"
#include "source/cgroup/hierarchy.h"
#include "source/cgroup/lifecycle.h"

struct counters;

struct counters_options {
	enum trigger_mode trigger;
	enum clock_mode clock;
	uint64_t max_cgroups; /* that have rows at the same time */
	uint32_t bank_rows; /* rows of a CPU between two flushes; 0 = by the number of CPUs */
	uint64_t quota; /* rows one subtree may take; 0 = a quarter of max_cgroups */
	const struct fsroot *root;
	const struct hierarchy *hierarchy;
	const struct perf_seam *seam;
	struct event_variants *core_variants, *msr_variants; /* they get CPUs that come */
	const char *btf;
	const uint16_t
		*siblings; /* tests: by CPU, the other thread of its core or the CPU itself; NULL = as sysfs says */
};

/* schema->core, msr and cpus are filled already; sets schema->multiplexed, trigger, clock. Auto
 * takes the first trigger with which a forced switch is counted. */
int counters_open(const struct counters_options *o, struct schema *s, struct counters **ret, struct err *err);
/* On large machines: starts threads that flush beside the one that reads. Call it from where threads may begin. 0 or
 * -errno; without them a reading takes longer. */
int counters_start(struct counters *c);
/* One reading: flush or idle-close every online CPU, rows of new cgroups resolved through l. */
int counters_read(struct counters *c, struct reading *r, struct cgroup_table *t, struct lifecycle *l);
/* Becomes readable when a CPU's rows run out before the next reading: call counters_make_room. -1 where they cannot. */
int counters_fd(const struct counters *c);
/* Takes the rows of CPUs that have used most of theirs; they count as of the next reading. */
void counters_make_room(struct counters *c, struct reading *r, struct cgroup_table *t, struct lifecycle *l);
/* Closes the open interval of a CPU without a reading (a running task was moved). */
void counters_close_cpu(struct counters *c, unsigned cpu);
/* Memory the maps take, bytes (the formula in the man page). */
uint64_t counters_map_bytes(const struct counters *c);
/* Time that the switch program took in *ret_n sampled switches that changed the row, one clock read each included. */
uint64_t counters_self_ns(const struct counters *c, uint64_t *ret_n);
/* Why a trigger was not taken, "; "-joined; "" when the first one worked. */
const char *counters_reason(const struct counters *c);
void counters_close(struct counters *c);

/* trigger none: CPU time of each cgroup from its cpu.stat, no BPF at all. */
struct cpustat;
int cpustat_open(const struct hierarchy *h, const struct fsroot *root, struct schema *s, struct cpustat **ret,
		 struct err *err);
int cpustat_read(struct cpustat *c, struct reading *r, struct cgroup_table *t, struct lifecycle *l);
void cpustat_close(struct cpustat *c);

#endif
