/* SPDX-License-Identifier: Apache-2.0 */
/* A tap: deadlines after a delay, an interval that begins anew, and a formula that stays until another is chosen. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "agent/plan/tap.h"

#define S 1000000000ull

static unsigned made, ended;
static bool no_memory;

struct formula {
	unsigned applied;
};

static struct formula *create(const struct formula_options *o)
{
	if (no_memory)
		return NULL;
	made++;
	return calloc(1, sizeof(struct formula));
}

static int apply(struct formula *f, struct snapshot *s)
{
	f->applied++;
	s->package_mc = 7;
	return 0;
}

static void destroy(struct formula *f)
{
	ended += f != NULL;
	free(f);
}

static const struct formula_ops counting = { .name = "counting", .create = create, .apply = apply, .destroy = destroy };

static struct cpu_desc cpus[1] = { { .present = true } };
static struct schema schema = { .n_cpus = 1, .cpus = cpus, .n_domains = 1 };

static void begin(struct reading *r, struct tap *t)
{
	made = ended = 0;
	no_memory = false;
	assert_int_equal(reading_init(r, &schema), 0);
	r->mono_ns = 100 * S;
	r->domains[0].uj_num = r->domains[0].uj_den = 1;
	*t = (struct tap){ 0 };
	assert_int_equal(tap_begin(t, r, 2 * S), 0);
}

static void finish(struct reading *r, struct tap *t)
{
	tap_end(t);
	assert_null(t->consumer);
	assert_int_equal(t->interval_ns, 0);
	assert_int_equal(made, ended);
	reading_free(r);
}

static void test_deadlines(void **state)
{
	struct reading r;
	struct tap t;

	begin(&r, &t);
	assert_int_equal(t.deadline_ns, 102 * S);
	assert_int_equal(tap_next(&t, 102 * S), 0);
	assert_int_equal(t.deadline_ns, 104 * S);
	assert_int_equal(tap_next(&t, 109 * S), 2);
	assert_int_equal(t.deadline_ns, 110 * S);
	finish(&r, &t);
}

static void test_interval(void **state)
{
	struct consumer *was;
	struct snapshot *s;
	struct reading r;
	struct tap t;

	begin(&r, &t);
	was = t.consumer;
	r.mono_ns += S;
	assert_int_equal(tap_begin(&t, &r, 5 * S), 0);
	assert_ptr_equal(t.consumer, was);
	assert_int_equal(t.deadline_ns, 106 * S);
	r.number++;
	r.mono_ns += S;
	s = tap_take(&t, &r);
	assert_non_null(s);
	assert_int_equal(s->nominal_ns, 5 * S);
	assert_int_equal(s->missed, 0);
	assert_int_equal(s->end_ns - s->start_ns, 2 * S); /* since the tap began */
	finish(&r, &t);
	assert_null(tap_take(&t, &r));
}

static void test_formula(void **state)
{
	struct formula_choice by = { &counting, { .idle = IDLE_OWN } };
	struct formula *was;
	struct snapshot *s;
	struct reading r;
	struct tap t;

	begin(&r, &t);
	assert_int_equal(tap_use(&t, &by), 0);
	was = t.formula;
	assert_int_equal(tap_use(&t, &by), 0);
	assert_ptr_equal(t.formula, was);
	r.number++;
	r.mono_ns += S;
	s = tap_take(&t, &r);
	assert_non_null(s);
	tap_split(&t, s);
	assert_int_equal(s->package_mc, 7);
	assert_int_equal(t.formula->applied, 1);
	by.options.idle = IDLE_BY_TIME;
	assert_int_equal(tap_use(&t, &by), 0);
	assert_int_equal(made, 2);
	assert_int_equal(ended, 1);
	assert_int_equal(t.formula->applied, 0);
	by.options.idle = IDLE_OWN;
	no_memory = true;
	assert_int_equal(tap_use(&t, &by), -ENOMEM);
	tap_split(&t, s); /* all residual */
	no_memory = false;
	assert_int_equal(tap_use(&t, &by), 0);
	finish(&r, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deadlines),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_formula),
	};

	return cmocka_run_group_tests_name("tap", tests, NULL, NULL);
}
