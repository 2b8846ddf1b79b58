/* SPDX-License-Identifier: Apache-2.0 */
/* A reading of four CPUs and two domains, with one consumer that has marked its start. */
#ifndef CONSUMER_FIXTURE_H
#define CONSUMER_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "model/cgroup.h"
#include "model/snapshot.h"

#define CPUS 4

static struct cpu_desc cpu_list[CPUS];
static struct schema schema = {
	.n_cpus = CPUS, .cpus = cpu_list, .n_domains = 2, .core = { .n = 2 }, .msr = { .n = 1 }
};

struct fixture {
	struct reading r;
	struct consumer *c;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f || reading_init(&f->r, &schema))
		return -1;
	f->r.domains[0].uj_num = f->r.domains[1].uj_num = f->r.domains[0].uj_den = f->r.domains[1].uj_den = 1;
	f->r.mono_ns = 1000;
	f->r.boot_ns = 5000;
	f->c = consumer_new(&f->r);
	f->r.number = 1;
	*state = f;
	return f->c ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	consumer_free(f->c);
	reading_free(&f->r);
	free(f);
	return 0;
}

static void charge(struct reading *r, uint32_t row, uint16_t cpu, uint64_t time_ns)
{
	const int64_t cell = reading_cell_number(r, row, cpu);

	assert_int_equal(reading_add_time(r, (uint32_t)cell, time_ns), 0);
	r->cells[cell].counters[0] += 3 * time_ns;
	r->cells[cell].switches++;
}

/* The rest of a cell that is about to change. */
static struct cell_rest *rest_of(struct reading *r, uint32_t row, uint16_t cpu)
{
	reading_cell(r, row, cpu);
	return reading_rest(r, (uint32_t)reading_cell_number(r, row, cpu));
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
