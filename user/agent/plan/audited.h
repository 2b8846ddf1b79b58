/* SPDX-License-Identifier: Apache-2.0 */
/* What the last audit says, for the snapshots of this agent: how far charges of formula share may be from the truth. Any
 * thread. */
#ifndef JD_AGENT_AUDITED_H
#define JD_AGENT_AUDITED_H
#include "formula/formula.h"
#include "model/audit.h"
#include "model/snapshot.h"

void audited_tell(const struct audit *a); /* copied; NULL = there is none */
/* Fills in the uncertainty of the domains that the audit judged, and of their rows, where the formula was share then and
 * is now; a formula that knows its own is left alone. */
void audited_mark(struct snapshot *s);
/* Tells a formula that asks for it what the last audit found better. */
void audited_advise(const struct formula_ops *ops, struct formula *f);

#endif
