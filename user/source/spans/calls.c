// SPDX-License-Identifier: Apache-2.0
/* Calls of probed functions as spans: single ones from the ring, the others from their sums. While a budget kept a
 * probe off for a part of the time between two flips, sums are scaled up by that part. */
#include <bpf/bpf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/clock.h"
#include "spans_functions.h"

#define ID_SHIFT 22 /* below it: pids (spans_table.c) */
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

	/* -ENOENT says that this was all of it */
	bpf_map_lookup_and_delete_batch(f->sums_fd[bank], NULL, &cursor, f->keys, f->sums, &n, &opts);
	return n <= JD_CALL_SUMS ? n : 0;
}

static unsigned bucket_of(uint32_t pid, uint16_t func)
{
	return (pid * 61 + func) & (SUM_BUCKETS - 1);
}

static void chain_sums(struct spans_functions *f, unsigned n)
{
	memset(f->heads, 0, sizeof(f->heads));
	for (unsigned i = 0; i < n; i++) {
		uint16_t *head = &f->heads[bucket_of(f->keys[i].pid, f->keys[i].func)];

		f->chain[i] = *head;
		*head = (uint16_t)(i + 1);
	}
}

static unsigned find_caller(const struct spans_functions *f, unsigned none, const struct jd_call_key *k)
{
	for (unsigned at = f->heads[bucket_of(k->pid, k->parent_func)]; at; at = f->chain[at - 1]) {
		const struct jd_call_key *c = &f->keys[at - 1];

		if (f->ids[at - 1] && c->func == k->parent_func && c->pid == k->pid &&
		    c->start_boot_ns == k->start_boot_ns)
			return at - 1;
	}
	return none;
}

/* A sum is below one of its caller's, which must have a place itself: that leaves out circles of functions that
 * call each other. Those that find no such caller are below their process. */
static void hand_over_bank(struct spans *s, unsigned n)
{
	struct spans_functions *f = s->functions;
	uint64_t *ids = f->ids;
	bool more = true;

	memset(ids, 0, n * sizeof(*ids));
	chain_sums(f, n);
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

/* Part of the time for which each probe was there, for the sums of that time. Time without any look goes to the next
 * sums. */
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
