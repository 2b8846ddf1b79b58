/* SPDX-License-Identifier: Apache-2.0 */
/* Per domain: idle energy is set apart, the rest is split over the rows by weight (weight.c), the
 * share of lost counts is residual. Who pays for idle is the policy: its own entry, or the rows by
 * time or by the same weights. Every split is exact, so the ledger closes by construction. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "idle.h"
#include "split.h"
#include "weight.h"

#define MAX_KEY (1u << 20)
#define MAX_IDLE_WATTS 1e6

enum { CARRY_DYNAMIC, CARRY_IDLE, CARRIES };

struct formula {
	struct formula_options options;
	unsigned n_domains, cap_keys, cap_parts;
	/* [(key * n_domains + domain) * CARRIES]: what rows are owed. When a key goes to another row,
	 * that row takes over the fraction of a microjoule: forgetting it would let many short lives
	 * be rounded away. */
	int64_t *carry;
	int64_t (*lost)[CARRIES];  /* [domain] of the residual */
	struct idle *idle;         /* [domain] */
	struct weights weights;
	int64_t *part_carry;       /* [cap_parts] the carries of one split, by row */
	uint64_t *part;
};

static void share_destroy(struct formula *f)
{
	if (!f)
		return;
	free(f->carry);
	free(f->lost);
	free(f->idle);
	free(f->part_carry);
	free(f->part);
	weights_free(&f->weights);
	free(f);
}

static struct formula *share_create(const struct formula_options *o)
{
	struct formula *f = calloc(1, sizeof(*f));

	if (f)
		f->options = *o;
	return f;
}

/* Another schema means another machine: nothing that was carried belongs to it. */
static int follow_schema(struct formula *f, unsigned n_domains)
{
	if (f->lost && f->idle && f->n_domains == n_domains)
		return 0;
	free(f->carry);
	free(f->lost);
	free(f->idle);
	f->carry = NULL;
	f->cap_keys = 0;
	f->n_domains = n_domains;
	f->lost = calloc(n_domains + 1, sizeof(*f->lost));
	f->idle = calloc(n_domains + 1, sizeof(*f->idle));
	return f->lost && f->idle ? 0 : -ENOMEM;
}

static int follow_keys(struct formula *f, uint32_t keys)
{
	size_t row = (size_t)f->n_domains * CARRIES, cap = keys + keys / 2 + 16;
	int64_t *carry;

	if (keys <= f->cap_keys)
		return 0;
	carry = realloc(f->carry, (cap * row + 1) * sizeof(*carry));
	if (!carry)
		return -ENOMEM;
	f->carry = carry;
	memset(carry + f->cap_keys * row, 0, (cap - f->cap_keys) * row * sizeof(*carry));
	f->cap_keys = (uint32_t)cap;
	return 0;
}

static int follow_parts(struct formula *f, unsigned parts)
{
	unsigned cap = parts + parts / 2 + 16;

	if (parts <= f->cap_parts)
		return 0;
	free(f->part);
	free(f->part_carry);
	f->cap_parts = 0;
	f->part = calloc(cap, sizeof(*f->part));
	f->part_carry = calloc(cap, sizeof(*f->part_carry));
	if (!f->part || !f->part_carry)
		return -ENOMEM;
	f->cap_parts = cap;
	return 0;
}

static int64_t *carries(struct formula *f, const struct snap_row *row, unsigned domain)
{
	return &f->carry[((size_t)row->key * f->n_domains + domain) * CARRIES];
}

static int prepare(struct formula *f, const struct snapshot *s)
{
	uint32_t keys = 0;
	int err;

	for (unsigned i = 0; i < s->n_rows; i++)
		if (s->rows[i].key >= keys)
			keys = s->rows[i].key < MAX_KEY ? s->rows[i].key + 1 : MAX_KEY + 1;
	if (keys > MAX_KEY)
		return -ENOMEM;
	err = follow_schema(f, s->schema->n_domains);
	if (!err)
		err = follow_keys(f, keys);
	if (!err)
		err = follow_parts(f, s->n_rows + 1);
	return err ? err : weights_reserve(&f->weights, s);
}

/* Splits `amount` over the rows by weight and adds it to their energy. Returns what could not be
 * placed: the share of lost counts, or all of it when no row weighs anything. */
static uint64_t charge(struct formula *f, struct snapshot *s, unsigned d, unsigned which, uint64_t amount)
{
	const uint64_t *weight = which == CARRY_IDLE && f->options.idle == IDLE_BY_TIME ? f->weights.time_ns
											 : f->weights.weight;
	unsigned n = s->n_rows;

	for (unsigned i = 0; i < n; i++)
		f->part_carry[i] = carries(f, &s->rows[i], d)[which];
	f->part_carry[n] = f->lost[d][which];
	if (!split(amount, weight, f->part_carry, f->part, n + 1))
		return amount;
	for (unsigned i = 0; i < n; i++) {
		*snapshot_energy(s, i, d) += f->part[i];
		carries(f, &s->rows[i], d)[which] = f->part_carry[i];
	}
	f->lost[d][which] = f->part_carry[n];
	return f->part[n];
}

/* Sets the idle columns of a domain, from the options or from what is learned. */
static void set_idle(struct formula *f, struct snapshot *s, unsigned d)
{
	const struct domain_desc *desc = &s->schema->domains[d];
	struct snap_domain *dom = &s->domains[d];
	const struct weights *w = &f->weights;
	struct idle_point p = { .end_ns = dom->end_ns, .energy_uj = dom->energy_uj,
				.busy_ns = w->busy_ns, .elapsed_ns = w->elapsed_ns };
	double watts = f->options.idle_watts[desc->kind];
	bool whole = w->whole && !(dom->quality & (QUALITY_STALE | QUALITY_PARTIAL | QUALITY_LOST));

	p.duration_ns = dom->end_ns > dom->start_ns ? dom->end_ns - dom->start_ns : 0;
	if (watts >= 0) {
		dom->idle_power_uw = (uint64_t)(fmin(watts, MAX_IDLE_WATTS) * 1e6 + 0.5);
		dom->idle_quality = 0;
	} else if (desc->idle_known) {
		/* The source charged it for the time its CPUs were online, and so do we. */
		p.duration_ns = w->n_cpus ? w->elapsed_ns / w->n_cpus : 0;
		dom->idle_power_uw = desc->idle_uw < MAX_IDLE_WATTS * 1e6 ? desc->idle_uw : (uint64_t)(MAX_IDLE_WATTS * 1e6);
		dom->idle_quality = 0;
	} else {
		idle_learn(&f->idle[d], &p, whole);
		dom->idle_power_uw = idle_power_uw(&f->idle[d]);
		dom->idle_quality = idle_is_estimated(&f->idle[d]) ? QUALITY_ESTIMATED : 0;
	}
	dom->idle_uj = idle_charge(&f->idle[d], &p, dom->idle_power_uw);
}

static void share_domain(struct formula *f, struct snapshot *s, unsigned d)
{
	struct snap_domain *dom = &s->domains[d];
	uint64_t missing;

	weights_of(&f->weights, s, d, f->options.weight);
	set_idle(f, s, d);
	dom->share_quality = f->weights.quality;
	dom->scale = 1;
	dom->residual_uj = charge(f, s, d, CARRY_DYNAMIC, dom->energy_uj - dom->idle_uj);
	if (f->options.idle == IDLE_OWN)
		return;
	/* Idle energy is idle's whatever was lost: only known rows share it. */
	missing = f->weights.weight[s->n_rows];
	f->weights.weight[s->n_rows] = 0;
	dom->idle_uj = charge(f, s, d, CARRY_IDLE, dom->idle_uj);
	f->weights.weight[s->n_rows] = missing;
}

static int share_apply(struct formula *f, struct snapshot *s)
{
	int err;

	snprintf(s->formula, sizeof(s->formula), "%s", formula_share.name);
	s->idle_policy = f->options.idle;
	formula_all_residual(s);
	err = prepare(f, s);
	if (err)
		return err;
	for (unsigned d = 0; d < s->schema->n_domains; d++)
		share_domain(f, s, d);
	return 0;
}

const struct formula_ops formula_share = { "share", share_create, share_apply, share_destroy };
