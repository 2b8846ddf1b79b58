/* SPDX-License-Identifier: Apache-2.0 */
/* Births, renames and ends of cgroups: one walk at start, afterwards only the ring buffer of
 * bpf/lifecycle.bpf.c. Without BPF (trigger none) a walk per reading replaces the events. */
#ifndef JD_LIFECYCLE_SOURCE_H
#define JD_LIFECYCLE_SOURCE_H
#include "../base/err.h"
#include "../model/cgroup.h"
#include "hierarchy.h"

struct lifecycle;

struct lifecycle_hooks {
	/* A task that is running on `cpu` moved between cgroups: close that CPU's open interval now. */
	void (*task_moved)(void *ctx, unsigned cpu);
	void *ctx;
};

/* Loads and attaches (bpf true), then walks the mount into table. btf: file for CO-RE or NULL. */
int lifecycle_open(const struct hierarchy *h, bool bpf, const char *btf, struct cgroup_table *table,
		   const struct lifecycle_hooks *hooks, struct lifecycle **ret, struct err *err);
int lifecycle_fd(const struct lifecycle *l); /* becomes readable when records wait; -1 without BPF */
/* Takes all waiting records into the table. Number taken or -errno. */
int lifecycle_poll(struct lifecycle *l);
uint64_t lifecycle_lost(const struct lifecycle *l); /* records that did not fit, cumulative */
/* Path of an id nobody announced (open_by_handle_at on the mount); adds it to the table, with an
 * unresolved entry "/?<id>" when the kernel does not know it any more. NULL only without memory. */
struct cgroup *lifecycle_resolve(struct lifecycle *l, uint64_t id);
void lifecycle_close(struct lifecycle *l);

#endif
