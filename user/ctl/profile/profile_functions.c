/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include "base/array.h"
#include "profile_functions.h"

struct profile_function *profile_functions_find(const struct profile_functions *f, const char *name)
{
	for (struct hash_walk w = hash_walk(&f->by_name, hash_text(name)); hash_step(&w);)
		if (strcmp(f->v[w.at].name, name) == 0)
			return &f->v[w.at];
	return NULL;
}

static struct profile_function *function(struct profile_functions *f, const char *name)
{
	struct profile_function *found = profile_functions_find(f, name);

	if (found)
		return found;
	if (ARRAY_ROOM(f->v, f->cap, f->n + 1) || hash_reserve(&f->by_name, f->n + 1))
		return NULL;
	hash_add(&f->by_name, hash_text(name), f->n);
	f->v[f->n] = (struct profile_function){ .name = name };
	return &f->v[f->n++];
}

int profile_functions_add(struct profile_functions *f, const struct flame_stack *s, unsigned first)
{
	f->n_stacks++;
	for (unsigned i = first; i < s->n; i++) {
		struct profile_function *at = function(f, s->label[i]);

		if (!at)
			return -ENOMEM;
		if (at->seen != f->n_stacks)
			at->all_uj += s->own_uj;
		at->seen = f->n_stacks;
		at->quality |= s->quality;
		if (i + 1 < s->n)
			continue;
		at->own_uj += s->own_uj;
		at->own_cpu_ns += s->cpu_ns;
	}
	return 0;
}

void profile_functions_free(struct profile_functions *f)
{
	free(f->v);
	hash_free(&f->by_name);
	*f = (struct profile_functions){ 0 };
}
