/* SPDX-License-Identifier: Apache-2.0 */
/* Spans: lives of processes from fork to exit, and calls of probed functions. Records of bpf/spans.bpf.c come
 * through a ring buffer; processes that were there before are read from /proc once. Finished spans are handed over
 * one by one, without energy.
 *
 * * A process is finished when the kernel has closed its books (it was reaped), or SPANS_LINGER_NS after its end
 * where nobody reaps it. Where the last record of its end does not come within 5 s, quality is estimated (CPU time
 * as of the parent's notification, some microseconds less). Without that record too it is partial. Spans of
 * functions come before that of their process. */
#ifndef JD_SPANS_SOURCE_H
#define JD_SPANS_SOURCE_H
#include <stddef.h>
#include "base/err.h"
#include "base/fsroot.h"
#include "model/cgroup.h"
#include "model/span.h"
#include "source/cgroup/hierarchy.h"

struct spans;

#define SPANS_LINGER_NS 2000000000ull
#define SPANS_MAX_FUNCTIONS 64

/* symbol: a name, or "0x1234" = offset in the file. */
struct span_function {
	const char *binary, *symbol;
};

struct spans_options {
	const struct fsroot *root;
	const struct hierarchy *hierarchy;
	const struct cgroup_table *table; /* gives paths of cgroups; NULL = spans have none. Borrowed */
	const char *btf; /* file for CO-RE or NULL */
	uint32_t max_processes; /* alive at once; 0 = 16384 */
	const struct span_function *functions; /* copied */
	unsigned n_functions; /* at most SPANS_MAX_FUNCTIONS */
	double budget; /* share of one CPU that each function's probe may cost; 0 = 0.01 */
	unsigned probe_kind; /* of enum probe_kind, the first kind that is tried; for tests */
	/* Every finished span, from spans_poll. Its text is valid during the call only. */
	void (*finished)(void *ctx, const struct span *s);
	void *ctx;
};

struct spans_stats {
	uint64_t processes, calls; /* finished spans; calls: those they stand for */
	uint32_t live; /* processes in the table now */
	uint64_t lost_records; /* found the ring full: births, ends, single calls */
	uint64_t lost_processes; /* found the table full */
	uint64_t lost_calls; /* no room for their sums, nested too deep, or open when their probe went */
	uint64_t open_books; /* finished without the last record of their end */
	uint64_t unseen_births; /* processes first seen at their exec or end */
	uint64_t probed_calls; /* that trapped */
	uint64_t call_cost_ns; /* of one call that is probed, as measured at open; 0 = no functions */
	uint64_t attachments; /* of function probes, re-attachments too */
	uint64_t poll_ns; /* CPU time spent in spans_poll */
};

/* Loads, attaches, then scans; returns 0 or -errno. Functions that cannot be probed now (no such file or symbol) do
 * not fail it: spans_next_warning tells. */
int spans_open(const struct spans_options *o, struct spans **ret, struct err *err);
/* Starts the thread that attaches probes to programs that start later. Call it after capabilities were given up, so
 * that the thread has no more than the others. 0 or -errno; NULL accepted. */
int spans_start(struct spans *s);
int spans_fd(const struct spans *s); /* becomes readable when the ring fills up between polls */
/* Takes the kernel's records and hands over finished spans. Bounded: at most what the ring holds. Number of records
 * or -errno. */
int spans_poll(struct spans *s);
/* Each process that is alive, as a span with end SPAN_CUT at now_ns and the CPU time of its thread group up to now
 * (one clock_gettime a process). Times that cannot be read any more are of quality STALE. */
void spans_live(struct spans *s, uint64_t now_ns, void (*each)(void *ctx, const struct span *s), void *ctx);
/* Each process that has ended and was not handed over yet. */
void spans_ending(const struct spans *s, void (*each)(void *ctx, const struct span *s), void *ctx);
void spans_stats(const struct spans *s, struct spans_stats *ret);
/* One warning at a time, each told once; false = none is left. */
bool spans_next_warning(struct spans *s, char *ret_text, size_t size);
void spans_close(struct spans *s); /* NULL accepted */

#endif
