/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "model/event_find.h"
#include "waits.h"

#define ENOUGH_CYCLES 5000000 /* of a row in an interval: fewer are of one phase of its program */
#define HALF_LIFE_NS 900000000000.0 /* of what counted for the mean: programs change */
#define MORE 2.0 /* times the usual misses per cycle ... */
#define LESS 8.0 /* ... or so much less: then the mean begins anew */

struct wait_key {
	uint32_t generation;
	double misses, cycles; /* of intervals that told something, forgotten by half-life */
	double most; /* misses per cycle of one of them */
};

/* True when it does something else than before. A row that has waited all the time, and is alone now, is taken for one, too: its mean is
 * that of now then, which does no harm. */
static bool does_something_else(const struct wait_key *k, double misses, double cycles)
{
	const double now = misses * k->cycles, usual = k->misses * cycles;

	return k->cycles > 0 && (now > MORE * usual || now * LESS < usual);
}

static void add(struct wait_key *k, double misses, double cycles)
{
	if (does_something_else(k, misses, cycles))
		k->misses = k->cycles = k->most = 0;
	k->misses += misses;
	k->cycles += cycles;
	k->most = fmax(k->most, misses / cycles);
}

static int reserve(struct waits *w, const struct snapshot *s)
{
	size_t keys = 0;
	int rc;

	for (unsigned i = 0; i < s->n_rows; i++)
		keys = s->rows[i].key >= keys ? (size_t)s->rows[i].key + 1 : keys;
	rc = ARRAY_ZEROED(w->keys, w->cap_keys, keys);
	if (!rc)
		rc = ARRAY_ROOM(w->usual, w->cap_usual, s->n_rows);
	return rc ? rc : ARRAY_ROOM(w->most, w->cap_most, s->n_rows);
}

static bool tells(const struct snap_row *row, unsigned cycles)
{
	return !(row->quality & (QUALITY_LOST | QUALITY_PARTIAL)) && row->counters[cycles] >= ENOUGH_CYCLES;
}

int waits_take(struct waits *w, const struct snapshot *s)
{
	const int misses = event_find_misses(&s->schema->core), cycles = event_find_cycles(&s->schema->core);
	const bool counted = misses >= 0 && cycles >= 0;
	double kept;
	int rc = reserve(w, s);

	if (rc)
		return rc;
	if (w->keys && s->end_ns < w->end_ns)
		memset(w->keys, 0, w->cap_keys * sizeof(*w->keys));
	kept = exp2(-(double)(s->end_ns - s->start_ns) / HALF_LIFE_NS);
	w->end_ns = s->end_ns;
	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];
		struct wait_key *k = &w->keys[row->key];

		if (k->generation != row->generation)
			*k = (struct wait_key){ .generation = row->generation };
		k->misses *= kept;
		k->cycles *= kept;
		if (counted && tells(row, (unsigned)cycles))
			add(k, (double)row->counters[misses], (double)row->counters[cycles]);
		w->usual[i] = k->cycles > 0 ? k->misses / k->cycles : 0;
		w->most[i] = k->most;
	}
	return 0;
}

void waits_free(struct waits *w)
{
	free(w->keys);
	free(w->usual);
	free(w->most);
	*w = (struct waits){ 0 };
}
