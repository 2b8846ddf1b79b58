/* SPDX-License-Identifier: Apache-2.0 */
/* A list of processes of which some live; what they used is known to the test. Included by the tests of traces. */
#ifndef TRACES_WORLD_H
#define TRACES_WORLD_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "model/traces/traces.h"

#define S 1000000000ull
#define MS 1000000ull
#define MAX 4096

struct proc {
	struct span s;
	bool alive, ending;
};

struct world {
	struct schema schema;
	struct traces *t;
	struct proc procs[MAX];
	unsigned n;
	uint64_t now, price; /* uJ per ns of CPU time: what charge gives */
	uint64_t refuse_ns; /* of each charge nothing is left for that much */
	struct trace *got[MAX];
	unsigned n_got;
	uint64_t charged_uj, charged_cgroup[4];
};

static uint64_t charge(void *ctx, const struct span_use *use, uint64_t *uj, unsigned *quality)
{
	struct world *w = ctx;
	uint64_t left = use->cpu_ns < w->refuse_ns ? use->cpu_ns : w->refuse_ns, paid = use->cpu_ns - left;

	assert_true(use->from_ns <= use->until_ns);
	uj[0] += paid * w->price;
	w->charged_uj += paid * w->price;
	w->charged_cgroup[use->cgroup_id % 4] += paid * w->price;
	*quality |= QUALITY_WRAPPED;
	return left;
}

static void ready(void *ctx, struct trace *t)
{
	struct world *w = ctx;
	const char *wrong = trace_check(t);

	if (wrong)
		fail_msg("%s", wrong);
	assert_true(w->n_got < MAX);
	w->got[w->n_got++] = t;
}

static struct world *begin(uint32_t max_spans, uint32_t part_spans)
{
	struct world *w = calloc(1, sizeof(*w));
	struct traces_options o = { .schema = &w->schema,
				    .period_ns = 10 * S,
				    .max_spans = max_spans,
				    .part_spans = part_spans,
				    .charge = charge,
				    .ready = ready,
				    .ctx = w };

	w->schema.n_domains = 1;
	strcpy(w->schema.domains[0].name, "package-0");
	w->now = 1000 * S;
	w->price = 3;
	w->t = traces_new(&o);
	assert_non_null(w->t);
	return w;
}

static void end(struct world *w)
{
	traces_free(w->t);
	for (unsigned i = 0; i < w->n_got; i++)
		free(w->got[i]);
	free(w);
}

/* Number of a process that begins now; parent -1: one that nobody knows. */
static unsigned born(struct world *w, int parent, uint64_t cgroup, const char *comm)
{
	struct span *s = &w->procs[w->n].s;

	*s = (struct span){ .id = 1000 + w->n,
			    .parent = parent < 0 ? 7 : 1000 + (unsigned)parent,
			    .pid = 100 + w->n,
			    .tid = 100 + w->n,
			    .start_boot_ns = w->now,
			    .start_ns = w->now,
			    .start_real_ns = (int64_t)w->now,
			    .end = SPAN_CUT,
			    .cgroup_id = cgroup,
			    .calls = 1,
			    .comm = comm,
			    .exe = "/bin/x",
			    .cmdline = comm,
			    .cgroup = "/x",
			    .symbol = "",
			    .binary = "" };
	w->procs[w->n].alive = true;
	return w->n++;
}

static void works(struct world *w, unsigned i, uint64_t ns)
{
	w->procs[i].s.cpu_ns += ns;
}

static void dies(struct world *w, unsigned i, int code)
{
	w->procs[i].alive = false;
	w->procs[i].s.end = SPAN_EXITED;
	w->procs[i].s.exit_code = code;
	w->procs[i].s.end_ns = w->now;
}

static void told(struct world *w, unsigned i)
{
	w->procs[i].ending = false;
	traces_finished(w->t, &w->procs[i].s);
}

static void ends(struct world *w, unsigned i)
{
	dies(w, i, 0);
	told(w, i);
}

static void sweep_all(struct world *w, bool all)
{
	traces_begin(w->t, w->now, w->now, all);
	for (unsigned i = 0; i < w->n; i++)
		if (w->procs[i].alive || w->procs[i].ending) {
			if (w->procs[i].alive)
				w->procs[i].s.end_ns = w->now;
			traces_known(w->t, &w->procs[i].s);
		}
	traces_end(w->t);
}

static void sweep(struct world *w)
{
	w->now += S;
	sweep_all(w, false);
}

static const struct span *span_of(const struct trace *t, unsigned proc)
{
	for (uint32_t i = 0; i < t->n_spans; i++)
		if (t->spans[i].id == 1000 + proc)
			return &t->spans[i];
	return NULL;
}

static uint64_t energy(const struct world *w)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < w->n_got; i++)
		for (uint32_t k = 0; k < w->got[i]->n_spans; k++)
			sum += w->got[i]->spans[k].energy_uj[0];
	return sum;
}

#endif
