/* SPDX-License-Identifier: Apache-2.0 */
/* A world of cgroups that come, go, move and get their names late, and the books of their groups. */
#ifndef JD_TEST_ROLLUP_WORLD_H
#define JD_TEST_ROLLUP_WORLD_H
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/buf.h"
#include "encode/metrics/openmetrics.h"
#include "encode/totals/keep.h"
#include "encode/totals/totals.h"

#define CGROUPS 60
#define ROWS_MOST 250 /* cgroups of one interval */
#define ROWS (ROWS_MOST + 8)
#define STEP_NS 1000000000ull

static struct cpu_desc cpus[2] = { { .cpu = 0, .present = true }, { .cpu = 1, .present = true } };
static struct schema schema;
static struct snapshot snap;
static uint64_t random_state;

/* The cgroups of the world. The group of each is known by how it was made, not by its path. */
static struct one {
	bool there, named;
	uint32_t generation, renamed;
	char path[64], slice[32], unit[16], pod[16], space[8];
	struct names *names;
} world[CGROUPS];

static unsigned any(unsigned n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(random_state >> 33) % n;
}

static void begin_world(uint64_t seed)
{
	random_state = seed;
	memset(world, 0, sizeof(world));
	memset(&schema, 0, sizeof(schema));
	snprintf(schema.sensor, sizeof(schema.sensor), "node");
	schema.cpus = cpus;
	schema.n_cpus = 2;
	schema.n_domains = 3;
	schema.domains[0] = (struct domain_desc){ .kind = DOMAIN_PACKAGE, .name = "package-0" };
	schema.domains[1] = (struct domain_desc){ .kind = DOMAIN_PACKAGE, .package = 1, .name = "package-1" };
	schema.domains[2] = (struct domain_desc){ .kind = DOMAIN_DRAM, .name = "dram-0" };
	schema.core.n = 1;
	snprintf(schema.core.ev[0].name, sizeof(schema.core.ev[0].name), "CYCLES");
	schema.msr.n = 1;
	snprintf(schema.msr.ev[0].name, sizeof(schema.msr.ev[0].name), "TSC");
	memset(&snap, 0, sizeof(snap));
	snap.schema = &schema;
	assert_int_equal(snapshot_reserve(&snap, ROWS, 1), 0);
	snap.end_ns = STEP_NS;
}

static void end_world(struct totals *t)
{
	totals_free(t);
	free(t);
	snapshot_free(&snap);
	for (unsigned i = 0; i < CGROUPS; i++)
		names_put(world[i].names);
}

static void free_totals(struct totals *t)
{
	totals_free(t);
	free(t);
}

static void interval(void)
{
	snap.n_rows = READING_SPECIAL_ROWS;
	memset(snap.rows, 0, ROWS * sizeof(*snap.rows));
	memset(snap.energy_uj, 0, (size_t)ROWS * schema.n_domains * sizeof(*snap.energy_uj));
	for (unsigned i = 0; i < READING_SPECIAL_ROWS; i++) {
		snap.rows[i].kind = (enum row_kind)i;
		snap.rows[i].path = row_kind_name((enum row_kind)i);
		*snapshot_energy(&snap, i, 0) = i + 1;
	}
	snap.start_ns = snap.end_ns;
	snap.end_ns += STEP_NS;
}

static struct snap_row *add_row(const char *path, uint32_t key, uint64_t uj)
{
	unsigned i = snap.n_rows++;

	snap.rows[i] = (struct snap_row){ .kind = ROW_CGROUP,
					  .key = key,
					  .id = 100 + key,
					  .path = path,
					  .selected = true,
					  .time_ns = uj * 10,
					  .switches = 1,
					  .counters = { uj * 3 } };
	*snapshot_energy(&snap, i, 0) = uj;
	*snapshot_energy(&snap, i, 1) = uj / 3;
	*snapshot_energy(&snap, i, 2) = uj / 2;
	return &snap.rows[i];
}

static void close_books(void)
{
	for (unsigned d = 0; d < schema.n_domains; d++) {
		snap.domains[d].idle_uj = 7;
		snap.domains[d].residual_uj = 3;
		snap.domains[d].energy_uj = 10;
		for (unsigned i = 0; i < snap.n_rows; i++)
			snap.domains[d].energy_uj += *snapshot_energy(&snap, i, d);
	}
}

/* Half are pods, with names of which some come late; the others are units in slices, some of them a user's. */
static void be_born(struct one *c, unsigned i)
{
	const unsigned n = any(4);

	c->there = true;
	c->generation++;
	c->named = any(3);
	if (i % 2) {
		snprintf(c->space, sizeof(c->space), "ns%u", n % 2);
		snprintf(c->pod, sizeof(c->pod), "pod-%u", n);
		snprintf(c->path, sizeof(c->path), "/kubepods.slice/p%u.slice/c%u-%u.scope", n, i, c->generation);
		snprintf(c->slice, sizeof(c->slice), "/kubepods.slice/p%u.slice", n);
	} else {
		snprintf(c->unit, sizeof(c->unit), "u%u.service", n);
		snprintf(c->path, sizeof(c->path), "%s/u%u.service/c%u", n ? "/system.slice" : "", n, i);
		snprintf(c->slice, sizeof(c->slice), "%s", n ? "/system.slice" : "/");
	}
}

static void get_named(struct one *c, unsigned i)
{
	struct names_draft d = { 0 };

	d.field[NAME_NAMESPACE] = i % 2 ? c->space : NULL;
	d.field[NAME_POD] = i % 2 ? c->pod : NULL;
	d.field[NAME_CONTAINER] = i % 2 ? "work" : NULL;
	d.field[NAME_UNIT] = i % 2 ? "kubelet.service" : c->unit;
	names_put(c->names);
	c->names = names_new(&d);
	assert_non_null(c->names);
}

static void live(struct totals *t)
{
	interval();
	for (unsigned i = 0; i < CGROUPS; i++) {
		struct one *c = &world[i];
		bool ends = c->there && any(12) == 0;
		struct snap_row *r;

		if (!c->there && any(6) == 0) {
			be_born(c, i);
			names_put(c->names);
			c->names = NULL;
			ends = any(5) == 0;
		}
		if (!c->there)
			continue;
		if (!c->names && (c->named || any(3) == 0))
			get_named(c, i);
		if (any(40) == 0) {
			c->renamed++;
			snprintf(c->path, sizeof(c->path), "/moved.slice/c%u-%u", i, c->renamed);
			snprintf(c->slice, sizeof(c->slice), "/moved.slice");
		}
		r = add_row(c->path, 10 + i, any(3) ? any(100000) * (1 + i) : 0);
		r->generation = c->generation;
		r->renamed = c->renamed;
		r->names = c->names;
		r->ended = ends;
		c->there = !ends;
	}
	close_books();
	totals_add(t, &snap, NULL);
}

/* What is on the page sums to the machine, in each domain and each column, to the last unit. */
static void assert_closes(const struct totals *t, const uint64_t *all)
{
	for (unsigned k = 0; k < totals_width(t); k++) {
		uint64_t sum = t->retired[k];

		for (unsigned i = ROW_KERNEL; i < t->n_rows; i++)
			if (t->rows[i].used && t->rows[i].shown)
				sum += totals_shown(t, i, k);
		assert_int_equal(sum, all[k]);
		if (k < schema.n_domains)
			assert_int_equal(sum + t->domains[k].idle_uj + t->domains[k].residual_uj,
					 t->domains[k].energy_uj);
	}
}

/* What everything but idle has used since the start, in the columns of t. */
static void sum_up(const struct totals *t, uint64_t *all)
{
	for (unsigned i = ROW_KERNEL; i < snap.n_rows; i++) {
		for (unsigned d = 0; d < schema.n_domains; d++)
			all[d] += *snapshot_energy(&snap, i, d);
		all[totals_column(t, TOTAL_TIME)] += snap.rows[i].time_ns;
		all[totals_column(t, TOTAL_SWITCHES)] += snap.rows[i].switches;
		all[totals_counter(t, 0)] += snap.rows[i].counters[0];
	}
}

static int find(const struct totals *t, const char *name)
{
	for (unsigned i = 0; i < t->n_rows; i++)
		if (t->rows[i].used && strcmp(t->rows[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* Nothing that was shown and is shown goes back. */
static void assert_no_less(const struct totals *was, const struct totals *t)
{
	for (unsigned i = ROW_KERNEL; i < was->n_rows; i++) {
		int now = was->rows[i].shown ? find(t, was->rows[i].name) : -1;

		if (now < 0 || !t->rows[now].shown)
			continue;
		for (unsigned k = 0; k < totals_width(t); k++)
			assert_true(totals_shown(t, (unsigned)now, k) >= totals_shown(was, i, k));
	}
	for (unsigned k = 0; was->adds && k < totals_width(t); k++)
		assert_true(t->retired[k] >= was->retired[k]);
}

static unsigned series(const struct totals *t)
{
	struct buf out = { 0 }, scratch = { 0 };
	unsigned n = 0;

	assert_int_equal(openmetrics_write(t, NULL, false, &scratch, &out), 0);
	buf_add(&out, "", 1);
	for (const char *line = (char *)out.data; *line; line = strchr(line, '\n') + 1)
		n += *line != '#';
	buf_free(&out);
	buf_free(&scratch);
	return n;
}

/* Saved and loaded, as a restart does: the copy takes over. */
static void restart(struct totals **t, const struct totals_options *o)
{
	struct totals *next = totals_new(&schema, o);
	struct buf text = { 0 };

	totals_save(*t, 0, &text);
	assert_int_equal(totals_load(next, text.data, text.len), 0);
	assert_int_equal(totals_loaded(next), 0);
	buf_free(&text);
	free_totals(*t);
	*t = next;
}

#endif
