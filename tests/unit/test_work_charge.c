// SPDX-License-Identifier: Apache-2.0
/* The energy of disks and networks at the wall goes to who caused it: by own traffic and the prices of the domain, exactly, a while
 * after the work; what nobody caused stays. Whatever the numbers are, the ledger closes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "formula/formula.h"
#include "model/cgroup.h"
#include "model/recording/recording.h"

#define S 1000000000ull
#define Q32 4294967296ull /* a microjoule */
#define WALL 1

static struct cpu_desc cpus[1] = { { .present = true } };
static struct schema schema;

struct fixture {
	struct reading r;
	struct cgroup_table *t;
	struct consumer *c;
	struct formula *f;
	uint32_t a, b, disk, network;
	struct snapshot *s;
};

static struct formula *new_formula(const struct formula_ops *ops, enum idle_policy idle)
{
	struct formula_options o = { .idle = idle, .weight = WEIGHT_TIME };

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		o.idle_watts[k] = NAN;
	o.idle_watts[DOMAIN_PACKAGE] = 0;
	return ops->create(&o);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	schema = (struct schema){ .n_cpus = 1, .cpus = cpus, .n_domains = 2, .n_packages = 1 };
	schema.domains[0] = (struct domain_desc){ .kind = DOMAIN_PACKAGE,
						  .interface = ENERGY_POWERCAP,
						  .name = "package-0" };
	schema.domains[WALL] = (struct domain_desc){ .kind = DOMAIN_WALL,
						     .interface = ENERGY_CALIBRATION,
						     .name = "wall-0" };
	assert_int_equal(reading_init(&f->r, &schema), 0);
	f->t = cgroup_table_new();
	f->a = (uint32_t)reading_add_row(&f->r, cgroup_add(f->t, 11, "/a", 1, 0));
	f->b = (uint32_t)reading_add_row(&f->r, cgroup_add(f->t, 12, "/b", 1, 0));
	f->disk = (uint32_t)reading_add_cause(&f->r, ROW_DISK);
	f->network = (uint32_t)reading_add_cause(&f->r, ROW_NETWORK);
	for (unsigned d = 0; d < 2; d++)
		f->r.domains[d] = (struct reading_domain){ .uj_num = 1, .uj_den = 1, .time_ns = S };
	f->r.domains[WALL].estimated = true;
	f->r.domains[WALL].uncertainty_ppm = 1000;
	f->r.domains[WALL].work = (struct work_price){ Q32, 2 * Q32, 1000 * Q32, Q32, 10 * Q32 };
	f->r.mono_ns = S;
	f->c = consumer_new(&f->r);
	f->f = new_formula(&formula_share, IDLE_OWN);
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

static void check_closes(const struct snapshot *s)
{
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		unsigned __int128 sum = (unsigned __int128)s->domains[d].idle_uj + s->domains[d].residual_uj;

		for (unsigned i = 0; i < s->n_rows; i++)
			sum += *snapshot_energy(s, i, d);
		assert_true(sum == s->domains[d].energy_uj);
	}
}

/* An interval in which disks and networks drew so much. */
static void interval(struct fixture *f, uint64_t ns, uint64_t disk_uj, uint64_t network_uj)
{
	f->r.number++;
	f->r.mono_ns += ns;
	f->r.domains[0].time_ns = f->r.domains[WALL].time_ns = f->r.mono_ns;
	f->r.domains[WALL].units += disk_uj + network_uj;
	assert_int_equal(reading_use(&f->r, f->disk, WALL, disk_uj), 0);
	assert_int_equal(reading_use(&f->r, f->network, WALL, network_uj), 0);
	f->s = consumer_snapshot(f->c, &f->r);
	assert_non_null(f->s);
	assert_int_equal(formula_share.apply(f->f, f->s), 0);
	check_closes(f->s);
}

static unsigned at(const struct fixture *f, uint32_t key)
{
	for (unsigned i = 0; i < f->s->n_rows; i++)
		if (f->s->rows[i].key == key)
			return i;
	fail();
	return 0;
}

static uint64_t got(const struct fixture *f, uint32_t key)
{
	return *snapshot_energy(f->s, at(f, key), WALL);
}

static void moved(struct fixture *f, uint32_t row, struct traffic t)
{
	reading_add_traffic(&f->r, row, &t);
}

#define check(f, of_a, of_b, of_disk, of_network) \
	do { \
		assert_int_equal(got(f, (f)->a), of_a); \
		assert_int_equal(got(f, (f)->b), of_b); \
		assert_int_equal(got(f, (f)->disk), of_disk); \
		assert_int_equal(got(f, (f)->network), of_network); \
	} while (0)

/* One to three by bytes; what is more than they caused stays with the disk. */
static void by_bytes(void **state)
{
	struct fixture *f = *state;

	moved(f, f->a, (struct traffic){ .read_bytes = 1000000 });
	moved(f, f->b, (struct traffic){ .read_bytes = 3000000 });
	interval(f, S, 4000000, 0);
	check(f, 1000000, 3000000, 0, 0);
	moved(f, f->a, (struct traffic){ .read_bytes = 1000000 });
	moved(f, f->b, (struct traffic){ .read_bytes = 3000000 });
	interval(f, S, 4500001, 0);
	check(f, 1000000, 3000000, 500001, 0);
	assert_true(snapshot_energy_quality(f->s, at(f, f->a), WALL) & QUALITY_ESTIMATED);
}

/* Each kind of work has its own price, and takes of its own cause alone. */
static void by_kind(void **state)
{
	struct fixture *f = *state;

	moved(f, f->a, (struct traffic){ .write_bytes = 100, .read_requests = 2, .write_requests = 3 });
	moved(f, f->b, (struct traffic){ .rx_bytes = 10, .tx_bytes = 20, .rx_packets = 3, .tx_packets = 4 });
	interval(f, S, 10000, 10000);
	check(f, 5200, 100, 10000 - 5200, 10000 - 100);
	/* what is discarded has no price */
	moved(f, f->a, (struct traffic){ .discard_bytes = 1000000, .discard_requests = 10 });
	interval(f, S, 10000, 0);
	check(f, 0, 0, 10000, 0);
	/* packets do not take what the disk drew */
	moved(f, f->b, (struct traffic){ .tx_packets = 400 });
	interval(f, S, 10000, 0);
	check(f, 0, 0, 10000, 0);
}

static void nobody(void **state)
{
	struct fixture *f = *state;

	interval(f, S, 700, 800);
	check(f, 0, 0, 700, 800);
	f->r.domains[WALL].work = (struct work_price){ 0 };
	moved(f, f->a, (struct traffic){ .read_bytes = 1000000, .tx_bytes = 1000000 });
	interval(f, S, 700, 800);
	check(f, 0, 0, 700, 800);
	/* none of a row of no cgroup: idle works for nobody */
	f->r.domains[WALL].work = (struct work_price){ .read_byte_q32 = Q32 };
	moved(f, ROW_IDLE, (struct traffic){ .read_bytes = 1000 });
	moved(f, f->network, (struct traffic){ .read_bytes = 1000 });
	interval(f, S, 700, 0);
	check(f, 0, 0, 700, 0);
	moved(f, ROW_OTHER, (struct traffic){ .read_bytes = 300 });
	interval(f, S, 700, 0);
	assert_int_equal(got(f, ROW_OTHER), 300);
}

/* Energy follows the work by a second; work that no energy comes for is forgotten. */
static void waits(void **state)
{
	struct fixture *f = *state;

	moved(f, f->a, (struct traffic){ .read_bytes = 5000 });
	interval(f, S, 0, 0);
	check(f, 0, 0, 0, 0);
	interval(f, S, 3000, 0);
	check(f, 3000, 0, 0, 0);
	interval(f, S / 2, 3000, 0);
	check(f, 2000, 0, 1000, 0);
	/* whenever it was: each of these is paid in the interval after it */
	for (unsigned i = 0; i < 9; i++) {
		moved(f, f->a, (struct traffic){ .read_bytes = 5000 });
		interval(f, i % 3 ? S : 7 * S, i ? 5000 : 0, 0);
		assert_int_equal(got(f, f->a), i ? 5000 : 0);
	}
	interval(f, S, 5000, 0);
	check(f, 5000, 0, 0, 0);
	moved(f, f->a, (struct traffic){ .read_bytes = 5000 });
	interval(f, S, 0, 0);
	for (unsigned i = 0; i < 4; i++)
		interval(f, S, 0, 0);
	interval(f, S, 3000, 0);
	assert_true(got(f, f->a) <= 1);
	assert_int_equal(got(f, f->a) + got(f, f->disk), 3000);
}

/* Parts of a microjoule add up: over a thousand intervals each has its own to a microjoule. */
static void small(void **state)
{
	struct fixture *f = *state;
	uint64_t a = 0, b = 0, disk = 0;

	f->r.domains[WALL].work.read_byte_q32 = Q32 / 10;
	for (unsigned i = 0; i < 1000; i++) {
		moved(f, f->a, (struct traffic){ .read_bytes = 1 });
		moved(f, f->b, (struct traffic){ .read_bytes = 3 });
		interval(f, S / 10, i % 2 ? 1 : 0, 0);
		a += got(f, f->a);
		b += got(f, f->b);
		disk += got(f, f->disk);
	}
	assert_int_equal(a + b + disk, 500);
	assert_in_range(a, 98, 100);
	assert_in_range(b, 297, 300);
}

/* Packets within the machine cost nothing, and nobody knows whose were: the split is by claims, and the range says how little that is. */
static void more_than_there_was(void **state)
{
	struct fixture *f = *state;
	uint32_t sole, a;

	for (unsigned i = 0; i < 20; i++) {
		moved(f, f->a, (struct traffic){ .tx_bytes = 3000 });
		moved(f, f->b, (struct traffic){ .tx_bytes = 1000 });
		interval(f, S, 0, 2000);
		assert_int_equal(got(f, f->network), 0);
		assert_int_equal(got(f, f->a) + got(f, f->b), 2000);
	}
	assert_in_range(got(f, f->a), 1499, 1501);
	/* half of the claims were of nothing: /a had at least 1000 and at most all of 2000 */
	a = *snapshot_uncertainty(f->s, at(f, f->a), WALL);
	assert_in_range(a, 1000 + 300000, 1000 + 360000);
	/* whoever is alone has what there is */
	for (unsigned i = 0; i < 20; i++) {
		moved(f, f->a, (struct traffic){ .tx_bytes = 4000 });
		interval(f, S, 0, 2000);
	}
	sole = *snapshot_uncertainty(f->s, at(f, f->a), WALL);
	assert_int_equal(got(f, f->a), 2000);
	assert_int_equal(sole, 1000);
	/* and where all of it is claimed once, there is no range either */
	for (unsigned i = 0; i < 20; i++) {
		moved(f, f->a, (struct traffic){ .tx_bytes = 3000 });
		moved(f, f->b, (struct traffic){ .tx_bytes = 1000 });
		interval(f, S, 0, 4000);
	}
	assert_int_equal(*snapshot_uncertainty(f->s, at(f, f->a), WALL), 1000);
	/* what the wall does not know, the row does not */
	f->r.domains[WALL].uncertainty_ppm = SNAPSHOT_UNKNOWN;
	interval(f, S, 0, 4000);
	assert_int_equal(*snapshot_uncertainty(f->s, at(f, f->network), WALL), SNAPSHOT_UNKNOWN);
}

/* At first it is not known how much of what is claimed cost something. */
static void unknown_at_first(void **state)
{
	struct fixture *f = *state;

	moved(f, f->a, (struct traffic){ .tx_bytes = 1000 });
	moved(f, f->b, (struct traffic){ .tx_bytes = 1000 });
	interval(f, S, 0, 2000);
	check(f, 1000, 1000, 0, 0);
	assert_int_equal(*snapshot_uncertainty(f->s, at(f, f->a), WALL), 1000 + 1000000);
	/* whoever claims nothing has no part in that: /b only computes */
	reading_cell(&f->r, f->b, 0)->time_ns += S;
	f->r.cpus[0].elapsed_ns += S;
	f->r.domains[0].units += 500;
	f->r.domains[WALL].units += 600;
	moved(f, f->a, (struct traffic){ .tx_bytes = 1000 });
	interval(f, S, 0, 1000);
	check(f, 1000, 600, 0, 0);
	assert_int_equal(*snapshot_uncertainty(f->s, at(f, f->b), WALL), 1000);
}

/* Nobody gets what was due to a row that has ended, neither the others nor the next one in its place. */
static void ended(void **state)
{
	struct fixture *f = *state;
	uint32_t next;

	moved(f, f->a, (struct traffic){ .read_bytes = 1000 });
	moved(f, f->b, (struct traffic){ .read_bytes = 1000 });
	interval(f, S / 10, 0, 0);
	reading_drop_row(&f->r, f->a);
	f->r.number++;
	consumer_snapshot(f->c, &f->r);
	reading_reap(&f->r);
	next = (uint32_t)reading_add_row(&f->r, cgroup_add(f->t, 13, "/c", 1, 0));
	assert_int_equal(next, f->a);
	interval(f, S / 10, 1000, 0);
	check(f, 0, 500, 500, 0);
	/* the same where its place stays free */
	moved(f, next, (struct traffic){ .read_bytes = 3000 });
	interval(f, S / 10, 1000, 0);
	assert_in_range(got(f, next), 749, 751); /* 3000 of that, 500 of /b, and 500 that are nobody's any more */
	reading_drop_row(&f->r, next);
	f->r.number++;
	consumer_snapshot(f->c, &f->r);
	reading_reap(&f->r);
	interval(f, S / 10, 1000, 0);
	assert_true(got(f, f->b) < 200);
	assert_true(got(f, f->disk) > 800);
}

/* Beyond all numbers a claim is as large as can be, and not small. */
static void huge(void **state)
{
	struct fixture *f = *state;

	f->r.domains[WALL].work = (struct work_price){ .read_byte_q32 = 1ull << 63 };
	moved(f, f->a, (struct traffic){ .read_bytes = 1ull << 33 });
	moved(f, f->b, (struct traffic){ .read_bytes = 1 });
	interval(f, S, 1ull << 40, 0);
	assert_true(got(f, f->a) > (1ull << 40) / 100 * 99);
	assert_in_range(got(f, f->b), 1, 1ull << 27);
}

static uint64_t seed = 88172645463325252ull;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Of any size, up to all ones. */
static uint64_t any(void)
{
	uint64_t v = draw();
	unsigned shift = (unsigned)(draw() >> 32) % 72;

	return shift >= 64 ? (shift & 1 ? UINT64_MAX : 0) : v >> shift;
}

/* A stranger's recording: any prices, traffic, energy, times and causes, several uses of one row. */
static void whatever_it_is(void **state)
{
	struct fixture *f = *state;
	static const struct formula_ops *const all[] = { &formula_share, &formula_model };
	struct formula *formulas[2] = { new_formula(all[0], IDLE_BY_TIME), new_formula(all[1], IDLE_OWN) };
	uint64_t paid = 0;

	interval(f, S, 0, 0);
	assert_int_equal(snapshot_reserve_uses(f->s, 6), 0);
	for (unsigned n = 0; n < 30000; n++) {
		struct snapshot *s = f->s;
		uint64_t *price = (uint64_t *)&s->domains[WALL].work;

		s->end_ns = draw() % 50 ? s->end_ns + draw() % S : any();
		s->domains[WALL].energy_uj = any();
		for (unsigned i = 0; i < sizeof(s->domains[WALL].work) / sizeof(*price); i++)
			price[i] = any();
		for (unsigned i = 0; i < s->n_rows; i++) {
			s->rows[i].generation += draw() % 30 == 0;
			for (unsigned k = 0; k < TRAFFIC_VALUES; k++)
				traffic_values(&s->rows[i].traffic)[k] = any();
		}
		s->n_uses = (unsigned)(draw() % 7);
		for (unsigned i = 0; i < s->n_uses; i++)
			s->uses[i] = (struct snap_use){ (uint32_t)(draw() % (s->n_rows + 2)), WALL, any() };
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(all[i]->apply(formulas[i], s), 0);
			check_closes(s);
			paid += got(f, f->a) > 0;
		}
	}
	assert_true(paid > 1000);
	for (unsigned i = 0; i < 2; i++)
		all[i]->destroy(formulas[i]);
}

/* Where there is always enough, everybody gets what the own work costs; nobody ever gets more. */
static void what_it_costs(void **state)
{
	struct fixture *f = *state;
	uint64_t claimed[2] = { 0 }, paid[2] = { 0 };

	for (unsigned n = 0; n < 3000; n++) {
		bool enough = n < 1500;

		for (unsigned i = 0; i < 2; i++) {
			struct traffic t = { .read_bytes = draw() % 1000, .write_requests = draw() % 3 };

			moved(f, i ? f->b : f->a, t);
			claimed[i] += t.read_bytes + 1000 * t.write_requests;
		}
		interval(f, S / 4, enough ? 1000000 : draw() % 3000, 0);
		for (unsigned i = 0; i < 2; i++) {
			paid[i] += got(f, i ? f->b : f->a);
			assert_true(paid[i] <= claimed[i] + 1);
			assert_true(!enough || paid[i] + 1 >= claimed[i]);
		}
	}
	assert_true(paid[0] < claimed[0] * 9 / 10);
}

static struct recording *replay(const struct buf *b)
{
	char path[] = "/tmp/jouled-work-XXXXXX";
	int fd = mkstemp(path);
	struct recording *rec = NULL;
	struct err err = { 0 };

	assert_int_equal(write(fd, b->data, b->len), b->len);
	close(fd);
	assert_int_equal(recording_open(path, &rec, &err), 0);
	remove(path);
	return rec;
}

/* A replay splits by the same prices, to the byte; a recording of before has none, and all stays with the cause. */
static void through_a_recording(void **state)
{
	struct fixture *f = *state;
	struct formula *again = new_formula(&formula_share, IDLE_OWN);
	struct buf live = { 0 }, replayed = { 0 }, before = { 0 };
	struct recording *rec;
	struct snapshot *back;
	struct err err;

	recording_encode_header(&schema, &live);
	recording_encode_header(&schema, &replayed);
	recording_encode_header(&schema, &before);
	f->r.domains[WALL].work.read_byte_q32 = 123456789;
	for (unsigned i = 0; i < 8; i++) {
		moved(f, f->a, (struct traffic){ .read_bytes = 100000 + i });
		moved(f, f->b, (struct traffic){ .tx_bytes = 1000, .write_requests = 3 });
		interval(f, S, 4000, 900);
		recording_encode(f->s, true, &live);
		f->s->domains[WALL].work = (struct work_price){ 0 };
		recording_encode(f->s, true, &before);
	}
	rec = replay(&live);
	while (recording_next(rec, &back, &err) == 1) {
		assert_int_equal(back->domains[WALL].work.read_byte_q32, 123456789);
		assert_int_equal(formula_share.apply(again, back), 0);
		recording_encode(back, true, &replayed);
	}
	assert_int_equal(live.len, replayed.len);
	assert_memory_equal(live.data, replayed.data, live.len);
	assert_true(before.len < live.len);
	recording_close(rec);
	formula_share.destroy(again);
	again = new_formula(&formula_share, IDLE_OWN);
	rec = replay(&before);
	while (recording_next(rec, &f->s, &err) == 1) {
		assert_int_equal(formula_share.apply(again, f->s), 0);
		check_closes(f->s);
		check(f, 0, 0, 4000, 900);
	}
	recording_close(rec);
	formula_share.destroy(again);
	buf_free(&live);
	buf_free(&replayed);
	buf_free(&before);
}

/* The same in a psys with prices: what its disk and network drew goes to who caused it, the rest is split by the formula; without prices
 * all of it is. */
static void in_psys(void **state)
{
	struct fixture *f = *state;
	unsigned at_a, at_b;

	schema.domains[0].kind = DOMAIN_PSYS;
	f->r.domains[0].work = (struct work_price){ .read_byte_q32 = Q32, .network_byte_q32 = Q32 };
	for (unsigned i = 0; i < 4; i++) {
		reading_cell(&f->r, f->a, 0)->time_ns += S / 2;
		reading_cell(&f->r, f->b, 0)->time_ns += S / 2;
		f->r.cpus[0].elapsed_ns += S;
		f->r.cpus[0].online = true;
		f->r.domains[0].units += 10000 + 3000 + 500;
		moved(f, f->a, (struct traffic){ .read_bytes = 2000 });
		moved(f, f->b, (struct traffic){ .tx_bytes = 400 });
		assert_int_equal(reading_use(&f->r, f->disk, 0, 3000), 0);
		assert_int_equal(reading_use(&f->r, f->network, 0, 500), 0);
		interval(f, S, 0, 0);
		at_a = at(f, f->a);
		at_b = at(f, f->b);
		assert_int_equal(*snapshot_energy(f->s, at_a, 0) - 2000, *snapshot_energy(f->s, at_b, 0) - 400);
		assert_int_equal(*snapshot_energy(f->s, at(f, f->disk), 0), 1000);
		assert_int_equal(*snapshot_energy(f->s, at(f, f->network), 0), 100);
		assert_int_equal(f->s->domains[0].energy_uj, 13500);
		assert_true(f->s->domains[0].share_quality & QUALITY_ESTIMATED);
	}
	/* more work than the counter has: it is all that there is */
	f->r.domains[0].units += 700;
	moved(f, f->a, (struct traffic){ .read_bytes = 5000 });
	assert_int_equal(reading_use(&f->r, f->disk, 0, 5000), 0);
	interval(f, S, 0, 0);
	assert_int_equal(*snapshot_energy(f->s, at(f, f->a), 0), 700);
}

/* The range of a row of psys holds all of the work that was added to it. */
static void range_in_psys(void **state)
{
	struct fixture *f = *state;
	struct formula *model = new_formula(&formula_model, IDLE_OWN);
	const unsigned all = 200;
	bool seen = false;

	schema.domains[0].kind = DOMAIN_PSYS;
	f->r.domains[0].work = (struct work_price){ .read_byte_q32 = Q32 };
	for (unsigned i = 0; i < all; i++) {
		const uint64_t busy = S / 10 * (1 + i % 7);
		unsigned at_a, at_b;

		reading_cell(&f->r, f->a, 0)->time_ns += busy;
		reading_cell(&f->r, f->b, 0)->time_ns += busy / 4;
		f->r.cpus[0].elapsed_ns += S;
		f->r.cpus[0].online = true;
		f->r.domains[0].units += 2000000 + busy / 100 * 5 / 4 + 3000000 + i % 3 * 10000;
		moved(f, f->a, (struct traffic){ .read_bytes = 3000000 });
		assert_int_equal(reading_use(&f->r, f->disk, 0, 3000000), 0);
		f->r.number++;
		f->r.mono_ns += S;
		f->r.domains[0].time_ns = f->r.domains[WALL].time_ns = f->r.mono_ns;
		f->s = consumer_snapshot(f->c, &f->r);
		assert_int_equal(formula_model.apply(model, f->s), 0);
		check_closes(f->s);
		at_a = at(f, f->a);
		at_b = at(f, f->b);
		if (*snapshot_uncertainty(f->s, at_b, 0) == SNAPSHOT_UNKNOWN)
			continue;
		seen = true;
		assert_true((double)*snapshot_uncertainty(f->s, at_a, 0) * (double)*snapshot_energy(f->s, at_a, 0) >=
			    3000000 * 0.999e6);
		assert_true(i < all / 2 || *snapshot_uncertainty(f->s, at_b, 0) < 500000);
	}
	assert_true(seen);
	formula_model.destroy(model);
}

/* What cannot be told has no range: the supply, the fans and what nothing explains. */
static void no_range(void **state)
{
	struct fixture *f = *state;
	uint32_t supply = (uint32_t)reading_add_cause(&f->r, ROW_SUPPLY);
	uint32_t fans = (uint32_t)reading_add_cause(&f->r, ROW_FANS);

	f->r.domains[WALL].units += 5000;
	assert_int_equal(reading_use(&f->r, supply, WALL, 2000), 0);
	assert_int_equal(reading_use(&f->r, fans, WALL, 2000), 0);
	assert_int_equal(reading_use(&f->r, ROW_IDLE, WALL, 1000), 0);
	interval(f, S, 300, 0);
	assert_int_equal(got(f, supply), 2000);
	assert_int_equal(*snapshot_uncertainty(f->s, at(f, supply), WALL), SNAPSHOT_UNKNOWN);
	assert_int_equal(*snapshot_uncertainty(f->s, at(f, fans), WALL), SNAPSHOT_UNKNOWN);
	assert_int_equal(*snapshot_uncertainty(f->s, at(f, f->disk), WALL), 1000);
	assert_true(isnan(f->s->domains[WALL].idle_uncertainty));
	assert_true(f->s->domains[WALL].uncertainty > 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(by_bytes),
		test(by_kind),
		test(nobody),
		test(waits),
		test(small),
		test(more_than_there_was),
		test(unknown_at_first),
		test(ended),
		test(huge),
		test(in_psys),
		test(range_in_psys),
		test(no_range),
		test(whatever_it_is),
		test(what_it_costs),
		test(through_a_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
