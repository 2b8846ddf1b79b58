/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table: it finds numbers by 64-bit keys. The caller keeps its entries in an array and enters the index of
 * each. The key is an id, or hash_bytes() of a text. Equal keys may be entered many times, so the caller compares
 * entries found by a hash of a text.
 *
 * Open addressing with linear probing, at most half of the places used. Removal shifts the following entries back, so
 * there are no tombstones, and a table that saw a million entries come and go is as fast as a new one. Keys are mixed
 * with a random seed of the process, so names or ids from outside cannot be chosen to collide. The seed has no visible
 * effect, because the order of places is not shown.
 *
 * A zeroed struct hash is an empty table. Not safe for threads, apart from hash_bytes(). */
#ifndef JD_HASH_H
#define JD_HASH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_NONE UINT32_MAX /* no number; hash_add takes smaller ones */

struct hash_place {
	uint64_t key;
	uint32_t at1; /* the number + 1; 0 = free */
};

struct hash {
	struct hash_place *places;
	uint64_t seed;
	uint32_t mask; /* places - 1; their number is a power of two */
	uint32_t n;
};

/* Makes room for n entries in all: 0, or -ENOMEM and then the table is as before. */
int hash_reserve(struct hash *h, size_t n);
/* Adds an entry, for which there must be room. It is found after those of the same key that were added earlier. */
void hash_add(struct hash *h, uint64_t key, uint32_t at);
/* Removes the entry, or does nothing when there is no such entry. */
void hash_remove(struct hash *h, uint64_t key, uint32_t at);
/* Gives an entry, which must be there, another number. */
void hash_move(struct hash *h, uint64_t key, uint32_t from, uint32_t to);
void hash_clear(struct hash *h); /* removes all; room stays */
void hash_free(struct hash *h); /* the table is empty then */

/* The hash of n bytes, different in every process. Any thread may call it. */
uint64_t hash_bytes(const void *p, size_t n);
static inline uint64_t hash_text(const char *s)
{
	return hash_bytes(s, strlen(s));
}
uint64_t hash_seed(void); /* random, the same during the life of the process */

/* The two steps that all hashes here are made of: a product of 128 bits whose halves are folded, as in wyhash.
 * hash_word takes 8 bytes into h, hash_pair takes 16 with one product; both need an h or a seed that is not known
 * outside. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_word(uint64_t h, uint64_t w)
{
	return hash_fold(h ^ w, 0x9e3779b97f4a7c15ull);
}

static inline uint64_t hash_pair(uint64_t seed, uint64_t h, const uint64_t w[2])
{
	return hash_fold(seed ^ w[0], h ^ w[1]);
}

/* FNV-1a, 64 bits (RFC 9923), of n bytes, going on from h, at first HASH_FNV. The same on every machine and in every
 * release: for fingerprints that are stored or sent, not for tables. */
#define HASH_FNV 0xcbf29ce484222325ull
uint64_t hash_fnv(uint64_t h, const void *p, size_t n);

static inline uint32_t hash_home(const struct hash *h, uint64_t key)
{
	return (uint32_t)hash_word(h->seed, key) & h->mask;
}

/* A walk over the entries of one key, in the order of their addition:
 *
 *	for (struct hash_walk w = hash_walk(h, key); hash_step(&w);)
 *		if (strcmp(names[w.at], name) == 0)
 *			return w.at;
 *
 * The table must not change meanwhile. */
struct hash_walk {
	const struct hash *h;
	uint64_t key;
	uint32_t place, at;
};

static inline struct hash_walk hash_walk(const struct hash *h, uint64_t key)
{
	return (struct hash_walk){ .h = h, .key = key, .place = hash_home(h, key) };
}

static inline bool hash_step(struct hash_walk *w)
{
	const struct hash *h = w->h;

	if (!h->n)
		return false;
	for (;;) {
		const struct hash_place *p = &h->places[w->place];

		if (!p->at1)
			return false;
		w->place = (w->place + 1) & h->mask;
		if (p->key == w->key) {
			w->at = p->at1 - 1;
			return true;
		}
	}
}

/* The number that was first added with the key, HASH_NONE = there is none. */
static inline uint32_t hash_find(const struct hash *h, uint64_t key)
{
	struct hash_walk w = hash_walk(h, key);

	return hash_step(&w) ? w.at : HASH_NONE;
}

#endif
