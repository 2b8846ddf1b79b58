// SPDX-License-Identifier: Apache-2.0
/* The wall as a source: it learns beside a meter from a machine of files and readings made here, tells the power without the
 * meter afterwards, and its ledger closes under both formulas. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "formula/formula.h"
#include "model/cgroup.h"
#include "source/wall/wall.h"
#include "source/wall/wall_window.h"
#include "wall_plant.h"

static const struct plant_kind kind = { "server", 35,   40,    160,   12, 8,  0.05, 0.00025,
					0.008,    0.05, 0.004, 0.003, 24, 20, true, 0.003 };

static struct cpu_desc cpus[1] = { { .present = true } };

struct world {
	char dir[64];
	struct fsroot *root;
	struct schema schema;
	struct reading r;
	struct cgroup_table *table;
	struct wall *w;
	struct plant plant;
	uint64_t sectors, requests, bytes, packets, total_uj;
	double joules[3]; /* package, dram, meter or psys */
	int64_t rows[2];
	bool meter, by_cgroup;
	bool psys; /* in place of a meter: package and dram with a loss, and the work */
};

static void put(struct world *d, const char *path, const char *text)
{
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", d->dir, path);
	for (char *slash = strchr(name + strlen(d->dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(name, 0755);
		*slash = '/';
	}
	f = fopen(name, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* A disk, one made of it, one in memory; an interface with a device and one without; two fans. */
static void put_work(struct world *d)
{
	char text[1024];
	double rpm = cbrt(d->plant.x[WALL_FANS] / 2) * 1000;

	snprintf(text, sizeof(text),
		 " 8 0 sda %llu 0 %llu 0 0 0 0 0 0 0 0\n 8 1 sda1 7 0 99999999 0 7 0 99999999 0 0 0 0\n"
		 " 253 0 dm-0 7 0 %llu 0 7 0 99999999 0 0 0 0\n 7 0 loop0 7 0 %llu 0 7 0 99999999 0 0 0 0\n",
		 (unsigned long long)d->requests, (unsigned long long)d->sectors, (unsigned long long)d->sectors,
		 (unsigned long long)d->sectors);
	put(d, "proc/diskstats", text);
	snprintf(
		text, sizeof(text),
		"Inter-| Receive\n face |bytes\n    lo: %llu 5 0 0 0 0 0 0 %llu 5 0 0 0 0 0 0\n  eth0: %llu %llu 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		(unsigned long long)d->bytes * 3, (unsigned long long)d->bytes * 3, (unsigned long long)d->bytes,
		(unsigned long long)d->packets);
	put(d, "proc/net/dev", text);
	snprintf(text, sizeof(text), "%.0f\n", rpm);
	put(d, "sys/class/hwmon/hwmon0/fan1_input", text);
	put(d, "sys/class/hwmon/hwmon3/fan2_input", text);
}

static void put_machine(struct world *d)
{
	put(d, "sys/block/sda/size", "1\n");
	put(d, "sys/block/dm-0/slaves/sda", "");
	put(d, "sys/block/loop0/size", "1\n");
	put(d, "sys/class/net/eth0/device/x", "");
	put(d, "sys/class/net/lo/address", "");
	put_work(d);
}

static void add_domain(struct schema *s, const char *name, enum domain_kind k, enum energy_interface i)
{
	struct domain_desc *d = &s->domains[s->n_domains++];

	d->kind = k;
	d->interface = i;
	snprintf(d->name, sizeof(d->name), "%s", name);
}

/* Opens the machine; what was kept in its folder is there again. */
static void begin(struct world *d, bool meter, uint64_t seed)
{
	struct err err;
	int rc;

	d->meter = meter;
	d->plant = plant_new(&kind, seed);
	memset(&d->schema, 0, sizeof(d->schema));
	d->schema.n_cpus = 1;
	d->schema.cpus = cpus;
	d->schema.n_packages = 1;
	add_domain(&d->schema, "package-0", DOMAIN_PACKAGE, ENERGY_POWERCAP);
	add_domain(&d->schema, "dram-0", DOMAIN_DRAM, ENERGY_POWERCAP);
	if (meter)
		add_domain(&d->schema, "external-0", DOMAIN_EXTERNAL, ENERGY_METER);
	if (d->psys)
		add_domain(&d->schema, "psys", DOMAIN_PSYS, ENERGY_POWERCAP);
	assert_int_equal(fsroot_open(d->dir, &d->root), 0);
	rc = wall_open(d->root, d->dir, &d->schema, &d->w, &err);
	assert_int_equal(rc, 0);
	assert_int_equal(reading_init(&d->r, &d->schema), 0);
	d->table = cgroup_table_new();
	d->rows[0] = reading_add_row(&d->r, cgroup_add(d->table, 10, "/a", 1, 0));
	d->rows[1] = reading_add_row(&d->r, cgroup_add(d->table, 11, "/b", 1, 0));
	d->r.mono_ns = 1000 * NS_PER_S;
	for (unsigned i = 0; i < 3; i++)
		d->joules[i] = 0;
	for (unsigned i = 0; i < d->schema.n_domains; i++)
		d->r.domains[i] = (struct reading_domain){ .uj_num = 1, .uj_den = 1, .time_ns = d->r.mono_ns };
}

static void end(struct world *d)
{
	wall_close(d->w);
	reading_free(&d->r);
	cgroup_table_free(d->table);
	fsroot_close(d->root);
}

/* A quarter of the disk's and the network's work is /a's, the rest /b's. */
static void add_work(struct world *d, const struct world *before)
{
	const struct traffic all = { .read_bytes = (d->sectors - before->sectors) * 512,
				     .read_requests = d->requests - before->requests,
				     .rx_bytes = d->bytes - before->bytes,
				     .tx_packets = d->packets - before->packets };
	struct traffic a, b = all;

	for (unsigned i = 0; i < TRAFFIC_VALUES; i++)
		traffic_values(&a)[i] = traffic_const(&all)[i] / 4;
	traffic_take_off(&b, &a);
	reading_add_traffic(&d->r, (uint32_t)d->rows[0], &a);
	reading_add_traffic(&d->r, (uint32_t)d->rows[1], &b);
}

/* A second of the machine, its thread and a reading. */
static void second(struct world *d)
{
	const struct world before = *d;
	struct cell *a, *b;

	plant_tick(&d->plant);
	d->sectors += (uint64_t)((d->plant.x[WALL_READ] + d->plant.x[WALL_WRITE]) * 1e6 / 512);
	d->requests += (uint64_t)(d->plant.x[WALL_REQUESTS] * 1000);
	d->bytes += (uint64_t)(d->plant.x[WALL_BYTES] * 1e6);
	d->packets += (uint64_t)(d->plant.x[WALL_PACKETS] * 1000);
	put_work(d);
	d->r.number++;
	d->r.mono_ns += NS_PER_S;
	if (d->by_cgroup)
		add_work(d, &before);
	if (!d->by_cgroup)
		wall_step(d->w, d->r.mono_ns);
	d->joules[0] += d->plant.x[WALL_CPU];
	d->joules[1] += d->plant.x[WALL_DRAM];
	d->joules[2] += d->psys ? 4 + 1.07 * (d->plant.x[WALL_CPU] + d->plant.x[WALL_DRAM]) + d->plant.truth_disk +
					  d->plant.truth_network :
				  d->plant.truth_total;
	for (unsigned i = 0; i < (d->meter || d->psys ? 3u : 2u); i++) {
		d->r.domains[i].units = (uint64_t)(d->joules[i] * 1e6);
		d->r.domains[i].time_ns = d->r.mono_ns;
	}
	a = reading_cell(&d->r, (uint32_t)d->rows[0], 0);
	a->time_ns += 700 * NS_PER_MS;
	b = reading_cell(&d->r, (uint32_t)d->rows[1], 0);
	b->time_ns += 200 * NS_PER_MS;
	d->r.cpus[0].elapsed_ns += NS_PER_S;
	d->r.cpus[0].online = true;
	wall_read(d->w, &d->r);
	if (d->by_cgroup) /* the thread is late: what it reads is in the next second's energy */
		wall_step(d->w, d->r.mono_ns);
}

static void check_ledger(const struct snapshot *s, const char *formula, enum idle_policy idle)
{
	const struct formula_options o = { .idle = idle,
					   .weight = WEIGHT_TIME,
					   .idle_watts = { 40, NAN, NAN, 3, NAN, NAN, NAN, NAN } };
	struct formula *f = formula_find(formula)->create(&o);
	unsigned wall = s->schema->n_domains - 1;
	const struct snap_domain *d = &s->domains[wall];
	uint64_t sum = 0, a = 0, b = 0, causes = 0;

	assert_int_equal(formula_find(formula)->apply(f, (struct snapshot *)s), 0);
	for (unsigned i = 0; i < s->n_rows; i++) {
		uint64_t uj = *snapshot_energy(s, i, wall);

		sum += uj;
		causes += s->rows[i].kind >= ROW_FIRST_CAUSE ? uj : 0;
		if (s->rows[i].kind == ROW_CGROUP)
			*(strcmp(s->rows[i].path, "/a") == 0 ? &a : &b) = uj;
		if (s->rows[i].kind >= ROW_FIRST_CAUSE)
			for (unsigned k = 0; k < wall; k++)
				assert_int_equal(*snapshot_energy(s, i, k), 0);
	}
	assert_int_equal(d->energy_uj, sum + d->idle_uj + d->residual_uj);
	assert_true(d->energy_uj > 0 && causes > 0 && causes < d->energy_uj);
	assert_int_equal(d->quality & QUALITY_ESTIMATED, QUALITY_ESTIMATED);
	assert_true(idle == IDLE_OWN ? d->idle_uj > 0 : d->idle_uj == 0);
	/* both rows by what they have inside: 7 to 2 by time */
	assert_true(llabs((int64_t)(a * 2) - (int64_t)(b * 7)) < 200);
	formula_find(formula)->destroy(f);
}

static uint64_t price_of(const struct wall_figures *f, const char *name)
{
	for (unsigned i = 0; i < f->n_prices; i++)
		if (strcmp(f->prices[i].name, name) == 0)
			return (uint64_t)(f->prices[i].watts * 0x1p32);
	return 0;
}

/* Prices travel with the reading: J per MB as uJ per byte, J per 1000 as 1000 uJ each. */
static void check_prices(struct world *d)
{
	const struct work_price *p = &d->r.domains[d->schema.n_domains - 1].work;
	struct wall_figures f;

	wall_figures(d->w, &f);
	assert_true(price_of(&f, "disk-read") > 0);
	assert_int_equal(p->read_byte_q32, price_of(&f, "disk-read"));
	assert_int_equal(p->write_byte_q32, price_of(&f, "disk-write"));
	assert_int_equal(p->network_byte_q32, price_of(&f, "network-bytes"));
	assert_true(llabs((int64_t)(p->request_q32 - 1000 * price_of(&f, "disk-requests"))) <= 1000);
	assert_true(llabs((int64_t)(p->packet_q32 - 1000 * price_of(&f, "network-packets"))) <= 1000);
	/* the disk of the plant: 0.008 J per MB, 0.05 J per 1000 requests */
	assert_true(fabs((double)p->read_byte_q32 / 0x1p32 / 0.008 - 1) < 0.2);
}

/* Mean error of the told energy beside the truth over so many seconds. */
static double judge(struct world *d, unsigned seconds, bool formulas)
{
	struct consumer *c = consumer_new(&d->r);
	const unsigned wall = d->schema.n_domains - 1;
	double missed = 0, true_j = 0, told_j = 0;

	for (unsigned i = 0; i < seconds; i++) {
		const struct snapshot *s;

		second(d);
		s = consumer_snapshot(c, &d->r);
		assert_non_null(s);
		missed += fabs((double)s->domains[wall].energy_uj / 1e6 - d->plant.truth_total);
		told_j += (double)s->domains[wall].energy_uj / 1e6;
		true_j += d->plant.truth_total;
		assert_true(s->domains[wall].uncertainty_ppm > 0);
		if (formulas) {
			check_ledger(s, "share", IDLE_OWN);
			check_ledger(s, "share", IDLE_BY_SHARE);
			check_ledger(s, "model", IDLE_OWN);
		}
	}
	consumer_free(c);
	printf("mean error of a second %.2f %%, of the whole %.3f %%\n", 100 * missed / true_j,
	       100 * fabs(told_j / true_j - 1));
	return missed / true_j;
}

static void test_learns_keeps_tells(void **state)
{
	struct world d = { .dir = "/tmp/jouled-wall-XXXXXX" };
	struct wall_figures f;
	char cmd[128], text[240];

	assert_non_null(mkdtemp(d.dir));
	put_machine(&d);
	begin(&d, true, 1);
	assert_true(schema_has_wall(&d.schema));
	for (unsigned i = 0; i < 20; i++)
		second(&d);
	wall_figures(d.w, &f);
	assert_string_equal(f.state, "learning");
	assert_true(d.r.domains[3].stale && d.r.domains[3].units == 0);
	for (unsigned i = 0; i < 1500; i++)
		second(&d);
	wall_figures(d.w, &f);
	assert_string_equal(f.state, "ok");
	assert_true(f.points > 200);
	assert_int_equal(f.n_prices, 7);
	assert_true(judge(&d, 200, true) < 0.03);
	check_prices(&d);
	assert_false(wall_next_warning(d.w, text, sizeof(text)));
	end(&d);
	/* other loads, and no meter */
	begin(&d, false, 77);
	wall_figures(d.w, &f);
	assert_string_equal(f.state, "ok");
	second(&d); /* rates need two readings */
	assert_true(judge(&d, 300, true) < 0.03);
	check_prices(&d);
	end(&d);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", d.dir);
	assert_int_equal(system(cmd), 0);
}

/* Without a calibration there is no number, and it is said why; a broken file is named and costs nothing else. */
static void test_nothing_known(void **state)
{
	struct world d = { .dir = "/tmp/jouled-wall-XXXXXX" };
	struct wall_figures f;
	char cmd[128], text[240];

	assert_non_null(mkdtemp(d.dir));
	put_machine(&d);
	put(&d, "wall.csv", "no calibration\n");
	begin(&d, false, 1);
	assert_true(wall_next_warning(d.w, text, sizeof(text)));
	assert_non_null(strstr(text, "wall.csv"));
	wall_figures(d.w, &f);
	assert_string_equal(f.state, "absent");
	assert_non_null(strstr(f.reason, "meters:"));
	for (unsigned i = 0; i < 10; i++)
		second(&d);
	assert_true(d.r.domains[2].stale && d.r.domains[2].units == 0);
	assert_int_equal(d.r.domains[2].work.read_byte_q32 | d.r.domains[2].work.packet_q32, 0);
	end(&d);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", d.dir);
	assert_int_equal(system(cmd), 0);
}

/* A load that the calibration never saw: the value is told, its uncertainty is not, and one line says so. */
static void test_outside(void **state)
{
	struct world d = { .dir = "/tmp/jouled-wall-XXXXXX" };
	char cmd[128], text[240];

	assert_non_null(mkdtemp(d.dir));
	put_machine(&d);
	begin(&d, true, 1);
	d.plant.busy = 0.4;
	for (unsigned i = 0; i < 1000; i++)
		second(&d);
	end(&d);
	begin(&d, false, 2);
	d.plant.busy = 1;
	d.plant.load = 1;
	d.plant.left = 100;
	for (unsigned i = 0; i < 10; i++)
		second(&d);
	assert_int_equal(d.r.domains[2].uncertainty_ppm, SNAPSHOT_UNKNOWN);
	assert_true(d.r.domains[2].units > 0 && !d.r.domains[2].stale);
	assert_true(wall_next_warning(d.w, text, sizeof(text)));
	assert_non_null(strstr(text, "outside"));
	assert_false(wall_next_warning(d.w, text, sizeof(text)));
	end(&d);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", d.dir);
	assert_int_equal(system(cmd), 0);
}

/* Joules of work reach the cgroups that did it, second by second as the load changes: nearly all of what the plant's disk and card
 * drew, one part to three, also where the energy comes a second after the work. */
static void test_by_cgroup(void **state)
{
	struct world d = { .dir = "/tmp/jouled-wall-XXXXXX" };
	const struct formula_options o = { .weight = WEIGHT_TIME,
					   .idle_watts = { 40, NAN, NAN, 3, NAN, NAN, NAN, NAN } };
	struct formula *f = formula_share.create(&o);
	double kept[ROW_KINDS] = { 0 }, a = 0, b = 0, caused, truth = 0;
	struct consumer *c;
	char cmd[128];

	assert_non_null(mkdtemp(d.dir));
	put_machine(&d);
	begin(&d, true, 1);
	for (unsigned i = 0; i < 1000; i++)
		second(&d);
	end(&d);
	begin(&d, false, 77);
	d.by_cgroup = true;
	second(&d);
	c = consumer_new(&d.r);
	for (unsigned i = 0; i < 400; i++) {
		const struct snapshot *s;
		unsigned wall = d.schema.n_domains - 1;

		second(&d);
		s = consumer_snapshot(c, &d.r);
		assert_int_equal(formula_share.apply(f, (struct snapshot *)s), 0);
		truth += d.plant.truth_disk + d.plant.truth_network;
		for (unsigned k = 0; k < s->n_rows; k++) {
			double joules = (double)*snapshot_energy(s, k, wall) / 1e6;

			kept[s->rows[k].kind] += joules;
			if (s->rows[k].kind == ROW_CGROUP)
				*(strcmp(s->rows[k].path, "/a") == 0 ? &a : &b) += joules;
		}
	}
	/* of what they have inside, 7 to 2 by time, a = 7 x + caused / 4 and b = 2 x + caused x 3 / 4 */
	caused = (7 * b - 2 * a) / 19 * 4;
	printf("caused %.1f J of %.1f J; disk keeps %.2f J, network %.2f J\n", caused, truth, kept[ROW_DISK],
	       kept[ROW_NETWORK]);
	assert_true(fabs(caused / truth - 1) < 0.05);
	assert_true(kept[ROW_DISK] + kept[ROW_NETWORK] < 0.02 * truth);
	consumer_free(c);
	formula_share.destroy(f);
	end(&d);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", d.dir);
	assert_int_equal(system(cmd), 0);
}

/* Joules of the work of a second by the prices. */
static double priced(const struct work_price *p, const struct world *now, const struct world *before)
{
	return ((double)p->read_byte_q32 * (double)(now->sectors - before->sectors) * 512 +
		(double)p->request_q32 * (double)(now->requests - before->requests) +
		(double)p->network_byte_q32 * (double)(now->bytes - before->bytes) +
		(double)p->packet_q32 * (double)(now->packets - before->packets)) /
	       0x1p32 / 1e6;
}

/* psys is a meter for the work that it holds, without another one: what disk and network draw in it is told, after a restart at once. */
static void test_psys(void **state)
{
	struct world d = { .dir = "/tmp/jouled-wall-XXXXXX", .psys = true };
	double told = 0, truth = 0, claimed = 0;
	struct wall_figures f;
	struct consumer *c;
	char cmd[128];

	assert_non_null(mkdtemp(d.dir));
	put_machine(&d);
	begin(&d, false, 1);
	for (unsigned i = 0; i < 100; i++)
		second(&d);
	wall_figures(d.w, &f);
	assert_true(f.psys && !f.psys_ready && f.psys_points > 0);
	assert_int_equal(d.r.domains[2].work.read_byte_q32, 0);
	for (unsigned i = 0; i < 1000; i++)
		second(&d);
	wall_figures(d.w, &f);
	assert_string_equal(f.state, "absent");
	assert_true(f.psys_ready);
	assert_int_equal(f.n_psys_prices, 4); /* nothing is written */
	end(&d);
	begin(&d, false, 77);
	wall_figures(d.w, &f);
	assert_true(f.psys_ready);
	second(&d);
	c = consumer_new(&d.r);
	for (unsigned i = 0; i < 300; i++) {
		const struct world before = d;
		const struct snapshot *s;

		second(&d);
		truth += d.plant.truth_disk + d.plant.truth_network;
		s = consumer_snapshot(c, &d.r);
		claimed += priced(&s->domains[2].work, &d, &before);
		for (unsigned k = 0; k < s->n_uses; k++) {
			assert_int_equal(s->uses[k].domain, 2);
			told += (double)s->uses[k].ns / 1e6;
		}
	}
	printf("psys: told %.1f J of %.1f J, by prices %.1f J\n", told, truth, claimed);
	assert_true(fabs(told / truth - 1) < 0.03);
	assert_true(fabs(claimed / truth - 1) < 0.03);
	consumer_free(c);
	end(&d);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", d.dir);
	assert_int_equal(system(cmd), 0);
}

/* Work that begins while the meter is late: less than nothing would not be read back from the file. */
static void test_late_meter(void **state)
{
	static struct schema s;
	static struct wall_window w = { .meter_kind = DOMAIN_EXTERNAL };
	double x[WALL_INPUTS] = { [WALL_CPU] = 10 };
	struct wall_point p = { 0 };
	struct reading r;
	bool ended = false;

	add_domain(&s, "external-0", DOMAIN_EXTERNAL, ENERGY_METER);
	s.cpus = cpus;
	s.n_cpus = s.n_packages = 1;
	assert_int_equal(reading_init(&r, &s), 0);
	r.mono_ns = 100 * NS_PER_S;
	r.domains[0] = (struct reading_domain){ .uj_num = 1, .uj_den = 1, .time_ns = r.mono_ns };
	for (uint64_t i = 0; i < 7 && !ended; i++) {
		r.mono_ns += NS_PER_S;
		r.domains[0].time_ns = r.mono_ns - 2 * NS_PER_S + i;
		r.domains[0].units += 20000000;
		x[WALL_READ] = i >= WALL_WINDOW_VALUES ? 500 : 0; /* in the last second */
		ended = wall_window_add(&w, &r, x, 1, &p);
	}
	assert_true(ended);
	for (unsigned k = 0; k < WALL_INPUTS; k++)
		assert_true(p.x[k] >= 0);
	reading_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learns_keeps_tells), cmocka_unit_test(test_late_meter),
		cmocka_unit_test(test_nothing_known),      cmocka_unit_test(test_outside),
		cmocka_unit_test(test_by_cgroup),          cmocka_unit_test(test_psys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
