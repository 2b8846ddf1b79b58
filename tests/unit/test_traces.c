/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of processes made to traces: whole, told late, in other cgroups, cut, orphaned. */
#include "traces_world.h"

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
	unsigned root = born(w, -1, 1, "init"), service = born(w, (int)root, 2, "nginx"),
		 worker = born(w, (int)service, 2, "nginx"), back;

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
	assert_int_equal(w->n_got, 2); /* its parent is of another cgroup */
	assert_int_equal(w->got[1]->n_spans, 1);
	ends(w, root);
	sweep(w);
	assert_int_equal(w->n_got, 3);
	end(w);
}

/* Energy that a process used before it moved does not belong to the cgroup in which it ended. */
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
	assert_int_equal(traces_figures(w->t).open_uj, w->charged_uj - energy(w));
	assert_true(traces_figures(w->t).open_uj > 0);
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
	assert_int_equal(traces_figures(w->t).open_uj, 0);
	end(w);
}

/* The root has ended, others live on: its trace ends at the cut, they are roots of their own then. */
static void test_orphans(void **state)
{
	struct world *w = begin(0, 0);
	unsigned root = born(w, -1, 5, "sh"), daemon = born(w, (int)root, 5, "daemon"),
		 below = born(w, (int)daemon, 5, "worker");

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_tree),    cmocka_unit_test(test_told_late),
		cmocka_unit_test(test_cgroups_apart), cmocka_unit_test(test_moves),
		cmocka_unit_test(test_cut),           cmocka_unit_test(test_orphans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
