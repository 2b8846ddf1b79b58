/* SPDX-License-Identifier: Apache-2.0 */
/* Totals that go through texts are those that went in: whatever cgroups come, go, change their names or
 * are pushed out, and whichever of the texts was the first. */
#include "encode_fixture.h"
#include "encode/totals/keep.h"
#include "encode/totals/totals.h"

#define CGROUPS 24
#define INTERVALS 400

struct world {
	struct fixture f;
	struct totals *live;
	char names[CGROUPS][24];
	bool there[CGROUPS];
	uint32_t generation[CGROUPS], renamed[CGROUPS];
};

static void begin(struct world *w, unsigned top)
{
	struct totals_options o = { .keep_ns = 7000000000, .top = top };

	memset(w, 0, sizeof(*w));
	fixture_init(&w->f, 2, 1);
	fixture_domain(&w->f, DOMAIN_PACKAGE, 0, "package-0");
	fixture_domain(&w->f, DOMAIN_DRAM, 0, "dram-0");
	fixture_event(&w->f.schema.core, "CYCLES", EVENT_PERF);
	fixture_ready(&w->f);
	w->live = totals_new(&w->f.schema, &o);
	assert_non_null(w->live);
}

static void free_totals(struct totals *t)
{
	totals_free(t);
	free(t);
}

static void end(struct world *w)
{
	free_totals(w->live);
	fixture_free(&w->f);
}

static void step(struct world *w)
{
	struct snapshot *s = &w->f.snap;

	s->n_rows = READING_SPECIAL_ROWS;
	s->start_ns = s->end_ns;
	s->end_ns += 1000000000;
	s->end_real_ns += 1000000000;
	for (unsigned i = 0; i < CGROUPS; i++) {
		if (rand() % 20 == 0) {
			w->there[i] = !w->there[i];
			w->generation[i] += w->there[i];
			snprintf(w->names[i], sizeof(w->names[i]), "/c%u-%d", i, rand() % 3);
		} else if (rand() % 30 == 0) {
			snprintf(w->names[i], sizeof(w->names[i]), "/c%u-%d", i, rand() % 3);
			w->renamed[i]++;
		}
		if (w->there[i]) {
			struct snap_row *r = fixture_row(&w->f, w->names[i], 1000 + i * 1000 + w->generation[i]);

			r->key = 10 + i;
			r->generation = w->generation[i];
			r->renamed = w->renamed[i];
		}
	}
	for (unsigned d = 0; d < 2; d++) {
		s->domains[d].idle_uj = 100;
		s->domains[d].residual_uj = 0;
		s->domains[d].energy_uj = 100;
		for (unsigned i = 0; i < s->n_rows; i++) {
			uint64_t uj = rand() % 2 ? (uint64_t)rand() % 5000 : 0;

			*snapshot_energy(s, i, d) = uj;
			s->rows[i].time_ns = uj * 3;
			s->rows[i].counters[0] = uj * 7;
			s->rows[i].quality = rand() % 50 ? 0 : QUALITY_LOST;
			s->domains[d].energy_uj += uj;
		}
	}
}

static const struct total_row *find(const struct totals *t, const char *name, unsigned *ret)
{
	for (unsigned i = 0; i < t->n_rows; i++)
		if (t->rows[i].used && strcmp(t->rows[i].name, name) == 0) {
			*ret = i;
			return &t->rows[i];
		}
	return NULL;
}

static void check_same(const struct totals *a, const struct totals *b)
{
	unsigned n[2] = { 0 }, at;

	assert_int_equal(a->n_ended, b->n_ended);
	assert_int_equal(a->n_shown, b->n_shown);
	assert_int_equal(a->adds, b->adds);
	assert_memory_equal(a->retired, b->retired, totals_width(a) * sizeof(uint64_t));
	assert_memory_equal(a->domains, b->domains, 2 * sizeof(a->domains[0]));
	for (unsigned i = 0; i < a->n_rows; i++) {
		const struct total_row *r;

		if (!a->rows[i].used)
			continue;
		n[0]++;
		r = find(b, a->rows[i].name, &at);
		if (!r)
			fail_msg("%s is missing", a->rows[i].name);
		assert_int_equal(r->ended, a->rows[i].ended);
		assert_int_equal(r->shown, a->rows[i].shown);
		assert_int_equal(r->id, a->rows[i].id);
		assert_int_equal(r->ever, a->rows[i].ever);
		assert_int_equal(r->quality, a->rows[i].quality);
		for (unsigned c = 0; c < totals_width(a); c++)
			assert_int_equal(totals_shown(a, i, c), totals_shown(b, at, c));
	}
	for (unsigned i = 0; i < b->n_rows; i++)
		n[1] += b->rows[i].used;
	assert_int_equal(n[0], n[1]);
}

static struct totals *load(struct world *w, struct buf *texts, unsigned first, unsigned n, unsigned top)
{
	struct totals_options o = { .keep_ns = 7000000000, .top = top };
	struct totals *t = totals_new(&w->f.schema, &o);

	for (unsigned i = first; i < n; i++)
		assert_int_equal(totals_load(t, texts[i].data, texts[i].len), 0);
	assert_int_equal(totals_loaded(t), 0);
	return t;
}

static void run(unsigned top, unsigned seed)
{
	static struct buf texts[INTERVALS];
	struct world w;
	uint32_t saved = 0;
	unsigned first = 0;

	begin(&w, top);
	srand(seed);
	for (unsigned i = 0; i < INTERVALS; i++) {
		bool all = i % 60 == 0;
		struct totals *copy;

		step(&w);
		totals_add(w.live, &w.f.snap, NULL);
		first = all ? i : first;
		buf_reset(&texts[i]);
		totals_save(w.live, all ? 0 : saved, &texts[i]);
		saved = w.live->adds;
		if (i % 23 && i % 60 < 58)
			continue;
		copy = load(&w, texts, first, i + 1, top);
		check_same(w.live, copy);
		/* and it goes on as the other does */
		step(&w);
		totals_add(w.live, &w.f.snap, NULL);
		totals_add(copy, &w.f.snap, NULL);
		check_same(w.live, copy);
		free_totals(copy);
	}
	for (unsigned i = 0; i < INTERVALS; i++)
		buf_free(&texts[i]);
	end(&w);
}

static void test_texts(void **state)
{
	for (unsigned seed = 1; seed < 6; seed++)
		run(0, seed);
}

static void test_top(void **state)
{
	for (unsigned seed = 1; seed < 6; seed++)
		run(5, seed);
}

/* A cgroup that was renamed while no agent looked keeps its totals; its id says so. */
static void test_renamed_unseen(void **state)
{
	struct buf text = { 0 };
	struct totals *copy;
	struct world w;
	unsigned at;

	begin(&w, 0);
	w.there[0] = true;
	srand(7);
	w.f.snap.n_rows = READING_SPECIAL_ROWS;
	fixture_row(&w.f, "/before", 77);
	*snapshot_energy(&w.f.snap, READING_SPECIAL_ROWS, 0) = 500;
	totals_add(w.live, &w.f.snap, NULL);
	totals_save(w.live, 0, &text);
	copy = load(&w, &text, 0, 1, 0);
	w.f.snap.rows[READING_SPECIAL_ROWS].path = "/after";
	totals_add(copy, &w.f.snap, NULL);
	assert_null(find(copy, "/before", &at));
	assert_non_null(find(copy, "/after", &at));
	assert_int_equal(totals_row(copy, at)[0], 1000);
	free_totals(copy);
	buf_free(&text);
	end(&w);
}

static bool has_ended(const struct totals *t, const char *name)
{
	unsigned at;

	assert_non_null(find(t, name, &at));
	return t->rows[at].ended;
}

static void next_interval(struct world *w, struct totals *t, const struct cgroup_table *table)
{
	w->f.snap.start_ns = w->f.snap.end_ns;
	w->f.snap.end_ns += 1000000000;
	totals_still(t, table);
	totals_add(t, &w->f.snap, NULL);
}

/* A cgroup that lives but has not run since a restart is in no interval, and has not ended. */
static void test_idle_since(void **state)
{
	struct cgroup_table *table = cgroup_table_new();
	struct buf text = { 0 };
	struct totals *copy;
	struct world w;
	unsigned at;

	begin(&w, 0);
	w.f.snap.n_rows = READING_SPECIAL_ROWS;
	for (unsigned i = 0; i < 3; i++) {
		fixture_row(&w.f, (const char *[]){ "/idle", "/removed", "/never" }[i], 70 + i);
		*snapshot_energy(&w.f.snap, READING_SPECIAL_ROWS + i, 0) = 500;
	}
	w.f.snap.rows[READING_SPECIAL_ROWS].names = names_new(
		&(struct names_draft){ .field[NAME_POD] = "front-7", .field[NAME_USER] = "1000" });
	totals_add(w.live, &w.f.snap, NULL);
	names_put(w.f.snap.rows[READING_SPECIAL_ROWS].names);
	w.f.snap.rows[READING_SPECIAL_ROWS].names = NULL;
	totals_save(w.live, 0, &text);
	copy = load(&w, &text, 0, 1, 0);
	cgroup_add(table, 70, "/idle", 1, 0);
	cgroup_add(table, 71, "/removed", 1, 0);
	w.f.snap.n_rows = READING_SPECIAL_ROWS;
	for (unsigned i = 0; i < 4; i++)
		next_interval(&w, copy, table);
	assert_false(has_ended(copy, "/idle"));
	assert_false(has_ended(copy, "/removed"));
	assert_true(has_ended(copy, "/never"));
	cgroup_end(table, 71, 1);
	next_interval(&w, copy, table);
	assert_true(has_ended(copy, "/removed"));
	assert_false(has_ended(copy, "/idle"));
	assert_int_equal(copy->n_ended, 2);
	/* what people called it stays until it is known anew */
	assert_non_null(find(copy, "/idle", &at));
	assert_string_equal(names_text(copy->rows[at].names, NAME_POD), "front-7");
	assert_string_equal(names_text(copy->rows[at].names, NAME_UNIT), "");
	/* it runs, under another name by now */
	fixture_row(&w.f, "/after", 70);
	*snapshot_energy(&w.f.snap, READING_SPECIAL_ROWS, 0) = 30;
	next_interval(&w, copy, table);
	assert_null(find(copy, "/idle", &at));
	assert_non_null(find(copy, "/after", &at));
	assert_int_equal(totals_row(copy, at)[0], 530);
	assert_string_equal(names_text(copy->rows[at].names, NAME_POD), "");
	assert_int_equal(copy->n_waits, 0);
	/* from now on it is in every interval, or has ended */
	w.f.snap.n_rows = READING_SPECIAL_ROWS;
	next_interval(&w, copy, table);
	assert_true(has_ended(copy, "/after"));
	free_totals(copy);
	cgroup_table_free(table);
	buf_free(&text);
	end(&w);
}

static const char *pod_of(const struct totals *t, const char *name)
{
	unsigned at;

	assert_non_null(find(t, name, &at));
	return names_text(t->rows[at].names, NAME_POD);
}

/* A name that came after its cgroup's end is in the text of what changed since. Nothing of it is left for a path whose cgroup
 * was made anew while no agent looked. */
static void test_named_late(void **state)
{
	struct names *late = names_new(&(struct names_draft){ .field[NAME_POD] = "late-1" });
	struct buf texts[2] = { { 0 } };
	struct totals *copy;
	struct world w;

	begin(&w, 0);
	for (unsigned i = 0; i < 2; i++) {
		w.f.snap.n_rows = READING_SPECIAL_ROWS;
		if (i == 0)
			fixture_row(&w.f, "/short", 77);
		totals_add(w.live, &w.f.snap, NULL);
		if (i == 1)
			totals_name_late(w.live, 77, late);
		totals_save(w.live, i, &texts[i]);
	}
	for (uint64_t id = 77; id < 79; id++) {
		copy = load(&w, texts, 0, 2, 0);
		assert_true(has_ended(copy, "/short"));
		assert_string_equal(pod_of(copy, "/short"), "late-1");
		w.f.snap.n_rows = READING_SPECIAL_ROWS;
		fixture_row(&w.f, "/short", id);
		totals_add(copy, &w.f.snap, NULL);
		assert_string_equal(pod_of(copy, "/short"), id == 77 ? "late-1" : "");
		free_totals(copy);
	}
	for (unsigned i = 0; i < 2; i++)
		buf_free(&texts[i]);
	names_put(late);
	end(&w);
}

/* Other columns, a change without a beginning, and every text cut short or with a changed byte. */
static void test_wrong(void **state)
{
	struct totals_options o = { .keep_ns = 1 };
	struct buf all = { 0 }, change = { 0 };
	struct totals *t;
	struct world w;

	begin(&w, 0);
	srand(9);
	for (unsigned i = 0; i < 60; i++) {
		step(&w);
		totals_add(w.live, &w.f.snap, NULL);
	}
	totals_save(w.live, 0, &all);
	totals_save(w.live, w.live->adds - 1, &change);
	t = totals_new(&w.f.schema, &o);
	assert_int_equal(totals_load(t, change.data, change.len), -ENODATA);
	free_totals(t);
	for (size_t cut = 0; cut < all.len; cut++) {
		t = totals_new(&w.f.schema, &o);
		if (totals_load(t, all.data, cut) == 0)
			totals_loaded(t); /* between two rows: as if there were fewer */
		free_totals(t);
		t = totals_new(&w.f.schema, &o);
		all.data[cut] ^= 0x55;
		if (totals_load(t, all.data, all.len) == 0)
			totals_loaded(t);
		all.data[cut] ^= 0x55;
		free_totals(t);
	}
	snprintf(w.f.schema.core.ev[0].name, SCHEMA_NAME_MAX, "OTHER");
	t = totals_new(&w.f.schema, &o);
	assert_int_equal(totals_load(t, all.data, all.len), -ESTALE);
	free_totals(t);
	buf_free(&all);
	buf_free(&change);
	end(&w);
}

/* Two rows, one of them hidden, twice. */
static void two_rows(struct world *w)
{
	w->f.snap.n_rows = READING_SPECIAL_ROWS;
	for (unsigned i = 0; i < 2; i++) {
		struct snap_row *r = fixture_row(&w->f, i ? "/small" : "/big", 77 + i);

		r->traffic.rx_bytes = 1 + i;
		r->traffic.tx_packets = 3 + i;
		r->counters[0] = 9 + i;
		*snapshot_energy(&w->f.snap, READING_SPECIAL_ROWS + i, 0) = i ? 5 : 500;
	}
	totals_add(w->live, &w->f.snap, NULL);
}

/* The text that version 3 wrote of two_rows twice, before there were columns of block devices. They begin at 0, and
 * nothing else is lost. */
static void test_version_3(void **state)
{
	static const char text[] =
		"\x03\xed\xe7\x92\x93\xee\xb1\xc8\x89\x22\x00\x02\x80\xe4\x97\xd0\x12\x80\xf8\x82\xad\x16\x80\x9b"
		"\x92\xa8\x81\xb0\xf5\x9c\x17\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09"
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x09\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x09\x00\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x09\x00\x00\x00"
		"\x0a\x00\x00\x00\x04\x00\x00\x08\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x09\x00\x00\x00\x00"
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x0b\x04\x2f\x62\x69\x67"
		"\x00\x80\xf8\x82\xad\x16\x00\x4d\x00\x00\xe8\x07\x00\x00\x00\x02\x00\x00\x06\x12\x00\x00\x00\x00"
		"\x00\x00\x00\x00\x00\x06\x03\x06\x2f\x73\x6d\x61\x6c\x6c\x00\x80\xf8\x82\xad\x16\x00\x4e\x00\x00"
		"\x0a\x00\x00\x00\x04\x00\x00\x08\x14\x0a\x00\x00\x00\x04\x00\x00\x08\x14";
	struct buf all = { .data = (uint8_t *)(uintptr_t)text, .len = sizeof(text) - 1 };
	struct totals *old;
	struct world w;
	unsigned at;

	begin(&w, 1);
	two_rows(&w);
	two_rows(&w);
	old = load(&w, &all, 0, 1, 1);
	check_same(w.live, old);
	assert_non_null(find(old, "/big", &at));
	assert_int_equal(totals_row(old, at)[totals_column(old, TOTAL_TX_PACKETS)], 6);
	assert_int_equal(totals_row(old, at)[totals_column(old, TOTAL_READ_BYTES)], 0);
	assert_int_equal(totals_row(old, at)[totals_counter(old, 0)], 18);
	free_totals(old);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),          cmocka_unit_test(test_top),
		cmocka_unit_test(test_renamed_unseen), cmocka_unit_test(test_idle_since),
		cmocka_unit_test(test_named_late),     cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_version_3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
