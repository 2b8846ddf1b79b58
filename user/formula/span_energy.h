/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of spans: a span pays for its CPU time at the rate of its cgroup, energy per CPU second, in the intervals
 * it overlaps. A cgroup's energy is kept per interval. Each span takes its part away, so the spans of a cgroup never
 * get more than the cgroup had, whatever CPU time they claim. The rest stays with the cgroup. Intervals between two
 * looks at the living processes are joined to one slot, so that the use of these processes lies in one slot; the
 * last SPAN_SLOTS of them are kept. Memory is bounded by cgroups, reused, and not allocated while the same cgroups
 * run. Pure: no clock, no I/O. */
#ifndef JD_SPAN_ENERGY_H
#define JD_SPAN_ENERGY_H
#include "model/snapshot.h"
#include "model/span.h"

#define SPAN_SLOTS 40 /* a span whose end is told later gets nothing */

struct span_energy;

/* max_cgroups with time at once; those beyond have no energy for their spans. NULL = no memory. */
struct span_energy *span_energy_new(const struct schema *s, uint32_t max_cgroups);
void span_energy_free(struct span_energy *e); /* NULL accepted */
/* The next interval, with its energy columns. */
void span_energy_add(struct span_energy *e, const struct snapshot *s);
/* The next interval begins a slot. */
void span_energy_cut(struct span_energy *e);
/* End of the last interval. */
uint64_t span_energy_until(const struct span_energy *e);
/* Pays for a use: adds to energy_uj (schema order), and adds the quality of the intervals to *quality. Returns the
 * CPU time for which no energy was left. */
uint64_t span_energy_take(struct span_energy *e, const struct span_use *u, uint64_t *energy_uj, unsigned *quality);

#endif
