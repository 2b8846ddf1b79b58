// SPDX-License-Identifier: Apache-2.0
#include "work_charge.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "split.h"

#define KEEP_NS 2000000000ull /* a claim waits for once to twice as long */
#define ONE 65536 /* a microjoule of a claim */
#define CLAIM_MAX ((int64_t)1 << 61) /* a recording of a stranger may hold any numbers */

void work_free(struct work_debts *w)
{
	free(w->debts);
	free(w->weight);
	free(w->part);
	free(w->carry);
	free(w->range_uj);
	*w = (struct work_debts){ .domain = UINT_MAX };
}

static bool has_price(const struct work_price *p)
{
	return p->read_byte_q32 | p->write_byte_q32 | p->request_q32 | p->network_byte_q32 | p->packet_q32;
}

/* The first of its kind. There is one wall; of several psys none has prices. Others can only be a stranger's. */
static unsigned find_domain(const struct snapshot *s, enum domain_kind kind)
{
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		if (s->schema->domains[d].kind == kind)
			return d;
	return UINT_MAX;
}

int work_reserve(struct work_debts *w, const struct snapshot *s, enum domain_kind kind, uint32_t keys)
{
	const uint32_t cap_keys = array_step(keys), cap_rows = array_step(s->n_rows + 1);

	w->domain = find_domain(s, kind);
	if (w->domain == UINT_MAX || (!w->debts && !has_price(&s->domains[w->domain].work)))
		return 0;
	if (!w->debts)
		for (unsigned k = 0; k < WORK_CAUSES; k++)
			w->over[k] = 1; /* nothing is known yet */
	if (keys > w->cap_keys || !w->debts) {
		if (!cap_keys || ARRAY_RESIZE(w->debts, cap_keys) != 0)
			return -ENOMEM;
		memset(w->debts + w->cap_keys, 0, (cap_keys - w->cap_keys) * sizeof(*w->debts));
		w->cap_keys = cap_keys;
	}
	if (s->n_rows < w->cap_rows)
		return 0;
	if (!cap_rows || ARRAY_RESIZE(w->weight, cap_rows) != 0 || ARRAY_RESIZE(w->part, cap_rows) != 0 ||
	    ARRAY_RESIZE(w->carry, cap_rows) != 0 || ARRAY_RESIZE(w->range_uj, cap_rows) != 0)
		return -ENOMEM;
	w->cap_rows = cap_rows;
	return 0;
}

static bool works(const struct work_debts *w, unsigned d)
{
	return w->debts && d == w->domain;
}

static uint64_t capped(uint64_t claim)
{
	return claim < (uint64_t)CLAIM_MAX ? claim : (uint64_t)CLAIM_MAX;
}

static uint64_t cost(uint64_t price_q32, uint64_t n)
{
	unsigned __int128 c = (unsigned __int128)price_q32 * n >> 16;

	return c < (uint64_t)CLAIM_MAX ? (uint64_t)c : (uint64_t)CLAIM_MAX; /* capped() takes 64 bits */
}

static uint64_t claim_of(const struct work_price *p, const struct traffic *t, enum work_cause cause)
{
	const uint64_t costs[WORK_CAUSES][4] = {
		[WORK_DISK] = { cost(p->read_byte_q32, t->read_bytes), cost(p->write_byte_q32, t->write_bytes),
				cost(p->request_q32, t->read_requests), cost(p->request_q32, t->write_requests) },
		[WORK_NETWORK] = { cost(p->network_byte_q32, t->rx_bytes), cost(p->network_byte_q32, t->tx_bytes),
				   cost(p->packet_q32, t->rx_packets), cost(p->packet_q32, t->tx_packets) },
	};
	uint64_t sum = 0; /* of four below 2^61 */

	for (unsigned i = 0; i < 4; i++)
		sum += costs[cause][i];
	return capped(sum);
}

static void add_due(struct work_debt *b, enum work_cause k, uint64_t claim)
{
	const int64_t due = b->due[k] + (int64_t)claim; /* of two that are at most 2^61 */

	b->fresh[k] = capped(b->fresh[k] + claim);
	b->due[k] = due < CLAIM_MAX ? due : CLAIM_MAX;
}

/* What was claimed before the last turn has waited long enough. Returns what is dropped; a part of a microjoule is kept, so that
 * small claims add up. */
static double turn_one(struct work_debt *b, enum work_cause k)
{
	const int64_t most = (int64_t)b->fresh[k] + ONE;
	const int64_t dropped = b->due[k] > most ? b->due[k] - most : 0;

	b->due[k] -= dropped;
	b->fresh[k] = 0;
	return (double)dropped;
}

static void turn(struct work_debts *w)
{
	for (unsigned k = 0; k < WORK_CAUSES; k++) {
		double dropped = turn_one(&w->gone, (enum work_cause)k);

		for (unsigned i = 0; i < w->cap_keys; i++)
			dropped += turn_one(&w->debts[i], (enum work_cause)k);
		if (w->before[k] > 0)
			w->over[k] = fmin(dropped / w->before[k], 1);
		w->before[k] = w->claimed[k];
		w->claimed[k] = 0;
	}
}

/* The row of this debt has ended: what it is due waits with others like it. */
static void bury(struct work_debts *w, struct work_debt *b)
{
	for (unsigned k = 0; k < WORK_CAUSES; k++)
		if (b->due[k] > 0)
			add_due(&w->gone, (enum work_cause)k, (uint64_t)b->due[k]);
	*b = (struct work_debt){ 0 };
}

static bool can_claim(const struct snap_row *row)
{
	return row->kind != ROW_IDLE && row->kind < ROW_FIRST_CAUSE;
}

void work_claim(struct work_debts *w, const struct snapshot *s, unsigned d)
{
	if (!works(w, d))
		return;
	if (s->end_ns - w->turned_ns >= KEEP_NS) {
		turn(w);
		w->turned_ns = s->end_ns;
	}
	w->interval++;
	memset(w->range_uj, 0, s->n_rows * sizeof(*w->range_uj));
	for (unsigned i = 0; i < s->n_rows; i++) {
		const struct snap_row *row = &s->rows[i];
		struct work_debt *b = &w->debts[row->key];

		if (b->generation != row->generation)
			bury(w, b);
		b->generation = row->generation;
		b->seen = w->interval;
		for (unsigned k = 0; k < WORK_CAUSES && can_claim(row); k++) {
			uint64_t claim = claim_of(&s->domains[d].work, &row->traffic, (enum work_cause)k);

			add_due(b, (enum work_cause)k, claim);
			w->claimed[k] += (double)claim;
		}
	}
	for (unsigned i = 0; i < w->cap_keys; i++)
		if (w->debts[i].seen != w->interval)
			bury(w, &w->debts[i]);
}

static void take_off(struct work_debt *b, enum work_cause k, uint64_t uj)
{
	const int64_t paid = (int64_t)(uj * ONE); /* at most 2^61 and a microjoule */

	b->due[k] = b->due[k] > paid - ONE ? b->due[k] - paid : -ONE;
}

/* Of what was claimed, a part `over` cost no device anything, and nobody knows whose that was. At the ends, all of it was this row's, or
 * all of it the others'. */
static double range_of(double part, double paid, double over)
{
	double least = over < 1 ? fmax(paid - (paid - part) / (1 - over), 0) : part < paid ? 0 : part;
	double most = over < 1 ? fmin(part / (1 - over), paid) : paid;

	return fmax(part - least, most - part);
}

uint64_t work_pay(struct work_debts *w, struct snapshot *s, unsigned d, enum work_cause cause, uint64_t uj)
{
	const unsigned n = s->n_rows;
	unsigned __int128 claimed = 0;
	uint64_t paid = 0;

	if (!works(w, d))
		return 0;
	for (unsigned i = 0; i <= n; i++) {
		const struct work_debt *b = i < n ? &w->debts[s->rows[i].key] : &w->gone;

		w->weight[i] = b->due[cause] > 0 ? (uint64_t)b->due[cause] : 0;
		w->carry[i] = 0; /* the debt keeps what a row is owed */
		claimed += w->weight[i];
	}
	if (claimed / ONE < uj)
		uj = (uint64_t)(claimed / ONE);
	if (!split(uj, w->weight, w->carry, w->part, n + 1))
		return 0;
	for (unsigned i = 0; i < n; i++) {
		const double range = range_of((double)w->part[i], (double)uj, w->over[cause]);

		take_off(&w->debts[s->rows[i].key], cause, w->part[i]);
		*snapshot_energy(s, i, d) += w->part[i];
		w->range_uj[i] += w->weight[i] ? (uint64_t)range : 0;
		paid += w->part[i];
	}
	take_off(&w->gone, cause, w->part[n]);
	return paid;
}

uint64_t work_range_uj(const struct work_debts *w, unsigned d, unsigned row)
{
	return works(w, d) ? w->range_uj[row] : 0;
}
