// SPDX-License-Identifier: Apache-2.0
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "processes.h"

#define DEFAULT_PROCESSES 16384

/* Clock of another thread group's CPU time: include/uapi/linux/time.h, kernel/time/posix-cpu-timers.c
 * (MAKE_PROCESS_CPUCLOCK with CPUCLOCK_SCHED). It needs no rights and no file. */
static clockid_t cpu_clock_of(uint32_t pid)
{
	return (clockid_t)(~pid << 3 | 2);
}

bool process_cpu_time(uint32_t pid, uint64_t *ret_ns)
{
	struct timespec ts;

	if (clock_gettime(cpu_clock_of(pid), &ts) != 0)
		return false;
	*ret_ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
	return true;
}

int spans_open(const struct spans_options *o, struct spans **ret, struct err *err)
{
	struct spans *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_set(err, -ENOMEM, "spans: out of memory; free some");
	s->root = o->root;
	s->hierarchy = o->hierarchy;
	s->cgroups = o->table;
	s->finished = o->finished;
	s->ctx = o->ctx;
	s->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	rc = process_table_init(&s->table, o->max_processes ? o->max_processes : DEFAULT_PROCESSES);
	if (rc)
		err_set(err, rc, "spans: out of memory; lower spans.max-processes");
	if (!rc)
		rc = spans_bpf_open(s, o, err);
	if (!rc) {
		rc = spans_scan(s);
		if (rc)
			err_set(err, rc, "spans: /proc: %s; mount it", strerror(-rc));
	}
	if (!rc && o->n_functions)
		rc = spans_functions_open(s, o, err);
	if (rc) {
		spans_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

int spans_fd(const struct spans *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

int spans_poll(struct spans *s)
{
	uint64_t begin = clock_thread_cpu_ns(), now, lost;
	int rc;

	s->taken = 0;
	rc = ring_buffer__consume(s->ring);
	now = clock_mono_ns();
	lost = spans_bpf_lost(s);
	if (lost != s->lost_seen) {
		s->lost_seen = lost;
		spans_check_living(s, now);
	}
	spans_take_sums(s, now);
	spans_settle(s, now);
	s->stats.poll_ns += clock_thread_cpu_ns() - begin;
	return rc < 0 && rc != -ECANCELED ? rc : (int)s->taken;
}

void spans_live(struct spans *s, uint64_t now_ns, void (*each)(void *ctx, const struct span *span), void *ctx)
{
	struct span span;

	for (const struct process *p = NULL; (p = process_next(&s->table, p));) {
		if (p->ended)
			continue;
		spans_fill(s, p, &span);
		span.end_ns = now_ns > p->start_ns ? now_ns : p->start_ns;
		if (!process_cpu_time(p->pid, &span.cpu_ns))
			span.quality |= QUALITY_STALE;
		each(ctx, &span);
	}
}

void spans_stats(const struct spans *s, struct spans_stats *ret)
{
	*ret = s->stats;
	ret->live = s->table.by_pid.n;
	ret->lost_records = spans_bpf_lost(s);
	spans_functions_stats(s, ret);
}

bool spans_next_warning(struct spans *s, char *ret_text, size_t size)
{
	return spans_functions_warning(s, ret_text, size);
}

void spans_close(struct spans *s)
{
	if (!s)
		return;
	spans_functions_close(s);
	spans_bpf_close(s);
	process_table_free(&s->table);
	free(s);
}

/* Processes between their end and being handed over. */

void spans_ending(const struct spans *s, void (*each)(void *ctx, const struct span *span), void *ctx)
{
	struct span span;

	for (const struct process *p = s->table.first_ended; p; p = p->newer) {
		spans_fill(s, p, &span);
		each(ctx, &span);
	}
}
