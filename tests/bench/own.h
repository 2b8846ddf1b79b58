/* SPDX-License-Identifier: Apache-2.0 */
/* jouled's own counters program through the public interface of its source. */
#ifndef JD_BENCH_OWN_H
#define JD_BENCH_OWN_H
#include "bench.h"
#include "model/cgroup.h"
#include "model/reading.h"
#include "source/counters/counters.h"
#include "source/counters/events.h"

#define OWN_MAX_PROGS 4

struct own {
	struct program p;
	struct fsroot *root;
	struct hierarchy *hierarchy;
	struct perf_seam seam;
	struct event_variants core[SCHEMA_MAX_EVENTS], msr[SCHEMA_MAX_MSR];
	struct schema schema;
	struct counters *counters;
	struct cgroup_table *table;
	struct lifecycle *lifecycle;
	struct reading reading;
	uint64_t open_ns; /* what counters_open took */
	int prog_fds[OWN_MAX_PROGS];
	unsigned n_progs;
};

/* n_events times msr/tsc/. Exits with a message on failure. */
struct own *own_open(unsigned n_events, uint64_t max_cgroups);
/* Adds the table of cgroups and a reading, so that counters_read can be called. */
void own_prepare_reading(struct own *o, bool bpf_lifecycle);
void own_read(struct own *o);
/* For limit programs: adds what a bank's rows hold to as many words from `to` on, and returns their number. No reading of
 * what other CPUs wrote does less. */
size_t own_add_bank(const struct own *o, unsigned cpu, unsigned bank, uint64_t *to);

#endif
