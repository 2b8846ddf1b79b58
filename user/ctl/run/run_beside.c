/* SPDX-License-Identifier: Apache-2.0 */
#include "run_beside.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/text.h"

struct run_beside_row {
	char *name;
	uint64_t energy_uj, cpu_ns;
};

int run_beside_add(struct run_beside *b, const char *name, uint64_t energy_uj, uint64_t cpu_ns)
{
	char *copy = ARRAY_ROOM(b->row, b->cap, b->n + 1) ? NULL : strdup(name);

	if (!copy)
		return -ENOMEM;
	b->row[b->n++] = (struct run_beside_row){ .name = copy, .energy_uj = energy_uj, .cpu_ns = cpu_ns };
	return 0;
}

void run_beside_free(struct run_beside *b)
{
	for (unsigned i = 0; i < b->n; i++)
		free(b->row[i].name);
	free(b->row);
	*b = (struct run_beside){ 0 };
}

static int by_name(const void *a, const void *b)
{
	const struct run_beside_row *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool is_more(const struct run_other *a, const struct run_other *b)
{
	return a->energy_uj != b->energy_uj ? a->energy_uj > b->energy_uj : a->cpu_ns > b->cpu_ns;
}

/* Keeps the end of a long name, where the leaf is. */
static void name_of(struct run_other *ret, const char *name)
{
	char shown[4096];
	size_t n, most = sizeof(ret->name) - 1;
	const char *from = text_escape(shown, sizeof(shown), name);

	n = strlen(from);
	if (n <= most) {
		memcpy(ret->name, from, n + 1);
		return;
	}
	from += n - (most - 3);
	while ((*from & 0xc0) == 0x80) /* no cut within a character */
		from++;
	snprintf(ret->name, sizeof(ret->name), "...%s", from);
}

unsigned run_beside_most(struct run_beside *before, const struct run_beside *after,
			 struct run_other ret[RUN_OTHERS_MAX])
{
	const struct run_beside_row *source[RUN_OTHERS_MAX];
	unsigned n = 0;

	if (before->n)
		qsort(before->row, before->n, sizeof(before->row[0]), by_name);
	for (unsigned i = 0; i < after->n; i++) {
		const struct run_beside_row *now = &after->row[i], *old;
		struct run_other used = { .energy_uj = now->energy_uj, .cpu_ns = now->cpu_ns };
		unsigned at = n;

		old = before->n ? bsearch(now, before->row, before->n, sizeof(*now), by_name) : NULL;
		if (old && old->cpu_ns <= now->cpu_ns && old->energy_uj <= now->energy_uj) {
			used.cpu_ns -= old->cpu_ns;
			used.energy_uj -= old->energy_uj;
		}
		if (!used.cpu_ns && !used.energy_uj)
			continue;
		for (; at > 0 && is_more(&used, &ret[at - 1]); at--)
			if (at < RUN_OTHERS_MAX) {
				ret[at] = ret[at - 1];
				source[at] = source[at - 1];
			}
		if (at == RUN_OTHERS_MAX)
			continue;
		ret[at] = used;
		source[at] = now;
		n += n < RUN_OTHERS_MAX;
	}
	for (unsigned i = 0; i < n; i++)
		name_of(&ret[i], source[i]->name);
	return n;
}
