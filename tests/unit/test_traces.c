/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of processes made to traces: whole, cut, moved, orphaned, too many. The world here is a list of processes of which
 * some live; what it used is known to the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "formula/span_energy.h"
#include "model/traces.h"

#define S 1000000000ull
#define MS 1000000ull
#define MAX 4096

struct proc { struct span s; bool alive, ending; };

struct world {
	struct schema schema;
	struct traces *t;
	struct proc procs[MAX];
	unsigned n;
	uint64_t now, price;           /* uJ per ns of CPU time: what charge gives */
	uint64_t refuse_ns;            /* of each charge nothing is left for that much */
	struct trace *got[MAX];
	unsigned n_got;
	uint64_t charged_uj, charged_cgroup[4];
};

static uint64_t charge(void *ctx, uint64_t cgroup_id, uint64_t from, uint64_t until, uint64_t cpu_ns, uint64_t *uj, unsigned *quality)
{
	struct world *w = ctx;
	uint64_t left = cpu_ns < w->refuse_ns ? cpu_ns : w->refuse_ns;

	assert_true(from <= until);
	uj[0] += (cpu_ns - left) * w->price;
	w->charged_uj += (cpu_ns - left) * w->price;
	w->charged_cgroup[cgroup_id % 4] += (cpu_ns - left) * w->price;
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
	struct traces_options o = { .schema = &w->schema, .period_ns = 10 * S, .max_spans = max_spans, .part_spans = part_spans,
				    .charge = charge, .ready = ready, .ctx = w };

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

	*s = (struct span){ .id = 1000 + w->n, .parent = parent < 0 ? 7 : 1000 + (unsigned)parent, .pid = 100 + w->n, .tid = 100 + w->n,
			    .start_boot_ns = w->now, .start_ns = w->now, .start_real_ns = (int64_t)w->now, .end = SPAN_CUT,
			    .cgroup_id = cgroup, .calls = 1, .comm = comm, .exe = "/bin/x", .cmdline = comm, .cgroup = "/x",
			    .symbol = "", .binary = "" };
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

static void test_whole_tree(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 5, "make"), a, b, c;

	w->now += MS;
	a = born(w, (int)root, 5, "sh");
	b = born(w, (int)root, 5, "gcc");
	c = born(w, (int)a, 5, "ls");
	works(w, c, 10);
	works(w, a, 20);
	ends(w, c);
	ends(w, a);
	works(w, root, 1000);
	sweep(w);
	assert_int_equal(w->n_got, 0);
	works(w, b, 5000);
	ends(w, b);
	works(w, root, 7);
	ends(w, root);
	sweep(w);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0]->n_spans, 4);
	assert_true(w->got[0]->last);
	assert_int_equal(w->got[0]->part, 0);
	assert_string_equal(w->got[0]->spans[0].comm, "make");
	assert_int_equal(w->got[0]->spans[0].parent, 0);
	assert_string_equal(w->got[0]->spans[1].comm, "sh");
	assert_string_equal(w->got[0]->spans[2].comm, "ls");
	assert_int_equal(w->got[0]->spans[2].parent, w->got[0]->spans[1].id);
	assert_string_equal(w->got[0]->spans[3].comm, "gcc");
	assert_int_equal(w->got[0]->spans[0].cpu_ns, 1007);
	assert_int_equal(w->got[0]->spans[0].energy_uj[0], 1007 * 3);
	assert_int_equal(w->got[0]->spans[2].energy_uj[0], 30);
	assert_int_equal(w->got[0]->spans[0].energy_quality, QUALITY_WRAPPED);
	assert_int_equal(energy(w), w->charged_uj);
	assert_int_equal(traces_figures(w->t).held, 0);
	assert_int_equal(traces_figures(w->t).trees, 0);
	end(w);
}

/* A child whose parent has ended but is not told yet is below it all the same. */
static void test_told_late(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 5, "sh"), child = born(w, (int)root, 5, "true");

	ends(w, child);
	dies(w, root, 1);
	w->procs[root].ending = true;
	sweep(w);
	sweep(w);
	assert_int_equal(w->n_got, 0);
	told(w, root);
	sweep(w);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0]->n_spans, 2);
	assert_int_equal(w->got[0]->spans[0].exit_code, 1);
	end(w);
}

static void test_cgroups_apart(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 1, "init"), service = born(w, (int)root, 2, "nginx"), worker = born(w, (int)service, 2, "nginx"), back;

	back = born(w, (int)worker, 1, "logger");
	sweep(w);
	ends(w, worker);
	ends(w, service);
	sweep(w);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0]->n_spans, 2);
	assert_int_equal(w->got[0]->spans[0].cgroup_id, 2);
	ends(w, back);
	sweep(w);
	assert_int_equal(w->n_got, 2);     /* its parent is of another cgroup */
	assert_int_equal(w->got[1]->n_spans, 1);
	ends(w, root);
	sweep(w);
	assert_int_equal(w->n_got, 3);
	end(w);
}

/* What a process used before it came is not of the cgroup that it ended in. */
static void test_moves(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 1, "runc"), child = born(w, (int)root, 1, "runc");

	works(w, child, 1000);
	sweep(w);
	w->procs[child].s.cgroup_id = 2;
	works(w, child, 50);
	sweep(w);
	works(w, child, 7);
	ends(w, child);
	ends(w, root);
	sweep(w);
	assert_int_equal(w->n_got, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct span *s = span_of(w->got[i], child);

		assert_int_equal(w->got[i]->n_spans, 1);
		if (!s)
			continue;
		assert_int_equal(s->cpu_ns, 57);
		assert_int_equal(s->energy_uj[0], 57 * 3);
		assert_true(s->energy_quality & QUALITY_PARTIAL);
	}
	assert_true(energy(w) <= w->charged_uj);
	end(w);
}

static void test_cut(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 5, "daemon"), child = 0, left;
	uint64_t cpu = 0, last_end = 0;

	for (unsigned i = 0; i < 35; i++) {
		works(w, root, 100);
		if (i % 4 == 0)
			child = born(w, (int)root, 5, "worker");
		works(w, child, 10);
		if (i % 4 == 2)
			ends(w, child);
		sweep(w);
	}
	assert_int_equal(w->n_got, 3);
	left = born(w, (int)child, 5, "left");
	sweep(w);
	ends(w, child);
	ends(w, left);
	ends(w, root);
	sweep(w);
	assert_int_equal(w->n_got, 4);
	for (unsigned i = 0; i < 4; i++) {
		const struct trace *t = w->got[i];

		assert_int_equal(t->part, i);
		assert_int_equal(t->last, i == 3);
		assert_int_equal(t->spans[0].id, 1000 + root);
		assert_int_equal(t->spans[0].end, i == 3 ? SPAN_EXITED : SPAN_CUT);
		if (i)
			assert_int_equal(t->spans[0].start_ns, last_end);
		last_end = t->spans[0].end_ns;
		for (uint32_t k = 0; k < t->n_spans; k++)
			cpu += t->spans[k].cpu_ns;
	}
	assert_int_equal(energy(w), w->charged_uj);
	assert_int_equal(cpu * 3, w->charged_uj);
	assert_int_equal(traces_figures(w->t).cut, 3);
	end(w);
}

/* The root has ended, others live on: its trace ends at the cut, they are roots of their own then. */
static void test_orphans(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 5, "sh"), daemon = born(w, (int)root, 5, "daemon"), below = born(w, (int)daemon, 5, "worker");

	works(w, root, 10);
	ends(w, root);
	works(w, daemon, 100);
	for (unsigned i = 0; i < 11; i++)
		sweep(w);
	assert_int_equal(w->n_got, 1);
	assert_true(w->got[0]->last);
	assert_int_equal(w->got[0]->n_spans, 3);
	assert_int_equal(w->got[0]->spans[0].end, SPAN_EXITED);
	assert_int_equal(w->got[0]->spans[1].end, SPAN_CUT);
	works(w, daemon, 1000);
	ends(w, below);
	ends(w, daemon);
	sweep(w);
	assert_int_equal(w->n_got, 2);
	assert_int_equal(w->got[1]->n_spans, 2);
	assert_int_equal(w->got[1]->spans[0].id, 1000 + daemon);
	assert_int_equal(w->got[1]->spans[0].cpu_ns, 1000);
	assert_int_equal(w->got[1]->spans[1].parent, 1000 + daemon);
	assert_int_equal(energy(w), w->charged_uj);
	end(w);
}

static void calls(struct world *w, unsigned proc, uint64_t id, uint64_t parent, uint64_t cpu_ns)
{
	struct span s = w->procs[proc].s;

	s.id = id;
	s.parent = parent ? parent : s.id;
	s.process = 1000 + proc;
	s.parent = parent ? parent : s.process;
	s.kind = SPAN_FUNCTION;
	s.end = SPAN_EXITED;
	s.start_ns += id;
	s.end_ns = w->now;
	s.cpu_ns = cpu_ns;
	s.symbol = "work";
	s.binary = "/bin/x";
	traces_finished(w->t, &s);
}

/* Functions take from their process by CPU time; what one called is not its own. */
static void test_functions(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 5, "prog");
	const struct trace *t;

	w->now += MS;
	calls(w, root, 1 << 22, 0, 400);
	calls(w, root, 2 << 22, 1 << 22, 300);
	calls(w, root, 3 << 22, 99 << 22, 100);        /* whoever called it has not returned */
	calls(w, root, 4 << 22, 0, 5000);              /* scaled too far */
	works(w, root, 1000);
	ends(w, root);
	sweep(w);
	assert_int_equal(w->n_got, 1);
	t = w->got[0];
	assert_int_equal(t->n_spans, 5);
	assert_int_equal(t->spans[1].energy_uj[0], 100 * 3);
	assert_int_equal(t->spans[2].energy_uj[0], 300 * 3);
	assert_int_equal(t->spans[2].parent, t->spans[1].id);
	assert_int_equal(t->spans[3].energy_uj[0], 100 * 3);
	assert_int_equal(t->spans[3].parent, 1000 + root);
	assert_int_equal(t->spans[4].energy_uj[0], 500 * 3);
	assert_true(t->spans[4].energy_quality & QUALITY_PARTIAL);
	assert_int_equal(t->spans[0].energy_uj[0], 0);
	assert_int_equal(t->spans[0].cpu_ns, 1000);
	assert_int_equal(energy(w), w->charged_uj);
	end(w);
}

/* It was there before: what it used until then is not paid for, and its span begins with the agent. */
static void test_seen_running(void **state)
{
	struct world *w = begin(0, 0);
	unsigned old;

	w->now -= 500 * S;
	old = born(w, -1, 5, "old");
	w->procs[old].s.seen_running = true;
	works(w, old, 100 * S);
	w->now += 500 * S;
	sweep(w);
	works(w, old, 50);
	ends(w, old);
	sweep(w);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0]->spans[0].cpu_ns, 50);
	assert_int_equal(w->got[0]->spans[0].energy_uj[0], 150);
	assert_int_equal(w->got[0]->spans[0].start_ns, w->now - S);
	assert_int_equal(w->got[0]->spans[0].start_boot_ns, w->now - 502 * S);
	end(w);
}

/* CPU time without energy: owed to the next interval, and said when it stays so. */
static void test_owed(void **state)
{
	struct world *w = begin(0, 0);
	unsigned a = born(w, -1, 5, "a"), b;

	w->refuse_ns = 10 * MS;
	works(w, a, 20 * MS);
	sweep(w);
	w->refuse_ns = 0;
	ends(w, a);
	sweep(w);
	assert_int_equal(w->got[0]->spans[0].energy_uj[0], 60 * MS);
	assert_int_equal(w->got[0]->spans[0].energy_quality & QUALITY_PARTIAL, 0);
	b = born(w, -1, 5, "b");
	w->refuse_ns = 10 * MS;
	works(w, b, 20 * MS);
	ends(w, b);
	sweep(w);
	assert_int_equal(w->got[1]->spans[0].energy_uj[0], 30 * MS);
	assert_true(w->got[1]->spans[0].energy_quality & QUALITY_PARTIAL);
	end(w);
}

/* Nothing is known of it any more, and its end was never told. */
static void test_vanished(void **state)
{
	struct world *w = begin(0, 0);
	unsigned a = born(w, -1, 5, "a");

	works(w, a, 9);
	sweep(w);
	w->procs[a].alive = false;
	sweep(w);
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0]->spans[0].end, SPAN_UNKNOWN);
	assert_true(w->got[0]->spans[0].quality & QUALITY_LOST);
	assert_int_equal(w->got[0]->spans[0].cpu_ns, 9);
	end(w);
}

static void test_bounds(void **state)
{
	struct world *w = begin(100, 40);
	unsigned root = born(w, -1, 5, "root");
	uint64_t spans = 0;

	sweep(w);
	for (unsigned i = 0; i < 300; i++)
		ends(w, born(w, (int)root, 5, "many"));
	assert_int_equal(traces_figures(w->t).held, 100);
	assert_int_equal(traces_figures(w->t).lost_spans, 201);
	sweep(w);
	sweep(w);
	assert_int_equal(w->n_got, 1);     /* more than 40: cut before its time */
	assert_false(w->got[0]->last);
	for (unsigned i = 0; i < 30; i++)
		ends(w, born(w, (int)root, 5, "many"));
	sweep_all(w, true);
	assert_int_equal(w->n_got, 2);
	for (unsigned i = 0; i < w->n_got; i++)
		spans += w->got[i]->n_spans;
	assert_int_equal(spans, 100 + 31);
	assert_int_equal(traces_figures(w->t).held, 1);
	end(w);
}

static uint64_t seed = 42;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((seed >> 33) % n);
}

/* Anything may happen: every process comes once or in parts that follow each other, all energy that was given is in some
 * span unless its process moved, and nothing is held when all have gone. */
static void test_random(void **state)
{
	for (unsigned round = 0; round < 60; round++) {
		struct world *w = begin(0, 20 + below(200));
		uint64_t cpu = 0, used = 0;
		unsigned seen = 0;

		for (unsigned step = 0; step < 60; step++) {
			for (unsigned k = below(30); k--;) {
				unsigned p = w->n ? below(w->n) : 0;

				if (w->n < MAX && (!w->n || below(3) == 0))
					born(w, w->n && w->procs[p].alive ? (int)p : -1, below(3), "x");
				else if (w->n && w->procs[p].alive && below(3))
					works(w, p, below(1000));
				else if (w->n && w->procs[p].alive) {
					dies(w, p, 0);
					w->procs[p].ending = true;
				} else if (w->n && w->procs[p].ending)
					told(w, p);
			}
			sweep(w);
		}
		for (unsigned p = 0; p < w->n; p++) {
			if (w->procs[p].alive) {
				dies(w, p, 0);
				w->procs[p].ending = true;
			}
			if (w->procs[p].ending)
				told(w, p);
			used += w->procs[p].s.cpu_ns;
		}
		sweep(w);
		for (unsigned i = 0; i < w->n_got; i++)
			for (uint32_t k = 0; k < w->got[i]->n_spans; k++) {
				cpu += w->got[i]->spans[k].cpu_ns;
				seen += w->got[i]->spans[k].end == SPAN_EXITED;
			}
		assert_int_equal(seen, w->n);
		assert_int_equal(cpu, used);
		assert_int_equal(energy(w), used * 3);
		assert_int_equal(energy(w), w->charged_uj);
		assert_int_equal(traces_figures(w->t).held, 0);
		end(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_tree), cmocka_unit_test(test_told_late), cmocka_unit_test(test_cgroups_apart),
		cmocka_unit_test(test_moves), cmocka_unit_test(test_cut), cmocka_unit_test(test_orphans),
		cmocka_unit_test(test_functions), cmocka_unit_test(test_seen_running), cmocka_unit_test(test_owed),
		cmocka_unit_test(test_vanished), cmocka_unit_test(test_bounds), cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
