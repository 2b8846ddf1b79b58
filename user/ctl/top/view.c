/* SPDX-License-Identifier: Apache-2.0 */
/* What top knows: each interval is added to rows that stay. While the screen is frozen the totals go on
 * below it, what is shown is a copy. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "../encode/table.h"
#include "top.h"

struct columns {
	int cycles, instructions;
};

bool top_counts(const struct top_view *v, enum domain_kind kind)
{
	return v->domain < 0 ? v->machine.counted[kind] : v->domain == (int)kind;
}

double top_watts(const struct top_view *v, const double watts[DOMAIN_KINDS])
{
	double sum = 0;

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		sum += top_counts(v, k) ? watts[k] : 0;
	return sum;
}

uint64_t top_uj(const struct top_view *v, const uint64_t uj[DOMAIN_KINDS])
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		sum += top_counts(v, k) ? uj[k] : 0;
	return sum;
}

unsigned top_energy_quality(const struct top_view *v, const struct top_values *now)
{
	unsigned quality = 0;

	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		quality |= top_counts(v, k) ? now->energy_quality[k] : 0;
	return quality;
}

static void add_energy(struct top_values *t, const struct snapshot *s, unsigned row)
{
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		enum domain_kind kind = s->schema->domains[d].kind;
		uint64_t uj = *snapshot_energy(s, row, d);

		t->uj[kind] += uj;
		t->watts[kind] += table_domain_watts(&s->domains[d], uj);
		t->energy_quality[kind] |= snapshot_energy_quality(s, row, d);
	}
}

static void add_values(struct top_values *to, const struct top_values *from)
{
	to->time_ns += from->time_ns;
	to->cycles += from->cycles;
	to->instructions += from->instructions;
	to->rx_bytes += from->rx_bytes;
	to->tx_bytes += from->tx_bytes;
	to->quality |= from->quality;
	for (unsigned k = 0; k < DOMAIN_KINDS; k++) {
		to->uj[k] += from->uj[k];
		to->watts[k] += from->watts[k];
		to->energy_quality[k] |= from->energy_quality[k];
	}
}

static void add_total(struct top_totals *t, const struct top_values *v)
{
	t->time_ns += v->time_ns;
	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		t->uj[k] += v->uj[k];
}

static int take_row(struct top_view *v, const struct snapshot *s, unsigned i, const struct columns *c)
{
	const struct snap_row *from = &s->rows[i];
	struct top_row *r = top_row_get(v, from->path, from->kind);
	struct top_values *t;

	if (!r)
		return -ENOMEM;
	t = &r->now[TOP_OWN];
	if (r->own_seen != v->tick)
		memset(t, 0, sizeof(*t));
	r->own_seen = v->tick;
	r->ended = from->ended;
	r->id = from->id;
	t->time_ns += from->time_ns;
	t->cycles += c->cycles >= 0 ? from->counters[c->cycles] : 0;
	t->instructions += c->instructions >= 0 ? from->counters[c->instructions] : 0;
	t->rx_bytes += from->traffic.rx_bytes;
	t->tx_bytes += from->traffic.tx_bytes;
	t->quality |= from->quality;
	v->network_seen |= t->rx_bytes || t->tx_bytes;
	if (v->live_machine.split)
		add_energy(t, s, i);
	return top_row_entitle(v, r, from->names);
}

/* Up the tree: a row's own values count for all above it. */
static void spread(struct top_view *v)
{
	for (unsigned i = 0; i < v->n_rows; i++) {
		struct top_row *r = v->rows[i];

		memset(&r->now[TOP_SUBTREE], 0, sizeof(r->now[0]));
		if (r->own_seen != v->tick)
			memset(&r->now[TOP_OWN], 0, sizeof(r->now[0]));
	}
	for (unsigned i = 0; i < v->n_rows; i++) {
		struct top_row *r = v->rows[i];

		if (r->own_seen != v->tick)
			continue;
		for (struct top_row *up = r; up; up = up->parent) {
			add_values(&up->now[TOP_SUBTREE], &r->now[TOP_OWN]);
			up->seen = v->tick;
		}
	}
}

/* Watts where there is energy, else CPUs: a sparkline shows shape. */
static float height(const struct top_view *v, const struct top_values *t)
{
	uint64_t ns = v->live_machine.interval_ns;
	double sum = 0;

	if (!v->live_machine.split)
		return ns ? (float)((double)t->time_ns / (double)ns) : 0;
	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		sum += v->live_machine.counted[k] ? t->watts[k] : 0;
	return (float)sum;
}

static void account(struct top_view *v)
{
	for (unsigned i = 0; i < v->n_rows; i++) {
		struct top_row *r = v->rows[i];

		for (unsigned k = 0; k < TOP_SCOPES; k++) {
			add_total(&r->total[k], &r->now[k]);
			if (!v->frozen)
				r->history[k][v->samples % TOP_HISTORY] = height(v, &r->now[k]);
		}
	}
}

static void publish(struct top_view *v)
{
	v->machine = v->live_machine;
	v->samples++;
	for (unsigned i = 0; i < v->n_rows; i++) {
		struct top_row *r = v->rows[i];

		memcpy(r->shown, r->now, sizeof(r->shown));
		memcpy(r->shown_total, r->total, sizeof(r->shown_total));
	}
}

static struct columns columns_of(const struct event_set *set)
{
	struct columns c = { table_find_words(set, "CYCLES", "CPU_CLK", "REF"),
			     table_find_words(set, "INSTRUCTIONS", "INST_RETIRED", "INSTRUCTION_") };

	return c;
}

int top_view_take(struct top_view *v, const struct snapshot *s)
{
	struct columns c = columns_of(&s->schema->core);

	v->tick++;
	top_machine_take(v, s);
	v->live_machine.counters = c.cycles >= 0 && c.instructions >= 0;
	for (unsigned i = 0; i < s->n_rows; i++)
		if (take_row(v, s, i, &c) != 0)
			return -ENOMEM;
	spread(v);
	if (!v->frozen)
		top_rows_sweep(v);
	account(v);
	if (v->frozen)
		return 0;
	publish(v);
	return top_view_arrange(v);
}

void top_view_reset_totals(struct top_view *v)
{
	for (unsigned i = 0; i < v->n_rows; i++) {
		memset(v->rows[i]->total, 0, sizeof(v->rows[i]->total));
		memset(v->rows[i]->shown_total, 0, sizeof(v->rows[i]->shown_total));
	}
	for (unsigned d = 0; d < SCHEMA_MAX_DOMAINS; d++)
		v->live_machine.domains[d].total_uj = v->machine.domains[d].total_uj = 0;
}

void top_view_free(struct top_view *v)
{
	top_rows_free(v);
	free(v->order);
}
