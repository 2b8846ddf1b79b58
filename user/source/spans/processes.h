/* SPDX-License-Identifier: Apache-2.0 */
/* State of the spans source. spans.c owns it; events_ring.c loads the programs and takes their records; processes.c
 * keeps the processes, and finds those from before the agent; calls.c takes calls. Functions are in probes.h. */
#ifndef JD_PROCESSES_H
#define JD_PROCESSES_H
#include <linux/types.h>
#include <pthread.h>
#include "base/clock.h"
#include "base/hash.h"
#include "spans.h"
#include <spans.h> /* include/, not the one beside this file */

struct ring_buffer;
struct spans_bpf;
struct spans_func_bpf;
struct spans_functions;

#define SPANS_TICK_NS 10000000ull /* of start times in /proc/PID/stat: 1 / USER_HZ */

/* Text that a process shares with those it forked. */
struct span_text {
	uint32_t users;
	uint32_t cmdline_at; /* of text; 0.. is the executable */
	char text[];
};

struct process {
	uint32_t pid, parent_pid, ns_pid, uid;
	uint64_t start_boot_ns; /* of a scanned one: whole ticks until the kernel tells more */
	uint64_t id, parent_id;
	uint64_t start_ns, end_ns;
	uint64_t cgroup_id;
	struct process *next_free;
	struct process *older, *newer; /* among those that have ended */
	struct span_text *text;
	char comm[SPAN_COMM_MAX];
	struct jd_span_exit end; /* valid when ended */
	uint64_t freed_flip; /* flips of the banks of calls when it was freed */
	bool scanned; /* start_boot_ns is as coarse as /proc */
	bool used; /* false: on the free list */
	bool was_there; /* before the agent */
	bool ended, notified, freed;
	bool zombie; /* it was not reaped, and uses nothing more */
	bool end_late; /* only the last record of its end came */
	bool vanished; /* no record of its end came */
	bool moved; /* ended in another cgroup */
};

struct process_table {
	struct process *all;
	uint32_t max, n_all; /* room; entries that were ever used */
	struct process *free_list;
	struct hash by_pid;
	struct process *first_ended, *last_ended;
};

struct spans {
	const struct fsroot *root; /* borrowed */
	const struct hierarchy *hierarchy;
	const struct cgroup_table *cgroups;
	void (*finished)(void *ctx, const struct span *s);
	void *ctx;
	struct process_table table;
	struct spans_bpf *skel;
	struct ring_buffer *ring;
	struct spans_functions *functions; /* NULL = none */
	struct spans_stats stats;
	uint64_t page_bytes;
	uint64_t flips; /* of the banks of calls */
	uint64_t lost_seen; /* lost records that were looked into */
	unsigned taken; /* records of the current poll */
};

/* CLOCK_BOOTTIME less CLOCK_MONOTONIC: the time that the machine has been suspended. */
static inline uint64_t asleep_ns(void)
{
	uint64_t mono = clock_mono_ns(), boot = clock_boot_ns();

	return boot - mono; /* read in this order: never negative */
}

/* CLOCK_REALTIME of a CLOCK_MONOTONIC time; a record may claim any. */
static inline int64_t real_of(uint64_t mono_ns)
{
	return (int64_t)((uint64_t)clock_real_ns() - (clock_mono_ns() - mono_ns));
}

/* events_ring.c */
int spans_bpf_open(struct spans *s, const struct spans_options *o, struct err *err);
uint64_t spans_bpf_lost(const struct spans *s); /* records that found the ring full */
void spans_bpf_close(struct spans *s);

/* processes.c */
int process_table_init(struct process_table *t, uint32_t max);
void process_table_free(struct process_table *t);
/* The living process with this number, not one that has ended. start_boot_ns 0 = any. NULL = unknown. */
struct process *process_find(const struct process_table *t, uint32_t pid, uint64_t start_boot_ns);
/* NULL = the table is full. Everything else of the entry is zero. */
struct process *process_add(struct process_table *t, uint32_t pid, uint64_t start_boot_ns);
void process_remove(struct process_table *t, struct process *p);
/* The one after p, first NULL; NULL at the end. The one at hand may be removed. */
struct process *process_next(const struct process_table *t, const struct process *p);
void process_mark_ended(struct process_table *t, struct process *p);
/* Replaces what p has; without memory p keeps none. n_args bytes with NULs between the arguments. */
void process_set_text(struct process *p, const char *exe, size_t n_exe, const char *args, size_t n_args);
void process_share_text(struct process *p, const struct process *from);
uint64_t process_span_id(uint32_t pid, uint64_t start_boot_ns);

/* events_ring.c: one record of n bytes, for ring_buffer__new; hostile lengths are refused. */
int spans_record(void *ctx, void *data, size_t n);
/* Hands over processes whose figures are final, or that ended long enough ago. */
void spans_settle(struct spans *s, uint64_t now_ns);
/* After a loss of records: ends processes that the kernel does not know any more. */
void spans_check_living(struct spans *s, uint64_t now_ns);
/* CPU time of a living thread group; false = there is none. */
bool process_cpu_time(uint32_t pid, uint64_t *ret_ns);
/* A living or dead process as a span. */
void spans_fill(const struct spans *s, const struct process *p, struct span *ret);

/* processes.c: processes that were there before the programs. 0 or -errno. */
int spans_scan(struct spans *s);
/* Executable of a living process whose path exec did not give in full; ret untouched when it is not known. */
void spans_read_exe(const struct spans *s, uint32_t pid, char ret_path[SPAN_PATH_MAX]);

/* calls.c */
void spans_take_call(struct spans *s, const struct jd_span_call *c);
/* Sums of the bank that rested since the last call, as spans; then the banks change places. */
void spans_take_sums(struct spans *s, uint64_t now_ns);

/* probes.c: NULL functions = nothing to do, for all of them. */
int spans_functions_open(struct spans *s, const struct spans_options *o, struct err *err);
/* A program was started: it may be a container's copy of a configured one. */
void spans_functions_exec(struct spans *s, uint32_t pid);
bool spans_functions_warning(struct spans *s, char *ret_text, size_t size);
void spans_functions_stats(const struct spans *s, struct spans_stats *ret);
void spans_functions_close(struct spans *s);

#endif
