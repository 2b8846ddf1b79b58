/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs and packages from sysfs, with everything that sysfs leaves out (cputopology.rst). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "source/counters/topology.h"
#include "temp_root.h"

#define CPU "/sys/devices/system/cpu"

static void put_ids(const struct temp_root *t, unsigned cpu, const char *package, const char *die, const char *core)
{
	static const char *const files[] = { "physical_package_id", "die_id", "core_id" };
	const char *const ids[] = { package, die, core };

	for (int i = 0; i < 3; i++) {
		char path[128];

		snprintf(path, sizeof(path), CPU "/cpu%u/topology/%s", cpu, files[i]);
		if (ids[i])
			temp_root_put(t, path, ids[i]);
	}
}

static void assert_cpu(const struct schema *s, unsigned cpu, unsigned package, unsigned die, unsigned core,
		       bool present)
{
	assert_int_equal(s->cpus[cpu].cpu, cpu);
	assert_int_equal(s->cpus[cpu].package, package);
	assert_int_equal(s->cpus[cpu].die, die);
	assert_int_equal(s->cpus[cpu].core, core);
	assert_int_equal(s->cpus[cpu].present, present);
}

/* Two sockets with two dies each, a hole in the possible list, CPU 5 possible but not plugged in. */
static void test_two_sockets_and_holes(void **state)
{
	struct temp_root t = temp_root_new();
	struct schema s = { 0 };
	struct err err = { 0 };

	(void)state;
	temp_root_put(&t, CPU "/possible", "0-3,5,8\n");
	temp_root_put(&t, CPU "/present", "0-3,8\n");
	put_ids(&t, 0, "0\n", "0\n", "0\n");
	put_ids(&t, 1, "0\n", "1\n", "1\n");
	put_ids(&t, 2, "1\n", "0\n", "0\n");
	put_ids(&t, 3, "1\n", "1\n", "65535\n");
	put_ids(&t, 8, "3\n", NULL, "2\n");
	assert_int_equal(topology_read(t.root, &s, &err), 0);
	assert_int_equal(s.n_cpus, 9);
	assert_int_equal(s.n_packages, 4);
	assert_cpu(&s, 0, 0, 0, 0, true);
	assert_cpu(&s, 1, 0, 1, 1, true);
	assert_cpu(&s, 2, 1, 0, 0, true);
	assert_cpu(&s, 3, 1, 1, 65535, true);
	assert_cpu(&s, 4, 0, 0, 4, false);
	assert_cpu(&s, 5, 0, 0, 5, false);
	assert_cpu(&s, 8, 3, 0, 2, true);
	free(s.cpus);
	temp_root_free(&t);
}

static void test_unknown_ids(void **state)
{
	struct temp_root t = temp_root_new();
	struct schema s = { 0 };
	struct err err = { 0 };

	(void)state;
	temp_root_put(&t, CPU "/possible", "0-4\n");
	put_ids(&t, 0, "-1\n", "-1\n", "-1\n");
	put_ids(&t, 1, "many\n", "\n", "65536\n");
	put_ids(&t, 2, "1024\n", "65536\n", "9223372036854775808\n");
	put_ids(&t, 3, "1023\n", "65535\n", "7\n");
	assert_int_equal(topology_read(t.root, &s, &err), 0);
	assert_cpu(&s, 0, 0, 0, 0, true);
	assert_cpu(&s, 1, 0, 0, 1, true);
	assert_cpu(&s, 2, 0, 0, 2, true);
	assert_cpu(&s, 3, 1023, 65535, 7, true);
	assert_cpu(&s, 4, 0, 0, 4, true);
	assert_int_equal(s.n_packages, 1024);
	free(s.cpus);
	temp_root_free(&t);
}

static void test_failures(void **state)
{
	struct temp_root t = temp_root_new();
	struct schema s = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topology_read(t.root, &s, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/sys/devices/system/cpu/possible: "));
	assert_non_null(strstr(err.text, "; mount sysfs"));
	temp_root_put(&t, CPU "/possible", "\n");
	assert_int_equal(topology_read(t.root, &s, &err), -ENODATA);
	temp_root_put(&t, CPU "/possible", "0-x\n");
	assert_int_equal(topology_read(t.root, &s, &err), -EINVAL);
	temp_root_put(&t, CPU "/possible", "0-8192\n");
	assert_true(topology_read(t.root, &s, &err) < 0);
	assert_null(s.cpus);
	assert_int_equal(s.n_cpus, 0);
	temp_root_free(&t);
}

/* CPU 1 was offline when the agent started: sysfs has no topology of it until it returns. */
static void test_refresh(void **state)
{
	struct temp_root t = temp_root_new();
	struct schema s = { 0 };
	struct err err = { 0 };

	(void)state;
	temp_root_put(&t, CPU "/possible", "0-3\n");
	temp_root_put(&t, CPU "/present", "0-2\n");
	put_ids(&t, 0, "0\n", "0\n", "0\n");
	put_ids(&t, 2, "1\n", "0\n", "0\n");
	assert_int_equal(topology_read(t.root, &s, &err), 0);
	assert_cpu(&s, 1, 0, 0, 1, true);
	assert_cpu(&s, 3, 0, 0, 3, false);
	put_ids(&t, 1, "1\n", "1\n", "5\n");
	topology_refresh(t.root, &s, 1);
	assert_cpu(&s, 1, 1, 1, 5, true);
	put_ids(&t, 1, "2\n", "0\n", "5\n");
	topology_refresh(t.root, &s, 1);
	assert_cpu(&s, 1, 1, 1, 5, true);
	/* plugged in */
	put_ids(&t, 3, "1\n", "0\n", "7\n");
	topology_refresh(t.root, &s, 3);
	assert_cpu(&s, 3, 1, 0, 7, true);
	topology_refresh(t.root, &s, 4);
	free(s.cpus);
	temp_root_free(&t);
}

static void test_online_follows_the_file(void **state)
{
	struct temp_root t = temp_root_new();
	struct online_cpus *o = NULL;
	uint8_t bits[16];

	(void)state;
	assert_int_equal(online_open(t.root, &o), -ENOENT);
	assert_null(o);
	temp_root_put(&t, CPU "/online", "0-3,64\n");
	assert_int_equal(online_open(t.root, &o), 0);
	assert_int_equal(online_read(o, bits, 128), 5);
	assert_int_equal(bits[0], 0x0f);
	assert_int_equal(bits[8], 0x01);
	temp_root_put(&t, CPU "/online", "0,2-3\n");
	assert_int_equal(online_read(o, bits, 128), 3);
	assert_int_equal(bits[0], 0x0d);
	assert_int_equal(bits[8], 0);
	assert_true(online_read(o, bits, 3) < 0);
	online_close(o);
	online_close(NULL);
	temp_root_free(&t);
}

static void test_cpu_model(void **state)
{
	struct temp_root t = temp_root_new();
	struct cpu_model m;

	(void)state;
	memset(&m, 0xff, sizeof(m));
	cpu_model_read(t.root, &m);
	assert_string_equal(m.vendor, "");
	assert_int_equal(m.family, 0);
	temp_root_put(&t, "/proc/cpuinfo",
		      "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n"
		      "model name\t: AMD EPYC 7763 64-Core Processor\nstepping\t: 1\n\nprocessor\t: 1\nmodel\t\t: 9\n");
	cpu_model_read(t.root, &m);
	assert_string_equal(m.vendor, "AuthenticAMD");
	assert_int_equal(m.family, 25);
	assert_int_equal(m.model, 1);
	assert_string_equal(m.name, "AMD EPYC 7763 64-Core Processor");
	temp_root_put(&t, "/proc/cpuinfo",
		      "vendor_id: a-vendor-of-more-than-fifteen\ncpu family: 99999999999\nmodel: -3\nmodel name\n");
	cpu_model_read(t.root, &m);
	assert_string_equal(m.vendor, "a-vendor-of-mor");
	assert_int_equal(m.family, 0);
	assert_int_equal(m.model, 0);
	assert_string_equal(m.name, "");
	temp_root_free(&t);
}

/* Intel's hybrid machines by their PMUs, others by capacity; equal cores are of one type. */
static void test_core_types(void **state)
{
	static const unsigned by_pmu[] = { 0, 0, 1, 1 }, by_capacity[] = { 2, 0, 0, 1 };
	struct temp_root t = temp_root_new();
	struct schema s = { 0 };
	struct err err = { 0 };

	(void)state;
	temp_root_put(&t, CPU "/possible", "0-3\n");
	assert_int_equal(topology_read(t.root, &s, &err), 0);
	assert_int_equal(s.n_core_types, 1);
	free(s.cpus);
	temp_root_put(&t, CPU "/cpu0/cpu_capacity", "160\n");
	temp_root_put(&t, CPU "/cpu1/cpu_capacity", "1024\n");
	temp_root_put(&t, CPU "/cpu2/cpu_capacity", "1024\n");
	temp_root_put(&t, CPU "/cpu3/cpu_capacity", "498\n");
	assert_int_equal(topology_read(t.root, &s, &err), 0);
	assert_int_equal(s.n_core_types, 3);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(s.cpus[i].core_type, by_capacity[i]);
	free(s.cpus);
	temp_root_put(&t, "/sys/bus/event_source/devices/cpu_atom/type", "10\n");
	temp_root_put(&t, "/sys/bus/event_source/devices/cpu_atom/cpus", "2-3\n");
	temp_root_put(&t, "/sys/bus/event_source/devices/cpu_core/type", "4\n");
	temp_root_put(&t, "/sys/bus/event_source/devices/cpu_core/cpus", "0-1\n");
	assert_int_equal(topology_read(t.root, &s, &err), 0);
	assert_int_equal(s.n_core_types, 2);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(s.cpus[i].core_type, by_pmu[i]);
	free(s.cpus);
	temp_root_free(&t);
}

static void test_more_types_than_are_told_apart(void **state)
{
	struct temp_root t = temp_root_new();
	struct schema s = { 0 };
	struct err err = { 0 };

	(void)state;
	temp_root_put(&t, CPU "/possible", "0-5\n");
	for (unsigned cpu = 0; cpu < 6; cpu++) {
		char path[96], text[16];

		snprintf(path, sizeof(path), CPU "/cpu%u/cpu_capacity", cpu);
		snprintf(text, sizeof(text), "%u\n", 100 * (cpu + 1));
		temp_root_put(&t, path, text);
	}
	assert_int_equal(topology_read(t.root, &s, &err), 0);
	assert_int_equal(s.n_core_types, SCHEMA_CORE_TYPES);
	for (unsigned cpu = 0; cpu < 6; cpu++)
		assert_int_equal(s.cpus[cpu].core_type, cpu > 2 ? 5 - cpu : 3);
	free(s.cpus);
	temp_root_free(&t);
}

static void test_siblings(void **state)
{
	struct temp_root t = temp_root_new();
	uint32_t got[3] = { 0 };

	(void)state;
	assert_false(topology_smt(t.root));
	temp_root_put(&t, CPU "/online", "0-2\n");
	temp_root_put(&t, CPU "/cpu0/topology/thread_siblings_list", "0\n");
	assert_false(topology_smt(t.root));
	assert_int_equal(topology_siblings(t.root, 0, got, 3), 0);
	temp_root_put(&t, CPU "/cpu2/topology/thread_siblings_list", "2,66-67,130\n");
	assert_true(topology_smt(t.root));
	assert_int_equal(topology_siblings(t.root, 2, got, 3), 3);
	assert_true(got[0] == 66 && got[1] == 67 && got[2] == 130);
	assert_int_equal(topology_siblings(t.root, 2, got, 2), 2);
	assert_int_equal(topology_siblings(t.root, 1, got, 3), 0);
	temp_root_put(&t, CPU "/cpu2/topology/thread_siblings_list", "2,99999\n");
	assert_int_equal(topology_siblings(t.root, 2, got, 3), 0);
	temp_root_free(&t);
}

/* Against glibc, which asks the kernel another way. */
static void test_this_machine(void **state)
{
	struct fsroot *root;
	struct schema s = { 0 };
	struct err err = { 0 };
	struct online_cpus *o;
	uint8_t bits[1024] = { 0 };

	(void)state;
	assert_int_equal(fsroot_open("/", &root), 0);
	assert_int_equal(topology_read(root, &s, &err), 0);
	assert_true(s.n_cpus >= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
	assert_true(s.n_packages >= 1 && s.n_packages <= s.n_cpus);
	assert_int_equal(online_open(root, &o), 0);
	assert_int_equal(online_read(o, bits, 8192), sysconf(_SC_NPROCESSORS_ONLN));
	online_close(o);
	free(s.cpus);
	fsroot_close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_sockets_and_holes),
		cmocka_unit_test(test_unknown_ids),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_refresh),
		cmocka_unit_test(test_online_follows_the_file),
		cmocka_unit_test(test_cpu_model),
		cmocka_unit_test(test_core_types),
		cmocka_unit_test(test_more_types_than_are_told_apart),
		cmocka_unit_test(test_siblings),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
