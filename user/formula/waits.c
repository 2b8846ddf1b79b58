/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/event_find.h"
#include "waits.h"

#define ENOUGH_CYCLES 5000000 /* of a row in an interval: fewer are of one phase of its program */
#define HALF_LIFE_NS 900000000000.0 /* of what was the most: programs change */

struct wait_key {
	uint32_t generation;
	double most;
};

/* Room for n of what is `size` large, with the content kept and the rest zeroed. */
static int room(void **of, unsigned *cap, unsigned n, size_t size)
{
	const unsigned more = n + n / 2 + 16;
	void *grown;

	if (*of && *cap >= n)
		return 0;
	grown = realloc(*of, more * size);
	if (!grown)
		return -ENOMEM;
	memset((char *)grown + *cap * size, 0, (more - *cap) * size);
	*of = grown;
	*cap = more;
	return 0;
}

static int reserve(struct waits *w, const struct snapshot *s)
{
	unsigned keys = 0;
	int rc;

	for (unsigned i = 0; i < s->n_rows; i++)
		keys = s->rows[i].key >= keys ? s->rows[i].key + 1 : keys;
	rc = room((void **)&w->keys, &w->cap_keys, keys, sizeof(*w->keys));
	return rc ? rc : room((void **)&w->most, &w->cap_rows, s->n_rows, sizeof(*w->most));
}

static double misses_per_cycle(const struct snap_row *row, unsigned misses, unsigned cycles)
{
	if (row->quality & (QUALITY_LOST | QUALITY_PARTIAL) || row->counters[cycles] < ENOUGH_CYCLES)
		return 0;
	return (double)row->counters[misses] / (double)row->counters[cycles];
}

int waits_take(struct waits *w, const struct snapshot *s)
{
	const int misses = event_find_misses(&s->schema->core), cycles = event_find_cycles(&s->schema->core);
	double kept;
	int rc = reserve(w, s);

	if (rc)
		return rc;
	if (s->end_ns < w->end_ns)
		memset(w->keys, 0, w->cap_keys * sizeof(*w->keys));
	kept = exp2(-(double)(s->end_ns - s->start_ns) / HALF_LIFE_NS);
	w->end_ns = s->end_ns;
	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];
		struct wait_key *k = &w->keys[row->key];

		if (k->generation != row->generation)
			*k = (struct wait_key){ .generation = row->generation };
		if (misses >= 0 && cycles >= 0)
			k->most = fmax(k->most * kept, misses_per_cycle(row, (unsigned)misses, (unsigned)cycles));
		w->most[i] = k->most;
	}
	return 0;
}

void waits_free(struct waits *w)
{
	free(w->keys);
	free(w->most);
}
