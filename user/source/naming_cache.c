/* SPDX-License-Identifier: Apache-2.0 */
/* What was found a moment ago. A container that makes thousands of cgroups below its own must not have its
 * files read thousands of times: all of them have its names. */
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "naming_internal.h"

#define ENTRIES 256 /* a power of two; a later one takes the place of an earlier */
#define FOUND_NS NS_PER_S
#define MISSING_NS (20 * NS_PER_MS) /* the files may come at any time */

struct entry {
	char *path; /* up to the component that says who it is */
	size_t n;
	struct names *names;
	uint64_t until_ns;
	bool complete;
};

struct naming_cache {
	struct entry entries[ENTRIES];
};

struct naming_cache *naming_cache_new(void)
{
	return calloc(1, sizeof(struct naming_cache));
}

void naming_cache_free(struct naming_cache *c)
{
	for (unsigned i = 0; c && i < ENTRIES; i++) {
		free(c->entries[i].path);
		names_put(c->entries[i].names);
	}
	free(c);
}

static struct entry *place_of(struct naming_cache *c, const char *path, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)path[i]) * 0x100000001b3ull;
	return &c->entries[(h ^ h >> 32) & (ENTRIES - 1)];
}

static void keep(struct entry *e, const char *path, size_t n, struct names *names, bool complete)
{
	free(e->path);
	e->path = strndup(path, n);
	e->n = n;
	names_set(&e->names, names);
	e->complete = complete;
	e->until_ns = clock_mono_ns() + (complete ? FOUND_NS : MISSING_NS);
}

struct names *naming_cache_look(struct naming_cache *c, const struct naming_where *w, const char *path,
				bool *ret_complete)
{
	struct place place;
	struct names *names;
	struct entry *e;

	naming_parse(path, &place);
	if (place.kind == PLACE_NONE) /* no file is read for these */
		return naming_look_in(w, path, ret_complete);
	e = place_of(c, path, place.end);
	if (e->path && e->n == place.end && memcmp(e->path, path, e->n) == 0 && clock_mono_ns() < e->until_ns) {
		*ret_complete = e->complete;
		return names_get(e->names);
	}
	names = naming_look_in(w, path, ret_complete);
	keep(e, path, place.end, names, *ret_complete);
	return names;
}
