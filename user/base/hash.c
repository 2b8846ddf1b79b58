/* SPDX-License-Identifier: Apache-2.0 */
#include "hash.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define FIRST_PLACES 32u

uint64_t hash_seed(void)
{
	static _Atomic uint64_t seed;
	uint64_t known = atomic_load_explicit(&seed, memory_order_relaxed), made = 0;

	if (known)
		return known;
	/* A kernel that has no random bytes yet gives none: the clock is better than a constant then. */
	if (getrandom(&made, sizeof(made), GRND_NONBLOCK) != (ssize_t)sizeof(made)) {
		struct timespec ts;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		made = hash_word((uintptr_t)&ts, (uint64_t)ts.tv_nsec);
	}
	made |= 1; /* 0 means that there is none */
	return atomic_compare_exchange_strong(&seed, &known, made) ? made : known;
}

uint64_t hash_bytes(const void *p, size_t n)
{
	const char *b = p;
	const uint64_t seed = hash_seed();
	uint64_t h = hash_word(seed, n), w[2];

	for (; n > 16; n -= 16, b += 16) {
		memcpy(w, b, 16);
		h = hash_pair(seed, h, w);
	}
	w[0] = w[1] = 0;
	memcpy(w, b, n);
	return hash_pair(seed, h, w);
}

uint64_t hash_fnv(uint64_t h, const void *p, size_t n)
{
	for (const uint8_t *b = p; b < (const uint8_t *)p + n; b++)
		h = (h ^ *b) * 0x100000001b3ull;
	return h;
}

void hash_add(struct hash *h, uint64_t key, uint32_t at)
{
	uint32_t i = hash_home(h, key);

	while (h->places[i].at1)
		i = (i + 1) & h->mask;
	h->places[i] = (struct hash_place){ key, at + 1 };
	h->n++;
}

/* Entries of one key keep their order: they are taken from the beginning of a run, never from its middle. */
static void add_all(struct hash *to, const struct hash *from)
{
	uint32_t first = 0;

	while (from->places[first].at1)
		first++;
	for (uint32_t i = 1; i <= from->mask; i++) {
		const struct hash_place *p = &from->places[(first + i) & from->mask];

		if (p->at1)
			hash_add(to, p->key, p->at1 - 1);
	}
}

int hash_reserve(struct hash *h, size_t n)
{
	struct hash next = { .seed = hash_seed() };
	size_t places = h->places ? (size_t)h->mask + 1 : FIRST_PLACES;

	if (h->places && 2 * n <= places)
		return 0;
	if (n > UINT32_MAX / 4)
		return -ENOMEM;
	while (places < 2 * n)
		places *= 2;
	next.places = calloc(places, sizeof(*next.places));
	if (!next.places)
		return -ENOMEM;
	next.mask = (uint32_t)places - 1;
	if (h->n)
		add_all(&next, h);
	free(h->places);
	*h = next;
	return 0;
}

static uint32_t place_of(const struct hash *h, uint64_t key, uint32_t at)
{
	uint32_t i = hash_home(h, key);

	if (!h->n)
		return HASH_NONE;
	for (; h->places[i].at1; i = (i + 1) & h->mask)
		if (h->places[i].key == key && h->places[i].at1 == at + 1)
			return i;
	return HASH_NONE;
}

void hash_remove(struct hash *h, uint64_t key, uint32_t at)
{
	uint32_t i = place_of(h, key, at), j = i;

	if (i == HASH_NONE)
		return;
	h->n--;
	for (;;) {
		h->places[i].at1 = 0;
		do {
			j = (j + 1) & h->mask;
			if (!h->places[j].at1)
				return;
			/* An entry stays where it is when its home lies cyclically in (i, j]. */
		} while (((j - hash_home(h, h->places[j].key)) & h->mask) < ((j - i) & h->mask));
		h->places[i] = h->places[j];
		i = j;
	}
}

void hash_move(struct hash *h, uint64_t key, uint32_t from, uint32_t to)
{
	uint32_t i = place_of(h, key, from);

	if (i != HASH_NONE)
		h->places[i].at1 = to + 1;
}

void hash_clear(struct hash *h)
{
	if (h->n)
		memset(h->places, 0, ((size_t)h->mask + 1) * sizeof(*h->places));
	h->n = 0;
}

void hash_free(struct hash *h)
{
	free(h->places);
	*h = (struct hash){ 0 };
}
