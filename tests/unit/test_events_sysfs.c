/* SPDX-License-Identifier: Apache-2.0 */
/* "pmu/term=value,.../": bits by the format files, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "events_fixture.h"

#define PMU "/sys/bus/event_source/devices"

/* The formats of an AMD core PMU (arch/x86/events/amd/core.c) and some that only a broken or a
 * future kernel could show. */
static struct temp_root amd(void)
{
	static const char *const files[][2] = {
		{ "type", "4\n" },
		{ "format/event", "config:0-7,32-35\n" },
		{ "format/umask", "config:8-15\n" },
		{ "format/edge", "config:18\n" },
		{ "format/low", "config1:0-15\n" },
		{ "format/high", "config2:48-63\n" },
		{ "format/all", "config1:0-63\n" },
		{ "format/bad_word", "config3:0-7\n" },
		{ "format/bad_bits", "config:60-64\n" },
		{ "format/bad_empty", "config:\n" },
		{ "format/bad_name", "cfg:0\n" },
		{ "format/bad_order", "config:5-3\n" },
		{ "events/cpu-cycles", "event=0x76\n" },
		{ "events/ref-cycles", "event=0x120,umask=0x01\n" },
		{ "events/param", "event=0x1,umask=?\n" },
		{ "events/loop", "loop\n" },
		{ "events/unknown", "evnt=1\n" },
	};
	struct temp_root t = temp_root_new();

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char path[128];

		snprintf(path, sizeof(path), PMU "/cpu/%s", files[i][0]);
		temp_root_put(&t, path, files[i][1]);
	}
	return t;
}

static void test_terms(void **state)
{
	static const struct {
		const char *name;
		uint64_t config, config1;
	} good[] = {
		{ "cpu/event=0x120/", 0x100000020, 0 }, /* low eight bits, then bits 32-35 */
		{ "cpu/event=0xfff/", 0xf000000ff, 0 },
		{ "cpu/event=288,umask=255,edge/", 0x10004ff20, 0 },
		{ "cpu/ref-cycles/", 0x100000120, 0 },
		{ "cpu/cpu-cycles,umask=2/", 0x276, 0 },
		{ "cpu/cpu-cycles,event=0xc0/", 0xc0, 0 }, /* the later term holds */
		{ "cpu/edge=0,edge=1/", 0x40000, 0 },
		{ "cpu/config=0x76,config1=0xffffffffffffffff/", 0x76, UINT64_MAX },
		{ "cpu/all=0xffffffffffffffff/", 0, UINT64_MAX },
		{ "cpu/low=0xabcd/", 0, 0xabcd },
	};
	struct temp_root t = amd();

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		print_message("%s\n", good[i].name);
		resolve(t.root, &yes, false, good[i].name);
		assert_event(0, 4, good[i].config, good[i].config1);
	}
	resolve(t.root, &yes, false, "cpu/high=0x8001/");
	assert_event(0, 4, 0, 0);
	assert_int_equal(out.set.ev[0].config2, 0x8001ull << 48);
	assert_string_equal(out.set.ev[0].pmu, "cpu");
	temp_root_free(&t);
}

static void test_bad_terms(void **state)
{
	static const char *const bad[][2] = {
		{ "cpu/event=0x1000/", "does not fit term event" },
		{ "cpu/edge=2/", "does not fit term edge" },
		{ "cpu/evnt=1/", "did you mean event?" },
		{ "cpu/cpu-cycle/", "did you mean cpu-cycles?" },
		{ "cpu/event=x/", "is not a number" },
		{ "cpu/event=/", "is not a number" },
		{ "cpu/param/", "is not a number" },
		{ "cpu/event=18446744073709551616/", "is not a number" },
		{ "cpu/,/", "is not a term" },
		{ "cpu/event=1,/", "is not a term" },
		{ "cpu/../", "is not a term" },
		{ "cpu/a b/", "is not a term" },
		{ "cpu/bad_word=1/", "not readable" },
		{ "cpu/bad_bits=1/", "not readable" },
		{ "cpu/bad_empty=1/", "not readable" },
		{ "cpu/bad_name=1/", "not readable" },
		{ "cpu/bad_order=1/", "not readable" },
		{ "cpu/loop/", "has no event loop" },
		{ "cpu/unknown/", "has no term evnt" },
		{ "cpu/event=1/u", "after the last slash" },
		{ "cpu/event=1", "after the last slash" },
		{ "cpu//", "after the last slash" },
		{ "/event=1/", "after the last slash" },
		{ "../event=1/", "after the last slash" },
		{ "cup/event=1/", "did you mean cpu?" },
	};
	struct temp_root t = amd();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		print_message("%s\n", bad[i][0]);
		resolve(t.root, &yes, false, bad[i][0]);
		assert_error(bad[i][1]);
	}
	temp_root_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_terms),
		cmocka_unit_test(test_bad_terms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
