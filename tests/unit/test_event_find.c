/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the names that libpfm4, perf and the kernel use are cycles, and which last-level misses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "model/event_find.h"

static void test_names(void **state)
{
	static const struct {
		const char *name;
		bool cycles, misses;
	} cases[] = {
		{ "CYCLES", true, false },
		{ "cpu-cycles", true, false },
		{ "PERF_COUNT_HW_CPU_CYCLES:u", true, false },
		{ "skl::UNHALTED_CORE_CYCLES:k=1:u=1", true, false },
		{ "CPU_CLK_UNHALTED.THREAD_P", true, false },
		{ "CPU_CLK_UNHALTED:CORE_P", true, false },
		{ "cpu_core/cpu-cycles/", true, false },
		{ "CPU_CLK_UNHALTED:REF_P", false, false },
		{ "CPU_CLK_UNHALTED.REF_TSC", false, false },
		{ "UNHALTED_REFERENCE_CYCLES", false, false },
		{ "REF_CYCLES", false, false },
		{ "TSC", false, false },
		{ "BUS_CYCLES", false, false },
		{ "INSTRUCTIONS", false, false },
		{ "", false, false },
		{ "CYCLES_", false, false },
		{ "CPU_CYCLES", true, false },
		{ "LLC_MISSES", false, true },
		{ "cache-misses", false, true },
		{ "LONGEST_LAT_CACHE.MISS", false, true },
		{ "LONGEST_LAT_CACHE:REFERENCE", false, false },
		{ "PERF_COUNT_HW_CACHE_LL:READ:MISS", false, true },
		{ "PERF_COUNT_HW_CACHE_LL:READ:ACCESS", false, false },
		{ "LLC_REFERENCES", false, false },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event_set set = { .n = 1 };

		snprintf(set.ev[0].name, SCHEMA_NAME_MAX, "%s", cases[i].name);
		assert_int_equal(event_find_cycles(&set), cases[i].cycles ? 0 : -1);
		assert_int_equal(event_find_misses(&set), cases[i].misses ? 0 : -1);
		set.ev[0].kind = EVENT_TASK_CLOCK;
		assert_int_equal(event_find_cycles(&set), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
