/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: functions, processes older than the agent, energy that is owed, ends that nobody saw, bounds, and anything at
 * random. */
#include "traces_world.h"

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
	calls(w, root, 3 << 22, 99 << 22, 100); /* whoever called it has not returned */
	calls(w, root, 4 << 22, 0, 5000); /* scaled too far */
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

/* A call of proc, from and until seconds after `at`. */
static void called(struct world *w, unsigned proc, uint64_t at, const char *symbol, uint64_t id, uint64_t parent,
		   int from, int until, uint64_t cpu_ns)
{
	struct span s = w->procs[proc].s;

	s.id = id;
	s.parent = parent;
	s.process = 1000 + proc;
	s.kind = SPAN_FUNCTION;
	s.end = SPAN_EXITED;
	s.start_ns = at + (uint64_t)((int64_t)S * from);
	s.start_real_ns = (int64_t)s.start_ns;
	s.end_ns = at + (uint64_t)((int64_t)S * until);
	s.wall_ns = s.end_ns - s.start_ns;
	s.cpu_ns = cpu_ns;
	s.symbol = symbol;
	s.binary = "/bin/x";
	traces_finished(w->t, &s);
}

static const struct span *function_of(const struct trace *t, const char *symbol)
{
	for (uint32_t i = 1; i < t->n_spans; i++) {
		const struct span *f = &t->spans[i];

		assert_true(f->start_ns >= t->spans[0].start_ns && f->end_ns <= t->spans[0].end_ns);
		assert_int_equal(f->start_real_ns, f->start_ns);
		if (strcmp(f->symbol, symbol) == 0)
			return f;
	}
	fail_msg("no %s", symbol);
	return NULL;
}

/* A call that the cut goes through: the part in which it ends has its time since the cut, and energy for that. */
static void test_functions_cut(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 5, "daemon");
	const struct span *outer, *inner, *before;
	uint64_t cut_ns;

	for (unsigned i = 0; i < 10; i++) {
		works(w, root, 1000);
		sweep(w);
	}
	assert_int_equal(w->n_got, 1);
	assert_int_equal(w->got[0]->spans[0].end, SPAN_CUT);
	cut_ns = w->got[0]->spans[0].end_ns;
	works(w, root, 10000);
	w->now = cut_ns + 2 * S;
	called(w, root, cut_ns, "outer", 1 << 22, 1000 + root, -6, 2, 4000);
	called(w, root, cut_ns, "inner", 2 << 22, 1 << 22, 1, 2, 100);
	called(w, root, cut_ns, "before", 3 << 22, 1000 + root, -3, -1, 500); /* told after the cut */
	ends(w, root);
	sweep(w);
	assert_int_equal(w->n_got, 2);
	assert_int_equal(w->got[1]->n_spans, 4);
	outer = function_of(w->got[1], "outer");
	inner = function_of(w->got[1], "inner");
	before = function_of(w->got[1], "before");
	assert_int_equal(inner->parent, outer->id);
	assert_int_equal(outer->end_ns - outer->start_ns, 2 * S);
	assert_int_equal(outer->wall_ns, 8 * S);
	assert_int_equal(outer->cpu_ns, 4000);
	assert_true(outer->quality & QUALITY_PARTIAL && outer->energy_quality & QUALITY_PARTIAL);
	assert_int_equal(outer->energy_uj[0], (1000 - 100) * 3);
	assert_int_equal(inner->end_ns - inner->start_ns, S);
	assert_false(inner->quality & QUALITY_PARTIAL);
	assert_int_equal(inner->energy_uj[0], 100 * 3);
	assert_int_equal(before->start_ns, cut_ns);
	assert_int_equal(before->end_ns, cut_ns);
	assert_int_equal(before->wall_ns, 2 * S);
	assert_true(before->quality & QUALITY_PARTIAL);
	assert_int_equal(before->energy_uj[0], 0);
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

/* A process that is not known any more and whose end was never told. */
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
	assert_int_equal(w->n_got, 1); /* more than 40: cut before its time */
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

/* Many traces at once: some a sweep, so that the readings go on, and all in the end. */
static void test_portions(void **state)
{
	struct world *w = begin(0, 10);
	unsigned before = 0;

	for (unsigned i = 0; i < 200; i++)
		ends(w, born(w, -1, 5, "one"));
	for (unsigned i = 0; i < 20 && w->n_got < 200; i++) {
		sweep(w);
		assert_in_range(w->n_got - before, 1, 50);
		before = w->n_got;
	}
	assert_int_equal(w->n_got, 200);
	assert_int_equal(energy(w), w->charged_uj);
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
		w->now += S;
		sweep_all(w, true);
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
		cmocka_unit_test(test_functions),    cmocka_unit_test(test_functions_cut),
		cmocka_unit_test(test_seen_running), cmocka_unit_test(test_owed),
		cmocka_unit_test(test_vanished),     cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_portions),     cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
