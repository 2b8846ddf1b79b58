/* SPDX-License-Identifier: Apache-2.0 */
/* Which domains are added up: every set of kinds there can be against what holds what, and names of machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "model/schema.h"

#define PACKAGE DOMAIN_BIT(DOMAIN_PACKAGE)
#define CORE DOMAIN_BIT(DOMAIN_CORE)
#define UNCORE DOMAIN_BIT(DOMAIN_UNCORE)
#define DRAM DOMAIN_BIT(DOMAIN_DRAM)
#define PSYS DOMAIN_BIT(DOMAIN_PSYS)
#define GPU DOMAIN_BIT(DOMAIN_GPU)
#define EXTERNAL DOMAIN_BIT(DOMAIN_EXTERNAL)
#define WALL DOMAIN_BIT(DOMAIN_WALL)

/* The kinds that a kind includes: package its parts, psys and a meter everything (Linux powercap, RAPL's manuals). */
static unsigned held_by(enum domain_kind k)
{
	return k == DOMAIN_PACKAGE  ? CORE | UNCORE :
	       k == DOMAIN_PSYS     ? PACKAGE | CORE | UNCORE | DRAM | GPU :
	       k == DOMAIN_EXTERNAL ? PACKAGE | CORE | UNCORE | DRAM | PSYS | GPU :
	       k == DOMAIN_WALL     ? PACKAGE | CORE | UNCORE | DRAM | PSYS | GPU | EXTERNAL :
				      0;
}

static void test_all_sets(void **state)
{
	for (unsigned kinds = 0; kinds < 1u << DOMAIN_KINDS; kinds++) {
		unsigned summed = domain_kinds_summed(kinds);

		assert_int_equal(summed & ~kinds, 0);
		assert_int_equal(summed == 0, kinds == 0);
		for (enum domain_kind k = 0; k < DOMAIN_KINDS; k++) {
			unsigned related = held_by(k);

			for (enum domain_kind o = 0; o < DOMAIN_KINDS; o++)
				related |= held_by(o) & DOMAIN_BIT(k) ? DOMAIN_BIT(o) : 0;
			if (summed & DOMAIN_BIT(k))
				assert_int_equal(summed & held_by(k), 0); /* nothing counts twice */
			else if (kinds & DOMAIN_BIT(k))
				assert_int_not_equal(summed & related, 0); /* nothing is left out */
		}
	}
}

static void test_machines(void **state)
{
	assert_int_equal(domain_kinds_summed(PACKAGE | CORE | UNCORE | DRAM | PSYS), PACKAGE | DRAM);
	assert_int_equal(domain_kinds_summed(PACKAGE | GPU | EXTERNAL), PACKAGE | GPU);
	assert_int_equal(domain_kinds_summed(PSYS), PSYS);
	assert_int_equal(domain_kinds_summed(PSYS | CORE | DRAM | EXTERNAL), PSYS);
	assert_int_equal(domain_kinds_summed(CORE | UNCORE | DRAM), CORE | UNCORE | DRAM);
	assert_int_equal(domain_kinds_summed(EXTERNAL | GPU), EXTERNAL);
	assert_int_equal(domain_kinds_summed(GPU | DRAM), GPU | DRAM);
	assert_int_equal(domain_kinds_summed(PACKAGE | EXTERNAL | WALL), PACKAGE);
	assert_int_equal(domain_kinds_summed(EXTERNAL | WALL), EXTERNAL);
	assert_int_equal(domain_kinds_summed(WALL), WALL);
}

static void assert_names(const char *const *names, unsigned n, const char *want)
{
	bool summed[8];

	domain_names_summed(names, n, summed);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(summed[i], want[i] == '+');
}

static void test_names(void **state)
{
	static const char *const two[] = { "package-0-die-0", "package-0-die-1", "core-0", "dram-0", "psys-1" };
	static const char *const meters[] = { "external-0", "external-1", "gpu-0" };
	static const char *const odd[] = { "packages", "core", "psys" }, *const strange[] = { "battery", "coreless",
											      "gpu-x" };

	assert_names(two, 5, "++-+-");
	assert_names(meters, 3, "++-");
	assert_names(odd, 3, "--+");
	assert_names(strange, 3, "+--");
	assert_int_equal(domain_kind_of("package-1-die-3"), DOMAIN_PACKAGE);
	assert_int_equal(domain_kind_of("uncore-0"), DOMAIN_UNCORE);
	assert_int_equal(domain_kind_of("psys"), DOMAIN_PSYS);
	assert_int_equal(domain_kind_of(""), DOMAIN_KINDS);
	assert_int_equal(domain_kind_of("gpu-"), DOMAIN_KINDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_sets),
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
