/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger's bookkeeping, the same for every formula that splits. Idle energy is set apart, the rest goes to the
 * rows by weight, and the share of lost counts is residual. The option `idle` says which rows pay for idle energy.
 * Every split is exact (split.h), so the ledger closes by construction. */
#ifndef JD_CHARGE_H
#define JD_CHARGE_H
#include "idle.h"
#include "weight.h"
#include "work_charge.h"

enum { CARRY_DYNAMIC, CARRY_IDLE, CARRIES };

struct charge {
	unsigned n_domains, cap_keys, cap_parts;
	/* [(key * n_domains + domain) * CARRIES]: fractions that rows are owed. When a key goes to another row,
	 * that row takes over the fraction of a microjoule. Otherwise the energy of many short lives
	 * would be rounded away. */
	int64_t *carry;
	int64_t (*lost)[CARRIES]; /* [domain] of the residual */
	struct idle *idle; /* [domain] */
	uint64_t idle_uj; /* idle energy of the last domain, whichever rows paid for it */
	int64_t noise_uj; /* of that, what charge_domain() was told to be noise: as much of it as idle could take or give */
	int64_t *part_carry; /* [cap_parts] the carries of one split, by row */
	uint64_t *part;
	struct work_debts work, psys_work; /* of the wall, and of psys */
};

/* Room for s. 0 or -ENOMEM. ret_anew: the schema is another one, so everything learned belongs to another machine
 * and is forgotten. */
int charge_prepare(struct charge *c, const struct snapshot *s, bool *ret_anew);
/* Sets the domain's idle power and its quality: configured, known by the source, or learned from
 * this interval. True when it was learned. */
bool charge_find_idle(struct charge *c, struct snapshot *s, unsigned d, const struct weights *w,
		      const struct formula_options *o);
/* Charges the interval: idle power, then the rows. noise_uj: what the sensor told too much, below 0 too little. Idle has it, because it
 * is of no row. */
void charge_domain(struct charge *c, struct snapshot *s, unsigned d, struct weights *w, const struct formula_options *o,
		   int64_t noise_uj);
/* Splits an amount of the domain over the rows by weight [rows + 1] and adds it to their energy. Returns what no row got: that of
 * the last weight, or all of it when no row weighs anything. */
uint64_t charge_split(struct charge *c, struct snapshot *s, unsigned d, uint64_t uj, const uint64_t *weight);
void charge_free(struct charge *c);

#endif
