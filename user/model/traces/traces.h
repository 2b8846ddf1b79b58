/* SPDX-License-Identifier: Apache-2.0 */
/* Finished spans put together to traces. A trace is a tree per root process of a cgroup: a process whose parent is in
 * another cgroup or is no longer known. Its descendants in the same cgroup are below it, calls of functions below their
 * process. A tree is handed over when its last process has ended. One that lives longer is cut every period: the part
 * is handed over with its living processes marked SPAN_CUT, and the next part goes on with times, CPU time and energy
 * that begin at the cut. Children of a root that ended become roots of their own then.
 *
 * Energy: each process takes energy for its CPU time between two sweeps (charge). A function gets a share of its
 * process's energy by CPU time, without that of functions it called; the rest stays with the process. So spans of one
 * trace never count anything twice.
 *
 * Bounded: spans held, spans per part. Nothing here blocks. The cost of a sweep grows with the spans that live and that
 * have ended. */
#ifndef JD_TRACES_H
#define JD_TRACES_H
#include <stddef.h>
#include "model/cgroup.h"
#include "model/span.h"

struct traces;

struct traces_options {
	const struct schema *schema; /* outlives all traces: they point to its names */
	const struct cgroup_table *cgroups; /* paths and names of cgroups; NULL = those of the spans alone */
	uint64_t period_ns; /* 0 = 10 min */
	uint32_t max_spans; /* held at once; 0 = 32768 */
	uint32_t part_spans; /* a tree where more have ended is cut; 0 = 1024 */
	/* Adds the energy of a use to energy_uj (schema order) and its quality to *quality. Returns the CPU time for
	 * which there was no energy. */
	uint64_t (*charge)(void *ctx, const struct span_use *use, uint64_t *energy_uj, unsigned *quality);
	/* A trace is ready: one piece of memory, the callee's to free(). */
	void (*ready)(void *ctx, struct trace *t);
	void *ctx;
};

struct traces_stats {
	uint64_t traces; /* handed over, parts too */
	uint64_t cut; /* of these, parts that are not the last */
	uint64_t spans; /* in them */
	uint64_t lost_spans; /* found no room, or no memory */
	uint32_t held, trees; /* now */
	uint64_t open_uj; /* energy of the spans held, as span_energy_uj, at the last sweep */
};

struct traces *traces_new(const struct traces_options *o); /* NULL = no memory */
void traces_free(struct traces *t); /* spans that are held are dropped; NULL accepted */
/* A finished span, as the source hands it over. Copied. */
void traces_finished(struct traces *t, const struct span *s);
/* A sweep: begin, known for each process that lives (SPAN_CUT) or has ended but was not handed over yet, end. Energy is
 * known up to until_ns. All that is known of processes must have been told before traces_end. all: every tree is
 * cut. */
void traces_begin(struct traces *t, uint64_t now_ns, uint64_t until_ns, bool all);
void traces_known(struct traces *t, const struct span *s);
void traces_end(struct traces *t);
struct traces_stats traces_figures(const struct traces *t);

#endif
