// SPDX-License-Identifier: Apache-2.0
/* Memory of a profile has bounds, whatever programs do: maps of all processes together, different places of code, bytes of names,
 * and one for all of it.
 * What is beyond is counted, samples stay, and room that is given back is used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "profile/pprof_sum.h"
#include "profile/profile_data.h"

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
	struct frame_names all = { 0 }, few = { .bytes_most = 40 };
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
	assert_true(few.bytes <= 40 && texts(&few) <= 40 && few.bytes > 0);
	assert_int_equal(frame_names_add(&few, &c, again, 3), 0); /* nothing is counted twice */
	assert_true(few.bytes <= 40);
	frame_names_free(&all);
	frame_names_free(&few);
	code_close(&c);
}

/* What the heap has given out: a little more than is resident, for arrays have room to grow. */
#define PROFILE_MOST ((size_t)38 << 20)
#define DOMAINS 8

#ifdef __SANITIZE_ADDRESS__
/* of sanitizer/allocator_interface.h, which not every compiler has */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *p, size_t n),
					      void (*on_free)(const volatile void *p));
size_t __sanitizer_get_allocated_size(const volatile void *p);

static size_t held, most_held;

static void on_malloc(const volatile void *p, size_t n)
{
	held += n;
	most_held = held > most_held ? held : most_held;
}

static void on_free(const volatile void *p)
{
	held -= p ? __sanitizer_get_allocated_size(p) : 0;
}
#else
static size_t held, most_held;
#endif

static void fill_rows(struct profile *p)
{
	char name[300];

	for (unsigned i = 0; i < 100000; i++) {
		struct share_row *row;

		snprintf(name, sizeof(name), "/%0200u", i);
		row = row_shares_row(&p->shares, name, i + 1);
		if (!row)
			return;
		for (unsigned d = 0; d < DOMAINS; d++)
			row->step_uj[d] = 1000000007ull * (d + 1);
	}
	fail();
}

/* Deep stacks of ever new places in a file with a long name, of cgroups 1 to n. */
static void fill_stacks(struct profile *p, unsigned n)
{
	const struct stack_sample one = { STACK_TIME, 10101010 };
	const uint32_t process = code_process(&p->code, PIDS - 1);
	uint64_t frames[STACK_FRAMES_MAX], place = 0;

	for (unsigned i = 0; !p->stacks.dropped; i++) {
		for (unsigned k = 0; k < 24; k++)
			frames[k] = frame_of(2, k < 4 ? place++ % 40000 : (i * (uint64_t)k) % 997);
		assert_true(i < 1000000);
		stacks_add(&p->stacks, &(struct stack){ .cgroup = 1 + i % n, .n = 24, .process = process }, frames,
			   &one);
	}
}

static void begin_world(struct profile *p, struct room *room)
{
	char path[256] = "/x/";

	*p = (struct profile){
		.rate_hz = 99, .n_domains = DOMAINS, .shares.n_domains = DOMAINS, .ended_ns = 60, .ended_real_ns = 60
	};
	for (unsigned d = 0; d < DOMAINS; d++)
		snprintf(p->domain[d].name, sizeof(p->domain[d].name), "domain-%u", d);
	profile_bound(p, room);
	assert_int_equal(code_open(&p->code), 0);
	memset(path + 3, 'n', 190);
	code_renamed(&p->code, PIDS - 1, "deep", true);
	code_mapped(&p->code, PIDS - 1,
		    &(struct code_mapped){ .start = 0x1000, .length = 0x100000, .inode = 1, .path = path });
}

/* Goes beyond the room with stacks, names, rows and maps, then writes the minute and adds it up, as the agent does. rules: bytes of
 * unwind rules that are there before. */
static void beyond_all(size_t rules)
{
	struct room room = { 0 };
	static struct profile p;
	const struct profile_report r = { &p, PROFILE_ALL_DOMAINS };
	struct buf plain = { 0 };
	const size_t before = held;
	struct pprof_sum *sum;
	uint64_t *frames;

	most_held = held;
	begin_world(&p, &room);
	room_set(&room, ROOM_RULES, rules);
	assert_true(row_shares_row(&p.shares, "/", 1) != NULL);
	fill_stacks(&p, 1);
	assert_true(p.stacks.n > (rules ? 1000 : 10000));
	assert_int_equal(row_shares_split(&p.shares, &p.stacks), 0);
	frames = malloc((p.stacks.n_frames + 1) * sizeof(*frames));
	assert_non_null(frames);
	memcpy(frames, p.stacks.frames, p.stacks.n_frames * sizeof(*frames));
	assert_int_equal(frame_names_add(&p.names, &p.code, frames, p.stacks.n_frames), 0);
	free(frames);
	fill_rows(&p);
	for (int i = 0; !p.code.refused; i++) {
		code_renamed(&p.code, PIDS + i, "many", true);
		map_many(&p.code, PIDS + i, 100);
	}
	assert_true(room_left(&room) < 1u << 20);
	assert_int_equal(row_shares_split(&p.shares, &p.stacks), 0);
	assert_int_equal(profile_pprof_plain(&r, "test", &plain), 0);
	sum = pprof_sum_new(PROFILE_ANSWER_MAX);
	assert_non_null(sum);
	assert_int_equal(pprof_sum_add(sum, plain.data, plain.len, &(struct pprof_filter){ 0 }), 0);
	buf_free(&plain);
	assert_int_equal(pprof_sum_write(sum, &plain), 0);
	printf("%zu KiB of rules, %u stacks, %u names, %u rows: %zu KiB beside them\n", rules >> 10, p.stacks.n,
	       p.names.n, p.shares.n_rows, (most_held - before) >> 10);
	assert_true(most_held - before + rules <= PROFILE_MOST);
	pprof_sum_free(sum);
	buf_free(&plain);
	profile_free(&p);
	assert_int_equal(room.part[ROOM_MAPS] + room.part[ROOM_ROWS], 0);
}

static void test_room(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	assert_true(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free));
#endif
	beyond_all(0);
	beyond_all((size_t)12 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
