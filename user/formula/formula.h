/* SPDX-License-Identifier: Apache-2.0 */
/* A formula fills the energy columns of a snapshot so that per domain
 * energy_uj = sum(rows) + idle_uj + residual_uj, in integers. Pure: no clock, no I/O, no logging;
 * time comes from the snapshot. State (learned idle power, carried remainders) is its own. */
#ifndef JD_FORMULA_H
#define JD_FORMULA_H
#include "model/snapshot.h"

enum share_weight { WEIGHT_CYCLES, WEIGHT_TIME, WEIGHT_CYCLES_BY_FREQUENCY };

struct formula_options {
	enum idle_policy idle;
	enum share_weight weight;
	double idle_watts[DOMAIN_KINDS]; /* configured per kind and package; NaN = learn */
};

struct formula;

struct formula_ops {
	const char *name;
	struct formula *(*create)(const struct formula_options *o); /* NULL = no memory */
	/* Completes s. 0 or -ENOMEM; on failure all energy is residual and the ledger still closes. */
	int (*apply)(struct formula *f, struct snapshot *s);
	void (*destroy)(struct formula *f); /* NULL accepted */
	/* NULL, or why the formula whose name is in the snapshot was chosen; at most FORMULA_WHY_MAX bytes. */
	const char *(*reason)(const struct formula *f);
};

#define FORMULA_WHY_MAX 256

extern const struct formula_ops formula_share, formula_model, formula_none, formula_auto;
const struct formula_ops *formula_find(const char *name); /* NULL when unknown */
/* The range of each row's energy, in the domains that the last audit judged (struct snap_audit), where it judged the formula that split.
 * Energy that is itself an estimate has none. */
void formula_audited(struct snapshot *s);
/* Rows and idle 0, all energy residual: for formula none, and for a formula without memory. */
void formula_all_residual(struct snapshot *s);

#endif
