/* SPDX-License-Identifier: Apache-2.0 */
/* What is given back after the start: code that is not used is not resident, and all that is used works as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "base/heap.h"

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int backwards(const void *a, const void *b)
{
	return by_value(b, a);
}

/* Relocated at the start, and read-only since then. */
static int (*const orders[])(const void *a, const void *b) = { by_value, backwards };
static const char *const words[] = { "energy", "counters", "cgroup" };

static long resident_file_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	assert_non_null(f);
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssFile: %ld", &kib) != 1)
			kib = -1;
	fclose(f);
	return kib;
}

static void work(unsigned round)
{
	int v[] = { 3, 1, 2 };
	char text[64];

	qsort(v, 3, sizeof(v[0]), orders[round % 2]);
	assert_true(v[0] == (round % 2 ? 3 : 1) && v[1] == 2);
	snprintf(text, sizeof(text), "%s %s %s %.3f", words[0], words[1], words[2], round / 8.0);
	assert_non_null(strstr(text, "energy counters cgroup"));
}

static atomic_bool stop;
static atomic_uint rounds;

static void *work_on(void *arg)
{
	while (!atomic_load(&stop))
		work(atomic_fetch_add(&rounds, 1));
	return NULL;
}

static void test_after_start(void **state)
{
	static char written[3 * 4096] = "not zero, so in the file";
	long before, after;
	pthread_t other;

	memset(written, 7, sizeof(written));
	assert_int_equal(pthread_create(&other, NULL, work_on, NULL), 0);
	while (atomic_load(&rounds) < 10)
		;
	before = resident_file_kib();
	heap_after_start();
	after = resident_file_kib();
	printf("  %ld KiB of files resident before, %ld after\n", before, after);
	assert_true(before > 0 && after < before);
	for (unsigned i = 0; i < 20; i++) {
		heap_after_start();
		work(i);
	}
	for (size_t i = 0; i < sizeof(written); i++)
		assert_int_equal(written[i], 7);
	atomic_store(&stop, true);
	pthread_join(other, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_after_start) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
