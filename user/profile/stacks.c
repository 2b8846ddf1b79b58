/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks.h"
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "code.h"

static uint64_t key_of(const struct stack *s, const uint64_t *frames)
{
	const uint64_t head[3] = { s->cgroup, s->process,
				   (uint64_t)s->n << 3 | s->whole << 2 | s->kernel_thread << 1 | s->broken };

	return hash_word(hash_bytes(head, sizeof(head)), hash_bytes(frames, s->n * sizeof(*frames)));
}

static bool same(const struct stacks *t, const struct stack *a, const struct stack *b, const uint64_t *frames)
{
	return a->cgroup == b->cgroup && a->process == b->process && a->n == b->n &&
	       a->kernel_thread == b->kernel_thread && a->broken == b->broken && a->whole == b->whole &&
	       (!a->n || memcmp(t->frames + a->first, frames, a->n * sizeof(*frames)) == 0);
}

/* Enters the places of a stack. The last stack may go beyond the limit. */
static bool enter_places(struct stacks *t, const uint64_t *frames, unsigned n)
{
	if (t->most_places && hash_reserve(&t->by_place, t->by_place.n + n))
		return false;
	for (unsigned i = 0; i < n && t->most_places; i++)
		if (hash_find(&t->by_place, frames[i]) == HASH_NONE)
			hash_add(&t->by_place, frames[i], 0);
	return true;
}

/* Where no more places are taken, those that are not known are one. True: it has such. */
static bool without_new_places(const struct stacks *t, const uint64_t *frames, unsigned n, uint64_t *ret)
{
	bool any = false;

	for (unsigned i = 0; i < n; i++) {
		const bool known = hash_find(&t->by_place, frames[i]) != HASH_NONE;

		ret[i] = known ? frames[i] : frame_of(CODE_UNKNOWN, 0);
		any |= !known;
	}
	return any;
}

#define ENTRY (2 * sizeof(struct hash_place)) /* of a hash, which is at most half full */

/* Bytes of a stack and of those of its places that are new. */
static size_t bytes_of(const struct stacks *t, const uint64_t *frames, unsigned n)
{
	size_t bytes = sizeof(struct stack) + t->beside + n * sizeof(*frames) + ENTRY;

	for (unsigned i = 0; i < n && t->most_places; i++)
		bytes += hash_find(&t->by_place, frames[i]) == HASH_NONE ? ENTRY : 0;
	return bytes;
}

static struct stack *enter(struct stacks *t, const struct stack *s, const uint64_t *frames, uint64_t key)
{
	struct stack *at;

	if (t->n >= (t->most ? t->most : STACKS_MAX) ||
	    t->n_frames + s->n > (t->most_frames ? t->most_frames : STACKS_FRAMES_MAX) ||
	    !room_add(t->room, ROOM_STACKS, bytes_of(t, frames, s->n)) || ARRAY_ROOM(t->v, t->cap, t->n + 1) ||
	    ARRAY_ROOM(t->frames, t->frames_cap, t->n_frames + s->n) || hash_reserve(&t->by_stack, t->n + 1) ||
	    !enter_places(t, frames, s->n))
		return NULL;
	hash_add(&t->by_stack, key, t->n);
	at = &t->v[t->n++];
	*at = *s;
	at->first = t->n_frames;
	at->samples = at->time_ns = 0;
	at->fresh_samples = 0;
	memset(at->fresh, 0, sizeof(at->fresh));
	if (s->n)
		memcpy(t->frames + t->n_frames, frames, s->n * sizeof(*frames));
	t->n_frames += s->n;
	return at;
}

void stacks_add(struct stacks *t, const struct stack *s, const uint64_t *given, const struct stack_sample *what)
{
	const bool full = t->most_places && t->by_place.n >= t->most_places;
	uint64_t places[STACK_FRAMES_MAX];
	const uint64_t *frames = full ? places : given;
	struct stack *at = NULL;
	uint64_t key;

	if (full)
		t->placeless += without_new_places(t, given, s->n, places);
	key = key_of(s, frames);
	for (struct hash_walk w = hash_walk(&t->by_stack, key); !at && hash_step(&w);)
		if (same(t, &t->v[w.at], s, frames))
			at = &t->v[w.at];
	if (!at)
		at = enter(t, s, frames, key);
	if (!at) {
		t->dropped++;
		return;
	}
	at->samples++;
	at->fresh_samples++;
	at->time_ns += what->column == STACK_TIME ? what->period : 0;
	at->fresh[what->column] += what->period;
	t->samples++;
}

void stacks_clear(struct stacks *t)
{
	t->n = t->n_frames = 0;
	t->samples = t->dropped = t->placeless = 0;
	hash_clear(&t->by_stack);
	hash_clear(&t->by_place);
	room_set(t->room, ROOM_STACKS, 0);
}

void stacks_free(struct stacks *t)
{
	free(t->v);
	free(t->frames);
	hash_free(&t->by_stack);
	hash_free(&t->by_place);
	*t = (struct stacks){ 0 };
}
