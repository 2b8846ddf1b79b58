/* SPDX-License-Identifier: Apache-2.0 */
/* Energy beside RAPL, in machines of files: which domain each sensor became, what is not used and why, and counters
 * and powers over time. The clock is the test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/clock.h"
#include "model/reading.h"
#include "source/energy/sensor_list.h"
#include "source/energy/sensors.h"
#include "temp_root.h"

#define HWMON "/sys/class/hwmon/"
#define ZONE "/sys/class/powercap/"

struct machine {
	struct temp_root t;
	struct schema s;
	struct reading r;
	struct sensors *all;
	uint64_t now_ns;
	uint64_t began_uj[SCHEMA_MAX_DOMAINS]; /* when the test's clock began */
};

static void open_all(struct machine *m)
{
	struct err err = { 0 };

	assert_int_equal(sensors_open(m->t.root, &m->s, &m->all, &err), 0);
	m->r.schema = &m->s;
	m->now_ns = clock_mono_ns() + NS_PER_S;
	sensors_step(m->all, m->now_ns, m->now_ns);
	sensors_read(m->all, &m->r);
	for (unsigned i = 0; i < m->s.n_domains; i++)
		m->began_uj[i] = m->r.domains[i].units;
}

static void finish(struct machine *m)
{
	sensors_close(m->all);
	temp_root_free(&m->t);
}

static void put(struct machine *m, const char *path, const char *text)
{
	temp_root_put(&m->t, path, text);
}

/* The sensors' values after ms more. */
static void after(struct machine *m, uint64_t ms)
{
	m->now_ns += ms * NS_PER_MS;
	sensors_step(m->all, m->now_ns, m->now_ns);
	m->r.mono_ns = m->now_ns;
	sensors_read(m->all, &m->r);
}

static int index_of(const struct machine *m, const char *name)
{
	for (unsigned i = 0; i < m->s.n_domains; i++)
		if (strcmp(m->s.domains[i].name, name) == 0)
			return (int)i;
	return -1;
}

static const struct reading_domain *domain(const struct machine *m, const char *name)
{
	int i = index_of(m, name);

	assert_true(i >= 0);
	return &m->r.domains[i];
}

static uint64_t used_uj(const struct machine *m, const char *name)
{
	return domain(m, name)->units - m->began_uj[index_of(m, name)];
}

static bool found(const struct machine *m, enum energy_state state, const char *part)
{
	enum energy_state is;
	const char *text;

	for (unsigned i = 0; (text = sensors_finding(m->all, i, &is)); i++)
		if (is == state && strstr(text, part))
			return true;
	return false;
}

static bool warned(struct machine *m, const char *part)
{
	char text[800];
	bool any = false;

	while (sensors_next_warning(m->all, text, sizeof(text)))
		any |= strstr(text, part) != NULL;
	return any;
}

static void amd(struct machine *m)
{
	m->t = temp_root_new();
	put(m, HWMON "hwmon2/name", "amd_energy\n");
	put(m, HWMON "hwmon2/energy1_label", "Ecore000\n");
	put(m, HWMON "hwmon2/energy1_input", "1000000\n");
	put(m, HWMON "hwmon2/energy2_label", "Ecore001\n");
	put(m, HWMON "hwmon2/energy2_input", "2000000\n");
	put(m, HWMON "hwmon2/energy3_label", "Esocket0\n");
	put(m, HWMON "hwmon2/energy3_input", "9000000\n");
}

/* Cores are summed, the socket is the package, and only one of both is added to the machine. */
static void counters(void **state)
{
	struct machine m = { 0 };

	amd(&m);
	open_all(&m);
	assert_int_equal(m.s.n_domains, 2);
	assert_int_equal(m.s.domains[index_of(&m, "package-0")].interface, ENERGY_HWMON);
	assert_int_equal(schema_kinds_summed(&m.s), DOMAIN_BIT(DOMAIN_PACKAGE));
	assert_non_null(strstr(m.s.domains[index_of(&m, "core-0")].reason, "Ecore000) and 1 more"));
	put(&m, HWMON "hwmon2/energy1_input", "1000007\n");
	put(&m, HWMON "hwmon2/energy2_input", "2000011\n");
	put(&m, HWMON "hwmon2/energy3_input", "9000100\n");
	after(&m, 100);
	assert_int_equal(used_uj(&m, "core-0"), 18);
	assert_int_equal(used_uj(&m, "package-0"), 100);
	assert_false(domain(&m, "package-0")->estimated);
	assert_false(domain(&m, "package-0")->stale);
	finish(&m);
}

/* RAPL's domains stay, and hwmon fills in what it lacks. */
static void beside_rapl(void **state)
{
	struct machine m = { .s = { .n_domains = 1 } };

	m.s.domains[0] = (struct domain_desc){ .kind = DOMAIN_PACKAGE, .interface = ENERGY_PERF, .name = "package-0" };
	amd(&m);
	put(&m, HWMON "hwmon3/name", "scmi_sensors\n");
	put(&m, HWMON "hwmon3/energy1_label", "SoC DDR\n");
	put(&m, HWMON "hwmon3/energy1_input", "5\n");
	open_all(&m);
	assert_int_equal(m.s.domains[0].interface, ENERGY_PERF);
	assert_int_equal(m.s.n_domains, 3);
	assert_true(found(&m, ENERGY_ABSENT, "told by RAPL already"));
	assert_true(found(&m, ENERGY_OK, "dram-0: energy counter of hwmon3 energy1_input"));
	put(&m, HWMON "hwmon3/energy1_input", "25\n");
	after(&m, 100);
	assert_int_equal(used_uj(&m, "dram-0"), 20);
	assert_int_equal(m.r.domains[0].units, 0);
	assert_int_equal(schema_kinds_summed(&m.s), DOMAIN_BIT(DOMAIN_PACKAGE) | DOMAIN_BIT(DOMAIN_DRAM));
	finish(&m);
}

static void grace_meter(struct machine *m, unsigned n, const char *label, const char *power)
{
	char path[120], text[64];

	snprintf(path, sizeof(path), HWMON "hwmon%u/device/name", n);
	put(m, path, "power_meter\n");
	snprintf(path, sizeof(path), HWMON "hwmon%u/device/power1_oem_info", n);
	snprintf(text, sizeof(text), "%s\n", label);
	put(m, path, text);
	snprintf(path, sizeof(path), HWMON "hwmon%u/device/power1_average", n);
	put(m, path, power);
	snprintf(path, sizeof(path), HWMON "hwmon%u/device/power1_average_interval", n);
	put(m, path, "50\n");
}

/* The module holds the socket, and the socket its rails: one kind of them is the machine. */
static void grace(void **state)
{
	struct machine m = { .t = temp_root_new() };

	grace_meter(&m, 1, "Module Power Socket 0", "500000000\n");
	grace_meter(&m, 2, "Grace Power Socket 0", "200000000\n");
	grace_meter(&m, 3, "CPU Power Socket 0", "150000000\n");
	grace_meter(&m, 4, "SysIO Power Socket 0", "30000000\n");
	grace_meter(&m, 5, "Grace Power Socket 1", "100000000\n");
	open_all(&m);
	assert_int_equal(m.s.n_domains, 5);
	assert_int_equal(m.s.n_packages, 2);
	assert_int_equal(schema_kinds_summed(&m.s), DOMAIN_BIT(DOMAIN_PACKAGE));
	after(&m, 100);
	after(&m, 100);
	assert_int_equal(used_uj(&m, "psys"), 100000000);
	assert_int_equal(used_uj(&m, "package-0"), 40000000);
	assert_int_equal(used_uj(&m, "package-1"), 20000000);
	assert_int_equal(used_uj(&m, "core-0"), 30000000);
	assert_int_equal(used_uj(&m, "uncore-0"), 6000000);
	assert_false(domain(&m, "psys")->estimated);
	finish(&m);
}

/* An average stands for the time before it, an instant for a straight line. */
static void powers(void **state)
{
	struct machine m = { .t = temp_root_new() };

	put(&m, HWMON "hwmon0/name", "scmi_sensors\n");
	put(&m, HWMON "hwmon0/power1_label", "board\n");
	put(&m, HWMON "hwmon0/power1_average", "10000000\n");
	put(&m, HWMON "hwmon0/power2_label", "cpu\n");
	put(&m, HWMON "hwmon0/power2_input", "10000000\n");
	open_all(&m);
	put(&m, HWMON "hwmon0/power1_average", "30000000\n");
	put(&m, HWMON "hwmon0/power2_input", "30000000\n");
	after(&m, 1000);
	assert_int_equal(used_uj(&m, "psys"), 30000000);
	assert_int_equal(used_uj(&m, "core-0"), 20000000);
	assert_true(domain(&m, "core-0")->estimated);
	assert_int_equal(schema_kinds_summed(&m.s), DOMAIN_BIT(DOMAIN_PSYS));
	/* a gap is not bridged */
	after(&m, 10000);
	assert_int_equal(used_uj(&m, "psys"), 30000000);
	assert_int_equal(domain(&m, "psys")->dropped, 1);
	assert_true(warned(&m, "read too late"));
	finish(&m);
}

/* Zones of other control types: the root holds the rest, parts are summed, a zone in a zone of its kind is not. */
static void zones(void **state)
{
	struct machine m = { .t = temp_root_new() };

	put(&m, ZONE "dtpm:0/name", "soc\n");
	put(&m, ZONE "dtpm:0/power_uw", "9000000\n");
	put(&m, ZONE "dtpm:0:0/name", "cpu0-cpufreq\n");
	put(&m, ZONE "dtpm:0:0/power_uw", "1000000\n");
	put(&m, ZONE "dtpm:0:1/name", "cpu4-cpufreq\n");
	put(&m, ZONE "dtpm:0:1/power_uw", "3000000\n");
	put(&m, ZONE "dtpm:0:1:0/name", "cpu5-cpufreq\n");
	put(&m, ZONE "dtpm:0:1:0/power_uw", "2000000\n");
	put(&m, ZONE "dtpm:0:2/name", "panfrost-gpu\n");
	put(&m, ZONE "dtpm:0:2/power_uw", "2000000\n");
	put(&m, ZONE "intel-rapl-mmio:0/name", "package-0\n");
	put(&m, ZONE "intel-rapl-mmio:0/energy_uj", "2000000\n");
	open_all(&m);
	assert_int_equal(m.s.n_domains, 2);
	assert_int_equal(m.s.domains[index_of(&m, "psys")].interface, ENERGY_POWERCAP);
	assert_true(found(&m, ENERGY_ABSENT, "dtpm:0:1:0 power_uw (dtpm cpu5-cpufreq): core-0, told by another"));
	assert_true(found(&m, ENERGY_ABSENT, "\"panfrost-gpu\": of no domain known here"));
	after(&m, 1000);
	assert_int_equal(used_uj(&m, "core-0"), 4000000);
	assert_true(domain(&m, "core-0")->estimated);
	finish(&m);
}

/* A counter with a range wraps; without one, a step back is a driver that began anew. */
static void steps(void **state)
{
	struct machine m = { .t = temp_root_new() };

	put(&m, ZONE "arm-scmi:0/name", "package 0\n");
	put(&m, ZONE "arm-scmi:0/energy_uj", "99000000\n");
	put(&m, ZONE "arm-scmi:0/max_energy_range_uj", "99999999\n");
	open_all(&m);
	put(&m, ZONE "arm-scmi:0/energy_uj", "1000000\n");
	after(&m, 1000);
	assert_int_equal(used_uj(&m, "package-0"), 2000000);
	assert_int_equal(domain(&m, "package-0")->wraps, 1);
	/* 100 J at 2 kW: it may have wrapped twice in more than 50 ms */
	assert_int_equal(domain(&m, "package-0")->dropped, 2); /* and the step to the test's clock */
	assert_true(warned(&m, "read too late"));
	/* 90 MJ in a second: another unit */
	put(&m, ZONE "arm-scmi:0/energy_uj", "90000000000000\n");
	after(&m, 1000);
	assert_int_equal(used_uj(&m, "package-0"), 2000000);
	assert_int_equal(domain(&m, "package-0")->dropped, 4); /* too late once more, and too much */
	assert_true(warned(&m, "jumped"));
	finish(&m);

	m = (struct machine){ 0 };
	amd(&m);
	open_all(&m);
	put(&m, HWMON "hwmon2/energy3_input", "9000\n");
	after(&m, 1000);
	assert_int_equal(used_uj(&m, "package-0"), 0);
	assert_int_equal(domain(&m, "package-0")->resets, 1);
	assert_true(warned(&m, "went back"));
	finish(&m);
}

static void stands_still(void **state)
{
	struct machine m = { 0 };

	amd(&m);
	open_all(&m);
	after(&m, 1000);
	assert_false(domain(&m, "package-0")->stale);
	after(&m, 3000);
	assert_true(domain(&m, "package-0")->stale);
	assert_false(domain(&m, "core-0")->stale); /* cores may sleep */
	assert_true(warned(&m, "package-0: hwmon2 energy3_input (amd_energy Esocket0): stands still"));
	put(&m, HWMON "hwmon2/energy3_input", "9500000\n");
	after(&m, 1000);
	assert_false(domain(&m, "package-0")->stale);
	assert_int_equal(domain(&m, "package-0")->resets, 1);
	assert_true(warned(&m, "moves again"));
	finish(&m);
}

static void drop(struct machine *m, const char *path)
{
	char full[200];

	snprintf(full, sizeof(full), "%s%s", m->t.dir, path);
	assert_int_equal(unlink(full), 0);
}

/* A driver that is loaded anew has another number, and the old one may be another chip's. */
static void moves(void **state)
{
	struct machine m = { .t = temp_root_new() };

	put(&m, HWMON "hwmon2/name", "scmi_sensors\n");
	put(&m, HWMON "hwmon2/energy1_label", "package 0\n");
	put(&m, HWMON "hwmon2/energy1_input", "1000\n");
	open_all(&m);
	put(&m, HWMON "hwmon2/energy1_input", "gone\n"); /* the file is open: what its driver answers */
	after(&m, 100);
	assert_true(domain(&m, "package-0")->stale);
	assert_true(warned(&m, "cannot be read (it is no number)"));
	put(&m, HWMON "hwmon2/name", "other\n");
	put(&m, HWMON "hwmon7/name", "scmi_sensors\n");
	put(&m, HWMON "hwmon7/energy1_label", "package 0\n");
	put(&m, HWMON "hwmon7/energy1_input", "5000\n");
	after(&m, 500);
	assert_true(domain(&m, "package-0")->stale); /* it waits */
	after(&m, 600);
	assert_false(domain(&m, "package-0")->stale);
	assert_int_equal(used_uj(&m, "package-0"), 0); /* another counter: its value is a beginning */
	assert_int_equal(domain(&m, "package-0")->resets, 1);
	assert_true(warned(&m, "hwmon7 energy1_input"));
	put(&m, HWMON "hwmon7/energy1_input", "5040\n");
	after(&m, 100);
	assert_int_equal(used_uj(&m, "package-0"), 40);
	drop(&m, HWMON "hwmon7/name");
	finish(&m);
}

/* What does not answer at the start is no domain; the next best sensor stands in. */
static void refused(void **state)
{
	struct machine m = { .t = temp_root_new() };

	put(&m, HWMON "hwmon0/name", "power_meter\n");
	put(&m, HWMON "hwmon0/power1_average", "0\n");
	put(&m, HWMON "hwmon1/name", "scmi_sensors\n");
	put(&m, HWMON "hwmon1/energy1_label", "package 0\n");
	put(&m, HWMON "hwmon1/energy1_input", "0\n");
	put(&m, HWMON "hwmon1/power1_label", "package 0\n");
	put(&m, HWMON "hwmon1/power1_average", "7000000\n");
	put(&m, HWMON "hwmon2/name", "corsairpsu\n");
	put(&m, HWMON "hwmon2/power1_input", "7000000\n");
	put(&m, HWMON "hwmon3/name", "power_meter\n");
	put(&m, HWMON "hwmon3/power1_is_battery", "1\n");
	put(&m, HWMON "hwmon3/power1_average", "5000000\n");
	put(&m, "/denied", HWMON "hwmon4/energy1_input\n");
	put(&m, HWMON "hwmon4/name", "amd_energy\n");
	put(&m, HWMON "hwmon4/energy1_label", "Ecore000\n");
	put(&m, HWMON "hwmon4/energy1_input", "7\n");
	fsroot_close(m.t.root);
	assert_int_equal(fsroot_open(m.t.dir, &m.t.root), 0);
	open_all(&m);
	assert_int_equal(m.s.n_domains, 1);
	assert_true(found(&m, ENERGY_BROKEN, "psys, not used: it says 0"));
	assert_true(found(&m, ENERGY_BROKEN, "energy1_input (scmi_sensors package 0): package-0, not used"));
	assert_true(found(&m, ENERGY_DENIED, "core-0, not used: it may not be read"));
	assert_true(found(&m, ENERGY_ABSENT, "hwmon2 (corsairpsu) power1_input"));
	assert_true(found(&m, ENERGY_OK, "package-0: average power of hwmon1 power1_average"));
	after(&m, 1000);
	assert_int_equal(used_uj(&m, "package-0"), 7000000);
	assert_true(sensors_cover_cpus(&m.s));
	finish(&m);
}

/* A value of another unit is no power. */
static void unit_changes(void **state)
{
	struct machine m = { .t = temp_root_new() };

	put(&m, HWMON "hwmon0/name", "power_meter\n");
	put(&m, HWMON "hwmon0/power1_average", "200000000\n");
	open_all(&m);
	put(&m, HWMON "hwmon0/power1_average", "200000000000\n");
	after(&m, 100);
	assert_true(domain(&m, "psys")->stale);
	assert_int_equal(domain(&m, "psys")->errors, 1);
	assert_true(warned(&m, "or its unit changed"));
	finish(&m);
}

/* The same of a counter: nJ instead of uJ are refused step by step, mJ are a step back. What it tells stays what was measured. */
static void counter_changes_its_unit(void **state)
{
	struct machine m = { 0 };
	uint64_t dropped;

	amd(&m);
	open_all(&m);
	put(&m, HWMON "hwmon2/energy3_input", "10000000\n");
	after(&m, 1000);
	put(&m, HWMON "hwmon2/energy3_input", "60000000\n");
	after(&m, 1000);
	assert_int_equal(used_uj(&m, "package-0"), 51000000);
	dropped = domain(&m, "package-0")->dropped;
	put(&m, HWMON "hwmon2/energy3_input", "110000000000\n");
	after(&m, 500);
	put(&m, HWMON "hwmon2/energy3_input", "160000000000\n");
	after(&m, 500);
	assert_int_equal(used_uj(&m, "package-0"), 51000000);
	assert_int_equal(domain(&m, "package-0")->dropped, dropped + 2);
	assert_true(warned(&m, "package-0: hwmon2 energy3_input (amd_energy Esocket0): jumped"));
	put(&m, HWMON "hwmon2/energy3_input", "210000\n");
	after(&m, 500);
	assert_int_equal(used_uj(&m, "package-0"), 51000000);
	assert_int_equal(domain(&m, "package-0")->resets, 1);
	assert_true(warned(&m, "another unit"));
	finish(&m);
}

static void none(void **state)
{
	struct machine m = { .t = temp_root_new() };

	open_all(&m);
	assert_int_equal(m.s.n_domains, 0);
	assert_false(sensors_cover_cpus(&m.s));
	finish(&m);
}

static void labels(void **state)
{
	static const struct {
		const char *chip, *label;
		int rc;
		enum domain_kind kind;
		unsigned package, part;
		bool has_part;
	} want[] = {
		{ "amd_energy", "Esocket1", 0, DOMAIN_PACKAGE, 1, 0, false },
		{ "amd_energy", "Ecore127", 0, DOMAIN_CORE, 0, 127, true },
		{ "amd_energy", "Ecore", -ENOENT, 0, 0, 0, false },
		{ "amd_energy", "Esocket99999", -ENOENT, 0, 0, 0, false },
		{ "power_meter", "", 0, DOMAIN_PSYS, 0, 0, false },
		{ "power_meter", "Something else", -ENOENT, 0, 0, 0, false },
		{ "power_meter", "module power socket 1", 0, DOMAIN_PSYS, 1, 0, false },
		{ "scmi_sensors", "A53 energy", -ENOENT, 0, 0, 0, false },
		{ "scmi_sensors", "big_energy", 0, DOMAIN_CORE, 0, 0, false },
		{ "scmi_sensors", "CPU package 1", 0, DOMAIN_PACKAGE, 1, 0, false },
		{ "scmi_sensors", "sys_energy", 0, DOMAIN_PSYS, 0, 0, false },
		{ "scmi_sensors", "DDR3", 0, DOMAIN_DRAM, 0, 3, true },
		{ "scmi_sensors", "GPU core", -ENOENT, 0, 0, 0, false },
		{ "scmi_sensors", "", -ENOENT, 0, 0, 0, false },
		{ "dtpm", "cpu4-cpufreq", 0, DOMAIN_CORE, 0, 4, true },
		{ "nvme", "cpu", -ENOENT, 0, 0, 0, false },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct sensor_label is;

		assert_int_equal(sensor_label_parse(want[i].chip, want[i].label, &is), want[i].rc);
		if (want[i].rc)
			continue;
		assert_int_equal(is.kind, want[i].kind);
		assert_int_equal(is.package, want[i].package);
		assert_int_equal(is.part, want[i].part);
		assert_int_equal(is.has_part, want[i].has_part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters),
		cmocka_unit_test(beside_rapl),
		cmocka_unit_test(grace),
		cmocka_unit_test(powers),
		cmocka_unit_test(zones),
		cmocka_unit_test(steps),
		cmocka_unit_test(moves),
		cmocka_unit_test(stands_still),
		cmocka_unit_test(refused),
		cmocka_unit_test(none),
		cmocka_unit_test(unit_changes),
		cmocka_unit_test(labels),
		cmocka_unit_test(counter_changes_its_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
