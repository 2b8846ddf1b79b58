/* SPDX-License-Identifier: Apache-2.0 */
/* Sensors in sysfs: cards of AMD and Intel as GPUs, chips of hwmon as meters, in a captured machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "source/gpu/gpus.h"
#include "source/meter/meters.h"
#include "temp_root.h"

struct machine {
	struct temp_root t;
	struct schema schema;
	struct reading r;
	struct gpus *g;
	struct meters *m;
	struct meter_cursor c;
};

#define AMD "/sys/class/drm/card0/device/"
#define INTEL "/sys/class/drm/card1/device/"

static void card_amd(const struct temp_root *t)
{
	temp_root_put(t, AMD "vendor", "0x1002\n");
	temp_root_put(t, AMD "uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_SLOT_NAME=0000:03:00.0\n");
	temp_root_put(t, AMD "gpu_busy_percent", "37\n");
	temp_root_put(t, AMD "mem_busy_percent", "11\n");
	temp_root_put(t, AMD "hwmon/hwmon4/power1_average", "145000000\n");
	temp_root_put(t, AMD "hwmon/hwmon4/power1_input", "999000000\n");
	temp_root_put(t, AMD "hwmon/hwmon4/power1_cap", "220000000\n");
	temp_root_put(t, AMD "hwmon/hwmon4/temp1_input", "61000\n");
	temp_root_put(t, AMD "hwmon/hwmon4/freq1_input", "1800000000\n");
	temp_root_put(t, AMD "hwmon/hwmon4/freq1_label", "sclk\n");
	temp_root_put(t, AMD "hwmon/hwmon4/freq2_input", "1000000000\n");
}

static void start(struct machine *m)
{
	const struct gpu_options o = { .pace_ns = 20 * NS_PER_MS };
	struct err err = { 0 };

	m->schema.n_cpus = 1;
	m->schema.cpus = calloc(1, sizeof(*m->schema.cpus));
	assert_int_equal(reading_init(&m->r, &m->schema), 0);
	assert_int_equal(gpus_open(m->t.root, &o, &m->schema, &m->g, &err), 0);
	gpus_read(m->g, &m->r, NULL); /* the time it was opened at: the first take() waits for the first look */
	assert_int_equal(gpus_start(m->g), 0);
}

static void finish(struct machine *m)
{
	gpus_close(m->g);
	meters_close(m->m);
	reading_free(&m->r);
	free(m->schema.cpus);
	temp_root_free(&m->t);
}

static struct reading_domain take(struct machine *m, unsigned domain)
{
	uint64_t old = m->r.domains[domain].time_ns, until = clock_mono_ns() + 10 * NS_PER_S;

	do {
		m->r.mono_ns = clock_mono_ns();
		gpus_read(m->g, &m->r, NULL);
		usleep(2000);
	} while (m->r.domains[domain].time_ns <= old && clock_mono_ns() < until);
	return m->r.domains[domain];
}

static void amd(void **state)
{
	static const struct {
		enum gpu_field f;
		int64_t v;
	} want[] = {
		{ GPU_POWER, 145000 },   { GPU_POWER_LIMIT, 220000 }, { GPU_TEMPERATURE, 61 }, { GPU_CLOCK_GPU, 1800 },
		{ GPU_CLOCK_MEM, 1000 }, { GPU_UTIL_GPU, 37 },        { GPU_UTIL_MEM, 11 },
	};
	struct machine m = { .t = temp_root_new() };
	struct reading_domain a, b;
	struct gpu_cursor c;
	struct gpu_row row;
	uint64_t until = clock_mono_ns() + 10 * NS_PER_S;
	bool any = false;

	card_amd(&m.t);
	start(&m);
	assert_int_equal(gpus_count(m.g), 1);
	assert_string_equal(m.schema.domains[0].name, "gpu-0");
	assert_string_equal(m.schema.domains[0].id, "0000:03:00.0");
	a = take(&m, 0);
	usleep(300000);
	b = take(&m, 0);
	assert_true(b.estimated);
	/* 145 W: uJ = 145 per us */
	assert_in_range((b.units - a.units) * 1000 / 145, (b.time_ns - a.time_ns) * 995 / 1000,
			(b.time_ns - a.time_ns) * 1005 / 1000);
	gpus_cursor(m.g, &c);
	gpus_record(m.g, 20 * NS_PER_MS);
	while (!any && clock_mono_ns() < until)
		any = gpus_next_row(m.g, &c, &row);
	assert_true(any);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_true(row.present & GPU_BIT(want[i].f));
		assert_int_equal(row.v[want[i].f], want[i].v);
	}
	assert_false(row.present & (GPU_BIT(GPU_PCI_TX) | GPU_BIT(GPU_TOTAL_ENERGY) | GPU_BIT(GPU_APP_CLOCK_GPU)));
	finish(&m);
}

/* A counter of uJ; a step that no card can take is dropped. */
static void intel(void **state)
{
	struct machine m = { .t = temp_root_new() };
	struct reading_domain a, b;
	uint64_t until;

	temp_root_put(&m.t, INTEL "vendor", "0x8086\n");
	temp_root_put(&m.t, INTEL "hwmon/hwmon2/energy1_input", "5000000\n");
	temp_root_put(&m.t, INTEL "hwmon/hwmon2/power1_max", "190000000\n");
	start(&m);
	a = take(&m, 0);
	assert_false(a.estimated);
	temp_root_put(&m.t, INTEL "hwmon/hwmon2/energy1_input", "6500000\n");
	for (until = clock_mono_ns() + 10 * NS_PER_S, b = a; b.units == a.units && clock_mono_ns() < until;)
		b = take(&m, 0);
	assert_int_equal(b.units - a.units, 1500000);
	temp_root_put(&m.t, INTEL "hwmon/hwmon2/energy1_input", "9000000000000000\n");
	for (a = b, until = clock_mono_ns() + 10 * NS_PER_S; !b.dropped && clock_mono_ns() < until;)
		b = take(&m, 0);
	assert_int_equal(b.dropped, 1);
	assert_int_equal(b.units, a.units);
	finish(&m);
}

/* Graphics of a processor tell the power of its whole socket. */
static void amd_in_the_processor(void **state)
{
	for (unsigned apu = 0; apu < 2; apu++) {
		struct machine m = { .t = temp_root_new() };

		card_amd(&m.t);
		temp_root_put(&m.t, AMD "gpu_metrics", apu ? "\x80\x01\x02\x03" : "\x80\x01\x01\x03");
		start(&m);
		assert_int_equal(gpus_count(m.g), !apu);
		finish(&m);
	}
}

static bool warned(struct machine *m, const char *part)
{
	uint64_t until = clock_mono_ns() + 10 * NS_PER_S;
	char text[300];

	for (; clock_mono_ns() < until; usleep(10000))
		while (gpus_next_warning(m->g, text, sizeof(text)) || meters_next_warning(m->m, text, sizeof(text)))
			if (strstr(text, part))
				return true;
	return false;
}

/* A card that sleeps is not read, and what it used meanwhile is not 0 but not known. */
static void asleep(void **state)
{
	struct machine m = { .t = temp_root_new() };
	struct reading_domain a, b;

	card_amd(&m.t);
	temp_root_put(&m.t, AMD "power/runtime_status", "active\n");
	start(&m);
	take(&m, 0);
	take(&m, 0);
	temp_root_put(&m.t, AMD "power/runtime_status", "suspended\n");
	assert_true(warned(&m, "sleeps and is not woken"));
	gpus_read(m.g, &m.r, NULL);
	a = m.r.domains[0];
	temp_root_put(&m.t, AMD "hwmon/hwmon4/power1_average", "7000000\n");
	usleep(200000);
	gpus_read(m.g, &m.r, NULL);
	b = m.r.domains[0];
	assert_true(b.stale);
	assert_int_equal(b.time_ns, a.time_ns);
	assert_int_equal(b.units, a.units);
	temp_root_put(&m.t, AMD "power/runtime_status", "active\n");
	assert_true(warned(&m, "it is awake"));
	b = take(&m, 0);
	assert_false(b.stale);
	assert_true(b.errors > 0);
	finish(&m);
}

static void asleep_at_the_start(void **state)
{
	struct machine m = { .t = temp_root_new() };

	card_amd(&m.t);
	temp_root_put(&m.t, AMD "power/runtime_status", "suspended\n");
	start(&m);
	assert_int_equal(gpus_count(m.g), 0);
	assert_int_equal(m.schema.n_domains, 0);
	assert_true(warned(&m, "gpu.wake"));
	finish(&m);
}

static void open_meter(struct machine *m, struct meter_config *c)
{
	struct err err = { 0 };

	c->type = (char *)"hwmon";
	c->pace_ns = 20 * NS_PER_MS;
	start(m);
	assert_int_equal(meters_open(m->t.root, &(struct meters_config){ c, 1 }, &m->schema, &m->m, &err), 0);
	meters_cursor(m->m, &m->c);
	assert_int_equal(meters_start(m->m), 0);
}

static void expect(struct machine *m, unsigned channel, int64_t uw)
{
	uint64_t until = clock_mono_ns() + 10 * NS_PER_S;
	struct meter_sample s = { .channel = 99 };

	while (s.channel != channel && clock_mono_ns() < until)
		if (!meters_next(m->m, &m->c, &s))
			usleep(2000);
	assert_int_equal(s.channel, channel);
	assert_int_equal(s.power_uw, uw);
}

#define CHIP "/sys/class/hwmon/hwmon"

/* INA3221: 12.032 V x 1.504 A and 5 V x 0.2 A, by configuration. */
static void pairs(void **state)
{
	char *channels[] = { (char *)"in1*curr1", (char *)"in2*curr2" };
	struct meter_config c = { .device = (char *)"ina3221", .channels = { channels, 2 } };
	struct machine m = { .t = temp_root_new() };

	temp_root_put(&m.t, CHIP "3/name", "ina3221\n");
	temp_root_put(&m.t, CHIP "3/in1_input", "12032\n");
	temp_root_put(&m.t, CHIP "3/curr1_input", "1504\n");
	temp_root_put(&m.t, CHIP "3/in2_input", "5000\n");
	temp_root_put(&m.t, CHIP "3/curr2_input", "200\n");
	open_meter(&m, &c);
	expect(&m, 0, 12032ll * 1504);
	expect(&m, 1, 1000000);
	finish(&m);
}

/* By default every chip with power, but no graphics card and no battery. */
static void every_chip(void **state)
{
	struct meter_config c = { 0 };
	struct machine m = { .t = temp_root_new() };

	temp_root_put(&m.t, CHIP "0/name", "amdgpu\n");
	temp_root_put(&m.t, CHIP "0/power1_average", "1\n");
	temp_root_put(&m.t, CHIP "1/name", "power_meter\n");
	temp_root_put(&m.t, CHIP "1/power1_is_battery", "1\n");
	temp_root_put(&m.t, CHIP "1/power1_average", "2\n");
	temp_root_put(&m.t, CHIP "2/name", "corsairpsu\n");
	temp_root_put(&m.t, CHIP "2/power1_input", "180000000\n");
	temp_root_put(&m.t, CHIP "2/power2_input", "90000000\n");
	temp_root_put(&m.t, CHIP "3/name", "BAT0\n");
	temp_root_put(&m.t, CHIP "3/device/type", "Battery\n");
	temp_root_put(&m.t, CHIP "3/power1_input", "15000000\n");
	open_meter(&m, &c);
	expect(&m, 0, 180000000);
	expect(&m, 1, 90000000);
	usleep(100000);
	assert_int_equal(meters_channels(m.m), 2);
	finish(&m);
}

/* A sensor that holds the others is the only one of its chip. */
static void totals(void **state)
{
	static const char *const labels[][3] = { { "power total", "power +12v", "power +5v" },
						 { "vout1", "pin", "pout1" } };

	for (unsigned k = 0; k < 2; k++) {
		struct meter_config c = { 0 };
		struct machine m = { .t = temp_root_new() };

		temp_root_put(&m.t, CHIP "2/name", "corsairpsu\n");
		for (unsigned i = 0; i < 3; i++) {
			char path[96], text[32];

			snprintf(path, sizeof(path), CHIP "2/power%u_input", i + 1);
			snprintf(text, sizeof(text), "%u000000\n", 100 + i);
			temp_root_put(&m.t, path, text);
			snprintf(path, sizeof(path), CHIP "2/power%u_label", i + 1);
			temp_root_put(&m.t, path, labels[k][i]);
		}
		open_meter(&m, &c);
		expect(&m, 0, k ? 101000000 : 100000000);
		assert_int_equal(meters_channels(m.m), 1);
		finish(&m);
	}
}

/* An ACPI meter that the firmware does not fill in says 0: that is no power. */
static void acpi(void **state)
{
	struct meter_config c = { 0 };
	struct meter_sample s;
	struct machine m = { .t = temp_root_new() };

	temp_root_put(&m.t, CHIP "1/name", "power_meter\n");
	temp_root_put(&m.t, CHIP "1/power1_average", "0\n");
	open_meter(&m, &c);
	assert_true(warned(&m, "the firmware does not fill it in"));
	assert_false(meters_next(m.m, &m.c, &s));
	temp_root_put(&m.t, CHIP "1/power1_average", "212000000\n");
	expect(&m, 0, 212000000);
	finish(&m);
}

/* Older drivers have their files beside the class, in the device. */
static void in_the_device(void **state)
{
	struct meter_config c = { .device = (char *)"hwmon5" };
	struct machine m = { .t = temp_root_new() };

	temp_root_put(&m.t, CHIP "5/device/name", "power_meter\n");
	temp_root_put(&m.t, CHIP "5/device/power1_average", "212000000\n");
	open_meter(&m, &c);
	expect(&m, 0, 212000000);
	finish(&m);
}

static void no_chip(void **state)
{
	struct meter_config c = { .device = (char *)"nosuch" };
	struct machine m = { .t = temp_root_new() };

	open_meter(&m, &c);
	assert_true(warned(&m, "no chip nosuch"));
	finish(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amd),
		cmocka_unit_test(intel),
		cmocka_unit_test(asleep),
		cmocka_unit_test(asleep_at_the_start),
		cmocka_unit_test(pairs),
		cmocka_unit_test(every_chip),
		cmocka_unit_test(acpi),
		cmocka_unit_test(in_the_device),
		cmocka_unit_test(no_chip),
		cmocka_unit_test(totals),
		cmocka_unit_test(amd_in_the_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
