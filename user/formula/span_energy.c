/* SPDX-License-Identifier: Apache-2.0 */
/* Each cgroup has a ring of cells, one per slot: CPU time and energy that no span has taken yet. A span that used c
 * gets energy x c / time; both are taken off the cell. So the rate stays, and the next span gets what rounding left. */
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/hash.h"
#include "span_energy.h"

struct slot {
	uint64_t number, start_ns, end_ns;
};

struct cell_left {
	uint64_t slot; /* number of the slot; the content of a cell with another number is void */
	uint64_t time_ns;
	uint64_t quality;
	uint64_t energy_uj[]; /* n_domains */
};

struct purse {
	uint64_t cgroup_id, last_slot;
	uint64_t cells[]; /* SPAN_SLOTS x cell_words */
};

struct span_energy {
	const struct schema *schema;
	unsigned cell_words;
	uint32_t n, max;
	uint64_t cleaned; /* slot in which old ones were looked for */
	uint64_t last; /* number of the newest slot, from 1 */
	bool cut; /* it is complete */
	struct slot slots[SPAN_SLOTS];
	struct purse **purses; /* n in use, and behind them up to n_made free ones */
	uint32_t n_made, cap;
	struct hash by_id;
};

struct span_energy *span_energy_new(const struct schema *s, uint32_t max_cgroups)
{
	struct span_energy *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->schema = s;
	e->cell_words = (unsigned)(sizeof(struct cell_left) / sizeof(uint64_t)) + s->n_domains;
	e->max = max_cgroups;
	return e;
}

void span_energy_free(struct span_energy *e)
{
	if (!e)
		return;
	for (uint32_t i = 0; i < e->n_made; i++)
		free(e->purses[i]);
	free(e->purses);
	hash_free(&e->by_id);
	free(e);
}

void span_energy_cut(struct span_energy *e)
{
	e->cut = true;
}

uint64_t span_energy_until(const struct span_energy *e)
{
	return e->last ? e->slots[e->last % SPAN_SLOTS].end_ns : 0;
}

static struct purse *find(const struct span_energy *e, uint64_t id)
{
	uint32_t at = hash_find(&e->by_id, id);

	return at == HASH_NONE ? NULL : e->purses[at];
}

/* The last one in use takes the place of the one that goes. */
static void drop(struct span_energy *e, uint32_t at)
{
	struct purse *gone = e->purses[at], *last = e->purses[--e->n];

	hash_remove(&e->by_id, gone->cgroup_id, at);
	if (at == e->n)
		return;
	hash_move(&e->by_id, last->cgroup_id, e->n, at);
	e->purses[at] = last;
	e->purses[e->n] = gone;
}

/* Frees the rings of cgroups that used nothing in all the slots that are kept. */
static void clean(struct span_energy *e)
{
	for (uint32_t i = e->n; i-- > 0;)
		if (e->purses[i]->last_slot + SPAN_SLOTS <= e->last)
			drop(e, i);
	e->cleaned = e->last;
}

static bool make_purse(struct span_energy *e)
{
	struct purse *p;

	if (ARRAY_ROOM(e->purses, e->cap, e->n_made + 1) || hash_reserve(&e->by_id, e->n_made + 1))
		return false;
	p = malloc(sizeof(*p) + SPAN_SLOTS * e->cell_words * sizeof(uint64_t));
	if (p)
		e->purses[e->n_made++] = p;
	return p != NULL;
}

static struct purse *add(struct span_energy *e, uint64_t id)
{
	struct purse *p;

	if (e->n == e->n_made && e->cleaned != e->last)
		clean(e);
	if (e->n >= e->max || (e->n == e->n_made && !make_purse(e)))
		return NULL;
	p = e->purses[e->n];
	memset(p, 0, sizeof(*p) + SPAN_SLOTS * e->cell_words * sizeof(uint64_t));
	p->cgroup_id = id;
	hash_add(&e->by_id, id, e->n++);
	return p;
}

static struct cell_left *cell_of(const struct span_energy *e, struct purse *p, uint64_t slot)
{
	return (struct cell_left *)&p->cells[slot % SPAN_SLOTS * e->cell_words];
}

/* Quality of a span's energy: that of the domains and of their splits, and ESTIMATED where a domain is an estimate. */
static unsigned energy_quality(const struct snapshot *s)
{
	unsigned split = schema_kinds_summed(s->schema) & ~(DOMAIN_BIT(DOMAIN_DRAM) | DOMAIN_BIT(DOMAIN_GPU)), q = 0;

	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		q |= s->domains[d].quality;
		if (split & DOMAIN_BIT(s->schema->domains[d].kind))
			q |= s->domains[d].share_quality;
		if (s->schema->domains[d].interface == ENERGY_ESTIMATE)
			q |= QUALITY_ESTIMATED;
	}
	return q;
}

static void add_row(struct span_energy *e, const struct snapshot *s, unsigned row, unsigned quality)
{
	const struct snap_row *r = &s->rows[row];
	struct purse *p = find(e, r->id);
	struct cell_left *c;

	if (!p && (!r->time_ns || !(p = add(e, r->id))))
		return;
	c = cell_of(e, p, e->last);
	if (c->slot != e->last) {
		memset(c, 0, e->cell_words * sizeof(uint64_t));
		c->slot = e->last;
	}
	if (r->time_ns)
		p->last_slot = e->last;
	c->time_ns += r->time_ns;
	c->quality |= quality | r->quality;
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		c->energy_uj[d] += *snapshot_energy(s, row, d);
}

static void open_slot(struct span_energy *e, const struct snapshot *s)
{
	struct slot *now = &e->slots[e->last % SPAN_SLOTS];

	if (e->last && !e->cut && now->end_ns == s->start_ns) {
		now->end_ns = s->end_ns;
		return;
	}
	e->cut = false;
	e->last++;
	e->slots[e->last % SPAN_SLOTS] = (struct slot){ .number = e->last,
							.start_ns = s->start_ns,
							.end_ns = s->end_ns };
}

void span_energy_add(struct span_energy *e, const struct snapshot *s)
{
	unsigned quality = energy_quality(s);

	open_slot(e, s);
	for (unsigned i = 0; i < s->n_rows; i++)
		if (s->rows[i].kind == ROW_CGROUP)
			add_row(e, s, i, quality);
}

static uint64_t pay(const struct span_energy *e, struct cell_left *c, uint64_t want_ns, uint64_t *energy_uj,
		    unsigned *quality)
{
	uint64_t cpu_ns = want_ns < c->time_ns ? want_ns : c->time_ns;

	if (!cpu_ns)
		return 0;
	for (unsigned d = 0; d < e->schema->n_domains; d++) {
		uint64_t uj = (uint64_t)((unsigned __int128)c->energy_uj[d] * cpu_ns / c->time_ns);

		c->energy_uj[d] -= uj;
		energy_uj[d] += uj;
	}
	c->time_ns -= cpu_ns;
	*quality |= (unsigned)c->quality;
	return cpu_ns;
}

static uint64_t overlap(const struct slot *s, const struct span_use *u)
{
	uint64_t from = u->from_ns > s->start_ns ? u->from_ns : s->start_ns;
	uint64_t until = u->until_ns < s->end_ns ? u->until_ns : s->end_ns;

	return until > from ? until - from : until == from && u->from_ns == u->until_ns ? 1 : 0;
}

/* Slots that are kept, newest first; 0 ends it. */
static uint64_t oldest(const struct span_energy *e)
{
	return e->last >= SPAN_SLOTS ? e->last - SPAN_SLOTS + 1 : 1;
}

static uint64_t overlaps(const struct span_energy *e, const struct span_use *u)
{
	uint64_t sum = 0;

	for (uint64_t n = e->last; n >= oldest(e) && n; n--)
		sum += overlap(&e->slots[n % SPAN_SLOTS], u);
	return sum;
}

/* First evenly over the span's time, then from any interval that it overlaps, because it is not known when it really
 * ran. */
uint64_t span_energy_take(struct span_energy *e, const struct span_use *u, uint64_t *energy_uj, unsigned *quality)
{
	uint64_t left = u->cpu_ns, all = overlaps(e, u);
	struct purse *p = left && all ? find(e, u->cgroup_id) : NULL;

	for (unsigned pass = 0; p && pass < 2 && left; pass++)
		for (uint64_t n = e->last; n >= oldest(e) && n && left; n--) {
			const struct slot *s = &e->slots[n % SPAN_SLOTS];
			struct cell_left *c = cell_of(e, p, n);
			uint64_t part = overlap(s, u), want = left;

			if (!part || c->slot != n)
				continue;
			if (!pass)
				want = (uint64_t)((unsigned __int128)u->cpu_ns * part / all);
			left -= pay(e, c, want < left ? want : left, energy_uj, quality);
		}
	return left;
}
