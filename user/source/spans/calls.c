// SPDX-License-Identifier: Apache-2.0
/* Calls of probed functions as spans: single ones from the ring, the others from their sums. While a budget kept a
 * probe off for a part of the time between two flips, sums are scaled up by that part. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/thread.h"
#include "probes.h"

#define ID_SHIFT 22 /* below it: pids (processes.c) */
#define SUM_IDS (1023ull << 32) /* the last CPU that a single call's number can name */

static void fill_call(const struct spans *s, const struct probed *fn, uint32_t pid, uint64_t start_boot_ns,
		      struct span *ret)
{
	const struct process *p = process_find(&s->table, pid, start_boot_ns);

	if (p) {
		spans_fill(s, p, ret);
	} else {
		*ret = (struct span){ .comm = "",
				      .exe = "",
				      .cmdline = "",
				      .cgroup = "",
				      .id = process_span_id(pid, start_boot_ns),
				      .pid = pid,
				      .tid = pid,
				      .start_boot_ns = start_boot_ns };
	}
	ret->parent = ret->process = ret->id;
	ret->parent_pid = pid;
	ret->kind = SPAN_FUNCTION;
	ret->end = SPAN_EXITED;
	ret->exit_code = ret->signal = 0;
	ret->core_dumped = ret->moved = ret->seen_running = false;
	ret->minor_faults = ret->major_faults = ret->peak_rss_bytes = 0;
	ret->quality = QUALITY_MEASURED;
	ret->symbol = fn->symbol;
	ret->binary = fn->binary;
}

static void set_times(struct span *span, uint64_t start_ns, uint64_t end_ns)
{
	span->start_ns = start_ns;
	span->end_ns = end_ns > start_ns ? end_ns : start_ns;
	span->start_real_ns = real_of(start_ns);
}

void spans_take_call(struct spans *s, const struct jd_span_call *c)
{
	const struct spans_functions *f = s->functions;
	struct span span;

	if (!f || c->func >= f->n)
		return;
	fill_call(s, &f->of[c->func], c->head.pid, c->head.start_boot_ns, &span);
	span.id = c->id << ID_SHIFT;
	if (c->parent)
		span.parent = c->parent << ID_SHIFT;
	span.tid = c->tid;
	span.calls = 1;
	set_times(&span, c->start_ns, c->head.mono_ns);
	span.wall_ns = span.end_ns - span.start_ns;
	span.cpu_ns = c->cpu_ns;
	if (c->flags & JD_SPAN_PARTIAL) {
		span.end = SPAN_UNKNOWN;
		span.quality |= QUALITY_PARTIAL;
	}
	if (c->flags & JD_SPAN_CPU_COARSE)
		span.quality |= QUALITY_ESTIMATED;
	s->stats.calls++;
	s->finished(s->ctx, &span);
}

static uint64_t scaled(uint64_t v, double scale)
{
	return scale > 1 ? (uint64_t)llround((double)v * scale) : v;
}

static void hand_over_sum(struct spans *s, const struct jd_call_key *k, const struct jd_call_sum *sum, uint64_t parent,
			  uint64_t id)
{
	const struct spans_functions *f = s->functions;
	double scale = f->of[k->func].scale[!*f->bank];
	struct span span;

	fill_call(s, &f->of[k->func], k->pid, k->start_boot_ns, &span);
	span.id = id;
	span.parent = parent ? parent : span.parent;
	set_times(&span, sum->min_start_ns, sum->max_end_ns);
	span.calls = scaled(sum->calls, scale);
	span.wall_ns = scaled(sum->wall_ns, scale);
	span.cpu_ns = scaled(sum->cpu_ns, scale);
	if (scale > 1)
		span.quality |= QUALITY_PARTIAL | QUALITY_ESTIMATED;
	if (sum->partial)
		span.quality |= QUALITY_PARTIAL;
	if (sum->coarse)
		span.quality |= QUALITY_ESTIMATED;
	s->stats.calls += span.calls;
	s->finished(s->ctx, &span);
}

/* Empties a bank; number of its sums. */
static unsigned read_bank(struct spans_functions *f, unsigned bank)
{
	__u32 n = JD_CALL_SUMS, cursor;
	LIBBPF_OPTS(bpf_map_batch_opts, opts);

	/* -ENOENT: this was the whole bank */
	bpf_map_lookup_and_delete_batch(f->sums_fd[bank], NULL, &cursor, f->keys, f->sums, &n, &opts);
	return n <= JD_CALL_SUMS ? n : 0;
}

static uint64_t call_key(uint32_t pid, uint16_t func)
{
	return (uint64_t)pid << 16 | func;
}

/* Without memory no sum finds its caller: all are below their processes then. */
static void index_sums(struct spans_functions *f, unsigned n)
{
	hash_clear(&f->by_call);
	if (hash_reserve(&f->by_call, n) != 0)
		return;
	for (unsigned i = 0; i < n; i++)
		hash_add(&f->by_call, call_key(f->keys[i].pid, f->keys[i].func), i);
}

static unsigned find_caller(const struct spans_functions *f, unsigned none, const struct jd_call_key *k)
{
	for (struct hash_walk w = hash_walk(&f->by_call, call_key(k->pid, k->parent_func)); hash_step(&w);)
		if (f->ids[w.at] && f->keys[w.at].start_boot_ns == k->start_boot_ns)
			return w.at;
	return none;
}

/* A sum's parent is a sum of its caller, which must be placed before it; so functions that call each other in a
 * circle make no loop. A sum without such a caller is below its process. */
static void hand_over_bank(struct spans *s, unsigned n)
{
	struct spans_functions *f = s->functions;
	uint64_t *ids = f->ids;
	bool more = true;

	memset(ids, 0, n * sizeof(*ids));
	index_sums(f, n);
	for (unsigned pass = 0; pass <= JD_CALL_DEPTH && more; pass++) {
		more = false;
		for (unsigned i = 0; i < n; i++) {
			const struct jd_call_key *k = &f->keys[i];
			bool top = k->parent_func == JD_NO_FUNC || pass == JD_CALL_DEPTH;
			unsigned caller = ids[i] || k->func >= f->n || top ? n : find_caller(f, n, k);

			if (ids[i] || k->func >= f->n)
				continue;
			if (!top && caller == n) {
				more = true;
				continue;
			}
			ids[i] = (SUM_IDS | (++f->sum_ids & UINT32_MAX)) << ID_SHIFT;
			hand_over_sum(s, k, &f->sums[i], caller < n ? ids[caller] : 0, ids[i]);
		}
	}
}

/* Sets for each probe the part of the time for which it was attached, which scales the sums of that time. Time
 * without any look goes to the next sums. */
static void note_scales(struct spans_functions *f, unsigned bank, uint64_t now_ns)
{
	uint64_t since_flip = now_ns - f->flip_ns;

	for (unsigned i = 0; i < f->n; i++) {
		struct probed *p = &f->of[i];
		uint64_t attached = atomic_load(&p->attached_ns), changes = atomic_load(&p->changes);
		uint64_t there = attached - p->attached_at_flip, period = now_ns - p->scaled_until_ns;
		bool throttled = changes != p->changes_at_flip || (there < period / 2 && changes);

		p->scale[bank] = throttled && there && there < period ? (double)period / (double)there : 1;
		p->attached_at_flip = attached;
		p->changes_at_flip = changes;
		if (there)
			p->scaled_until_ns = now_ns;
		f->state[i].singles = throttled ? 0 :
						  (int64_t)(PROBE_SINGLES_PER_S *
							    (double)(since_flip < NS_PER_S ? since_flip : NS_PER_S) /
							    NS_PER_S);
	}
	f->flip_ns = now_ns;
}

void spans_take_sums(struct spans *s, uint64_t now_ns)
{
	struct spans_functions *f = s->functions;
	unsigned active;

	if (!f || now_ns < f->flip_ns + SPANS_FLIP_NS)
		return;
	active = (unsigned)*f->bank & 1;
	hand_over_bank(s, read_bank(f, !active));
	note_scales(f, active, now_ns);
	__atomic_store_n(f->bank, (uint64_t)!active, __ATOMIC_RELEASE);
	s->flips++;
}

/* One probe at one place of a file, put there and taken away. With each the kernel waits for RCU, tens of
 * milliseconds, and the breakpoint is there until the last probe of its place has gone: a session, one probe for entry
 * and return (6.13), comes and goes once. The two links of kind uprobe_multi (6.6) wait apart from each other, so they
 * are changed at once, each by a thread. Perf events wait in turn under one lock, and since 6.17 (and in stable kernels
 * of 2025) need CAP_SYS_ADMIN. */

#define MOST_CHANGES (2 * PROBE_FILES)
#define STACK_BYTES (256 * 1024)
#define LINK_CREATE 28 /* include/uapi/linux/bpf.h: BPF_LINK_CREATE, BPF_F_UPROBE_MULTI_RETURN */
#define UPROBE_MULTI_RETURN 1

/* Beginning of union bpf_attr.link_create; the system's header may be older. */
struct multi_attr {
	__u32 prog_fd, target_fd, attach_type, flags;
	__u64 path, offsets, ref_ctr_offsets, cookies;
	__u32 cnt, multi_flags, pid, pad;
};

_Static_assert(sizeof(struct multi_attr) == 64, "layout of link_create.uprobe_multi");

static int attach_link(struct probe_change *c)
{
	struct multi_attr attr = {
		.prog_fd = (__u32)bpf_program__fd(c->prog),
		.attach_type = c->kind == PROBE_SESSION ? PROBE_ATTACH_SESSION : PROBE_ATTACH_MULTI,
		.path = (uintptr_t)c->path,
		.offsets = (uintptr_t)&c->offset,
		.cnt = 1,
		.multi_flags = c->back ? UPROBE_MULTI_RETURN : 0,
	};
	long fd = syscall(SYS_bpf, LINK_CREATE, &attr, sizeof(attr));

	if (fd < 0)
		return -errno;
	c->link->fd = (int)fd;
	c->link->on = true;
	return 0;
}

static int attach_perf(struct probe_change *c)
{
	c->link->perf = bpf_program__attach_uprobe(c->prog, c->back, -1, c->path, c->offset);
	if (!c->link->perf)
		return -errno;
	c->link->on = true;
	return 0;
}

static void *change(void *arg)
{
	struct probe_change *c = arg;

	if (!c->off) {
		c->rc = c->kind == PROBE_PERF ? attach_perf(c) : attach_link(c);
		return NULL;
	}
	if (c->kind == PROBE_PERF)
		bpf_link__destroy(c->link->perf);
	else
		close(c->link->fd);
	memset(c->link, 0, sizeof(*c->link));
	return NULL;
}

void probe_change(struct probe_change *c, unsigned n)
{
	pthread_t thread[MOST_CHANGES];
	bool started[MOST_CHANGES] = { false };

	for (unsigned i = 0; i < n; i++) {
		started[i] = c[i].kind != PROBE_PERF && i + 1 < n &&
			     thread_start(&thread[i], "jouled-probe", STACK_BYTES, change, &c[i]) == 0;
		if (!started[i])
			change(&c[i]);
	}
	for (unsigned i = 0; i < n; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
}
