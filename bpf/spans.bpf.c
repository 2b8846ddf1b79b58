// SPDX-License-Identifier: GPL-2.0-only
/* Writes fork, exec and exit of processes into a ring buffer. One body has two entries per tracepoint as in
 * lifecycle.bpf.c. An end gives up to three records:
 * - when the last thread leaves (sched_process_exit, since 6.16 before the memory is given back);
 * - when the kernel notifies the parent (signal_generate in exit_notify: the moment that a waiting parent sees);
 * - when the dead task is freed (sched_process_free: the group's sums are final, kernel/exit.c __exit_signal,
 *   and equal what wait4 returns). */
#include "common.bpf.h"
#include "spans.h"
#include "spans_calls.bpf.h"

const volatile bool hierarchy_v1 = false;
const volatile bool functions = false;

__u64 lost_births, lost_ends; /* records that found the ring full */

#define SIGNAL_GROUP_EXIT 0x00000004 /* include/linux/sched/signal.h */

/* An exec record is built here and copied with its true length. Only the exec program uses it, and the kernel
 * never enters a program twice at a time on a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct jd_span_birth);
} scratch SEC(".maps");

static __always_inline u64 cgroup_of(struct task_struct *task)
{
	struct cgroup *cgrp = hierarchy_v1 ? task_cgroup_v1(task) : BPF_CORE_READ(task, cgroups, dfl_cgrp);

	return BPF_CORE_READ(cgrp, kn, id);
}

/* The process's number in its own pid namespace: the last of struct pid's numbers. */
static __always_inline u32 ns_pid_of(struct task_struct *leader)
{
	struct pid *pid = BPF_CORE_READ(leader, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	struct upid *last = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
			    (level & 63) * bpf_core_type_size(struct upid);

	return BPF_CORE_READ(last, nr);
}

static __always_inline void fill_head(struct jd_span_head *h, u32 kind, struct task_struct *leader)
{
	h->kind = kind;
	h->pid = BPF_CORE_READ(leader, tgid);
	h->start_boot_ns = BPF_CORE_READ(leader, start_boottime);
	h->mono_ns = bpf_ktime_get_ns();
}

static __always_inline void fill_birth(struct jd_span_birth *b, u32 kind, struct task_struct *leader)
{
	struct task_struct *parent = BPF_CORE_READ(leader, real_parent, group_leader);
	const struct cred *cred = BPF_CORE_READ(leader, real_cred);

	fill_head(&b->head, kind, leader);
	b->start_ns = BPF_CORE_READ(leader, start_time);
	b->cgroup_id = cgroup_of(leader);
	b->parent_pid = BPF_CORE_READ(parent, tgid);
	b->parent_start_boot_ns = BPF_CORE_READ(parent, start_boottime);
	b->ns_pid = ns_pid_of(leader);
	b->uid = BPF_CORE_READ(cred, uid.val);
	b->old_tid = b->head.pid;
	b->args_len = b->path_len = 0;
	bpf_probe_read_kernel_str(b->comm, sizeof(b->comm), &leader->comm);
}

static __always_inline int on_fork(struct task_struct *child)
{
	struct jd_span_birth *b;

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid) || (BPF_CORE_READ(child, flags) & PF_KTHREAD))
		return 0;
	b = bpf_ringbuf_reserve(&events, offsetof(struct jd_span_birth, text), 0);
	if (!b) {
		__sync_fetch_and_add(&lost_births, 1);
		return 0;
	}
	fill_birth(b, JD_SPAN_FORK, child);
	bpf_ringbuf_submit(b, spans_wake());
	return 0;
}

/* Reads the arguments from the new program's memory, where the kernel has just written them. */
static __always_inline u32 read_args(struct jd_span_birth *b, struct task_struct *task)
{
	unsigned long start = BPF_CORE_READ(task, mm, arg_start), end = BPF_CORE_READ(task, mm, arg_end);
	u64 n = end - start;

	if (end < start)
		return 0;
	if (n > JD_SPAN_ARGS - 1)
		n = JD_SPAN_ARGS - 1;
	n &= JD_SPAN_ARGS - 1;
	return bpf_probe_read_user(b->text, n, (const void *)start) ? 0 : n;
}

static __always_inline int on_exec(struct task_struct *task, u32 old_tid, struct linux_binprm *bprm)
{
	u32 zero = 0, args;
	struct jd_span_birth *b = bpf_map_lookup_elem(&scratch, &zero);
	long path;
	u64 size;

	if (functions)
		close_thread(task, old_tid);
	if (!b)
		return 0;
	fill_birth(b, JD_SPAN_EXEC, task);
	b->old_tid = old_tid;
	args = read_args(b, task) & (JD_SPAN_ARGS - 1);
	b->args_len = args;
	path = bpf_probe_read_kernel_str(b->text + args, JD_SPAN_PATH, BPF_CORE_READ(bprm, filename));
	if (path < 0 || path > JD_SPAN_PATH)
		path = 0;
	b->path_len = path;
	size = offsetof(struct jd_span_birth, text) + args + path;
	if (size > sizeof(*b))
		return 0;
	if (bpf_ringbuf_output(&events, b, size, spans_wake()))
		__sync_fetch_and_add(&lost_births, 1);
	return 0;
}

/* Adds the threads that still run their last steps: the group's sum does not contain them yet. */
static __always_inline void add_threads(struct jd_span_exit *x, struct signal_struct *signal)
{
	struct list_head *head = thread_list(signal);
	struct list_head *node = BPF_CORE_READ(head, next);

	for (int i = 0; i < JD_SPAN_THREADS; i++) {
		if (!node || node == head)
			break;
		struct task_struct *t = thread_at(node);

		x->cpu_ns += BPF_CORE_READ(t, se.sum_exec_runtime);
		x->minor_faults += BPF_CORE_READ(t, min_flt);
		x->major_faults += BPF_CORE_READ(t, maj_flt);
		node = BPF_CORE_READ(node, next);
	}
}

static __always_inline void fill_exit(struct jd_span_exit *x, struct task_struct *leader, struct signal_struct *signal)
{
	x->cgroup_id = cgroup_of(leader);
	x->cpu_ns = BPF_CORE_READ(signal, sum_sched_runtime);
	x->minor_faults = BPF_CORE_READ(signal, min_flt);
	x->major_faults = BPF_CORE_READ(signal, maj_flt);
	x->peak_rss_pages = BPF_CORE_READ(signal, maxrss);
	/* as wait_task_zombie() in kernel/exit.c */
	x->status = BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT ? BPF_CORE_READ(signal, group_exit_code) :
								       BPF_CORE_READ(leader, exit_code);
	x->flags = BPF_CORE_READ(signal, oom_mm) ? JD_SPAN_OOM : 0;
	bpf_probe_read_kernel_str(x->comm, sizeof(x->comm), &leader->comm);
}

static __always_inline struct jd_span_exit *exit_record(u32 kind, struct task_struct *leader)
{
	struct jd_span_exit *x = bpf_ringbuf_reserve(&events, sizeof(*x), 0);

	if (!x) {
		__sync_fetch_and_add(&lost_ends, 1);
		return NULL;
	}
	fill_head(&x->head, kind, leader);
	fill_exit(x, leader, BPF_CORE_READ(leader, signal));
	return x;
}

static __always_inline bool group_is_dead(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, live.counter) <= 0;
}

/* Two threads may both see themselves as the last; the second record then repeats the first. */
static __always_inline int on_exit(struct task_struct *task)
{
	struct task_struct *leader;
	struct jd_span_exit *x;

	if (functions)
		close_thread(task, BPF_CORE_READ(task, pid));
	if ((BPF_CORE_READ(task, flags) & PF_KTHREAD) || !group_is_dead(task))
		return 0;
	leader = BPF_CORE_READ(task, group_leader);
	x = exit_record(JD_SPAN_EXIT, leader);
	if (!x)
		return 0;
	add_threads(x, BPF_CORE_READ(task, signal));
	bpf_ringbuf_submit(x, spans_wake());
	return 0;
}

/* Any signal that a dead group's last thread sends is the notification of its parent. Its figures replace those of
 * the free where that record does not come; they lack the thread's use since the scheduler's last update. */
static __always_inline int on_signal(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct jd_span_exit *x;

	if (!(BPF_CORE_READ(task, flags) & PF_EXITING) || !group_is_dead(task))
		return 0;
	x = exit_record(JD_SPAN_NOTIFIED, BPF_CORE_READ(task, group_leader));
	if (!x)
		return 0;
	add_threads(x, BPF_CORE_READ(task, signal));
	bpf_ringbuf_submit(x, spans_wake());
	return 0;
}

static __always_inline int on_free(struct task_struct *task)
{
	struct jd_span_exit *x;

	if (BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid) || (BPF_CORE_READ(task, flags) & PF_KTHREAD))
		return 0;
	x = exit_record(JD_SPAN_FREE, task);
	if (x)
		bpf_ringbuf_submit(x, spans_wake());
	return 0;
}

BPF_ENTRIES(fork, "sched_process_fork", on_fork(child), struct task_struct *parent, struct task_struct *child)

BPF_ENTRIES(exec, "sched_process_exec", on_exec(task, old_pid, bprm), struct task_struct *task, pid_t old_pid,
	    struct linux_binprm *bprm)

BPF_ENTRIES(exit, "sched_process_exit", on_exit(task), struct task_struct *task)

BPF_ENTRIES(signal, "signal_generate", on_signal())

BPF_ENTRIES(free, "sched_process_free", on_free(task), struct task_struct *task)
