// SPDX-License-Identifier: Apache-2.0
/* Memory of a profile has bounds, whatever programs do: maps of all processes together, different places of code, bytes of names.
 * What is beyond is counted, samples stay, and room that is given back is used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "profile/frame_names.h"

#define PIDS (1 << 28) /* no process has such a number */

static void map_many(struct code *c, int pid, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		code_mapped(
			c, pid,
			&(struct code_mapped){ .start = 0x100000ull * (i + 1), .length = 0x1000, .path = "//anon" });
}

static uint64_t room(const struct code *c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->n_processes; i++)
		n += c->processes[i].cap;
	return n;
}

static void test_maps(void **state)
{
	struct code c = { .maps_most = 5000 };

	assert_int_equal(code_open(&c), 0);
	for (int i = 0; i < 300; i++) {
		code_renamed(&c, PIDS + i, "many", true);
		map_many(&c, PIDS + i, 100);
		code_forked(&c, PIDS + i, PIDS + 1000 + i);
		assert_true(c.maps_room <= 5000);
		assert_int_equal(c.maps_room, room(&c));
	}
	assert_true(c.refused > 20000);
	for (int i = 0; i < 300; i++) {
		code_exited(&c, PIDS + i);
		code_exited(&c, PIDS + 1000 + i);
	}
	assert_int_equal(c.maps_room, room(&c));
	c.refused = 0;
	code_renamed(&c, PIDS - 1, "late", true);
	map_many(&c, PIDS - 1, 10);
	assert_int_equal(c.refused, 0);
	assert_int_equal(code_renew(&c), 0);
	assert_int_equal(c.maps_room, 0);
	assert_int_equal(c.maps_most, 5000);
	code_close(&c);
}

static unsigned different(const struct stacks *t)
{
	struct hash seen = { 0 };
	unsigned n = 0;

	for (uint32_t i = 0; i < t->n_frames; i++)
		if (hash_find(&seen, t->frames[i]) == HASH_NONE) {
			assert_int_equal(hash_reserve(&seen, n + 1), 0);
			hash_add(&seen, t->frames[i], n++);
		}
	hash_free(&seen);
	return n;
}

static void test_places(void **state)
{
	const struct stack_sample one = { STACK_TIME, 1 };
	struct stacks t = { .most_places = 200 };
	uint64_t frames[4], time_ns = 0;

	for (unsigned turn = 0; turn < 2; turn++)
		for (unsigned i = 0; i < 5000; i++) {
			for (unsigned k = 0; k < 4; k++)
				frames[k] = frame_of(7, i * (uint64_t)k + k);
			stacks_add(&t, &(struct stack){ .cgroup = 1, .n = 4 }, frames, &one);
		}
	assert_true(different(&t) <= 205);
	assert_int_equal(t.samples, 10000); /* none is lost, and stacks that are one are one */
	assert_int_equal(t.dropped, 0);
	assert_true(t.placeless > 9000 && t.n < 400);
	for (uint32_t i = 0; i < t.n; i++)
		time_ns += t.v[i].time_ns;
	assert_int_equal(time_ns, 10000);
	stacks_clear(&t);
	stacks_add(&t, &(struct stack){ .cgroup = 1, .n = 4 }, frames, &one);
	assert_int_equal(t.placeless, 0);
	stacks_free(&t);
}

static size_t texts(const struct frame_names *f)
{
	size_t n = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		assert_non_null(f->v[i].text);
		n += strcmp(f->v[i].text, FRAME_NO_ROOM) == 0 ? 0 : strlen(f->v[i].text) + 1;
	}
	return n;
}

static void test_names(void **state)
{
	struct frame_names all = { 0 }, few = { .bytes_most = 12 };
	struct code c = { 0 };
	uint64_t frames[3], again[3];
	uint32_t process;

	assert_int_equal(code_open(&c), 0);
	process = code_process(&c, getpid());
	assert_true(code_frame(&c, process, (uintptr_t)test_maps, &frames[0]));
	assert_true(code_frame(&c, process, (uintptr_t)test_places, &frames[1]));
	assert_true(code_frame(&c, process, (uintptr_t)frame_names_add, &frames[2]));
	memcpy(again, frames, sizeof(again));
	assert_int_equal(frame_names_add(&all, &c, frames, 3), 0);
	assert_int_equal(all.n, 3);
	assert_true(texts(&all) > 20);
	assert_int_equal(frame_names_add(&few, &c, again, 3), 0);
	assert_int_equal(few.n, 3);
	assert_true(few.bytes <= 12 && texts(&few) <= 12 && few.bytes > 0);
	assert_int_equal(frame_names_add(&few, &c, again, 3), 0); /* nothing is counted twice */
	assert_true(few.bytes <= 12);
	frame_names_free(&all);
	frame_names_free(&few);
	code_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
