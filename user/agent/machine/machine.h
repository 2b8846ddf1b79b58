/* SPDX-License-Identifier: Apache-2.0 */
/* All sources of one machine behind one reading. The main thread opens them; only the measuring thread reads
 * them. A source that the machine lacks is replaced or left out, with one warning that names it. */
#ifndef JD_MACHINE_H
#define JD_MACHINE_H
#include "base/buf.h"
#include "base/err.h"
#include "base/fsroot.h"
#include "model/cgroup.h"
#include "model/config/config.h"
#include "model/reading.h"
#include "source/counters/counters.h"
#include "source/counters/cpufreq.h"
#include "source/energy/energy.h"
#include "source/energy/sensors.h"
#include "source/counters/events.h"
#include "source/gpu/gpus.h"
#include "source/cgroup/hierarchy.h"
#include "source/guest/host.h"
#include "source/cgroup/lifecycle.h"
#include "source/meter/meters.h"
#include "source/names/kubelet.h"
#include "source/names/names.h"
#include "source/counters/block.h"
#include "source/counters/network.h"
#include "source/spans/spans.h"
#include "source/wall/wall.h"

struct machine {
	struct fsroot *root;
	struct perf_seam seam;
	struct hierarchy hierarchy;
	bool have_hierarchy;
	struct event_variants core_variants[SCHEMA_MAX_EVENTS], msr_variants[SCHEMA_MAX_EVENTS];
	struct absent_events absent_core, absent_msr;
	struct schema schema;
	struct cgroup_table *table;
	struct lifecycle *lifecycle;
	struct counters *counters; /* either these counters ... */
	struct cpustat *cpustat; /* ... or, with trigger none, this */
	struct rapl *rapl;
	unsigned rapl_domains; /* of the schema, or the host's */
	struct sensors *sensors; /* hwmon and other powercap; NULL: not looked for */
	struct estimate *estimate; /* NULL: not needed, or off */
	double estimate_idle_watts, estimate_max_watts; /* of a core, where there is an estimate */
	struct host *host; /* in a virtual machine; NULL = not asked for */
	struct network *network;
	struct block *block;
	struct naming *naming; /* NULL: cgroups.names off */
	struct spans *spans; /* NULL: spans are not asked for */
	void (*span_finished)(void *ctx, const struct span *s); /* takes finished spans; NULL = they are dropped */
	void *span_ctx;
	struct spans_stats spans_said; /* losses of spans already reported */
	struct gpus *gpus; /* NULL: none, or not asked for */
	struct meters *meters; /* NULL: none */
	struct wall *wall; /* NULL: not asked for */
	struct cpufreq *cpufreq; /* read for snapshots of outputs that ask for it */
	struct reading reading;
	uint8_t *online; /* bitmap last given to the energy sources */
	uint32_t *online_changes; /* per CPU, as last given */
	uint64_t rapl_due_ns; /* CLOCK_MONOTONIC; UINT64_MAX = never */
	int failed_reads; /* failed reads of counters in a row */
	uint64_t max_cgroups; /* cgroups.max */
	int statm_fd; /* what this process has resident; negative = not known */
	int jump_fd; /* readable after the machine slept; negative = none */
	uint64_t usual_gap_ns; /* time from energy to the last CPU's counters, smoothed */
	uint64_t usual_spread_ns; /* from the first CPU's to the last one's */
	uint64_t previous_ns; /* start of the reading before the last one */
	uint64_t churn; /* lifecycle records since the last reading */
	struct losses said; /* losses already reported */
	struct buf notes; /* warnings of opening, each with a NUL: logged once opening succeeds */
};

/* Opens the root and the perf seam only, which is enough for machine_look. */
int machine_enter(const char *root, struct machine **ret, struct err *err);
/* Reads topology and events. -EINVAL and -E2BIG are faults of the configuration. */
int machine_look(struct machine *m, const struct config *c, struct err *err);
/* Opens the rest. Borrows the lists of c that select cgroups, until machine_select. */
int machine_open(struct machine *m, const struct machine_config *c, struct err *err);
void machine_select(struct machine *m, const struct cgroups_config *c);
/* Reads everything once. The time stamp is that of the start. 0, or the errno of the counters: their values are
 * unchanged then. */
int machine_read(struct machine *m);
/* The latest time for machine_attend, CLOCK_MONOTONIC; UINT64_MAX = only when an event comes. */
uint64_t machine_due(const struct machine *m);
/* Call between readings. Handles the kernel's records about cgroups, and reads energy counters before they
 * wrap. events: one of the machine's descriptors is ready, and not only has the time come. */
void machine_attend(struct machine *m, uint64_t now_ns, bool events);
/* Call after the consumers took their snapshots. Forgets cgroups that have ended. */
void machine_sweep(struct machine *m);
/* Logs in one line what is measured here and what is not; the reasons, a line each, show with -v (summary.c). */
void machine_say_summary(const struct machine *m);
/* Logs warnings since the last call: those of opening, and those of the sources. */
void machine_say(struct machine *m);
/* Spans (spans_source.c): opens them if the configuration asks for processes or functions. Notes the kinds of spans
 * that are not available. */
void machine_open_spans(struct machine *m, const struct spans_config *c, const char *btf);
void machine_poll_spans(struct machine *m);
void machine_say_spans(struct machine *m);
/* After RAPL was opened: finds what RAPL lacks, with rapl: auto. 0 or -ENOMEM. */
int machine_find_sensors(struct machine *m, const struct energy_config *c, struct err *err);
/* True when nothing measures the CPUs' energy. */
bool machine_needs_estimate(const struct machine *m);
/* GPUs, meters and the wall (machine.c). Their threads start with the measuring thread. */
int machine_open_devices(struct machine *m, const struct machine_config *c, struct err *err);
int machine_start_devices(struct machine *m); /* 0 or -errno */
/* Group and set of the core events. It borrows from both arguments. */
struct event_group machine_core_events(struct machine *m, const struct machine_config *c);
/* Options of the switch program, the same for the agent and the doctor. They borrow from both arguments. */
struct counters_options machine_counters_options(struct machine *m, const struct machine_config *c);
void machine_note(struct machine *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void machine_close(struct machine *m); /* NULL accepted */

#endif
