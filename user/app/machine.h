/* SPDX-License-Identifier: Apache-2.0 */
/* All sources of one machine behind one reading. Opened by the main thread, read by the measuring
 * thread alone. What a machine lacks is degraded by name: one warning each, then it goes on. */
#ifndef JD_MACHINE_H
#define JD_MACHINE_H
#include "../base/buf.h"
#include "../base/err.h"
#include "../base/fsroot.h"
#include "../model/cgroup.h"
#include "../model/config.h"
#include "../model/reading.h"
#include "../source/counters.h"
#include "../source/cpufreq.h"
#include "../source/energy.h"
#include "../source/events.h"
#include "../source/gpu.h"
#include "../source/hierarchy.h"
#include "../source/host.h"
#include "../source/lifecycle.h"
#include "../source/meter.h"
#include "../source/kubelet.h"
#include "../source/naming.h"
#include "../source/network.h"
#include "../source/spans.h"

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
	struct counters *counters; /* or */
	struct cpustat *cpustat; /* trigger none */
	struct rapl *rapl;
	struct estimate *estimate;
	struct host *host; /* a virtual machine's: NULL = not asked for */
	struct network *network;
	struct naming *naming; /* NULL: cgroups.names off */
	struct spans *spans; /* NULL: nobody asked for spans */
	void (*span_finished)(void *ctx, const struct span *s); /* who takes them; NULL = they are dropped */
	void *span_ctx;
	struct spans_stats spans_said; /* losses of spans that were told about */
	struct gpus *gpus; /* NULL: none, or not asked */
	struct meters *meters; /* NULL: none */
	struct cpufreq *cpufreq; /* read for the snapshots of outputs that ask */
	struct reading reading;
	uint8_t *online; /* bitmap as last told to the energy sources */
	uint64_t rapl_due_ns; /* CLOCK_MONOTONIC; UINT64_MAX = never */
	int failed_reads; /* counters, in a row */
	uint64_t max_cgroups; /* cgroups.max */
	int jump_fd; /* readable after a sleep; negative = there is none */
	uint64_t usual_gap_ns; /* between energy and the last CPU's counters, smoothed */
	uint64_t previous_ns; /* start of the reading before the last one */
	uint64_t churn; /* lifecycle records since the last reading */
	struct losses said; /* losses that were told about */
	struct buf notes; /* warnings of opening, NUL-terminated each: said once it has worked */
};

/* Root and perf seam only: enough to look around. */
int machine_enter(const struct config *c, struct machine **ret, struct err *err);
/* Topology and events. -EINVAL and -E2BIG are the configuration's fault. */
int machine_look(struct machine *m, const struct config *c, struct err *err);
/* The rest. The lists of c that select cgroups are borrowed until machine_select. */
int machine_open(struct machine *m, const struct config *c, struct err *err);
void machine_select(struct machine *m, const struct config *c);
/* One reading of everything, stamped when it begins. 0, or the errno of the counters, which then
 * stand where they were. */
int machine_read(struct machine *m);
/* Between readings: what the kernel told about cgroups, and energy counters before they wrap. */
void machine_attend(struct machine *m, uint64_t now_ns);
/* After the consumers took their snapshots: forgets cgroups that have ended. */
void machine_sweep(struct machine *m);
/* Warnings since the last call, to the log: those of opening, and what the sources met. */
void machine_say(struct machine *m);
/* Spans (machine_spans.c): opened where the configuration asks for processes or functions; what cannot be had is
 * noted. */
void machine_open_spans(struct machine *m, const struct config *c);
void machine_poll_spans(struct machine *m);
void machine_say_spans(struct machine *m);
/* GPUs and meters (machine_devices.c): their threads begin with the measuring one. */
int machine_open_devices(struct machine *m, const struct config *c, struct err *err);
int machine_start_devices(struct machine *m); /* 0 or -errno */
void machine_read_devices(struct machine *m);
void machine_say_devices(struct machine *m);
void machine_close_devices(struct machine *m);
void machine_note(struct machine *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void machine_close(struct machine *m); /* NULL accepted */

#endif
