/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that end, are reused or overflow: nothing is lost or told twice, whatever a consumer's pace. */
#include "unit/consumer_fixture.h"

static void test_ended_rows(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a", .ended = true };
	struct snapshot *s;

	reading_add_row(&f->r, &a);
	charge(&f->r, 4, 0, 5);
	reading_drop_row(&f->r, 4);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_rows, 5);
	assert_true(s->rows[4].ended);
	assert_int_equal(s->rows[4].time_ns, 5);
	f->r.number++;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_rows, 4);
	reading_reap(&f->r);
	assert_false(a.in_use);
}

/* A name that is found after the end is told once; one that is known is not. */
static void test_named_late(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a" };
	const struct names_draft pod = { .field = { [NAME_POD] = "p" } };
	const struct names_draft both = { .field = { [NAME_POD] = "p", [NAME_CONTAINER] = "c" } };
	struct snapshot *s;

	a.names = names_new(&pod);
	reading_add_row(&f->r, &a);
	charge(&f->r, 4, 0, 5);
	consumer_snapshot(f->c, &f->r);
	a.ended = true;
	f->r.number++;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_rows, 4);
	names_put(a.names);
	a.names = names_new(&both);
	f->r.number++;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_rows, 5);
	assert_true(s->rows[4].ended);
	assert_int_equal(s->rows[4].time_ns, 0);
	assert_string_equal(names_text(s->rows[4].names, NAME_CONTAINER), "c");
	f->r.number++;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_rows, 4);
	names_put(a.names);
}

/* Dropped, freed and taken by another cgroup between two snapshots: counts begin at zero. */
static void test_reused_row(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a" }, b = { .id = 12, .path = "/b" };
	struct snapshot *s;
	uint32_t generation;

	reading_add_row(&f->r, &a);
	charge(&f->r, 4, 1, 500);
	reading_add_traffic(&f->r, 4, &(struct traffic){ .rx_bytes = 1000 });
	s = consumer_snapshot(f->c, &f->r);
	generation = s->rows[4].generation;
	reading_drop_row(&f->r, 4);
	f->r.number++;
	assert_int_equal(reading_add_row(&f->r, &b), 4);
	charge(&f->r, 4, 1, 20);
	reading_add_traffic(&f->r, 4, &(struct traffic){ .rx_bytes = 30 });
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_rows, 5);
	assert_int_equal(s->rows[4].key, 4);
	assert_int_not_equal(s->rows[4].generation, generation);
	assert_int_equal(s->rows[4].id, 12);
	assert_string_equal(s->rows[4].path, "/b");
	assert_int_equal(s->rows[4].time_ns, 20);
	assert_int_equal(s->rows[4].traffic.rx_bytes, 30);
}

/* The reading's number wraps after 2^32 readings. */
static void test_number_wraps(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a" };

	f->r.number = UINT32_MAX - 1;
	reading_add_row(&f->r, &a);
	consumer_mark(f->c, &f->r);
	for (unsigned i = 0; i < 4; i++) {
		f->r.number++;
		charge(&f->r, 4, 0, 10 + i);
		assert_int_equal(consumer_snapshot(f->c, &f->r)->rows[4].time_ns, 10 + i);
	}
}

static void test_more_dropped_than_kept(void **state)
{
	/* one too many, and room for an eighth is made; each fold is one of the crowd, not of the three first */
	enum { N = READING_MAX_DROPPED + 100, FOLDED = 1 + READING_MAX_DROPPED / 8 };
	struct fixture *f = *state;
	struct cgroup *cg = calloc(N, sizeof(*cg));
	const uint64_t folded_ns = FOLDED * 1003ull + FOLDED * (FOLDED - 1ull) / 2;
	struct snapshot *s;
	uint64_t time = 0, rx = 0, first = 0;

	for (unsigned i = 0; i < N; i++) {
		int64_t row;

		cg[i] = (struct cgroup){ .id = i + 1, .path = (char *)(i < 3 ? "/a" : "/x/y"), .ended = true };
		row = reading_add_row(&f->r, &cg[i]);
		charge(&f->r, (uint32_t)row, i % CPUS, 1000 + i);
		reading_add_traffic(&f->r, (uint32_t)row, &(struct traffic){ .rx_bytes = 3 });
		reading_drop_row(&f->r, (uint32_t)row);
		assert_in_range(f->r.n_dropped, 0, READING_MAX_DROPPED);
	}
	assert_int_equal(f->r.losses.folded, FOLDED);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_rows, 4 + N - FOLDED);
	assert_int_equal(s->losses.folded, FOLDED);
	assert_int_equal(s->rows[ROW_OTHER].time_ns, folded_ns);
	assert_int_equal(s->rows[ROW_OTHER].counters[0], 3 * folded_ns);
	assert_int_equal(s->rows[ROW_OTHER].switches, FOLDED);
	for (unsigned i = 4; i < s->n_rows; i++)
		first += strcmp(s->rows[i].path, "/a") == 0;
	assert_int_equal(first, 3);
	for (unsigned i = 0; i < s->n_rows; i++) {
		time += s->rows[i].time_ns;
		rx += s->rows[i].traffic.rx_bytes;
	}
	assert_int_equal(time, N * 1000ull + N * (N - 1ull) / 2);
	assert_int_equal(rx, 3 * N);
	f->r.number++;
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[ROW_OTHER].time_ns, 0);
	reading_reap(&f->r);
	for (unsigned i = 0; i < N; i++)
		assert_false(cg[i].in_use);
	free(cg);
}

/* A snapshot that there is no memory for (more rows than a snapshot can have): the next one holds its counts and its time. */
static void test_out_of_memory(void **state)
{
	struct fixture *f = *state;
	struct cgroup a = { .id = 11, .path = "/a" };
	const uint32_t n = f->r.n_rows + 1;
	const struct snapshot *s;

	reading_add_row(&f->r, &a);
	consumer_mark(f->c, &f->r);
	assert_true(consumer_is_at(f->c, &f->r));
	charge(&f->r, 4, 0, 5);
	f->r.number++;
	assert_false(consumer_is_at(f->c, &f->r));
	f->r.n_rows = UINT32_MAX;
	assert_null(consumer_snapshot(f->c, &f->r));
	f->r.n_rows = n;
	assert_false(consumer_is_at(f->c, &f->r));
	f->r.number++;
	charge(&f->r, 4, 0, 7);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->rows[4].time_ns, 12);
	assert_true(consumer_is_at(f->c, &f->r));
}

static void test_steady_state_keeps_its_arrays(void **state)
{
	struct fixture *f = *state;
	static struct cgroup cg[300];
	struct snapshot before;

	for (unsigned i = 0; i < 300; i++) {
		cg[i] = (struct cgroup){ .id = i + 1, .path = (char *)"/x" };
		charge(&f->r, (uint32_t)reading_add_row(&f->r, &cg[i]), 0, 1);
	}
	before = *consumer_snapshot(f->c, &f->r);
	for (unsigned k = 0; k < 10; k++) {
		struct snapshot *s;

		f->r.number++;
		for (unsigned i = 0; i < 300; i++)
			charge(&f->r, 4 + i, 0, 1);
		s = consumer_snapshot(f->c, &f->r);
		assert_ptr_equal(s->rows, before.rows);
		assert_ptr_equal(s->cells, before.cells);
		assert_ptr_equal(s->energy_uj, before.energy_uj);
		assert_ptr_equal(s->rows[50].path, before.rows[50].path);
	}
}

static uint64_t seed = 1;
static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 32) * n >> 32);
}

/* Cgroups come, run, end and give their rows to others; three consumers look at their own pace.
 * Whatever was charged to an id is what each consumer was told about that id. */
enum { IDS = 4000, LOOKERS = 3 };

static void look(struct consumer *c, const struct reading *r, uint64_t *told)
{
	const struct snapshot *s = consumer_snapshot(c, r);

	assert_non_null(s);
	for (unsigned i = READING_SPECIAL_ROWS; i < s->n_rows; i++) {
		uint64_t cells = 0;
		int last = -1;

		for (unsigned k = 0; k < s->rows[i].n_cells; k++) {
			const struct snap_cell *cell = &s->cells[s->rows[i].first_cell + k];

			assert_int_equal(cell->row, i);
			assert_true(cell->cpu > last);
			last = cell->cpu;
			cells += cell->time_ns;
		}
		assert_int_equal(cells, s->rows[i].time_ns);
		assert_in_range(s->rows[i].id, 1, IDS);
		told[s->rows[i].id - 1] += cells;
	}
}

static void test_random_lives(void **state)
{
	static struct cgroup cg[IDS];
	static uint64_t truth[IDS], told[LOOKERS][IDS];
	static uint32_t row_of[IDS];
	struct fixture *f = *state;
	struct consumer *c[LOOKERS];
	uint32_t born = 0, oldest = 0;

	c[0] = f->c;
	for (unsigned i = 1; i < LOOKERS; i++)
		c[i] = consumer_new(&f->r);
	for (unsigned step = 0; step < 20000; step++) {
		f->r.number++;
		if (born < IDS && random_below(3) == 0) {
			cg[born] = (struct cgroup){ .id = born + 1, .path = (char *)"/x" };
			row_of[born] = (uint32_t)reading_add_row(&f->r, &cg[born]);
			born++;
		}
		for (unsigned k = random_below(6); k > 0 && oldest < born; k--) {
			uint32_t id = oldest + random_below(born - oldest), time = 1 + random_below(1000);

			charge(&f->r, row_of[id], (uint16_t)random_below(CPUS), time);
			truth[id] += time;
		}
		if (oldest < born && random_below(4) == 0) {
			cg[oldest].ended = true;
			reading_drop_row(&f->r, row_of[oldest++]);
		}
		for (unsigned i = 0; i < LOOKERS; i++)
			if (random_below(i * i * 20 + 1) == 0)
				look(c[i], &f->r, told[i]);
	}
	assert_int_equal(born, IDS);
	for (unsigned i = 0; i < LOOKERS; i++) {
		look(c[i], &f->r, told[i]);
		assert_memory_equal(told[i], truth, sizeof(truth));
	}
	for (unsigned i = 1; i < LOOKERS; i++)
		consumer_free(c[i]);
	assert_in_range(f->r.n_rows, 5, 4 + IDS / 2); /* rows were reused */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_ended_rows),
		test(test_out_of_memory),
		test(test_named_late),
		test(test_reused_row),
		test(test_number_wraps),
		test(test_more_dropped_than_kept),
		test(test_steady_state_keeps_its_arrays),
		test(test_random_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
