/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "charge.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "split.h"

#define MAX_KEY (1u << 20)
#define MAX_IDLE_UW 1e12

void charge_free(struct charge *c)
{
	free(c->carry);
	free(c->lost);
	free(c->idle);
	free(c->part_carry);
	free(c->part);
	work_free(&c->work);
	work_free(&c->psys_work);
}

/* Another schema means another machine, so the carries are forgotten. */
static int follow_schema(struct charge *c, unsigned n_domains, bool *ret_anew)
{
	*ret_anew = !c->lost || !c->idle || c->n_domains != n_domains;
	if (!*ret_anew)
		return 0;
	free(c->carry);
	free(c->lost);
	free(c->idle);
	c->carry = NULL;
	c->cap_keys = 0;
	c->n_domains = n_domains;
	c->lost = calloc(n_domains + 1, sizeof(*c->lost));
	c->idle = calloc(n_domains + 1, sizeof(*c->idle));
	return c->lost && c->idle ? 0 : -ENOMEM;
}

static int follow_keys(struct charge *c, uint32_t keys)
{
	const size_t row = (size_t)c->n_domains * CARRIES;
	const uint32_t cap = array_step(keys);

	if (keys <= c->cap_keys)
		return 0;
	if (!cap || ARRAY_RESIZE(c->carry, cap * row + 1) != 0)
		return -ENOMEM;
	memset(c->carry + c->cap_keys * row, 0, (cap - c->cap_keys) * row * sizeof(*c->carry));
	c->cap_keys = cap;
	return 0;
}

static int follow_parts(struct charge *c, unsigned parts)
{
	unsigned cap = parts + parts / 2 + 16;

	if (parts <= c->cap_parts)
		return 0;
	free(c->part);
	free(c->part_carry);
	c->cap_parts = 0;
	c->part = calloc(cap, sizeof(*c->part));
	c->part_carry = calloc(cap, sizeof(*c->part_carry));
	if (!c->part || !c->part_carry)
		return -ENOMEM;
	c->cap_parts = cap;
	return 0;
}

int charge_prepare(struct charge *c, const struct snapshot *s, bool *ret_anew)
{
	uint32_t keys = 0;
	int rc;

	for (unsigned i = 0; i < s->n_rows; i++)
		if (s->rows[i].key >= keys)
			keys = s->rows[i].key < MAX_KEY ? s->rows[i].key + 1 : MAX_KEY + 1;
	if (keys > MAX_KEY)
		return -ENOMEM;
	rc = follow_schema(c, s->schema->n_domains, ret_anew);
	if (*ret_anew) {
		work_free(&c->work);
		work_free(&c->psys_work);
	}
	if (!rc)
		rc = follow_keys(c, keys);
	if (!rc)
		rc = work_reserve(&c->work, s, DOMAIN_WALL, keys);
	if (!rc)
		rc = work_reserve(&c->psys_work, s, DOMAIN_PSYS, keys);
	return rc ? rc : follow_parts(c, s->n_rows + 1);
}

static int64_t *carries(struct charge *c, const struct snap_row *row, unsigned domain)
{
	return &c->carry[((size_t)row->key * c->n_domains + domain) * CARRIES];
}

struct amount {
	uint64_t uj;
	const uint64_t *weight; /* of the rows, then of lost counts */
	unsigned carry; /* CARRY_DYNAMIC or CARRY_IDLE */
};

/* Splits an amount over the rows by weight and adds it to their energy. Returns what no row got: the share of lost
 * counts, or all of it when no row weighs anything. */
static uint64_t split_rows(struct charge *c, struct snapshot *s, unsigned d, const struct amount *a)
{
	unsigned n = s->n_rows, which = a->carry;

	for (unsigned i = 0; i < n; i++)
		c->part_carry[i] = carries(c, &s->rows[i], d)[which];
	c->part_carry[n] = c->lost[d][which];
	if (!split(a->uj, a->weight, c->part_carry, c->part, n + 1))
		return a->uj;
	for (unsigned i = 0; i < n; i++) {
		*snapshot_energy(s, i, d) += c->part[i];
		carries(c, &s->rows[i], d)[which] = c->part_carry[i];
	}
	c->lost[d][which] = c->part_carry[n];
	return c->part[n];
}

uint64_t charge_split(struct charge *c, struct snapshot *s, unsigned d, uint64_t uj, const uint64_t *weight)
{
	const struct amount a = { uj, weight, CARRY_DYNAMIC };

	return split_rows(c, s, d, &a);
}

static struct idle_point point_of(const struct snapshot *s, unsigned d, const struct weights *w,
				  const struct formula_options *o)
{
	const struct domain_desc *desc = &s->schema->domains[d];
	const struct snap_domain *dom = &s->domains[d];
	struct idle_point p = {
		.end_ns = dom->end_ns, .energy_uj = dom->energy_uj, .busy_ns = w->busy_ns, .elapsed_ns = w->elapsed_ns
	};

	p.duration_ns = dom->end_ns > dom->start_ns ? dom->end_ns - dom->start_ns : 0;
	/* The source charged idle power for the time its CPUs were online; this does the same. */
	if (desc->idle_known && !(o->idle_watts[desc->kind] >= 0))
		p.duration_ns = w->n_cpus ? w->elapsed_ns / w->n_cpus : 0;
	return p;
}

bool charge_find_idle(struct charge *c, struct snapshot *s, unsigned d, const struct weights *w,
		      const struct formula_options *o)
{
	const struct domain_desc *desc = &s->schema->domains[d];
	struct snap_domain *dom = &s->domains[d];
	struct idle_point p = point_of(s, d, w, o);
	double watts = o->idle_watts[desc->kind];
	bool whole = w->whole && !(dom->quality & (QUALITY_STALE | QUALITY_PARTIAL | QUALITY_LOST));

	dom->idle_quality = dom->quality;
	if (watts >= 0) {
		dom->idle_power_uw = (uint64_t)(fmin(watts * 1e6, MAX_IDLE_UW) + 0.5);
		return false;
	}
	if (desc->idle_known) {
		dom->idle_power_uw = (uint64_t)fmin((double)desc->idle_uw, MAX_IDLE_UW);
		return false;
	}
	idle_learn(&c->idle[d], &p, whole);
	dom->idle_power_uw = idle_power_uw(&c->idle[d]);
	dom->idle_quality |= idle_is_estimated(&c->idle[d]) ? QUALITY_ESTIMATED : 0;
	return true;
}

/* As much of the noise as idle can give, or as the rows can. */
static int64_t noise_within(int64_t noise_uj, uint64_t idle_uj, uint64_t energy_uj)
{
	if (noise_uj < 0)
		return (uint64_t)-noise_uj < idle_uj ? noise_uj : -(int64_t)idle_uj;
	return (uint64_t)noise_uj < energy_uj - idle_uj ? noise_uj : (int64_t)(energy_uj - idle_uj);
}

void charge_domain(struct charge *c, struct snapshot *s, unsigned d, struct weights *w, const struct formula_options *o,
		   int64_t noise_uj)
{
	struct snap_domain *dom = &s->domains[d];
	struct idle_point p = point_of(s, d, w, o);
	uint64_t missing = w->weight[s->n_rows];
	struct amount dynamic, idle;

	dom->idle_uj = idle_charge(&c->idle[d], &p, dom->idle_power_uw);
	c->noise_uj = noise_within(noise_uj, dom->idle_uj, dom->energy_uj);
	c->idle_uj = dom->idle_uj += (uint64_t)c->noise_uj;
	dynamic = (struct amount){ dom->energy_uj - dom->idle_uj, w->weight, CARRY_DYNAMIC };
	dom->residual_uj = split_rows(c, s, d, &dynamic);
	if (o->idle == IDLE_OWN)
		return;
	/* Idle energy is not residual where counts were lost: only known rows share it. */
	w->weight[s->n_rows] = 0;
	idle = (struct amount){ dom->idle_uj, o->idle == IDLE_BY_TIME ? w->time_ns : w->weight, CARRY_IDLE };
	dom->idle_uj = split_rows(c, s, d, &idle);
	w->weight[s->n_rows] = missing;
}
