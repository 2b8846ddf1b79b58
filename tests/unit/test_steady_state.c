/* SPDX-License-Identifier: Apache-2.0 */
/* No heap allocation per interval in snapshot and formula, counted by the sanitizer's own hooks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "formula/formula.h"
#include "model/cgroup.h"

/* Of the sanitizer runtime; gcc does not install its header. */
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
					      void (*free_hook)(const volatile void *));

#define ROWS 1000
#define CPUS 2
#define S 1000000000ull

static unsigned allocations;

static void on_malloc(const volatile void *p, size_t size)
{
	(void)p;
	(void)size;
	allocations++;
}

static void on_free(const volatile void *p)
{
	(void)p;
}

static void interval(struct reading *r)
{
	r->number++;
	r->mono_ns += S;
	for (uint32_t row = READING_SPECIAL_ROWS; row < r->n_rows; row++) {
		for (uint16_t cpu = 0; cpu < CPUS; cpu++) {
			struct cell *v = reading_cell(r, row, cpu);

			v->time_ns += 1000;
			v->counters[0] += 3000 + row;
		}
	}
	for (unsigned d = 0; d < r->schema->n_domains; d++) {
		r->domains[d].units += 163840;
		r->domains[d].time_ns = r->mono_ns;
	}
}

static void run(const struct formula_ops *ops, enum idle_policy idle)
{
	static struct cpu_desc cpus[CPUS] = { { .present = true }, { .present = true } };
	static struct schema schema = {
		.n_cpus = CPUS, .cpus = cpus, .n_domains = 2, .core = { .n = 1, .ev = { { .name = "CYCLES" } } }
	};
	struct formula_options o = { .idle = idle };
	struct cgroup *cg = calloc(ROWS, sizeof(*cg));
	struct reading r;
	struct consumer *c;
	struct formula *f;
	unsigned before = 0;

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		o.idle_watts[k] = (double)NAN;
	assert_int_equal(reading_init(&r, &schema), 0);
	r.domains[0].uj_num = r.domains[1].uj_num = 1000000;
	r.domains[0].uj_den = r.domains[1].uj_den = 16384;
	for (unsigned i = 0; i < ROWS; i++) {
		cg[i] = (struct cgroup){ .id = i + 1, .path = (char *)"/x" };
		assert_true(reading_add_row(&r, &cg[i]) > 0);
	}
	c = consumer_new(&r);
	f = ops->create(&o);
	for (unsigned k = 0; k < 20; k++) {
		if (k == 2)
			before = allocations;
		interval(&r);
		assert_int_equal(ops->apply(f, consumer_snapshot(c, &r)), 0);
	}
	assert_true(before > 0);
	assert_int_equal(allocations, before);
	ops->destroy(f);
	consumer_free(c);
	reading_free(&r);
	free(cg);
}

static void test_no_allocation(void **state)
{
	assert_int_not_equal(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free), 0);
	for (enum idle_policy idle = IDLE_OWN; idle <= IDLE_BY_SHARE; idle++) {
		run(&formula_share, idle);
		run(&formula_model, idle);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_allocation) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
