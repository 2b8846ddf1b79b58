/* SPDX-License-Identifier: Apache-2.0 */
/* Roll-ups: whatever cgroups come, go, move, get their names late or are pushed out, the books of groups close, no value
 * that stays on the page goes back, and the page has no more series than it may. */
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
#define STORM 250 /* pods of one interval */
#define ROWS (STORM + 8)
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

static void run_world(const struct totals_options *o, uint64_t seed)
{
	uint64_t all[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + 1] = { 0 };
	struct totals *t, was = { 0 };

	begin_world(seed);
	t = totals_new(&schema, o);
	for (unsigned step = 0; step < 150; step++) {
		unsigned shown = 0;

		if (step % 50 == 49)
			restart(&t, o);
		live(t);
		sum_up(t, all);
		assert_closes(t, all);
		assert_no_less(&was, t);
		for (unsigned i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++)
			shown += t->rows[i].used && t->rows[i].shown;
		if (o->top)
			assert_true(shown <= o->top);
		assert_int_equal(totals_copy(&was, t), 0);
	}
	totals_free(&was);
	end_world(t);
}

static const struct grouping groupings[] = {
	{ GROUP_NONE, 0 }, { GROUP_NAMESPACE, 0 }, { GROUP_POD, 0 },   { GROUP_CONTAINER, 0 },
	{ GROUP_UNIT, 0 }, { GROUP_SLICE, 0 },     { GROUP_DEPTH, 1 }, { GROUP_DEPTH, 2 },
};
#define N_GROUPINGS (sizeof(groupings) / sizeof(groupings[0]))

static void test_closes(void **state)
{
	for (unsigned g = 0; g < N_GROUPINGS; g++)
		for (unsigned top = 0; top < 6; top += 2)
			for (unsigned keep = 1; keep < 40; keep += 19) {
				const struct totals_options o = { .keep_ns = keep * STEP_NS,
								  .top = top,
								  .by = groupings[g] };

				run_world(&o, 1 + g * 100 + top * 10 + keep);
			}
}

/* The text by which the test knows the group of a cgroup. */
static void group_of(const struct snap_row *r, const struct grouping *g, char *dst, size_t size)
{
	const struct one *c = &world[r->key - 10];
	bool pod = (r->key - 10) % 2;

	switch (g->kind) {
	case GROUP_NAMESPACE:
		snprintf(dst, size, "%s", r->names && pod ? c->space : "unnamed");
		return;
	case GROUP_POD:
	case GROUP_CONTAINER:
		snprintf(dst, size, "%s %s", r->names && pod ? c->space : "unnamed", r->names && pod ? c->pod : "");
		return;
	case GROUP_UNIT:
		snprintf(dst, size, "%s", !r->names ? "unnamed" : pod ? "kubelet.service" : c->unit);
		return;
	case GROUP_SLICE:
		snprintf(dst, size, "%s", c->slice);
		return;
	default:
		snprintf(dst, size, "%s", r->path);
		if (strchr(dst + 1, '/'))
			*strchr(dst + 1, '/') = '\0';
	}
}

static void name_of(const struct total_row *r, const struct grouping *g, char *dst, size_t size)
{
	if (!total_row_named(r))
		snprintf(dst, size, "%s%s", r->name, g->kind == GROUP_POD || g->kind == GROUP_CONTAINER ? " " : "");
	else if (g->kind == GROUP_NAMESPACE)
		snprintf(dst, size, "%s", names_text(r->names, NAME_NAMESPACE));
	else if (g->kind == GROUP_UNIT)
		snprintf(dst, size, "%s", names_text(r->names, NAME_UNIT));
	else
		snprintf(dst, size, "%s %s", names_text(r->names, NAME_NAMESPACE), names_text(r->names, NAME_POD));
}

/* Each group has what its cgroups used while they were in it, those that ended too, and nothing else. */
static void test_groups_are_right(void **state)
{
	for (unsigned g = 1; g < N_GROUPINGS - 1; g++) {
		const struct totals_options o = { .keep_ns = UINT64_MAX, .by = groupings[g] };
		struct {
			char name[64];
			uint64_t uj;
		} want[400] = { 0 };
		unsigned n = 0, seen = 0;
		struct totals *t;
		char name[64];

		begin_world(77 + g);
		t = totals_new(&schema, &o);
		for (unsigned step = 0; step < 100; step++) {
			live(t);
			for (unsigned i = READING_SPECIAL_ROWS; i < snap.n_rows; i++) {
				unsigned k = 0;

				group_of(&snap.rows[i], &o.by, name, sizeof(name));
				while (k < n && strcmp(want[k].name, name) != 0)
					k++;
				assert_true(k < 400);
				snprintf(want[k].name, sizeof(want[k].name), "%s", name);
				want[k].uj += *snapshot_energy(&snap, i, 0);
				n = k == n ? n + 1 : n;
			}
		}
		for (unsigned i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
			unsigned k = 0;

			name_of(&t->rows[i], &o.by, name, sizeof(name));
			while (k < n && strcmp(want[k].name, name) != 0)
				k++;
			assert_true(k < n);
			assert_int_equal(totals_row(t, i)[0], want[k].uj);
			seen++;
		}
		assert_int_equal(seen, n);
		assert_true(n > 2 && n < 20);
		end_world(t);
	}
}

/* 10,000 pods that live for a moment: the page never has more series than it may, and what is left out is in `other`. */
static void storm(struct grouping by, uint64_t max_series)
{
	uint64_t all[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + 1] = { 0 };
	struct totals_options o = { .keep_ns = 300 * STEP_NS, .by = by };
	struct totals *t, was = { 0 };
	struct err err;

	begin_world(5);
	assert_int_equal(totals_fit(&o, &schema, max_series, 0, &err), 0);
	assert_true(o.top > 0);
	t = totals_new(&schema, &o);
	for (unsigned pod = 0; pod < 10000;) {
		struct names *names[STORM];
		char path[STORM][64];

		interval();
		for (unsigned i = 0; i < STORM; i++, pod++) {
			char name[32];
			struct names_draft d = { .field = { [NAME_NAMESPACE] = "storm", [NAME_POD] = name } };

			snprintf(name, sizeof(name), "pod-%u", pod);
			snprintf(path[i], sizeof(path[i]), "/kubepods/%u", pod);
			names[i] = names_new(&d);
			add_row(path[i], 10 + i, 1 + any(1000))->names = names[i];
			snap.rows[snap.n_rows - 1].generation = pod;
			snap.rows[snap.n_rows - 1].ended = i % 3;
		}
		close_books();
		totals_add(t, &snap, NULL);
		sum_up(t, all);
		assert_closes(t, all);
		assert_true(series(t) <= max_series);
		if (pod % 1000 == 0) {
			assert_no_less(&was, t);
			assert_int_equal(totals_copy(&was, t), 0);
		}
		for (unsigned i = 0; i < STORM; i++)
			names_put(names[i]);
	}
	if (by.kind != GROUP_NAMESPACE)
		assert_true(totals_row(t, ROW_OTHER)[0] > all[0] / 2);
	else
		assert_int_equal(find(t, "other"), ROW_OTHER);
	assert_true(t->n_rows <= TOTALS_ENDED_MAX + TOTAL_FIRST_CGROUP + 2 * STORM);
	totals_free(&was);
	end_world(t);
}

static void test_storm(void **state)
{
	storm((struct grouping){ .kind = GROUP_NONE }, 300);
	storm((struct grouping){ .kind = GROUP_POD }, 300);
	storm((struct grouping){ .kind = GROUP_NAMESPACE }, 300);
}

/* Every row's sockets and disks move something, so that each row has all the series that it can have. */
static void add_traffic(void)
{
	for (unsigned i = 0; i < snap.n_rows; i++)
		snap.rows[i].traffic = (struct traffic){ .rx_bytes = 100, .rx_packets = 1, .write_bytes = 512 };
	memset(snap.uncertainty_ppm, 0, (size_t)snap.n_rows * schema.n_domains * sizeof(*snap.uncertainty_ppm));
}

/* The bound is met exactly: as many rows as fit are shown, and one series less than the least is refused by name. */
static void test_bound_is_exact(void **state)
{
	struct totals_options o = { .keep_ns = UINT64_MAX };
	uint64_t least = 1;
	struct totals *t;
	struct err err;
	char path[20][16];

	begin_world(5);
	while (totals_fit(&o, &schema, least, 0, &err) != 0)
		least++;
	assert_int_equal(o.top, 1);
	for (uint64_t max = least; max < least + 40; max++) {
		o.top = 0;
		assert_int_equal(totals_fit(&o, &schema, max, 0, &err), 0);
		t = totals_new(&schema, &o);
		interval();
		for (unsigned i = 0; i < 20; i++) {
			snprintf(path[i], sizeof(path[i]), "/%u", i);
			add_row(path[i], 10 + i, 5);
		}
		add_traffic();
		close_books();
		totals_add(t, &snap, NULL);
		assert_true(series(t) <= max);
		/* One row more does not fit. Nothing has ended, so `retired` is without those of traffic. */
		assert_true(series(t) + TRAFFIC_VALUES + 2 + TOTAL_FIXED + 2 > max);
		free_totals(t);
	}
	assert_int_equal(totals_fit(&o, &schema, least - 1, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "needs at least"));
	assert_int_equal(totals_fit(&o, &schema, least + 9, 10, &err), -EINVAL);
	o.top = 3;
	assert_int_equal(totals_fit(&o, &schema, 100000, 0, &err), 0);
	assert_int_equal(o.top, 3);
	snapshot_free(&snap);
}

static const struct totals_options own = { .keep_ns = 5 * STEP_NS },
				   by_space = { .keep_ns = 5 * STEP_NS, .by = { .kind = GROUP_NAMESPACE } },
				   by_slice = { .keep_ns = 5 * STEP_NS, .top = 2, .by = { .kind = GROUP_SLICE } };

static struct totals *with_view(const struct totals_options *view)
{
	struct totals *t = totals_new(&schema, &own);

	assert_non_null(t);
	assert_int_equal(totals_view(t, view), 0);
	return t;
}

/* Totals with a view, from two texts: all, and what changed since. */
static struct totals *loaded(const struct totals_options *view, const struct buf *text, const struct buf *change)
{
	struct totals *t = with_view(view);

	assert_int_equal(totals_load(t, text->data, text->len), 0);
	assert_int_equal(totals_load(t, change->data, change->len), 0);
	assert_int_equal(totals_loaded(t), 0);
	return t;
}

/* A view goes along: the page in groups, the list by cgroup, both with the same machine, also after restarts. A view
 * with another grouping begins anew, and the totals beside it go on. */
static void test_view(void **state)
{
	uint64_t all[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + 1] = { 0 };
	struct totals *t, *next, copy = { 0 };
	struct buf text = { 0 }, change = { 0 };
	uint32_t adds;

	begin_world(9);
	t = with_view(&by_space);
	for (unsigned step = 0; step < 60; step++) {
		live(t);
		sum_up(t, all);
		assert_closes(t, all);
		assert_closes(t->view, all);
		assert_int_equal(totals_copy(&copy, t), 0);
		assert_closes(copy.view, all);
		if (step == 30)
			totals_save(t, 0, &text);
	}
	totals_save(t, 31, &change);
	next = loaded(&by_space, &text, &change);
	assert_closes(next, all);
	assert_closes(next->view, all);
	assert_no_less(t->view, next->view);
	assert_int_equal(next->view->adds, 60);
	free_totals(next);
	free_totals(t);

	next = loaded(&by_slice, &text, &change);
	assert_closes(next, all);
	adds = next->adds;
	assert_int_equal(next->view->adds, 0);
	live(next);
	assert_int_equal(next->view->adds, 1);
	/* texts of both go on from there */
	buf_reset(&text);
	buf_reset(&change);
	totals_save(next, 0, &text);
	live(next);
	totals_save(next, adds + 1, &change);
	t = loaded(&by_slice, &text, &change);
	assert_int_equal(t->adds, adds + 2);
	assert_int_equal(t->view->adds, 2);
	assert_int_equal(t->view->domains[0].energy_uj, next->view->domains[0].energy_uj);
	free_totals(next);
	totals_free(&copy);
	buf_free(&text);
	buf_free(&change);
	end_world(t);
}

/* A bound that was lowered holds at once after a restart. */
static void test_restart_with_less(void **state)
{
	struct totals_options o = { .keep_ns = UINT64_MAX, .top = 20 };
	uint64_t all[SCHEMA_MAX_DOMAINS + TOTAL_FIXED + 1] = { 0 };
	struct totals *t;

	begin_world(3);
	t = totals_new(&schema, &o);
	for (unsigned step = 0; step < 20; step++) {
		live(t);
		sum_up(t, all);
	}
	assert_int_equal(t->n_shown, 20);
	o.top = 4;
	restart(&t, &o);
	assert_int_equal(t->n_shown, 4);
	assert_closes(t, all);
	live(t);
	sum_up(t, all);
	assert_closes(t, all);
	end_world(t);
}

/* A selection that changes takes the groups without a cgroup off the page at once, and the others go on. */
static void test_reselected(void **state)
{
	const struct totals_options o = { .keep_ns = UINT64_MAX, .by = { .kind = GROUP_DEPTH, .depth = 1 } };
	const struct selection_rules rules = { 0 };
	struct totals *t;

	begin_world(3);
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 4; i++) {
		interval();
		add_row("/a/1", 10, 100);
		add_row("/a/2", 11, 10)->selected = i < 2;
		add_row("/b/1", 12, 50)->selected = i < 2;
		close_books();
		if (i == 2)
			totals_select(t, &rules);
		totals_add(t, &snap, NULL);
	}
	assert_int_equal(totals_row(t, (unsigned)find(t, "/a"))[0], 420);
	assert_int_equal(find(t, "/b"), -1);
	assert_int_equal(t->retired[0], 100);
	assert_int_equal(totals_row(t, TOTAL_UNSELECTED)[0], 120);
	end_world(t);
}

/* A group of cgroups that are shorter than an interval ends anew with each of them, not with the first. */
static void test_short_jobs(void **state)
{
	const struct totals_options o = { .keep_ns = 5 * STEP_NS, .by = { .kind = GROUP_DEPTH, .depth = 1 } };
	struct totals *t;

	begin_world(3);
	t = totals_new(&schema, &o);
	for (unsigned i = 0; i < 30; i++) {
		interval();
		if (i % 3 == 0) {
			struct snap_row *r = add_row("/jobs/one", 10, 100);

			r->generation = i;
			r->ended = true;
		}
		close_books();
		totals_add(t, &snap, NULL);
		assert_true(find(t, "/jobs") >= 0);
		assert_int_equal(totals_row(t, (unsigned)find(t, "/jobs"))[0], 100 * (1 + i / 3));
	}
	end_world(t);
}

/* Labels: names alone for groups of names, escaped; the path for groups of paths. Names that look like others' do not
 * become one group. */
static void test_labels(void **state)
{
	struct totals_options o = { .keep_ns = UINT64_MAX, .by = { .kind = GROUP_POD } };
	static const char *const pods[][2] = { { "a", "b/c" }, { "a/b", "c" }, { "x\"y", "\\" }, { "", "bare" } };
	static const char *const lines[] = {
		"{namespace=\"a\",pod=\"b/c\",domain=\"dram\"} 0.5\n",
		"{namespace=\"a/b\",pod=\"c\",domain=\"dram\"} 0.5\n",
		"{namespace=\"x\\\"y\",pod=\"\\\\\",domain=\"dram\"} 0.5\n",
		"{pod=\"bare\",domain=\"dram\"} 0.5\n",
		"{cgroup=\"unnamed\",domain=\"dram\"} 0.5\n",
	};
	struct buf out = { 0 }, scratch = { 0 };
	struct totals *t;

	begin_world(3);
	t = totals_new(&schema, &o);
	interval();
	for (unsigned i = 0; i < 4; i++) {
		struct names_draft d = { .field = { [NAME_NAMESPACE] = pods[i][0],
						    [NAME_POD] = pods[i][1],
						    [NAME_CONTAINER] = "never shown",
						    [NAME_UNIT] = "never.shown" } };

		world[i].names = names_new(&d);
		add_row("/p", 10 + i, 1000000)->names = world[i].names;
	}
	add_row("/q", 20, 1000000);
	close_books();
	totals_add(t, &snap, NULL);
	assert_int_equal(openmetrics_write(t, NULL, false, &scratch, &out), 0);
	buf_add(&out, "", 1);
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_non_null(strstr((char *)out.data, lines[i]));
	assert_null(strstr((char *)out.data, "never"));
	buf_free(&out);
	buf_free(&scratch);
	end_world(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {

		cmocka_unit_test(test_closes),     cmocka_unit_test(test_groups_are_right),
		cmocka_unit_test(test_storm),      cmocka_unit_test(test_bound_is_exact),
		cmocka_unit_test(test_view),       cmocka_unit_test(test_restart_with_less),
		cmocka_unit_test(test_reselected), cmocka_unit_test(test_labels),
		cmocka_unit_test(test_short_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
