/* SPDX-License-Identifier: Apache-2.0 */
/* A span: a process, from fork to exit, or a call of a probed function. A trace is the tree of spans below one root in
 * one cgroup. Sources make spans without energy, formula/span_energy adds it, and after that spans are const. */
#ifndef JD_SPAN_H
#define JD_SPAN_H
#include <stdbool.h>
#include <stdint.h>
#include "base/format/fields.h"
#include "schema.h"

#define SPAN_COMM_MAX 16 /* with NUL: TASK_COMM_LEN */
#define SPAN_PATH_MAX 1024 /* executable, symbol's binary: with NUL, cut from the left */
#define SPAN_CMDLINE_MAX 1024 /* arguments joined by blanks: with NUL, cut at the end */
#define SPAN_SYMBOL_MAX 256

enum span_kind { SPAN_PROCESS, SPAN_FUNCTION };
const char *span_kind_name(enum span_kind k); /* "process", "function" */

/* How a span ended. */
enum span_end {
	SPAN_EXITED, /* exit code; a function returned */
	SPAN_SIGNALED, /* killed by `signal` */
	SPAN_OOM, /* chosen by the OOM killer */
	SPAN_CUT, /* still running: a long-lived tree is cut every trace-period */
	SPAN_UNKNOWN, /* the end was not seen: lost record, longjmp, killed thread */
};
const char *span_end_name(enum span_end e); /* "exited", "signaled", "oom", "cut", "unknown" */

/* Identity: (pid, start_boot_ns) names a process on one boot, pids come back. `id` is made of both by
 * the source, unique on this boot, never 0; functions count on from a number of their own. */
struct span {
	uint64_t id, parent; /* parent 0: none in this trace */
	uint64_t process; /* function: id of the process it ran in; not kept on disk */
	enum span_kind kind;
	enum span_end end;
	uint32_t pid, tid, ns_pid; /* of the host; ns_pid = in its own pid namespace */
	uint32_t parent_pid; /* of the host, also where the parent is outside the trace */
	uint32_t uid;
	uint64_t start_boot_ns; /* task's start_boottime */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; in a trace not before its part, or the agent, began */
	int64_t start_real_ns; /* CLOCK_REALTIME of start_ns */
	uint64_t cgroup_id; /* at its last exec, or at its start where it made none */
	int exit_code, signal;
	bool moved; /* it ended in another cgroup */
	bool core_dumped, seen_running; /* seen_running: was there before the agent; start_ns is the process's own */
	uint64_t calls; /* function: calls this span stands for, 1 = one; processes 1 */
	uint64_t wall_ns; /* function: time inside, summed over its calls; processes 0 */
	uint64_t cpu_ns; /* own CPU time, threads included, children not */
	uint64_t minor_faults, major_faults, peak_rss_bytes;
	unsigned quality; /* of times and counts: PARTIAL, ESTIMATED (scaled by a probe's duty), LOST */
	unsigned n_domains; /* of energy_uj, in order of schema.domains; 0 = not yet known */
	unsigned energy_quality;
	uint64_t energy_uj[SCHEMA_MAX_DOMAINS];
	const char *comm; /* never NULL: "" = not known; valid as long as the span's owner says */
	const char *exe, *cmdline;
	const char *cgroup; /* path of cgroup_id */
	const char *symbol, *binary; /* function: name or "0x1234", file as configured */
};

/* The forms of a span's fields, without its energies: the parts of its JSON in their order (docs/formats/spans.md), and
 * the record of the spool (docs/formats/spool.md), an array by key. */
enum {
	SPAN_BEFORE_ENERGY = 1,
	SPAN_BEHIND_ENERGY = 2,
	SPAN_OF_FUNCTION = 4,
	SPAN_OF_PROCESS = 8,
	SPAN_OF_EXIT = 16, /* of a process that has an exit code */
	SPAN_RECORD = 32
};
#define SPAN_JSON (SPAN_RECORD - 1)
#define SPAN_RECORD_FIELDS 33
extern const struct fields span_fields;

/* One tree, ready to be sent. spans[0] is the root; a parent stands before its children, siblings by
 * start. All strings belong to the trace's owner. */
struct trace {
	uint8_t uuid[16]; /* random, of the tree and its part; the same on every try to send it */
	const char *sensor, *boot_id;
	unsigned n_domains;
	const char *const *domains; /* names, schema order */
	const char *const *interfaces; /* where each domain's energy is from: "powercap", "estimate" ... */
	uint32_t part; /* of a long-lived tree: 0 first, then 1 ...; spans in it that go on are SPAN_CUT */
	bool last; /* no further part follows */
	const char *pod, *pod_namespace, *container, *unit; /* naming of the root's cgroup; "" = none */
	uint32_t n_spans;
	struct span *spans;
};

/* The forms of a trace's fields, without those of its root and its domains. In the record they are texts. */
enum { TRACE_HEAD = 1, TRACE_NAMES = 2, TRACE_RECORD = 4 };
#define TRACE_JSON (TRACE_HEAD | TRACE_NAMES)
#define TRACE_RECORD_FIELDS 6
extern const struct fields trace_fields;

/* CPU time that a process of a cgroup used. */
struct span_use {
	uint64_t cgroup_id;
	uint64_t from_ns, until_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* used between them */
};

/* The energy of a span as one number: the sum over the domains of domain_names_summed. false = there is no domain. */
bool span_energy_uj(const struct trace *t, const struct span *s, uint64_t *ret);
/* The same sum over all spans of t. false = there is no domain. */
bool trace_energy_uj(const struct trace *t, uint64_t *ret);
/* The uuid of another part of the same tree. */
void trace_part_uuid(const struct trace *t, uint32_t part, uint8_t ret_uuid[16]);
/* Depth of nesting of spans[i], root 0. O(depth). */
unsigned trace_depth(const struct trace *t, uint32_t i);
/* Checks the rules above: root first, parents before children, ends not before starts, text bounded. Returns NULL, or
 * words for the broken rule. */
const char *trace_check(const struct trace *t);

#endif
