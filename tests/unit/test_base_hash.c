/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table against a plain list, the order of equal keys, and both hashes of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define ENTRIES 600

struct model { /* entries by number, in the order of their addition */
	uint64_t key[ENTRIES];
	uint64_t since[ENTRIES];
	bool in[ENTRIES];
};

static void compare(const struct hash *h, const struct model *m, uint64_t key)
{
	uint64_t last = 0;
	uint32_t found = 0, want = 0;

	for (struct hash_walk w = hash_walk(h, key); hash_step(&w); found++) {
		assert_true(w.at < ENTRIES && m->in[w.at] && m->key[w.at] == key);
		assert_true(m->since[w.at] > last);
		last = m->since[w.at];
	}
	for (uint32_t i = 0; i < ENTRIES; i++)
		want += m->in[i] && m->key[i] == key;
	assert_int_equal(found, want);
	assert_true(found ? m->in[hash_find(h, key)] : hash_find(h, key) == HASH_NONE);
}

/* Few keys, so that runs are long and equal ones many. */
static void test_like_a_list(void **state)
{
	static struct model m;
	struct hash h = { 0 };
	uint64_t turn = 0, keys = 40;

	(void)state;
	srand(7);
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t at = (uint32_t)rand() % ENTRIES;

		if (m.in[at]) {
			hash_remove(&h, m.key[at], at);
			m.in[at] = false;
		} else {
			assert_int_equal(hash_reserve(&h, h.n + 1), 0);
			m.key[at] = (uint64_t)rand() % keys;
			m.since[at] = ++turn;
			m.in[at] = true;
			hash_add(&h, m.key[at], at);
		}
		compare(&h, &m, (uint64_t)rand() % keys);
		keys = i % 4000 < 2000 ? 40 : 4000;
	}
	hash_free(&h);
}

static void test_empty(void **state)
{
	struct hash h = { 0 };
	struct hash_place *places;

	(void)state;
	assert_int_equal(hash_find(&h, 1), HASH_NONE);
	hash_remove(&h, 1, 1);
	hash_clear(&h);
	assert_int_equal(hash_reserve(&h, 16), 0);
	places = h.places;
	for (uint32_t i = 0; i < 16; i++)
		hash_add(&h, 0, i);
	assert_int_equal(hash_find(&h, 0), 0);
	hash_remove(&h, 0, 99);
	assert_int_equal(h.n, 16);
	hash_clear(&h);
	assert_int_equal(hash_find(&h, 0), HASH_NONE);
	assert_int_equal(hash_reserve(&h, 16), 0);
	assert_ptr_equal(h.places, places);
	assert_int_equal(hash_reserve(&h, UINT32_MAX), -ENOMEM);
	assert_ptr_equal(h.places, places);
	hash_free(&h);
	assert_int_equal(hash_find(&h, 0), HASH_NONE);
}

static void test_move(void **state)
{
	struct hash h = { 0 };

	(void)state;
	assert_int_equal(hash_reserve(&h, 2), 0);
	hash_add(&h, 5, 0);
	hash_add(&h, 5, 1);
	hash_move(&h, 5, 0, HASH_NONE - 1);
	assert_int_equal(hash_find(&h, 5), HASH_NONE - 1);
	hash_remove(&h, 5, HASH_NONE - 1);
	assert_int_equal(hash_find(&h, 5), 1);
	hash_free(&h);
}

/* Ids in a row and texts that differ in one byte spread: no run comes near the number of entries. */
static void test_spread(void **state)
{
	struct hash h = { 0 };
	char text[] = "/kubepods.slice/pod-000/container";
	unsigned longest = 0, run = 0;

	(void)state;
	assert_int_equal(hash_reserve(&h, 2000), 0);
	for (uint32_t i = 0; i < 1000; i++)
		hash_add(&h, i << 12, i);
	for (uint32_t i = 0; i < 1000; i++) {
		text[20] = (char)('0' + i / 100);
		text[21] = (char)('0' + i / 10 % 10);
		text[22] = (char)('0' + i % 10);
		hash_add(&h, hash_text(text), 1000 + i);
	}
	for (uint32_t i = 0; i <= h.mask; i++) {
		run = h.places[i].at1 ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	assert_in_range(longest, 1, 200);
	hash_free(&h);
}

static void test_bytes(void **state)
{
	char bytes[40] = { 0 };

	(void)state;
	for (size_t n = 0; n < sizeof(bytes); n++)
		for (size_t m = 0; m < n; m++)
			assert_true(hash_bytes(bytes, n) != hash_bytes(bytes, m));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		uint64_t before = hash_bytes(bytes, sizeof(bytes));

		bytes[i] ^= 1;
		assert_true(hash_bytes(bytes, sizeof(bytes)) != before);
	}
	assert_true(hash_text("abc") == hash_bytes("abcd", 3));
	assert_true(hash_seed() != 0 && hash_seed() == hash_seed());
}

/* The vectors of RFC 9923. */
static void test_fnv(void **state)
{
	(void)state;
	assert_true(hash_fnv(HASH_FNV, "", 0) == 0xcbf29ce484222325ull);
	assert_true(hash_fnv(HASH_FNV, "a", 1) == 0xaf63dc4c8601ec8cull);
	assert_true(hash_fnv(HASH_FNV, "foobar", 6) == 0x85944171f73967e8ull);
	assert_true(hash_fnv(hash_fnv(HASH_FNV, "foo", 3), "bar", 3) == 0x85944171f73967e8ull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_a_list), cmocka_unit_test(test_empty), cmocka_unit_test(test_move),
		cmocka_unit_test(test_spread),      cmocka_unit_test(test_bytes), cmocka_unit_test(test_fnv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
