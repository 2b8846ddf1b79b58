/* SPDX-License-Identifier: Apache-2.0 */
/* The items of each subtree are brought together as a range, level by level where there are too many. The parts are
 * found by filling from below: a subtree that needs no more than an equal part gets all of it, and the others divide
 * the rest again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "fair.h"

int fair_reserve(struct fair *f, uint32_t n)
{
	uint32_t cap = array_step(n);

	f->n = 0;
	if (n <= f->cap)
		return 0;
	if (!cap || ARRAY_RESIZE(f->items, cap) || ARRAY_RESIZE(f->order, cap))
		return -ENOMEM;
	f->cap = cap;
	return 0;
}

void fair_add(struct fair *f, const char *path, uint64_t ended_ns, uint32_t index)
{
	f->items[f->n++] = (struct fair_item){ .path = path, .ended_ns = ended_ns, .index = index };
}

void fair_free(struct fair *f)
{
	free(f->items);
	free(f->order);
	*f = (struct fair){ 0 };
}

/* Compares names in one directory. Any order will do that brings equal names together. */
static int by_component(const void *a, const void *b, void *arg)
{
	const struct fair_item *x = a, *y = b;
	size_t off = *(const size_t *)arg;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return memcmp(x->path + off, y->path + off, x->len);
}

static int newest_first(const void *a, const void *b)
{
	uint64_t x = ((const struct fair_item *)a)->ended_ns, y = ((const struct fair_item *)b)->ended_ns;

	return x > y ? -1 : x < y;
}

/* Bytes of the component after the first off bytes of a path, with its slash; 0 at the end. */
static size_t component(const char *path, size_t off)
{
	return path[off] ? 1 + strcspn(path + off + 1, "/") : 0;
}

/* Brings together the items of [begin, end) whose component after the first off bytes, which all have in common, is the
 * same. Returns the number of groups. */
static uint32_t group(struct fair *f, uint32_t begin, uint32_t end, size_t off)
{
	struct fair_item *items = f->items;
	uint32_t n = 0;
	bool same = true;

	for (uint32_t i = begin; i < end; i++) {
		items[i].len = (uint32_t)component(items[i].path, off);
		same = same && by_component(&items[i], &items[begin], &off) == 0;
	}
	if (!same)
		qsort_r(items + begin, end - begin, sizeof(*items), by_component, &off);
	for (uint32_t i = begin, next; i < end; i = next, n++) {
		for (next = i + 1; next < end && (same || by_component(&items[next], &items[i], &off) == 0);)
			next++;
		items[i].size = next - i;
		items[i].part = UINT32_MAX;
	}
	return n;
}

static uint64_t newest_of(const struct fair *f, uint32_t first)
{
	uint64_t newest_ns = 0;

	for (uint32_t i = first; i < first + f->items[first].size; i++)
		if (f->items[i].ended_ns > newest_ns)
			newest_ns = f->items[i].ended_ns;
	return newest_ns;
}

static int by_newest(const void *a, const void *b, void *arg)
{
	uint64_t x = newest_of(arg, *(const uint32_t *)a), y = newest_of(arg, *(const uint32_t *)b);

	return x > y ? -1 : x < y;
}

/* Divides the room among the open groups. The remainder goes, one item each, to those with the newest end. */
static void divide_rest(struct fair *f, uint32_t begin, uint32_t end, uint32_t open, uint32_t room)
{
	uint32_t n = 0;

	for (uint32_t i = begin; i < end; i += f->items[i].size)
		if (f->items[i].part == UINT32_MAX)
			f->order[n++] = i;
	if (room % open)
		qsort_r(f->order, n, sizeof(*f->order), by_newest, f);
	for (uint32_t i = 0; i < n; i++)
		f->items[f->order[i]].part = room / open + (i < room % open);
}

static void divide(struct fair *f, uint32_t begin, uint32_t end, uint32_t groups, uint32_t room)
{
	uint32_t open = groups, before = open + 1;

	while (open && open < before) {
		uint32_t equal = room / open;

		before = open;
		for (uint32_t i = begin; i < end; i += f->items[i].size) {
			if (f->items[i].part != UINT32_MAX || f->items[i].size > equal)
				continue;
			f->items[i].part = f->items[i].size;
			room -= f->items[i].size;
			open--;
		}
	}
	if (open)
		divide_rest(f, begin, end, open, room);
}

static void keep(struct fair *f, uint32_t begin, uint32_t n)
{
	for (uint32_t i = begin; i < begin + n; i++)
		f->items[i].kept = true;
}

/* The items [begin, end). Their paths have the first off bytes in common, which are `level` directories. */
struct subtree {
	uint32_t begin, end;
	size_t off;
	unsigned level;
};

static void choose(struct fair *f, struct subtree s, uint32_t room)
{
	const uint32_t begin = s.begin, end = s.end;

	if (end - begin <= room) {
		keep(f, begin, end - begin);
		return;
	}
	if (!room)
		return;
	if (s.level == FAIR_LEVELS || end - begin == 1) {
		qsort(f->items + begin, end - begin, sizeof(*f->items), newest_first);
		keep(f, begin, room);
		return;
	}
	divide(f, begin, end, group(f, begin, end, s.off), room);
	for (uint32_t i = begin, next; i < end; i = next) {
		size_t len = f->items[i].len;

		next = i + f->items[i].size;
		/* Items without a further component are lives of one name: the newest of them are kept. */
		choose(f, (struct subtree){ i, next, s.off + len, len ? s.level + 1 : FAIR_LEVELS }, f->items[i].part);
	}
}

void fair_choose(struct fair *f, uint32_t room)
{
	choose(f, (struct subtree){ 0, f->n, 0, 0 }, room);
}
