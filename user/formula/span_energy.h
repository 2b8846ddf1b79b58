/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of spans: a span pays for its CPU time at the rate of its cgroup, energy per CPU second, in the
 * intervals it overlaps. What a cgroup has is kept per interval and taken away as spans pay with it, so that the
 * spans of a cgroup never get more than the cgroup had, whatever they claim; what is left stays with the
 * cgroup. Intervals are joined to slots, between two looks at the living processes, so that what these used lies
 * in one slot; the last SPAN_SLOTS of them are kept. Memory is bounded by cgroups, reused, and not allocated while the
 * same cgroups run. Pure: no clock, no I/O. */
#ifndef JD_SPAN_ENERGY_H
#define JD_SPAN_ENERGY_H
#include "../model/snapshot.h"

#define SPAN_SLOTS 40 /* spans whose end is told later than that get nothing */

struct span_energy;

struct span_use {
	uint64_t cgroup_id;
	uint64_t from_ns, until_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* used between them */
};

/* max_cgroups with time at once; those beyond have no energy for their spans. NULL = no memory. */
struct span_energy *span_energy_new(const struct schema *s, uint32_t max_cgroups);
void span_energy_free(struct span_energy *e); /* NULL accepted */
/* The next interval, with its energy columns. */
void span_energy_add(struct span_energy *e, const struct snapshot *s);
/* The next interval begins a slot. */
void span_energy_cut(struct span_energy *e);
/* End of the last interval. */
uint64_t span_energy_until(const struct span_energy *e);
/* Pays for a use: adds to energy_uj (schema order) and to *quality that of the intervals. Returns the CPU time
 * that nothing was left for. */
uint64_t span_energy_take(struct span_energy *e, const struct span_use *u, uint64_t *energy_uj, unsigned *quality);

#endif
