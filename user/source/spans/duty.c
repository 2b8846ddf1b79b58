// SPDX-License-Identifier: Apache-2.0
/* Keeps each function's probe within its share of a CPU. A probe has an account of CPU time that fills at the
 * budget's rate, up to what one second brings; each call takes its cost out of it. An empty account detaches the
 * probe, a half full one brings it back: a function that is called all the time is seen in short looks. */
#include <sched.h>
#include <time.h>
#include "base/clock.h"
#include "spans_func.skel.h"
#include "probes.h"

#define LOOK_NS (10 * 1000000) /* a look at a probe over its budget is so long at most */
#define SHORT_LOOK_NS 1000000
#define OWN_LOOK_NS NS_PER_S
#define REPEATED_LOOK_NS 4000000

/* A probe that was over its budget before is looked at for as long as its account is going to last, and for less
 * than a grace period of RCU: within one the kernel removes the breakpoint at once, because it has just waited when
 * it was put there (dup_mmap_sem in kernel/events/uprobes.c, rcu_sync_enter). */
static uint64_t look_ns(const struct spans_functions *f, const struct probed *p)
{
	double per_ns = p->rate * (double)atomic_load(&f->call_cost_ns);

	if (!p->attached || !atomic_load(&p->changes) || p->tokens_ns >= per_ns * LOOK_NS)
		return LOOK_NS;
	if (p->tokens_ns >= per_ns * REPEATED_LOOK_NS)
		return REPEATED_LOOK_NS;
	return p->tokens_ns > per_ns * SHORT_LOOK_NS ? (uint64_t)(p->tokens_ns / per_ns) : SHORT_LOOK_NS;
}

static uint64_t next_look_ns(const struct spans_functions *f)
{
	uint64_t ns = LOOK_NS;

	for (unsigned i = 0; i < f->n; i++)
		ns = look_ns(f, &f->of[i]) < ns ? look_ns(f, &f->of[i]) : ns;
	return ns;
}

/* A short look that does not end in time costs the probed program. So this thread has the lowest real-time priority
 * during the look, where that is permitted: for milliseconds, most of them asleep. */
static void hurry(bool on)
{
	const struct sched_param p = { .sched_priority = on ? sched_get_priority_min(SCHED_RR) : 0 };

	sched_setscheduler(0, on ? SCHED_RR : SCHED_OTHER, &p);
}

/* Where the two probes of a function come and go in turn, calls trap meanwhile without being counted. They are
 * charged by the rate that was seen, and the wait for the next look grows. */
static void charge_change(const struct spans_functions *f, struct probed *p, uint64_t begin_ns)
{
	if (f->kind == PROBE_PERF)
		p->tokens_ns -= p->rate * (double)(clock_mono_ns() - begin_ns) * (double)atomic_load(&f->call_cost_ns);
}

static void count_attached(struct probed *p, uint64_t now_ns)
{
	if (p->attached && now_ns > p->counted_ns)
		atomic_fetch_add(&p->attached_ns, now_ns - p->counted_ns);
	p->counted_ns = now_ns;
}

static void take_away(struct spans_functions *f, struct probed *p, uint64_t entries)
{
	uint64_t begin = clock_mono_ns();

	if (begin > p->attached_since_ns)
		p->rate = (double)(entries - p->entries_at_attach) / (double)(begin - p->attached_since_ns);
	count_attached(p, begin);
	atomic_fetch_add(&p->changes, 1);
	probe_detach(f, p);
	charge_change(f, p, begin);
}

static void bring_back(struct spans_functions *f, struct probed *p)
{
	uint64_t begin = clock_mono_ns();

	probe_attach(f, p);
	charge_change(f, p, begin);
	p->entries_at_attach = __atomic_load_n(&f->state[p - f->of].entries, __ATOMIC_RELAXED);
	p->attached_since_ns = p->counted_ns = clock_mono_ns();
	atomic_fetch_add(&p->changes, 1);
}

static void keep_account(struct spans_functions *f, struct probed *p, uint64_t took_ns)
{
	double full = f->budget * (double)NS_PER_S;
	uint64_t entries = __atomic_load_n(&f->state[p - f->of].entries, __ATOMIC_RELAXED);

	p->tokens_ns += f->budget * (double)took_ns;
	p->tokens_ns = p->tokens_ns > full ? full : p->tokens_ns;
	p->tokens_ns -= (double)(entries - p->entries_seen) * (double)atomic_load(&f->call_cost_ns);
	p->entries_seen = entries;
	count_attached(p, clock_mono_ns());
	if (p->attached && p->tokens_ns < 0)
		take_away(f, p, entries);
	else if (!p->attached && p->tokens_ns > full / 2)
		bring_back(f, p);
	/* its rate is that of its last second, not of its whole life */
	if (p->attached && clock_mono_ns() - p->attached_since_ns > NS_PER_S) {
		p->rate = (double)(entries - p->entries_at_attach) / (double)(clock_mono_ns() - p->attached_since_ns);
		p->entries_at_attach = entries;
		p->attached_since_ns = clock_mono_ns() - LOOK_NS;
	}
}

static void look_at_started(struct spans_functions *f)
{
	uint32_t out = atomic_load(&f->queue_out);

	/* an upgrade replaces the probed file by another one */
	if (clock_mono_ns() - f->own_look_ns > OWN_LOOK_NS)
		probe_find_files(f, 0);
	while (out != atomic_load(&f->queue_in)) {
		probe_find_files(f, atomic_load(&f->queue[out % PROBE_QUEUE]));
		atomic_store(&f->queue_out, ++out);
	}
}

void *probe_thread(void *functions)
{
	struct spans_functions *f = functions;
	uint64_t last = clock_mono_ns();
	bool hurried = false;

	while (!atomic_load(&f->stop)) {
		uint64_t now = clock_mono_ns(), ns;

		for (unsigned i = 0; i < f->n; i++)
			keep_account(f, &f->of[i], now - last);
		last = now;
		ns = next_look_ns(f);
		if (hurried != (ns < LOOK_NS))
			hurry(hurried = !hurried);
		if (!hurried)
			look_at_started(f);
		nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
	}
	for (unsigned i = 0; i < f->n; i++)
		probe_detach(f, &f->of[i]);
	return NULL;
}
