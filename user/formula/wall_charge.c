// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>
#include "split.h"
#include "wall_charge.h"

#define MAX_IDLE_UW 1e12

/* A recording of a stranger may hold any numbers. */
static void add(uint64_t *weight, uint64_t uj)
{
	const uint64_t most = SPLIT_WEIGHT_MAX / 2;

	*weight = uj < most && *weight < most - uj ? *weight + uj : most;
}

/* Weights of the rows in what the domains inside used. The row `idle` stands for their idle power, the last one for their
 * residual. */
static void weigh(const struct snapshot *s, uint64_t *weight)
{
	const unsigned summed = schema_kinds_summed(s->schema);

	memset(weight, 0, (s->n_rows + 1) * sizeof(*weight));
	for (unsigned d = 0; d < s->schema->n_domains; d++) {
		if (!(summed & DOMAIN_BIT(s->schema->domains[d].kind)) || s->schema->domains[d].kind == DOMAIN_WALL)
			continue;
		for (unsigned i = 0; i < s->n_rows; i++)
			add(&weight[i], *snapshot_energy(s, i, d));
		add(&weight[ROW_IDLE], s->domains[d].idle_uj);
		add(&weight[s->n_rows], s->domains[d].residual_uj);
	}
}

/* Energy of disks and networks goes to the rows that caused it; returns what nobody did. */
static uint64_t pass_on(struct work_debts *w, struct snapshot *s, unsigned d, unsigned row, uint64_t uj)
{
	const enum row_kind kind = s->rows[row].kind;

	if (kind == ROW_DISK)
		return uj - work_pay(w, s, d, WORK_DISK, uj);
	return kind == ROW_NETWORK ? uj - work_pay(w, s, d, WORK_NETWORK, uj) : uj;
}

/* Gives the causes what is theirs, of `left` at most. Returns the rest of it; *ret_idle is what nothing explains. */
static uint64_t take_causes(struct work_debts *w, struct snapshot *s, unsigned d, uint64_t left, uint64_t *ret_idle)
{
	*ret_idle = 0;
	work_claim(w, s, d);
	for (unsigned i = 0; i < s->n_uses; i++) {
		const struct snap_use *u = &s->uses[i];
		/* a recording of a stranger may say more than there is */
		uint64_t uj = u->ns < left ? u->ns : left;

		if (u->domain != d || u->row >= s->n_rows)
			continue;
		left -= uj;
		if (u->row == ROW_IDLE)
			*ret_idle += uj;
		else
			*snapshot_energy(s, u->row, d) += pass_on(w, s, d, u->row, uj);
	}
	return left;
}

static bool holds_work(const struct charge *c, const struct snapshot *s, unsigned d)
{
	return s->schema->domains[d].kind == DOMAIN_PSYS && c->psys_work.debts && c->psys_work.domain == d;
}

uint64_t work_take_off(const struct charge *c, struct snapshot *s, unsigned d)
{
	struct snap_domain *dom = &s->domains[d];
	uint64_t sum = 0;

	for (unsigned i = 0; holds_work(c, s, d) && i < s->n_uses; i++) {
		const uint64_t room = dom->energy_uj - sum, uj = s->uses[i].ns;

		if (s->uses[i].domain == d && s->uses[i].row < s->n_rows)
			sum += uj < room ? uj : room;
	}
	dom->energy_uj -= sum;
	return sum;
}

/* A row's range for its part of psys, to which its work was added. What a price may be off is not known but for its being surely not
 * zero, so all of that work is in the range. */
static void widen(const struct charge *c, struct snapshot *s, unsigned d, unsigned row, uint64_t work)
{
	uint32_t *ppm = snapshot_uncertainty(s, row, d);
	const double all = (double)*snapshot_energy(s, row, d), rest = all - (double)work;
	const double range = rest * *ppm / 1e6 + (double)work + (double)work_range_uj(&c->psys_work, d, row);

	if (!work || *ppm == SNAPSHOT_UNKNOWN)
		return;
	*ppm = range * 1e6 / all < SNAPSHOT_UNKNOWN ? (uint32_t)(range * 1e6 / all) : SNAPSHOT_UNKNOWN;
}

void work_put_back(struct charge *c, struct snapshot *s, unsigned d, uint64_t uj)
{
	uint64_t idle;

	if (!holds_work(c, s, d))
		return;
	s->domains[d].energy_uj += uj;
	for (unsigned i = 0; i < s->n_rows; i++)
		c->part[i] = *snapshot_energy(s, i, d);
	take_causes(&c->psys_work, s, d, uj, &idle);
	s->domains[d].idle_uj += idle;
	s->domains[d].share_quality |= uj ? QUALITY_ESTIMATED : 0;
	for (unsigned i = 0; i < s->n_rows; i++)
		widen(c, s, d, i, *snapshot_energy(s, i, d) - c->part[i]);
}

/* The wall's own, and of work who caused it. */
static uint32_t row_ppm(const struct charge *c, const struct snapshot *s, unsigned row, unsigned d, uint32_t ppm)
{
	const uint64_t uj = *snapshot_energy(s, row, d), range = work_range_uj(&c->work, d, row);
	double all;

	/* machines that differ in what the supply loses without a load, or in fans that go with the load, draw alike */
	if (!uj || ppm == SNAPSHOT_UNKNOWN || s->rows[row].kind == ROW_SUPPLY || s->rows[row].kind == ROW_FANS)
		return SNAPSHOT_UNKNOWN;
	all = ppm + (double)range * 1e6 / (double)uj;
	return all < SNAPSHOT_UNKNOWN ? (uint32_t)all : SNAPSHOT_UNKNOWN;
}

static void state_uncertainty(const struct charge *c, struct snapshot *s, unsigned d)
{
	struct snap_domain *dom = &s->domains[d];
	const uint32_t ppm = dom->uncertainty_ppm ? dom->uncertainty_ppm : SNAPSHOT_UNKNOWN;

	dom->uncertainty = ppm == SNAPSHOT_UNKNOWN ? NAN : ppm / 1e6;
	dom->idle_uncertainty = NAN; /* it has what `supply` lacks */
	for (unsigned i = 0; i < s->n_rows; i++)
		*snapshot_uncertainty(s, i, d) = row_ppm(c, s, i, d, ppm);
}

bool wall_charge(struct charge *c, struct snapshot *s, unsigned d, struct weights *w)
{
	struct snap_domain *dom = &s->domains[d];
	uint64_t idle, left, ns = dom->end_ns > dom->start_ns ? dom->end_ns - dom->start_ns : 0;

	if (s->schema->domains[d].kind != DOMAIN_WALL)
		return false;
	if (!s->n_rows)
		return true; /* all of it is residual */
	left = take_causes(&c->work, s, d, dom->energy_uj, &idle);
	if (s->idle_policy != IDLE_OWN) {
		left += idle;
		idle = 0;
	}
	weigh(s, w->weight);
	w->valid = false;
	dom->residual_uj = charge_split(c, s, d, left, w->weight);
	dom->idle_uj = idle + *snapshot_energy(s, ROW_IDLE, d);
	*snapshot_energy(s, ROW_IDLE, d) = 0;
	dom->idle_power_uw = ns ? (uint64_t)fmin((double)dom->idle_uj * 1e9 / (double)ns, MAX_IDLE_UW) : 0;
	dom->idle_quality = dom->share_quality = dom->quality | QUALITY_ESTIMATED;
	state_uncertainty(c, s, d);
	return true;
}
