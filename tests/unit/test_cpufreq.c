/* SPDX-License-Identifier: Apache-2.0 */
/* Frequencies and temperature of captured machines. */
#include <unistd.h>
#include "encode_fixture.h"
#include "source/counters/cpufreq.h"
#include "temp_root.h"

#define FREQ "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq"
#define ZONE "/sys/class/thermal/thermal_zone"

static void put_freq(const struct temp_root *t, unsigned cpu, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), FREQ, cpu);
	temp_root_put(t, path, text);
}

static void test_values(void **state)
{
	struct temp_root t = temp_root_new();
	struct cpufreq *c = NULL;
	struct fixture f;

	fixture_init(&f, 4, 1);
	put_freq(&t, 0, "2600000\n");
	put_freq(&t, 1, "<unknown>\n");
	put_freq(&t, 3, "3100000\n");
	temp_root_put(&t, ZONE "0/type", "acpitz\n");
	temp_root_put(&t, ZONE "0/temp", "27800\n");
	temp_root_put(&t, ZONE "12/type", "x86_pkg_temp\n");
	temp_root_put(&t, ZONE "12/temp", "99000\n");
	temp_root_put(&t, ZONE "2/type", "x86_pkg_temp\n");
	temp_root_put(&t, ZONE "2/temp", "45000\n");
	assert_int_equal(cpufreq_open(t.root, &f.schema, &c), 0);
	assert_true(f.schema.cpufreq);
	for (unsigned i = 0; i < 2; i++) {
		cpufreq_read(c, &f.snap);
		assert_int_equal(f.snap.khz[0], 2600000);
		assert_int_equal(f.snap.khz[1], 0);
		assert_int_equal(f.snap.khz[2], 0);
		assert_int_equal(f.snap.khz[3], 3100000);
		assert_int_equal(f.snap.package_mc, 45000); /* the first package */
	}
	/* kept descriptors see new values; an offline CPU has none; below zero is not told */
	put_freq(&t, 0, "800000\n");
	f.snap.cpus[3].online = false;
	temp_root_put(&t, ZONE "2/temp", "-4000\n");
	cpufreq_read(c, &f.snap);
	assert_int_equal(f.snap.khz[0], 800000);
	assert_int_equal(f.snap.khz[3], 0);
	assert_int_equal(f.snap.package_mc, 0);
	f.snap.cpus[3].online = true;
	cpufreq_rest(c);
	cpufreq_read(c, &f.snap);
	assert_int_equal(f.snap.khz[3], 3100000);
	cpufreq_close(c);
	fixture_free(&f);
	temp_root_free(&t);
}

/* The file of a CPU that was away is another one, and the one that is still open answers no more. */
static void test_cpu_was_away(void **state)
{
	struct temp_root t = temp_root_new();
	struct cpufreq *c = NULL;
	struct fixture f;
	char path[256];

	fixture_init(&f, 1, 1);
	put_freq(&t, 0, "2600000\n");
	assert_int_equal(cpufreq_open(t.root, &f.schema, &c), 0);
	cpufreq_read(c, &f.snap);
	put_freq(&t, 0, "");
	snprintf(path, sizeof(path), "%s" FREQ, t.dir, 0);
	assert_int_equal(unlink(path), 0);
	put_freq(&t, 0, "800000\n");
	cpufreq_read(c, &f.snap);
	assert_int_equal(f.snap.khz[0], 800000);
	cpufreq_close(c);
	fixture_free(&f);
	temp_root_free(&t);
}

static void test_nothing_there(void **state)
{
	struct temp_root t = temp_root_new();
	struct cpufreq *c = NULL;
	struct fixture f;

	fixture_init(&f, 2, 1);
	temp_root_put(&t, ZONE "0/type", "acpitz\n");
	assert_int_equal(cpufreq_open(t.root, &f.schema, &c), 0);
	assert_false(f.schema.cpufreq);
	cpufreq_read(c, &f.snap);
	assert_int_equal(f.snap.khz[0] | f.snap.khz[1] | f.snap.package_mc, 0);
	cpufreq_close(c);
	cpufreq_close(NULL);
	fixture_free(&f);
	temp_root_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_values), cmocka_unit_test(test_cpu_was_away),
					    cmocka_unit_test(test_nothing_there) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
