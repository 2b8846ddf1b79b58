/* SPDX-License-Identifier: Apache-2.0 */
/* Traces kept in bounded memory, looked at while others come; and a spool that is read without being taken. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "serve/trace_ring.h"
#include "store/spool/spool.h"

static struct trace *make(uint32_t part, size_t size)
{
	struct trace *t = calloc(1, size);

	t->part = part;
	return t;
}

static void test_bounded(void **state)
{
	struct kept_trace **list;
	struct trace_ring r;
	struct trace_ring_forgotten forgotten;
	int n;

	trace_ring_init(&r, 100000);
	for (uint32_t i = 0; i < 1000; i++)
		trace_ring_put(&r, make(i, 10000));
	n = trace_ring_look(&r, &list, &forgotten);
	assert_in_range(n, 5, 10);
	assert_int_equal(forgotten.traces, 1000 - (unsigned)n);
	assert_int_equal(list[n - 1]->trace->part, 999);
	assert_int_equal(list[0]->trace->part, 1000 - n);
	/* one larger than all the room is kept alone */
	trace_ring_put(&r, make(5000, 500000));
	assert_int_equal(list[0]->trace->part, 1000 - n); /* still there for who looks */
	trace_ring_done(&r, list, n);
	n = trace_ring_look(&r, &list, &forgotten);
	assert_int_equal(n, 1);
	assert_int_equal(list[0]->trace->part, 5000);
	trace_ring_done(&r, list, n);
	trace_ring_fini(&r);
}

/* The ring tells how much it dropped to make room, and until when. */
static void test_forgotten(void **state)
{
	static const char *const names[] = { "core-0", "package-0" };
	struct trace_ring_forgotten forgotten;
	struct kept_trace **list;
	struct trace_ring r;
	int n;

	trace_ring_init(&r, 100000);
	for (uint32_t i = 0; i < 100; i++) {
		struct trace *t = make(i, 10000);

		t->domains = names;
		t->n_domains = 2;
		t->n_spans = 2;
		t->spans = (struct span *)(t + 1);
		for (unsigned k = 0; k < 2; k++)
			t->spans[k] = (struct span){ .start_real_ns = 1000 * i,
						     .start_ns = 7,
						     .end_ns = 7 + 300 + k,
						     .n_domains = 2,
						     .energy_uj = { 5, i } };
		trace_ring_put(&r, t);
	}
	n = trace_ring_look(&r, &list, &forgotten);
	assert_in_range(n, 5, 10);
	assert_int_equal(forgotten.traces, 100 - n);
	assert_int_equal(forgotten.energy_uj, (99 - n) * (100 - n)); /* packages alone, of both spans */
	assert_int_equal(forgotten.until_unix_ns, 1000 * (99 - n) + 301);
	assert_int_equal(list[0]->number, 100 - n + 1);
	assert_int_equal(list[n - 1]->number, 100);
	trace_ring_done(&r, list, n);
	trace_ring_fini(&r);
}

static void test_two_look(void **state)
{
	struct kept_trace **a, **b;
	struct trace_ring r;
	struct trace_ring_forgotten forgotten;

	trace_ring_init(&r, 1);
	assert_int_equal(trace_ring_look(&r, &a, &forgotten), 0);
	trace_ring_done(&r, a, 0);
	trace_ring_put(&r, make(1, 4096));
	assert_int_equal(trace_ring_look(&r, &a, &forgotten), 1);
	assert_int_equal(trace_ring_look(&r, &b, &forgotten), 1);
	trace_ring_put(&r, make(2, 4096));
	trace_ring_done(&r, a, 1);
	assert_int_equal(b[0]->trace->part, 1);
	trace_ring_done(&r, b, 1);
	trace_ring_fini(&r);
}

static char seen[256];

static int note(void *ctx, int64_t real_ns, const void *data, size_t len)
{
	snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%lld:%.*s ", (long long)real_ns, (int)len,
		 (const char *)data);
	return ctx ? 7 : 0;
}

static int look(const char *path, struct err *err)
{
	seen[0] = '\0';
	return spool_read(path, note, NULL, err);
}

static void test_spool_is_left(void **state)
{
	char dir[] = "/tmp/jouled-look-XXXXXX", file[128], command[160];
	struct spool_options o = { .dir = dir };
	struct spool_mark m;
	struct buf b = { 0 };
	struct err err = { 0 };
	struct spool *s;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(look(dir, &err), -ENODATA);
	assert_int_equal(spool_open(&o, &s, &err), 0);
	spool_append(s, 1, "one", 3);
	spool_append(s, 2, "two", 3);
	spool_append(s, 3, "three", 5);
	assert_int_equal(look(dir, &err), 0); /* while it is open */
	assert_string_equal(seen, "1:one 2:two 3:three ");
	assert_int_equal(spool_read(dir, note, &o, &err), 7);
	snprintf(file, sizeof(file), "%s/%016x.spool", dir, 1);
	if (access(file, R_OK) != 0)
		snprintf(file, sizeof(file), "%s/%016x.spool", dir, 0);
	/* the second record is damaged: head of the file 16, of a record 24 */
	f = fopen(file, "r+");
	assert_non_null(f);
	fseek(f, 16 + 24 + 3 + 24, SEEK_SET);
	fputc('X', f);
	fclose(f);
	assert_int_equal(look(file, &err), 0);
	assert_string_equal(seen, "1:one 3:three ");
	assert_int_equal(spool_next(s, 5, &b, &m), 0); /* nothing was taken */
	assert_memory_equal(b.data, "one", 3);
	buf_free(&b);
	spool_close(s);
	assert_int_equal(look("/proc/self/maps", &err), -ENODATA);
	assert_int_equal(look("/dev/zero", &err), -ENODATA);
	assert_int_equal(err.text[0], '\0');
	assert_int_equal(look("/nonexistent", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent: "));
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_two_look),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_spool_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
