/* SPDX-License-Identifier: Apache-2.0 */
/* Births, renames and ends of cgroups: one walk at start, afterwards only the ring buffer of
 * bpf/lifecycle.bpf.c. Without BPF (trigger none) a walk per reading replaces the events. */
#ifndef JD_LIFECYCLE_SOURCE_H
#define JD_LIFECYCLE_SOURCE_H
#include "base/err.h"
#include "model/cgroup.h"
#include "hierarchy.h"

#define LIFECYCLE_REST_NS (20 * 1000000ull)
#define LIFECYCLE_LONGEST_REST_NS (80 * 1000000ull)

struct lifecycle;

struct lifecycle_hooks {
	/* A task that is running on `cpu` moved between cgroups: close that CPU's open interval now. */
	void (*task_moved)(void *ctx, unsigned cpu);
	void *ctx;
};

struct lifecycle_options {
	const struct hierarchy *hierarchy;
	struct cgroup_table *table; /* borrowed until lifecycle_close */
	bool bpf; /* events by the programs; otherwise a walk per reading */
	const char *btf; /* file with the kernel's type information; NULL = the kernel's own */
	struct lifecycle_hooks hooks; /* zeroed = none */
};

/* Loads and attaches the programs, then walks the mount into the table. */
int lifecycle_open(const struct lifecycle_options *o, struct lifecycle **ret, struct err *err);
int lifecycle_fd(const struct lifecycle *l); /* readable when lifecycle_poll is wanted; -1 without BPF */
/* From now on lifecycle_poll is wanted soon after a birth, too: at once after a quiet time, and LIFECYCLE_REST_NS apart
 * in a storm. Without BPF there is nothing to watch. */
void lifecycle_watch_births(struct lifecycle *l);
/* Called after lifecycle_poll and lifecycle_take: says whether a file is wanted to name one that was born. In a storm where none is, each rest
 * is twice as long as the one before, up to LIFECYCLE_LONGEST_REST_NS. The first that wants one ends that. */
void lifecycle_rest(struct lifecycle *l, bool file_wanted);
uint64_t lifecycle_due(const struct lifecycle *l); /* when it is wanted anyway, CLOCK_MONOTONIC; UINT64_MAX = never */
/* Takes all waiting records into the table. Number taken or -errno. */
int lifecycle_poll(struct lifecycle *l);
/* The same without a system call. lifecycle_fd stays readable where it was; the next poll finds nothing new then. For
 * readings, before which the descriptor was waited for in any case. */
int lifecycle_take(struct lifecycle *l);
uint64_t lifecycle_lost(const struct lifecycle *l); /* records that did not fit, cumulative */
/* Path of an id without a birth record (open_by_handle_at on the mount); adds it to the table, with an unresolved
 * entry "/?<id>" when the kernel does not know it any more. NULL only without memory. */
struct cgroup *lifecycle_resolve(struct lifecycle *l, uint64_t id);
void lifecycle_close(struct lifecycle *l);

#endif
