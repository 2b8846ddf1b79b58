/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Records of bpf/spans.bpf.c and bpf/spans_func.bpf.c: fork, exec and exit of processes, and calls of probed functions.
 * (pid, start_boot_ns) identifies a process; pid is the host's number of the thread group. */
#ifndef JOULED_SPANS_H
#define JOULED_SPANS_H

#define JD_SPAN_COMM 16 /* TASK_COMM_LEN */
#define JD_SPAN_ARGS 1024 /* power of two; at most one byte less of the command line is kept */
#define JD_SPAN_PATH 1024
#define JD_SPAN_THREADS 32 /* threads of a dying group whose times are added one by one */

enum jd_span_kind {
	JD_SPAN_FORK = 1, /* jd_span_birth without text */
	JD_SPAN_EXEC, /* jd_span_birth with text */
	JD_SPAN_EXIT, /* jd_span_exit: the last thread exits */
	JD_SPAN_NOTIFIED, /* jd_span_exit: the parent was notified, memory and files are released */
	JD_SPAN_FREE, /* jd_span_exit: reaped, all figures are final */
	JD_SPAN_CALL, /* jd_span_call */
};

enum jd_span_flag {
	JD_SPAN_OOM = 1, /* the OOM killer chose it */
	JD_SPAN_PARTIAL = 2, /* no return was seen */
	JD_SPAN_CPU_COARSE = 4, /* it left its CPU: its CPU time is as of the scheduler's last update */
};

struct jd_span_head {
	__u32 kind;
	__u32 pid;
	__u64 start_boot_ns;
	__u64 mono_ns; /* of the record */
};

/* The record has offsetof(text) + args_len + path_len bytes. */
struct jd_span_birth {
	struct jd_span_head head;
	__u64 start_ns; /* CLOCK_MONOTONIC */
	__u64 cgroup_id;
	__u64 parent_start_boot_ns;
	__u32 parent_pid;
	__u32 ns_pid;
	__u32 uid;
	__u32 old_tid; /* exec: tid of the thread that called it */
	__u32 args_len; /* arguments, a NUL after each; may be cut */
	__u32 path_len; /* as given to exec, with its NUL */
	char comm[JD_SPAN_COMM];
	char text[JD_SPAN_ARGS + JD_SPAN_PATH];
};

struct jd_span_exit {
	struct jd_span_head head;
	__u64 cgroup_id;
	__u64 cpu_ns; /* of all its threads, dead ones too */
	__u64 minor_faults, major_faults;
	__u64 peak_rss_pages;
	__u32 status; /* as of wait(2) */
	__u32 flags;
	char comm[JD_SPAN_COMM];
};

struct jd_span_call {
	struct jd_span_head head; /* mono_ns = end of the call */
	__u64 start_ns;
	__u64 cpu_ns;
	__u64 id, parent; /* parent 0: no parent call with a record of its own */
	__u32 tid;
	__u32 func;
	__u32 flags;
	__u32 pad;
};

/* Key of calls without records of their own: process, function and the calling function. */
struct jd_call_key {
	__u64 start_boot_ns;
	__u32 pid;
	__u16 func;
	__u16 parent_func; /* JD_NO_FUNC: none */
};

struct jd_call_sum {
	__u64 calls, wall_ns, cpu_ns;
	__u64 min_start_ns, max_end_ns;
	__u64 partial; /* calls with JD_SPAN_PARTIAL */
	__u64 coarse; /* calls with JD_SPAN_CPU_COARSE */
};

#define JD_NO_FUNC 0xffff
#define JD_MAX_FUNCS 64
#define JD_CALL_DEPTH 16 /* power of two: nested calls of probed functions per thread */
#define JD_CALL_THREADS 16384
#define JD_CALL_SUMS 8192

struct jd_frame {
	__u64 sp, start_ns, cpu_ns, id;
	__u64 switches;
	__u32 func, epoch;
};

struct jd_call_stack {
	__u64 depth;
	struct jd_frame frames[JD_CALL_DEPTH];
};

/* One per function; both the programs and user space write it. */
struct jd_func_state {
	__u64 entries; /* calls that trapped */
	__u64 unpaired; /* frames of an earlier attachment: dropped */
	__u64 too_deep; /* calls nested in JD_CALL_DEPTH others, or without room for their thread */
	__u64 lost; /* calls that found ring or sums full */
	__s64 singles; /* calls that may still get a record of their own, until user space allows more */
	__u32 epoch; /* +1 with every attachment */
	__u32 armed; /* both probes are attached */
};

_Static_assert(sizeof(struct jd_span_head) == 24, "span head layout");
_Static_assert(sizeof(struct jd_span_birth) == 88 + JD_SPAN_ARGS + JD_SPAN_PATH, "span birth layout");
_Static_assert(sizeof(struct jd_span_exit) == 88, "span exit layout");
_Static_assert(sizeof(struct jd_span_call) == 72, "span call layout");
_Static_assert(sizeof(struct jd_call_key) == 16, "call key layout");
_Static_assert(sizeof(struct jd_call_sum) == 56, "call sum layout");
_Static_assert(sizeof(struct jd_frame) == 48, "frame layout");
_Static_assert(sizeof(struct jd_func_state) == 48, "function state layout");

#endif
