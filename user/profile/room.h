/* SPDX-License-Identifier: Apache-2.0 */
/* One budget of memory for the parts of a profile that grow with what runs: what one part has, the others lack. Each part tells
 * what it holds, and refuses what has no room. NULL, or most 0 = no limit. One thread at a time. */
#ifndef JD_ROOM_H
#define JD_ROOM_H
#include <stdbool.h>
#include <stddef.h>

enum room_part { ROOM_STACKS, ROOM_NAMES, ROOM_MAPS, ROOM_RULES, ROOM_ROWS, ROOM_PARTS };

struct room {
	size_t most; /* bytes */
	size_t part[ROOM_PARTS]; /* held */
};

static inline size_t room_left(const struct room *r)
{
	size_t used = 0;

	for (unsigned i = 0; r && i < ROOM_PARTS; i++)
		used += r->part[i];
	return !r || !r->most ? (size_t)-1 : used < r->most ? r->most - used : 0;
}

static inline void room_set(struct room *r, enum room_part part, size_t bytes)
{
	if (r)
		r->part[part] = bytes;
}

/* Adds to what a part holds. False: there is no room, and nothing is added. */
static inline bool room_add(struct room *r, enum room_part part, size_t bytes)
{
	if (bytes > room_left(r))
		return false;
	if (r)
		r->part[part] += bytes;
	return true;
}

/* What a small block of n bytes takes of the heap (glibc: a word beside it, whole 16 bytes, 32 at least). */
static inline size_t room_block(size_t n)
{
	return n + 8 <= 32 ? 32 : (n + 8 + 15) & ~(size_t)15;
}

#endif
