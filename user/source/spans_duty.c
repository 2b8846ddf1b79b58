// SPDX-License-Identifier: Apache-2.0
/* Keeps each function's probe within its share of a CPU. A probe has an account of CPU time that fills at the
 * budget's rate, up to what one second brings; each call takes its cost out of it. An empty account detaches the
 * probe, a half full one brings it back: a function that is called all the time is seen in short looks. */
#include <string.h>
#include <time.h>
#include "../base/clock.h"
#include "spans_func.skel.h"
#include "spans_functions.h"

#define LOOK_NS (10 * 1000000)  /* a probe that is over its budget costs so much longer at most */

static void nap(void)
{
	struct timespec ts = { .tv_nsec = LOOK_NS };

	nanosleep(&ts, NULL);
}

/* While the kernel puts breakpoints in and takes them out, calls trap that no program counts: they are charged by the
 * rate that was seen, and the wait for the next look grows. */
static void charge_change(struct spans_functions *f, struct probed *p, uint64_t begin_ns)
{
	p->tokens_ns -= p->rate * (double)(clock_mono_ns() - begin_ns) * (double)atomic_load(&f->call_cost_ns);
}

static void take_away(struct spans_functions *f, struct probed *p, uint64_t entries)
{
	uint64_t begin = clock_mono_ns();

	if (begin > p->attached_since_ns)
		p->rate = (double)(entries - p->entries_at_attach) / (double)(begin - p->attached_since_ns);
	atomic_fetch_add(&p->changes, 1);
	probe_detach(f, p);
	charge_change(f, p, begin);
}

static void bring_back(struct spans_functions *f, struct probed *p, uint64_t entries)
{
	uint64_t begin = clock_mono_ns();

	probe_attach(f, p);
	charge_change(f, p, begin);
	p->entries_at_attach = entries;
	p->attached_since_ns = clock_mono_ns();
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
	if (p->attached)
		atomic_fetch_add(&p->attached_ns, took_ns);
	if (p->attached && p->tokens_ns < 0)
		take_away(f, p, entries);
	else if (!p->attached && p->tokens_ns > full / 2)
		bring_back(f, p, entries);
	/* an idle function's rate is that of its last burst, not of its whole life */
	if (p->attached && clock_mono_ns() - p->attached_since_ns > NS_PER_S) {
		p->entries_at_attach = entries;
		p->attached_since_ns = clock_mono_ns() - LOOK_NS;
	}
}

static void look_at_started(struct spans_functions *f)
{
	uint32_t out = atomic_load(&f->queue_out);

	while (out != atomic_load(&f->queue_in)) {
		probe_find_files(f, atomic_load(&f->queue[out % PROBE_QUEUE]));
		atomic_store(&f->queue_out, ++out);
	}
}

void *probe_thread(void *functions)
{
	struct spans_functions *f = functions;
	uint64_t last = clock_mono_ns();

	while (!atomic_load(&f->stop)) {
		uint64_t now = clock_mono_ns();

		look_at_started(f);
		for (unsigned i = 0; i < f->n; i++)
			keep_account(f, &f->of[i], now - last);
		last = now;
		nap();
	}
	for (unsigned i = 0; i < f->n; i++)
		probe_detach(f, &f->of[i]);
	return NULL;
}
