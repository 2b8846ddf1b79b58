// SPDX-License-Identifier: Apache-2.0
/* Use of devices by rows: a short list beside the rows, because few of them use a GPU. An entry belongs to its row
 * while that row lives, and is used for another one afterwards. The generation in the entry tells the two apart. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "consumer_state.h"

#define MAX_USES 65536

static bool is_stale(const struct reading *r, const struct use *u)
{
	return u->row != USE_NOBODY && (!r->rows[u->row].used || r->rows[u->row].generation != u->generation);
}

static struct use *use_of(struct reading *r, uint32_t row, uint32_t generation, uint16_t domain)
{
	struct use *stale = NULL;

	for (uint32_t i = 0; i < r->n_uses; i++) {
		struct use *u = &r->uses[i];

		if (u->row == row && u->generation == generation && u->domain == domain)
			return u;
		if (!stale && is_stale(r, u))
			stale = u;
	}
	if (!stale && (r->n_uses == MAX_USES || ARRAY_ROOM(r->uses, r->cap_uses, r->n_uses + 1)))
		return NULL;
	if (!stale)
		stale = &r->uses[r->n_uses++];
	*stale = (struct use){ .row = row, .generation = generation, .domain = domain };
	return stale;
}

int reading_use(struct reading *r, uint32_t row, uint16_t domain, uint64_t ns)
{
	bool known = row < r->n_rows && r->rows[row].used;
	struct use *u = use_of(r, known ? row : USE_NOBODY, known ? r->rows[row].generation : 0, domain);

	if (!u)
		return -ENOMEM;
	u->ns += ns;
	return 0;
}

void consumer_mark_uses(struct consumer *c, const struct reading *r)
{
	if (ARRAY_ROOM(c->uses, c->cap_uses, r->n_uses) != 0)
		return;
	memcpy(c->uses, r->uses, r->n_uses * sizeof(*c->uses));
	c->n_uses = r->n_uses;
}

/* Index of a reading's row in the snapshot, whose rows are in order of their keys. */
static uint32_t row_of(const struct snapshot *s, uint32_t key)
{
	uint32_t from = 0, to = s->n_rows;

	while (from < to) {
		uint32_t middle = (from + to) / 2;

		if (s->rows[middle].key < key)
			from = middle + 1;
		else
			to = middle;
	}
	return from < s->n_rows && s->rows[from].key == key ? from : USE_NOBODY;
}

void consumer_add_uses(struct consumer *c, const struct reading *r)
{
	struct snapshot *s = &c->snap;

	if (snapshot_reserve_uses(s, r->n_uses))
		return;
	for (uint32_t i = 0; i < r->n_uses; i++) {
		const struct use *now = &r->uses[i], *old = i < c->n_uses ? &c->uses[i] : NULL;
		bool same = old && old->row == now->row && old->generation == now->generation &&
			    old->domain == now->domain;
		uint64_t ns = now->ns - (same ? old->ns : 0);

		if (ns && !is_stale(r, now))
			s->uses[s->n_uses++] = (struct snap_use){ row_of(s, now->row), now->domain, ns };
	}
}
