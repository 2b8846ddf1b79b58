/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU source on a scripted libnvidia-ml (tests/gpu/fake_nvml.c): two GPUs whose power is a known function of time, and
 * the faults of real ones. What is expected is integrated here, from the script. */
#include <errno.h>
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
#include "base/clock.h"
#include "source/gpu/gpus.h"
#include "nvml_log.h"

#define BASE0 100000.0 /* mW */
#define BASE1 60000.0

static char library[512], script_path[64];

struct fixture {
	struct fsroot *root;
	struct schema schema;
	struct gpus *g;
	struct reading r;
};

static void script(const char *text)
{
	char next[80];
	FILE *f;

	snprintf(next, sizeof(next), "%s.new", script_path);
	f = fopen(next, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(rename(next, script_path), 0);
}

static int open_all(struct fixture *f, struct err *err)
{
	const struct gpu_options o = { .library = library, .pace_ns = 20 * NS_PER_MS };

	memset(f, 0, sizeof(*f));
	f->schema.n_cpus = 1;
	f->schema.cpus = calloc(1, sizeof(*f->schema.cpus));
	assert_int_equal(fsroot_open("/", &f->root), 0);
	assert_int_equal(reading_init(&f->r, &f->schema), 0);
	return gpus_open(f->root, &o, &f->schema, &f->g, err);
}

static void start(struct fixture *f, const char *text)
{
	struct err err = { 0 };

	script(text);
	assert_int_equal(open_all(f, &err), 0);
	assert_int_equal(gpus_start(f->g), 0);
}

static void finish(struct fixture *f)
{
	gpus_close(f->g);
	reading_free(&f->r);
	fsroot_close(f->root);
	free(f->schema.cpus);
}

/* The lock may be taken for a moment: asked until a newer value came. */
static struct reading_domain take(struct fixture *f, unsigned domain)
{
	uint64_t old = f->r.domains[domain].time_ns, until = clock_mono_ns() + 10 * NS_PER_S;

	do {
		f->r.mono_ns = clock_mono_ns();
		gpus_read(f->g, &f->r, NULL);
		usleep(2000);
	} while (f->r.domains[domain].time_ns <= old && clock_mono_ns() < until);
	return f->r.domains[domain];
}

static void energy_is_the_curve(struct fixture *f, double mw0, double mw1)
{
	struct reading_domain a[2], b[2];

	for (unsigned i = 0; i < 2; i++)
		a[i] = take(f, i);
	usleep(2000000); /* whole periods of the square wave */
	for (unsigned i = 0; i < 2; i++)
		b[i] = take(f, i);
	for (unsigned i = 0; i < 2; i++) {
		double s = (double)(b[i].time_ns - a[i].time_ns) / 1e9, j = (double)(b[i].units - a[i].units) / 1e6;
		double want = (i ? mw1 : mw0) / 1000 * s;

		/* steps of 20 ms, and half a period of 50 ms */
		assert_true(fabs(j - want) < want * 0.005 + (i ? mw1 : mw0) / 1000 * 0.045);
		assert_false(b[i].stale);
	}
}

static void curves(void **state)
{
	struct fixture f;

	start(&f, "power 0 100000 50000 50\npower 1 60000 0 1000\n");
	assert_int_equal(gpus_count(f.g), 2);
	assert_int_equal(f.schema.n_domains, 2);
	assert_string_equal(f.schema.domains[1].name, "gpu-1");
	assert_string_equal(f.schema.domains[1].id, "GPU-fake1-0000-1111-2222-333344445555");
	assert_int_equal(f.schema.domains[1].kind, DOMAIN_GPU);
	energy_is_the_curve(&f, BASE0 + 25000, BASE1);
	assert_false(f.r.domains[0].estimated);
	finish(&f);
}

/* No energy counter: the integral of power, estimated. */
static void integral(void **state)
{
	struct gpu_desc d;
	struct fixture f;

	start(&f, "refuse energy\nrefuse app_clock\nrefuse pcie\npower 0 100000 0 1000\n");
	gpus_desc(f.g, 0, &d);
	assert_false(d.fields & (GPU_BIT(GPU_TOTAL_ENERGY) | GPU_BIT(GPU_APP_CLOCK_MEM) | GPU_BIT(GPU_PCI_TX)));
	assert_true(d.fields & GPU_BIT(GPU_POWER));
	energy_is_the_curve(&f, BASE0, BASE1);
	assert_true(f.r.domains[0].estimated);
	finish(&f);
}

static unsigned collect(struct fixture *f, struct gpu_cursor *c, struct gpu_row *rows, unsigned max, uint64_t ns)
{
	uint64_t until = clock_mono_ns() + ns;
	unsigned n = 0;

	while (clock_mono_ns() < until) {
		while (n < max && gpus_next_row(f->g, c, &rows[n]))
			n++;
		usleep(10000);
	}
	return n;
}

/* All fields, and PCIe's 40 ms do not delay a row. */
static void rows(void **state)
{
	static const int64_t want[GPU_FIELDS] = {
		[GPU_CLOCK_MEM] = 1215,     [GPU_CLOCK_GPU] = 1410,     [GPU_APP_CLOCK_MEM] = 1215,
		[GPU_APP_CLOCK_GPU] = 1095, [GPU_POWER_LIMIT] = 250000, [GPU_POWER_STATE] = 2,
		[GPU_POWER] = 100000,       [GPU_TEMPERATURE] = 61,     [GPU_PCI_TX] = 1111,
		[GPU_PCI_RX] = 2222,        [GPU_UTIL_GPU] = 80,        [GPU_UTIL_MEM] = 7,
	};
	struct gpu_row row[64];
	struct gpu_cursor c;
	struct fixture f;
	unsigned n, with_pci = 0, of0 = 0;

	start(&f, "process 0 1 80\n");
	gpus_cursor(f.g, &c);
	gpus_record(f.g, 100 * NS_PER_MS);
	n = collect(&f, &c, row, 64, 2 * NS_PER_S);
	assert_true(n >= 10);
	for (unsigned i = 0; i < n; i++) {
		if (row[i].gpu)
			continue;
		of0++;
		with_pci += row[i].present >> GPU_PCI_TX & 1;
		for (enum gpu_field k = 0; k < GPU_FIELDS; k++)
			if (k != GPU_TOTAL_ENERGY && row[i].present & GPU_BIT(k))
				assert_int_equal(row[i].v[k], want[k]);
		assert_true((row[i].present | GPU_BIT(GPU_PCI_TX) | GPU_BIT(GPU_PCI_RX)) == (1u << GPU_FIELDS) - 1);
	}
	assert_true(of0 <= 22 && with_pci * 2 > of0);
	gpus_record(f.g, 0);
	finish(&f);
}

/* Where the GPU counts its bytes, rows say what went by between two looks. A counter that begins again says nothing. */
static void bytes(void **state)
{
	struct gpu_row row[64];
	struct gpu_cursor c;
	struct fixture f;
	unsigned n, with_pci = 0;

	start(&f, "bytes 3000000 7000000\n");
	gpus_cursor(f.g, &c);
	gpus_record(f.g, 100 * NS_PER_MS);
	n = collect(&f, &c, row, 64, 2 * NS_PER_S);
	script("bytes 3000000 7000000\nbytes_wrap\n");
	n += collect(&f, &c, row + n, 64 - n, 3 * NS_PER_S);
	for (unsigned i = 0; i < n; i++) {
		if (!(row[i].present & GPU_BIT(GPU_PCI_TX)))
			continue;
		with_pci++;
		/* the counter's clock and ours may be apart by a turn of the scheduler within 100 ms */
		assert_in_range(row[i].v[GPU_PCI_RX] * 3, row[i].v[GPU_PCI_TX] * 7 - 10, row[i].v[GPU_PCI_TX] * 7 + 10);
		assert_true(row[i].v[GPU_PCI_TX] > 0);
	}
	assert_true(with_pci > 5);
	gpus_record(f.g, 0);
	finish(&f);
}

/* The ring's samples: in order and once each, whatever the driver does. */
static void samples(void **state)
{
	struct gpu_sample s;
	struct gpu_cursor c;
	struct fixture f;
	int64_t last[2][GPU_RINGS] = { 0 };
	unsigned n[GPU_RINGS] = { 0 };
	uint64_t until;

	start(&f, "disorder\nprocess 0 1 80\n");
	gpus_cursor(f.g, &c);
	gpus_record(f.g, 100 * NS_PER_MS);
	for (until = clock_mono_ns() + 60 * NS_PER_S;
	     (n[GPU_RING_POWER] <= 130 || n[GPU_RING_GPU] <= 130 || n[GPU_RING_MEM] <= 130) && clock_mono_ns() < until;
	     usleep(50000))
		while (gpus_next_sample(f.g, &c, &s)) {
			assert_false(s.polled);
			assert_true(s.real_us > last[s.gpu][s.ring]);
			assert_int_equal(s.real_us % 20000, 0);
			last[s.gpu][s.ring] = s.real_us;
			if (s.gpu == 0) {
				assert_int_equal(s.value, s.ring == GPU_RING_POWER ? 100000 :
							  s.ring == GPU_RING_GPU   ? 80 :
										     7);
				n[s.ring]++;
			}
		}
	/* more than the two seconds from before: a third of them went under in the disorder */
	assert_true(n[GPU_RING_POWER] > 130 && n[GPU_RING_GPU] > 130 && n[GPU_RING_MEM] > 130);
	assert_int_equal(c.missed, 0);
	finish(&f);
}

/* No ring: sampled by our own rows, and said. */
static void polled(void **state)
{
	struct gpu_sample s;
	struct gpu_cursor c;
	struct fixture f;
	unsigned n = 0;
	uint64_t until;

	start(&f, "refuse samples\n");
	gpus_cursor(f.g, &c);
	gpus_record(f.g, 50 * NS_PER_MS);
	for (until = clock_mono_ns() + 10 * NS_PER_S; n < 10 && clock_mono_ns() < until; usleep(20000))
		while (gpus_next_sample(f.g, &c, &s)) {
			assert_true(s.polled);
			n++;
		}
	assert_true(n >= 10);
	finish(&f);
}

static bool warned(struct fixture *f, const char *part, unsigned seconds)
{
	uint64_t until = clock_mono_ns() + seconds * NS_PER_S;
	char text[256];

	for (; clock_mono_ns() < until; usleep(10000))
		while (gpus_next_warning(f->g, text, sizeof(text)))
			if (strstr(text, part))
				return true;
	return false;
}

/* Falls off the bus, and comes back with a counter that began anew. The other one goes on. */
static void lost_and_back(void **state)
{
	struct reading_domain before, other, after;
	struct fixture f;

	start(&f, "power 1 60000 0 1000\n");
	take(&f, 1);
	before = take(&f, 1); /* measured at least once: what it loses is a gap */
	script("lost 1\n");
	assert_true(warned(&f, "gpu-1: it does not answer", 10));
	gpus_read(f.g, &f.r, NULL);
	other = take(&f, 0);
	assert_false(other.stale);
	after = f.r.domains[1];
	assert_true(after.stale);
	assert_true(after.errors > before.errors);
	script("counter_offset 1 -4999999\n");
	assert_true(warned(&f, "gpu-1: it is back", 15));
	before = take(&f, 1);
	after = take(&f, 1);
	assert_false(after.stale);
	assert_true(after.units - before.units < 60000000ull * 10);
	finish(&f);
}

static void counter_reset(void **state)
{
	struct reading_domain before, after;
	struct fixture f;

	start(&f, "power 0 100000 0 1000\n");
	before = take(&f, 0);
	script("power 0 100000 0 1000\ncounter_offset 0 -4999000\n");
	assert_true(warned(&f, "began anew", 10));
	after = take(&f, 0);
	assert_int_equal(after.resets, before.resets + 1);
	assert_true(after.units >= before.units && after.units - before.units < 100000000ull * 12);
	finish(&f);
}

/* Jetson: init works, everything is refused. */
static void nothing_supported(void **state)
{
	struct err err = { 0 };
	struct fixture f;

	script("refuse all\n");
	assert_int_equal(open_all(&f, &err), 0);
	assert_int_equal(gpus_count(f.g), 0);
	assert_int_equal(f.schema.n_domains, 0);
	assert_true(warned(&f, "neither power nor energy", 1));
	finish(&f);
}

static void mismatch(void **state)
{
	struct err err = { 0 };
	struct fixture f;

	script("mismatch\n");
	assert_int_equal(open_all(&f, &err), -ENODEV);
	assert_non_null(strstr(err.text, "different versions"));
	finish(&f);
}

/* A counter whose answer takes 4 ms of CPU is asked now and then; the power of the instant carries energy between two
 * answers, and the total is the counter's. Its steps are 20 ms. */
static void dear_counter(void **state)
{
	struct fixture f;
	struct reading_domain first, last;
	char log[128], text[256];
	double fast = 0, s, j;
	uint64_t until;
	unsigned energy, power;

	snprintf(log, sizeof(log), "%s.log", script_path);
	snprintf(text, sizeof(text), "log %s\ngpus 1\nspin energy 4\npower 0 100000 0 1000\ninstant 125000\n", log);
	start(&f, text);
	for (until = clock_mono_ns() + 60 * NS_PER_S; nvml_log_calls(log, " energy ") < 20 && clock_mono_ns() < until;)
		usleep(50000);
	energy = nvml_log_calls(log, " energy ");
	power = nvml_log_calls(log, " power ");
	first = last = take(&f, 0);
	/* the sensor's 125 W, not the 100 W of the mean: seen where no answer of the counter mends in between */
	for (until = clock_mono_ns() + 60 * NS_PER_S;
	     (fast < 115 || nvml_log_calls(log, " energy ") < energy + 4) && clock_mono_ns() < until;) {
		struct reading_domain next = take(&f, 0);
		double watts = (double)(next.units - last.units) * 1000 / (double)(next.time_ns - last.time_ns);

		if (next.time_ns - last.time_ns < 200 * NS_PER_MS)
			continue;
		fast = watts > fast ? watts : fast;
		last = next;
	}
	energy = nvml_log_calls(log, " energy ") - energy;
	power = nvml_log_calls(log, " power ") - power;
	s = (double)(last.time_ns - first.time_ns) / 1e9;
	j = (double)(last.units - first.units) / 1e6;
	assert_true(power > 2 * energy);
	assert_true(fast > 115 && fast < 135);
	assert_true(fabs(j - 100 * s) < 100 * 0.4 + 0.05 * 100 * s);
	finish(&f);
	unlink(log);
}

static void no_library(void **state)
{
	const struct gpu_options o = { .library = "/nowhere/libnvidia-ml.so.1" };
	struct schema s = { .n_cpus = 1 };
	struct err err = { 0 };
	struct fsroot *root;
	struct gpus *g;

	assert_int_equal(fsroot_open("/", &root), 0);
	assert_int_equal(gpus_open(root, &o, &s, &g, &err), -ENOENT);
	assert_null(g);
	assert_non_null(strstr(err.text, "gpu.library"));
	fsroot_close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(curves),        cmocka_unit_test(integral),      cmocka_unit_test(rows),
		cmocka_unit_test(bytes),         cmocka_unit_test(samples),       cmocka_unit_test(polled),
		cmocka_unit_test(lost_and_back), cmocka_unit_test(counter_reset), cmocka_unit_test(nothing_supported),
		cmocka_unit_test(mismatch),      cmocka_unit_test(no_library),    cmocka_unit_test(dear_counter),
	};
	const char *b = getenv("B");
	int fd;

	snprintf(script_path, sizeof(script_path), "/tmp/jouled-nvml-XXXXXX");
	fd = mkstemp(script_path);
	if (fd < 0 || !realpath(b ? b : "build", library))
		return 1;
	close(fd);
	strcat(library, "/gpu/libnvidia-ml.so.1");
	setenv("FAKE_NVML", script_path, 1);
	fd = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(script_path);
	return fd;
}
