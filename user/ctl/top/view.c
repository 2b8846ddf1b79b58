/* SPDX-License-Identifier: Apache-2.0 */
/* top's data. Each interval is added to rows that last longer than an interval. The shown values are a copy, so that
 * totals go on while the screen is frozen. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "encode/table.h"
#include "top_history.h"
#include "top.h"

#define PAST_ROWS 16384 /* kept of the history, those without use too; an answer has far fewer */

struct columns {
	int cycles, instructions;
};

bool top_counts(const struct top_view *v, enum domain_kind kind)
{
	return v->domain < 0 ? (v->machine.summed & DOMAIN_BIT(kind)) != 0 : v->domain == (int)kind;
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
	traffic_add(&to->traffic, &from->traffic);
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

/* Keeps what the snapshot says of a row, beside the sums by kind of domain. Rows of one path are added up. */
static void take_cells(struct top_view *v, struct top_row *r, const struct snapshot *s, unsigned row)
{
	unsigned n = s->schema->n_domains;
	bool again = r->cells_tick == v->tick;

	if (!again) {
		memset(r->counters, 0, sizeof(r->counters));
		r->switches = 0;
		r->cells = v->n_cells;
		memset(v->cells + r->cells, 0, n * sizeof(*v->cells));
		v->n_cells += n;
	}
	r->cells_tick = v->tick;
	r->switches += s->rows[row].switches;
	for (unsigned e = 0; e < s->schema->core.n; e++)
		r->counters[e] += s->rows[row].counters[e];
	for (unsigned d = 0; v->live_machine.split && d < n; d++) {
		struct top_cell *c = &v->cells[r->cells + d];
		uint64_t uj = *snapshot_energy(s, row, d);
		uint32_t ppm = *snapshot_uncertainty(s, row, d);

		c->uncertainty_ppm = !again || ppm > c->uncertainty_ppm ? ppm : c->uncertainty_ppm;
		c->uj += uj;
		c->watts += table_domain_watts(&s->domains[d], uj);
		c->quality |= snapshot_energy_quality(s, row, d);
	}
	names_set(&r->names, s->rows[row].names);
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
	traffic_add(&t->traffic, &from->traffic);
	t->quality |= from->quality;
	v->network_seen |= traffic_any(&t->traffic, 0, TRAFFIC_NETWORK);
	v->block_seen |= traffic_any(&t->traffic, TRAFFIC_NETWORK, TRAFFIC_BLOCK);
	if (v->live_machine.split)
		add_energy(t, s, i);
	if (!v->frozen)
		take_cells(v, r, s, i);
	return top_row_entitle(v, r, from->names);
}

/* Adds each row's own values to the subtree values of the row and of its ancestors. */
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

/* Returns watts, or the number of busy CPUs where rows have no energy. A sparkline shows a shape, so its unit does not
 * matter. */
static float height(const struct top_view *v, const struct top_values *t)
{
	uint64_t ns = v->live_machine.interval_ns;
	double sum = 0;

	if (!v->live_machine.split)
		return ns ? (float)((double)t->time_ns / (double)ns) : 0;
	for (unsigned k = 0; k < DOMAIN_KINDS; k++)
		sum += v->live_machine.summed & DOMAIN_BIT(k) ? t->watts[k] : 0;
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

static void top_machine_take(struct top_view *v, const struct snapshot *s);

static int begin_cells(struct top_view *v, const struct snapshot *s)
{
	if (v->frozen)
		return 0;
	v->n_cells = 0;
	v->cells_tick = v->tick;
	return ARRAY_ROOM(v->cells, v->cap_cells, (size_t)s->n_rows * s->schema->n_domains + 1);
}

/* The history has a row only where it used something: it keeps its totals while it rests, as long as there are few rows. */
static bool may_sweep(const struct top_view *v)
{
	return !v->frozen && (!v->live_machine.past || v->n_rows > PAST_ROWS);
}

int top_view_take(struct top_view *v, const struct snapshot *s)
{
	struct columns c = columns_of(&s->schema->core);

	v->tick++;
	top_machine_take(v, s);
	v->live_machine.counters = c.cycles >= 0 && c.instructions >= 0;
	if (begin_cells(v, s) != 0)
		return -ENOMEM;
	for (unsigned i = 0; i < s->n_rows; i++)
		if (take_row(v, s, i, &c) != 0)
			return -ENOMEM;
	spread(v);
	if (may_sweep(v))
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

void top_view_forget(struct top_view *v)
{
	top_rows_free(v);
	v->rows = NULL;
	v->n_rows = v->cap_rows = v->n_order = v->n_cells = 0;
	v->path_bytes = 0;
	v->samples = 0;
	v->tick = v->cells_tick = 0;
	v->by_path = (struct hash){ 0 };
	v->machine = v->live_machine = (struct top_machine){ 0 };
	memset(v->peak, 0, sizeof(v->peak));
	v->network_seen = v->block_seen = false;
}

void top_view_free(struct top_view *v)
{
	top_rows_free(v);
	free(v->order);
	free(v->cells);
}

/* The machine's part of an interval. For each domain, measured energy = rows + idle + residual. */

static double watts(const struct snap_domain *d, uint64_t uj)
{
	return d->end_ns > d->start_ns ? (double)uj * 1000 / (double)(d->end_ns - d->start_ns) : 0;
}

static void take_domain(struct top_domain *t, const struct snap_domain *d, bool again, uint64_t total_uj)
{
	t->uj = d->energy_uj;
	t->idle_uj = d->idle_uj;
	t->residual_uj = d->residual_uj;
	t->watts = watts(d, d->energy_uj);
	t->idle_watts = watts(d, d->idle_uj);
	t->residual_watts = watts(d, d->residual_uj);
	t->quality = d->quality;
	t->idle_quality = d->idle_quality;
	t->total_uj = (again ? total_uj : 0) + d->energy_uj;
}

static void take_domains(struct top_machine *m, const struct snapshot *s, bool again)
{
	const struct schema *sc = s->schema;

	m->n_domains = sc->n_domains;
	memset(m->has, 0, sizeof(m->has));
	for (unsigned d = 0; d < sc->n_domains; d++) {
		struct top_domain *t = &m->domains[d];

		snprintf(t->name, sizeof(t->name), "%s", sc->domains[d].name);
		t->kind = sc->domains[d].kind;
		m->has[t->kind] = true;
		take_domain(t, &s->domains[d], again, t->total_uj);
	}
	m->summed = schema_kinds_summed(sc);
}

static void take_cpus(struct top_machine *m, const struct snapshot *s)
{
	uint64_t busy = 0, elapsed = 0;

	m->cpus = 0;
	for (unsigned i = 0; i < s->schema->n_cpus; i++) {
		busy += s->cpus[i].busy_ns;
		elapsed += s->cpus[i].elapsed_ns;
		m->cpus += s->cpus[i].online;
	}
	m->busy = elapsed ? (double)busy / (double)elapsed : 0;
}

static void take_history(struct top_view *v, const struct top_machine *m)
{
	float sums[DOMAIN_KINDS] = { 0 };

	for (unsigned d = 0; d < m->n_domains; d++)
		sums[m->domains[d].kind] += (float)m->domains[d].watts;
	for (unsigned k = 0; k < DOMAIN_KINDS; k++) {
		v->history[k][v->samples % TOP_HISTORY] = sums[k];
		if (m->has[k] && sums[k] > v->peak[k])
			v->peak[k] = sums[k];
	}
}

static void top_machine_take(struct top_view *v, const struct snapshot *s)
{
	struct top_machine *m = &v->live_machine;
	bool again = m->n_domains == s->schema->n_domains;

	memcpy(m->sensor, s->schema->sensor, sizeof(m->sensor));
	m->time_ns = s->end_real_ns;
	m->interval_ns = s->end_ns - s->start_ns;
	m->split = s->schema->n_domains && s->formula[0] && strcmp(s->formula, "none") != 0;
	m->past = strcmp(s->schema->trigger, TOP_HISTORY_TRIGGER) == 0;
	m->idle_merged = s->schema->idle_merged;
	m->suspended_ns = s->suspended_ns;
	m->missed = s->missed;
	m->lost = s->losses.folded + s->losses.lost_reads + s->losses.lost_events;
	m->cgroups = 0;
	for (unsigned i = 0; i < s->n_rows; i++)
		m->cgroups += s->rows[i].kind == ROW_CGROUP && !s->rows[i].ended;
	m->n_events = s->schema->core.n;
	for (unsigned e = 0; e < m->n_events; e++)
		snprintf(m->events[e], sizeof(m->events[e]), "%s", s->schema->core.ev[e].name);
	take_cpus(m, s);
	take_domains(m, s, again);
	if (!v->frozen)
		take_history(v, m);
}
