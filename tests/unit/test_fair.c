/* SPDX-License-Identifier: Apache-2.0 */
/* Room for ended cgroups is divided by subtrees: expected counts by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/fair.h"

#define MAX 4096

static char paths[MAX][320];
static unsigned n_paths;
static struct fair fair;
static bool kept[MAX];

#define ADD(...) snprintf(paths[n_paths++], sizeof(paths[0]), __VA_ARGS__)

/* Age is the order of adding: the last is the newest. */
static unsigned choose(unsigned room)
{
	unsigned n = 0;

	assert_int_equal(fair_reserve(&fair, n_paths), 0);
	for (unsigned i = 0; i < n_paths; i++)
		fair_add(&fair, paths[i], 1000 + i, i);
	fair_choose(&fair, room);
	memset(kept, 0, sizeof(kept));
	for (unsigned i = 0; i < fair.n; i++) {
		kept[fair.items[i].index] = fair.items[i].kept;
		n += fair.items[i].kept;
	}
	return n;
}

/* How many below dir are kept. */
static unsigned below(const char *dir)
{
	size_t len = strlen(dir);
	unsigned n = 0;

	for (unsigned i = 0; i < n_paths; i++)
		n += kept[i] && strncmp(paths[i], dir, len) == 0 && (paths[i][len] == '/' || !paths[i][len]);
	return n;
}

static int begin(void **state)
{
	n_paths = 0;
	return 0;
}

static int end(void **state)
{
	fair_free(&fair);
	return 0;
}

static void test_enough_room(void **state)
{
	for (unsigned i = 0; i < 100; i++)
		ADD("/a/%u", i);
	assert_int_equal(choose(100), 100);
	assert_int_equal(choose(1000), 100);
	assert_int_equal(choose(0), 0);
	n_paths = 0;
	assert_int_equal(choose(10), 0);
}

/* A container that makes 3000 cgroups: its own go, none of the other pods' or services'. */
static void test_flood(void **state)
{
	for (unsigned i = 0; i < 100; i++) {
		ADD("/kubepods/besteffort/pod-%u", i);
		ADD("/kubepods/besteffort/pod-%u/sandbox", i);
		ADD("/kubepods/besteffort/pod-%u/work", i);
		ADD("/system.slice/job-%u.service", i);
	}
	for (unsigned i = 0; i < 3000; i++)
		ADD("/kubepods/besteffort/pod-evil/work/x%u", i);
	assert_int_equal(choose(1024), 1024);
	assert_int_equal(below("/system.slice"), 100);
	assert_int_equal(below("/kubepods/besteffort/pod-evil"), 1024 - 400);
	assert_int_equal(below("/kubepods"), 1024 - 100);
	/* of its own, the newest */
	assert_true(kept[n_paths - 1] && kept[n_paths - 624] && !kept[n_paths - 625]);
}

/* The same spread over as many directories as there are, and over depth. */
static void test_flood_in_disguise(void **state)
{
	for (unsigned i = 0; i < 200; i++)
		ADD("/docker/honest-%u", i);
	for (unsigned i = 0; i < 3000; i++)
		ADD("/docker/evil/%u%s", i, i % 2 ? "/a/b/c/d/e/f/g/h/i/j/k" : "");
	assert_int_equal(choose(300), 300);
	assert_int_equal(below("/docker/evil"), 100);
	assert_int_equal(choose(202), 202);
	assert_int_equal(below("/docker/evil"), 2);
	/* less than one each: one each of the newest */
	assert_int_equal(choose(50), 50);
	assert_int_equal(below("/docker/evil"), 1);
	assert_true(kept[199] && kept[151] && !kept[150]);
}

/* The part that one does not need is divided among the others. */
static void test_parts(void **state)
{
	for (unsigned i = 0; i < 10; i++)
		ADD("/a/%u", i);
	for (unsigned i = 0; i < 100; i++)
		ADD("/a-b/%u", i);
	for (unsigned i = 0; i < 200; i++)
		ADD("/c/%u", i);
	assert_int_equal(choose(101), 101);
	assert_int_equal(below("/a"), 10);
	assert_int_equal(below("/a-b"), 45);
	assert_int_equal(below("/c"), 46);
	assert_int_equal(choose(250), 250);
	assert_int_equal(below("/a-b"), 100);
	assert_int_equal(below("/c"), 140);
}

/* One path, many lives: the newest stay. */
static void test_same_path(void **state)
{
	for (unsigned i = 0; i < 50; i++)
		ADD("%s", i ? "/x" : "/");
	assert_int_equal(choose(20), 20);
	assert_true(kept[0]);
	assert_int_equal(below("/x"), 19);
	assert_true(kept[49] && kept[31] && !kept[30]);
}

/* Whatever the tree: as many as there is room for, and nobody below an equal part has lost one. */
static void test_random(void **state)
{
	for (unsigned round = 0; round < 200; round++) {
		unsigned size[8] = { 0 }, room, part;

		srand(round);
		n_paths = 0;
		for (unsigned i = 0, n = 1 + (unsigned)rand() % 1000; i < n; i++) {
			unsigned top = (unsigned)(rand() % 8) * (unsigned)(rand() % 8) / 7;

			size[top]++;
			snprintf(paths[n_paths++], sizeof(paths[0]), "/t%u/%d/%d", top, rand() % 20, rand() % 20);
		}
		room = (unsigned)rand() % n_paths;
		assert_int_equal(choose(room), room);
		part = room / 8;
		for (unsigned t = 0; t < 8; t++) {
			char dir[8];

			snprintf(dir, sizeof(dir), "/t%u", t);
			assert_true(below(dir) >= (size[t] < part ? size[t] : part));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_enough_room, begin, end),
		cmocka_unit_test_setup_teardown(test_flood, begin, end),
		cmocka_unit_test_setup_teardown(test_flood_in_disguise, begin, end),
		cmocka_unit_test_setup_teardown(test_parts, begin, end),
		cmocka_unit_test_setup_teardown(test_same_path, begin, end),
		cmocka_unit_test_setup_teardown(test_random, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
