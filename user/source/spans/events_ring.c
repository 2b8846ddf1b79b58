// SPDX-License-Identifier: Apache-2.0
/* Loading of bpf/spans.bpf.c: the same programs as tp_btf or, where those are refused, raw_tp. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include "source/bpf_load.h"
#include "spans.skel.h"
#include "processes.h"

/* Without functions, their maps shrink to one entry. */
static void set_sizes(struct spans_bpf *skel, bool functions)
{
	if (functions)
		return;
	bpf_map__set_max_entries(skel->maps.stacks, 1);
	bpf_map__set_max_entries(skel->maps.sums_even, 1);
	bpf_map__set_max_entries(skel->maps.sums_odd, 1);
}

struct load_request {
	struct spans *s;
	const struct spans_options *o;
};

static int attempt(void *ctx, bool tp_btf)
{
	const struct load_request *q = ctx;
	const struct spans_options *o = q->o;
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = o->btf);
	struct spans_bpf *skel = spans_bpf__open_opts(&opts);
	int rc;

	if (!skel)
		return -errno;
	skel->rodata->hierarchy_v1 = !o->hierarchy->v2;
	skel->rodata->functions = o->n_functions != 0;
	set_sizes(skel, o->n_functions != 0);
	bpf_choose_entries(skel->obj, tp_btf);
	rc = bpf_load_attach(skel->skeleton);
	if (rc) {
		spans_bpf__destroy(skel);
		return rc;
	}
	q->s->skel = skel;
	return 0;
}

int spans_bpf_open(struct spans *s, const struct spans_options *o, struct err *err)
{
	struct load_request q = { .s = s, .o = o };
	int rc;

	bpf_log_begin();
	rc = bpf_load_entries(attempt, &q);
	if (rc)
		goto out;
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.events), spans_record, s, NULL);
	rc = s->ring ? 0 : -errno;
out:
	return rc ? bpf_explain(err, rc, s->root, "spans", "set spans.processes: false") : 0;
}

/* A program that was interrupted by itself is left out by the kernel, which counts that (since 5.12). */
static uint64_t left_out(const struct spans *s)
{
	struct bpf_program *prog;
	uint64_t n = 0;

	bpf_object__for_each_program(prog, s->skel->obj)
	{
		struct bpf_prog_info info = { 0 };
		__u32 size = sizeof(info);

		if (bpf_program__autoload(prog) && bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size) == 0)
			n += info.recursion_misses;
	}
	return n;
}

uint64_t spans_bpf_lost(const struct spans *s)
{
	return left_out(s) + __atomic_load_n(&s->skel->bss->lost_births, __ATOMIC_RELAXED) +
	       __atomic_load_n(&s->skel->bss->lost_ends, __ATOMIC_RELAXED);
}

void spans_bpf_close(struct spans *s)
{
	ring_buffer__free(s->ring);
	spans_bpf__destroy(s->skel);
	s->ring = NULL;
	s->skel = NULL;
}

/* Records of the ring into the table of processes, and finished processes out of it.
 *
 * Ring order is not time order between CPUs: a child that ran at once on another CPU may tell its exec before its
 * parent's CPU told the fork, so every record may be the first of its process. */

#define POLL_RECORDS 100000 /* further records wait for the next poll, so that a storm does not hold up readings */
#define FREE_WAIT_NS (5 * NS_PER_S)
#define CALLS_FLIPS 2 /* both banks of sums have been emptied since its last call */

static void copy_comm(char *to, const char *from)
{
	memcpy(to, from, SPAN_COMM_MAX);
	to[SPAN_COMM_MAX - 1] = '\0';
}

/* The kernel's own stamp replaces the tick that the scan read. */
static void refine(struct process *p, const struct jd_span_head *h)
{
	if (p->scanned)
		p->start_boot_ns = h->start_boot_ns;
	p->scanned = false;
}

/* The record of its end was lost: it is only known to be gone. */
static void vanish(struct spans *s, struct process *p, uint64_t now_ns)
{
	p->end_ns = now_ns;
	p->vanished = p->freed = true;
	process_mark_ended(&s->table, p);
}

static struct process *find_or_add(struct spans *s, const struct jd_span_head *h, bool *ret_fresh)
{
	struct process *p = process_find(&s->table, h->pid, h->start_boot_ns), *before;

	*ret_fresh = !p;
	if (p)
		return p;
	before = process_find(&s->table, h->pid, 0);
	if (before && before->start_boot_ns < h->start_boot_ns)
		vanish(s, before, h->mono_ns);
	p = process_add(&s->table, h->pid, h->start_boot_ns);
	s->stats.lost_processes += !p;
	return p;
}

void spans_check_living(struct spans *s, uint64_t now_ns)
{
	uint64_t cpu_ns;

	for (struct process *p = NULL; (p = process_next(&s->table, p));)
		if (!p->ended && !process_cpu_time(p->pid, &cpu_ns))
			vanish(s, p, now_ns);
}

/* A process from before the agent stays marked so: its start came from /proc. */
static void take_identity(struct spans *s, struct process *p, const struct jd_span_birth *b)
{
	const struct process *parent = process_find(&s->table, b->parent_pid, b->parent_start_boot_ns);

	p->start_ns = b->start_ns;
	p->parent_pid = b->parent_pid;
	p->parent_id = parent        ? parent->id :
		       b->parent_pid ? process_span_id(b->parent_pid, b->parent_start_boot_ns) :
				       0;
	p->ns_pid = b->ns_pid;
}

static void take_fork(struct spans *s, const struct jd_span_birth *b)
{
	const struct process *parent;
	struct process *p;
	bool fresh;

	p = find_or_add(s, &b->head, &fresh);
	if (!p)
		return;
	parent = process_find(&s->table, b->parent_pid, b->parent_start_boot_ns);
	if (parent)
		process_share_text(p, parent);
	take_identity(s, p, b);
	refine(p, &b->head);
	p->was_there = false;
	if (!fresh) /* scanned, or its exec came first and is younger */
		return;
	p->cgroup_id = b->cgroup_id;
	p->uid = b->uid;
	copy_comm(p->comm, b->comm);
}

static void take_exec(struct spans *s, const struct jd_span_birth *b)
{
	const char *args = b->text, *path = b->text + b->args_len;
	char exe[SPAN_PATH_MAX];
	size_t n_path = b->path_len ? b->path_len - 1 : 0;
	struct process *p;
	bool fresh;

	p = find_or_add(s, &b->head, &fresh);
	if (!p)
		return;
	s->stats.unseen_births += fresh;
	if (fresh || p->start_ns == 0)
		take_identity(s, p, b);
	refine(p, &b->head);
	p->cgroup_id = b->cgroup_id;
	p->uid = b->uid;
	p->ns_pid = b->ns_pid;
	copy_comm(p->comm, b->comm);
	if (n_path && path[0] != '/') {
		memcpy(exe, path, n_path < sizeof(exe) ? n_path : sizeof(exe) - 1);
		exe[n_path < sizeof(exe) ? n_path : sizeof(exe) - 1] = '\0';
		spans_read_exe(s, p->pid, exe);
		path = exe;
		n_path = strlen(exe);
	}
	process_set_text(p, path, n_path, args, b->args_len);
	if (s->functions)
		spans_functions_exec(s, p->pid);
}

/* Each later record of an end has more final figures. The time is that of the parent's notification, where that was
 * seen. */
static void take_end(struct spans *s, const struct jd_span_exit *x)
{
	struct process *p;
	bool fresh;

	p = process_find(&s->table, x->head.pid, x->head.start_boot_ns);
	if (!p && x->head.kind == JD_SPAN_FREE)
		return; /* handed over already, or never known */
	if (!p)
		p = find_or_add(s, &x->head, &fresh);
	if (!p)
		return;
	if (!p->start_ns) {
		s->stats.unseen_births++;
		p->start_ns = x->head.start_boot_ns - asleep_ns();
		p->cgroup_id = x->cgroup_id;
	}
	refine(p, &x->head);
	p->end_late = !p->ended && x->head.kind == JD_SPAN_FREE;
	if (!p->ended || (x->head.kind == JD_SPAN_EXIT && !p->notified && x->head.mono_ns > p->end_ns))
		p->end_ns = x->head.mono_ns;
	process_mark_ended(&s->table, p);
	if (p->freed)
		return;
	p->moved |= x->cgroup_id != p->cgroup_id && !p->freed;
	copy_comm(p->comm, x->comm);
	p->end = *x;
	p->freed = x->head.kind == JD_SPAN_FREE;
	p->freed_flip = s->flips;
}

static void take_notified(struct spans *s, const struct jd_span_exit *x)
{
	struct process *p = process_find(&s->table, x->head.pid, x->head.start_boot_ns);

	if (!p || !p->ended || x->head.mono_ns < p->end_ns)
		return;
	p->end_ns = x->head.mono_ns;
	p->notified = true;
	if (!p->freed)
		p->end = *x;
}

static bool is_birth(const struct jd_span_birth *b, size_t n)
{
	size_t head = offsetof(struct jd_span_birth, text);

	return n >= head && n <= sizeof(*b) && b->args_len < JD_SPAN_ARGS && b->path_len <= JD_SPAN_PATH &&
	       (size_t)b->args_len + b->path_len <= n - head;
}

int spans_record(void *ctx, void *data, size_t n)
{
	const struct jd_span_head *h = data;
	struct spans *s = ctx;

	if (n < sizeof(*h))
		return 0;
	s->taken++;
	switch (h->kind) {
	case JD_SPAN_FORK:
		if (is_birth(data, n))
			take_fork(s, data);
		break;
	case JD_SPAN_EXEC:
		if (is_birth(data, n))
			take_exec(s, data);
		break;
	case JD_SPAN_EXIT:
	case JD_SPAN_FREE:
		if (n >= sizeof(struct jd_span_exit))
			take_end(s, data);
		break;
	case JD_SPAN_NOTIFIED:
		if (n >= sizeof(struct jd_span_exit))
			take_notified(s, data);
		break;
	case JD_SPAN_CALL:
		if (n >= sizeof(struct jd_span_call))
			spans_take_call(s, data);
		break;
	}
	return s->taken < POLL_RECORDS ? 0 : -ECANCELED;
}

static void fill_end(const struct process *p, uint64_t page_bytes, struct span *ret)
{
	uint32_t status = p->end.status & 0xffff;

	ret->end_ns = p->end_ns > p->start_ns ? p->end_ns : p->start_ns;
	if (p->vanished) {
		ret->end = SPAN_UNKNOWN;
		ret->quality = QUALITY_LOST;
		return;
	}
	ret->end = p->end.flags & JD_SPAN_OOM && WIFSIGNALED(status) ? SPAN_OOM :
		   WIFSIGNALED(status)                               ? SPAN_SIGNALED :
								       SPAN_EXITED;
	ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	ret->core_dumped = WIFSIGNALED(status) && WCOREDUMP(status);
	ret->cpu_ns = p->end.cpu_ns;
	ret->minor_faults = p->end.minor_faults;
	ret->major_faults = p->end.major_faults;
	ret->peak_rss_bytes = p->end.peak_rss_pages * page_bytes;
	ret->quality = (p->freed && !p->end_late) || p->zombie ? QUALITY_MEASURED :
		       p->notified                             ? QUALITY_ESTIMATED :
								 QUALITY_PARTIAL;
}

void spans_fill(const struct spans *s, const struct process *p, struct span *ret)
{
	const struct cgroup *cg = s->cgroups ? cgroup_find(s->cgroups, p->cgroup_id) : NULL;

	*ret = (struct span){
		.id = p->id,
		.parent = p->parent_id,
		.kind = SPAN_PROCESS,
		.end = SPAN_CUT,
		.pid = p->pid,
		.tid = p->pid,
		.ns_pid = p->ns_pid,
		.parent_pid = p->parent_pid,
		.uid = p->uid,
		.start_boot_ns = p->start_boot_ns,
		.start_ns = p->start_ns,
		.start_real_ns = real_of(p->start_ns),
		.cgroup_id = p->cgroup_id,
		.moved = p->moved,
		.seen_running = p->was_there,
		.calls = 1,
		.comm = p->comm,
		.exe = p->text ? p->text->text : "",
		.cmdline = p->text ? p->text->text + p->text->cmdline_at : "",
		.cgroup = cg ? cg->path : "",
		.symbol = "",
		.binary = "",
	};
	if (p->ended)
		fill_end(p, s->page_bytes, ret);
}

/* A zombie's CPU time is final. A process that was reaped is freed after an RCU grace period, which takes seconds on
 * a busy machine; its record is waited for. That record may not come, because the kernel may keep programs from
 * running in the task that the grace period's callbacks interrupt. Then the figures are those of the parent's
 * notification, without time that the scheduler had not added yet. */
static bool is_over(struct spans *s, struct process *p, uint64_t now_ns)
{
	uint64_t cpu_ns;

	if (p->freed)
		return !s->functions || s->flips >= p->freed_flip + CALLS_FLIPS;
	if (now_ns < p->end_ns + SPANS_LINGER_NS)
		return false;
	if (!process_find(&s->table, p->pid, 0) && process_cpu_time(p->pid, &cpu_ns)) {
		p->end.cpu_ns = cpu_ns;
		p->zombie = true;
		return true;
	}
	if (now_ns < p->end_ns + FREE_WAIT_NS)
		return false;
	s->stats.open_books++;
	return true;
}

void spans_settle(struct spans *s, uint64_t now_ns)
{
	struct process *next;
	struct span span;

	for (struct process *p = s->table.first_ended; p; p = next) {
		next = p->newer;
		if (!is_over(s, p, now_ns))
			continue;
		spans_fill(s, p, &span);
		s->finished(s->ctx, &span);
		s->stats.processes++;
		process_remove(&s->table, p);
	}
}
