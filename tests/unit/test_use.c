/* SPDX-License-Identifier: Apache-2.0 */
/* Use of GPUs by rows, from the reading to the ledger: shares by use, exact sums, idle apart, nobody's use is residual; and
 * the same through a recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "formula/formula.h"
#include "model/cgroup.h"
#include "model/recording/recording.h"
#include "model/snapshot.h"

#define S 1000000000ull

static struct cpu_desc cpus[1] = { { .present = true } };
static struct schema schema;

struct fixture {
	struct reading r;
	struct cgroup_table *t;
	struct consumer *c;
	uint32_t a, b;
	struct formula *f;
};

static void tick(struct fixture *f, uint64_t now_s, uint64_t joules)
{
	f->r.number++;
	f->r.mono_ns = f->r.boot_ns = now_s * S;
	for (unsigned d = 0; d < 2; d++)
		f->r.domains[d] = (struct reading_domain){
			.units = joules * 1000000 + d, .uj_num = 1, .uj_den = 1, .time_ns = now_s * S
		};
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct formula_options o = { .idle = IDLE_OWN, .weight = WEIGHT_CYCLES };

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		o.idle_watts[k] = NAN;
	o.idle_watts[DOMAIN_GPU] = 20;
	schema = (struct schema){ .n_cpus = 1, .cpus = cpus, .n_domains = 2, .n_packages = 1 };
	schema.domains[0] = (struct domain_desc){
		.kind = DOMAIN_GPU, .interface = ENERGY_NVML, .package = 0, .name = "gpu-0", .id = "GPU-aaaa"
	};
	schema.domains[1] = (struct domain_desc){
		.kind = DOMAIN_GPU, .interface = ENERGY_HWMON, .package = 1, .name = "gpu-1"
	};
	assert_int_equal(reading_init(&f->r, &schema), 0);
	f->t = cgroup_table_new();
	f->a = (uint32_t)reading_add_row(&f->r, cgroup_add(f->t, 11, "/a", 1, 0));
	f->b = (uint32_t)reading_add_row(&f->r, cgroup_add(f->t, 12, "/b", 1, 0));
	tick(f, 1, 0);
	f->c = consumer_new(&f->r);
	f->f = formula_share.create(&o);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	formula_share.destroy(f->f);
	consumer_free(f->c);
	reading_free(&f->r);
	cgroup_table_free(f->t);
	free(f);
	return 0;
}

static uint32_t find(const struct snapshot *s, uint64_t id)
{
	for (uint32_t i = 0; i < s->n_rows; i++)
		if (s->rows[i].id == id)
			return i;
	fail();
	return 0;
}

static void closes(const struct snapshot *s)
{
	for (unsigned d = 0; d < 2; d++) {
		uint64_t sum = s->domains[d].idle_uj + s->domains[d].residual_uj;

		for (unsigned i = 0; i < s->n_rows; i++)
			sum += *snapshot_energy(s, i, d);
		assert_int_equal(sum, s->domains[d].energy_uj);
	}
}

/* 200 J in 2 s, 20 W idle: 160 J are split 3 to 1; the other GPU was used by nobody. */
static void split(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;

	assert_int_equal(reading_use(&f->r, f->a, 0, 3 * S / 2), 0);
	assert_int_equal(reading_use(&f->r, f->b, 0, S / 2), 0);
	tick(f, 3, 200);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(formula_share.apply(f->f, s), 0);
	closes(s);
	assert_int_equal(s->domains[0].idle_uj, 40000000);
	assert_int_equal(*snapshot_energy(s, find(s, 11), 0), 120000000);
	assert_int_equal(*snapshot_energy(s, find(s, 12), 0), 40000000);
	assert_int_equal(s->domains[0].residual_uj, 0);
	assert_true(s->domains[0].share_quality & QUALITY_ESTIMATED);
	assert_int_equal(s->domains[1].residual_uj, 160000000);
	/* nobody is charged for what was done in an interval before */
	tick(f, 5, 400);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_uses, 0);
	assert_int_equal(formula_share.apply(f->f, s), 0);
	closes(s);
	assert_int_equal(s->domains[0].residual_uj, 160000000);
}

/* Half of the use was of a process that is gone. */
static void nobody(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;

	reading_use(&f->r, f->a, 0, S / 2);
	reading_use(&f->r, USE_NOBODY, 0, S / 2);
	tick(f, 2, 120);
	s = consumer_snapshot(f->c, &f->r);
	formula_share.apply(f->f, s);
	closes(s);
	assert_int_equal(*snapshot_energy(s, find(s, 11), 0), 50000000);
	assert_int_equal(s->domains[0].residual_uj, 50000000);
}

/* A row that goes takes its use along; the next one in its place begins at nothing. */
static void row_is_used_again(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;
	uint32_t row;

	reading_use(&f->r, f->a, 0, 5 * S);
	tick(f, 10, 1000);
	consumer_snapshot(f->c, &f->r);
	reading_drop_row(&f->r, f->a);
	tick(f, 11, 1100);
	consumer_snapshot(f->c, &f->r);
	reading_reap(&f->r);
	row = (uint32_t)reading_add_row(&f->r, cgroup_add(f->t, 13, "/c", 1, 0));
	assert_int_equal(row, f->a);
	reading_use(&f->r, row, 0, S / 4);
	tick(f, 12, 1200);
	s = consumer_snapshot(f->c, &f->r);
	assert_int_equal(s->n_uses, 1);
	assert_int_equal(s->uses[0].ns, S / 4);
	assert_int_equal(s->rows[s->uses[0].row].id, 13);
	assert_int_equal(f->r.n_uses, 1);
}

/* Two consumers of different pace see the same use. */
static void two_consumers(void **state)
{
	struct fixture *f = *state;
	struct consumer *slow = consumer_new(&f->r);
	uint64_t sum = 0;

	for (uint64_t t = 2; t < 12; t++) {
		struct snapshot *s;

		reading_use(&f->r, f->b, 1, t * 1000);
		tick(f, t, t * 50);
		s = consumer_snapshot(f->c, &f->r);
		sum += s->uses[0].ns;
	}
	assert_int_equal(sum, consumer_snapshot(slow, &f->r)->uses[0].ns);
	consumer_free(slow);
}

static void through_a_recording(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s, *back;
	struct recording *rec;
	struct err err = { 0 };
	struct buf out = { 0 };
	char path[] = "/tmp/jouled-use-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	reading_use(&f->r, f->b, 0, S);
	reading_use(&f->r, USE_NOBODY, 1, 77);
	tick(f, 3, 500);
	s = consumer_snapshot(f->c, &f->r);
	formula_share.apply(f->f, s);
	recording_encode_header(&schema, &out);
	recording_encode(s, true, &out);
	assert_int_equal(fwrite(out.data, 1, out.len, file), out.len);
	fclose(file);
	assert_int_equal(recording_open(path, &rec, &err), 0);
	assert_int_equal(recording_next(rec, &back, &err), 1);
	assert_string_equal(back->schema->domains[0].id, "GPU-aaaa");
	assert_int_equal(back->schema->domains[1].package, 1);
	assert_int_equal(back->n_uses, 2);
	assert_int_equal(back->rows[back->uses[0].row].id, 12);
	assert_int_equal(back->uses[1].row, USE_NOBODY);
	assert_int_equal(back->uses[1].ns, 77);
	formula_share.apply(f->f, back);
	closes(back);
	recording_close(rec);
	buf_free(&out);
	remove(path);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(split), test(nobody), test(row_is_used_again), test(two_consumers), test(through_a_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
