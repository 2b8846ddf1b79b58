// SPDX-License-Identifier: Apache-2.0
/* The cost of a reading's rows on machines with more CPUs than this one has: the banks are made here, as the kernel
 * would leave them, and are out of every cache when they are taken. The interrupts that flush the CPUs are not in it.
 * Beside it, in turn, its limit program: the same rows and the numbers of their slots, in the same order, added to a line of
 * memory each and nothing else. A reading that tells rows of a cgroup and a CPU apart, however it lays them, does no less. */
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "source/counters/rows.h"

#define EVENTS 6
#define CACHES (128u << 20) /* more than all caches of a CPU */
#define ROUNDS 5

struct large {
	struct counters c;
	struct counters_options o;
	struct schema schema;
	struct reading r;
	struct cgroup_table *table;
	struct jd_slot_info *info;
	uint64_t *row_slots;
	uint64_t *sums; /* of the limit program, a cache line and more for each row */
};

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		bench_die("memory", 12);
	return p;
}

static void make(struct large *l, unsigned cpus, unsigned cgroups)
{
	struct counters *c = &l->c;
	size_t rows;

	memset(l, 0, sizeof(*l));
	l->schema = (struct schema){ .n_cpus = cpus, .n_packages = 1, .core.n = EVENTS };
	l->schema.cpus = zeroed(cpus, sizeof(*l->schema.cpus));
	for (unsigned i = 0; i < EVENTS; i++)
		l->schema.core.ev[i].kind = EVENT_PERF;
	l->o = (struct counters_options){ .max_cgroups = cgroups, .bank_rows = cgroups + JD_FIRST_SLOT };
	*c = (struct counters){ .o = &l->o, .schema = &l->schema, .n_cpus = cpus, .max_slots = cgroups + JD_FIRST_SLOT };
	counters_set_sizes(c);
	rows = (size_t)cpus * JD_BANKS * c->bank_rows;
	c->states = zeroed(cpus, sizeof(*c->states));
	c->rows = zeroed(rows, c->row_bytes);
	c->row_slots = l->row_slots = zeroed(rows, sizeof(*l->row_slots));
	c->info = l->info = zeroed(c->max_slots, sizeof(*l->info));
	c->seen = zeroed((size_t)cpus * c->bank_rows, sizeof(*c->seen));
	c->slot_cells = zeroed((size_t)cpus * c->max_slots, sizeof(*c->slot_cells));
	c->cpus = zeroed(cpus, sizeof(*c->cpus));
	c->slot_row = zeroed(c->max_slots, sizeof(*c->slot_row));
	memset(c->slot_row, 0xff, c->max_slots * sizeof(*c->slot_row));
	l->sums = zeroed((size_t)cpus * c->bank_rows, sizeof(struct jd_row));
	for (uint32_t slot = JD_FIRST_SLOT; slot < c->max_slots; slot++)
		l->info[slot].key = 1000 + slot;
	l->table = cgroup_table_new();
	if (!l->table || reading_init(&l->r, &l->schema))
		bench_die("reading", 12);
}

static void unmake(struct large *l)
{
	struct counters *c = &l->c;

	reading_free(&l->r);
	cgroup_table_free(l->table);
	free(c->states);
	free(c->rows);
	free(l->row_slots);
	free(l->info);
	free(c->seen);
	free(c->slot_cells);
	free(c->cpus);
	free(c->slot_row);
	free(l->sums);
	free(l->schema.cpus);
}

/* Every cgroup ran on every CPU, in an order of its own there. */
static void run_all(struct large *l)
{
	struct counters *c = &l->c;
	const unsigned n = c->max_slots - JD_FIRST_SLOT;

	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		for (unsigned i = 0; i < n; i++) {
			size_t at = row_index(c, cpu, 0, JD_FIRST_SLOT + i);
			struct jd_row *row = row_at(c, at);

			l->row_slots[at] = JD_FIRST_SLOT + ((uint64_t)i * 7919 + cpu * 101) % n;
			row->time_ns = 1000;
			row->switches = 1;
			for (unsigned k = 0; k < EVENTS; k++)
				row->counters[k] = k;
		}
		c->states[cpu].n_rows[0] = JD_FIRST_SLOT + n;
	}
}

static double take_ns(struct large *l, char *caches)
{
	struct read_context x = { .c = &l->c, .r = &l->r, .table = l->table };
	uint64_t t0;

	run_all(l);
	memset(caches, (int)l->r.number, CACHES);
	l->r.number++;
	t0 = bench_now_ns();
	for (unsigned cpu = 0; cpu < l->c.n_cpus; cpu++)
		counters_take_bank(&x, cpu, 0);
	return (double)(bench_now_ns() - t0);
}

/* The limit program. The sum of slots keeps the compiler from leaving out that they are read. */
static double plain_ns(struct large *l, char *caches)
{
	const struct counters *c = &l->c;
	const size_t words = c->row_bytes / sizeof(uint64_t);
	uint64_t t0, *to = l->sums, slots = 0;

	run_all(l);
	memset(caches, (int)l->r.number + 1, CACHES);
	t0 = bench_now_ns();
	for (unsigned cpu = 0; cpu < c->n_cpus; cpu++) {
		const size_t first = row_index(c, cpu, 0, JD_FIRST_SLOT), n = c->max_slots - JD_FIRST_SLOT;
		const uint64_t *row = (const uint64_t *)row_at(c, first);

		for (size_t i = 0; i < n; i++)
			slots += c->row_slots[first + i];
		for (size_t i = 0; i < n; i++, to += words, row += words)
			for (size_t k = 0; k < words; k++)
				to[k] += row[k];
	}
	__asm__ volatile("" : : "r"(slots), "r"(l->sums) : "memory");
	return (double)(bench_now_ns() - t0);
}

/* The maps as the agent would have them for as many cgroups. */
static double map_mib(struct large *l)
{
	l->o.bank_rows = 0;
	counters_set_sizes(&l->c);
	return (double)counters_map_bytes(&l->c) / (1 << 20);
}

static void one_machine(unsigned cpus, unsigned cgroups, char *caches)
{
	static struct large l;
	struct samples s = { 0 }, plain = { 0 };
	double pairs = (double)cpus * cgroups, ms, limit;

	make(&l, cpus, cgroups);
	take_ns(&l, caches); /* rows, cells and sums are made at first sight */
	plain_ns(&l, caches);
	for (unsigned i = 0; i < ROUNDS; i++) {
		samples_add(&s, take_ns(&l, caches));
		samples_add(&plain, plain_ns(&l, caches));
	}
	ms = samples_median(&s) / 1e6;
	limit = samples_median(&plain) / 1e6;
	printf("| %u | %u | %.2f (%.2f to %.2f) | %.1f | %.2f (%.2f to %.2f) | %.0f |\n", cpus, cgroups, ms,
	       samples_quantile(&s, 0.25) / 1e6, samples_quantile(&s, 0.75) / 1e6, ms * 1e6 / pairs, limit,
	       samples_quantile(&plain, 0.25) / 1e6, samples_quantile(&plain, 0.75) / 1e6, map_mib(&l));
	if (cpus == 256 && cgroups == 2000)
		report_goal("7", verdict_beside(ms <= 10, limit <= 10),
			    "256 CPUs x 2000 cgroups x 6: at most 10 ms (rows made, not run)",
			    "%.1f ms; limit program %.1f ms", ms, limit);
	unmake(&l);
}

int bench_large(int argc, char **argv)
{
	char *caches = zeroed(CACHES, 1);

	puts("\n### Read-out on large machines (6 counters, every cgroup ran on every CPU; rows made here, not run)\n");
	puts("| CPUs | cgroups | ms per reading | ns per row | limit program, ms | kernel maps, MiB |\n|---|---|---|---|---|---|");
	one_machine(2, 1000, caches);
	one_machine(64, 1000, caches);
	one_machine(256, 1000, caches);
	one_machine(256, 2000, caches);
	one_machine(512, 1000, caches);
	one_machine(512, 2000, caches);
	free(caches);
	return 0;
}
