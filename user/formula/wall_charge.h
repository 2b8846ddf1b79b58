/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of the wall, and the work of disks and networks in psys: the same for every formula that splits. */
#ifndef JD_FORMULA_WALL_H
#define JD_FORMULA_WALL_H
#include "charge.h"

/* Charges a domain of the kind wall; false, with nothing done, for any other. The domains that are added up to the machine have
 * to be charged before (they stand before it in the schema).
 *
 * The causes have what the calibration says (struct snap_use); of disks and networks the rows get what they caused
 * (work_charge.h). What nothing explains is `idle`; with an idle policy other than
 * own the rows pay for it. The rest is energy of the domains inside, so every row gets it in proportion to what it has there, and
 * their idle power and residual go to the wall's. w is used as room, and void afterwards. */
bool wall_charge(struct charge *c, struct snapshot *s, unsigned d, struct weights *w);

/* Takes what disks and networks drew in domain d off its energy, so that the formula splits and learns from the rest. Nothing, in any
 * domain but a psys with prices. Returns it, for work_put_back. */
uint64_t work_take_off(const struct charge *c, struct snapshot *s, unsigned d);
/* Adds it again once the rest has been split: rows get what they caused, `disk` and `network` what nobody did. */
void work_put_back(struct charge *c, struct snapshot *s, unsigned d, uint64_t uj);

#endif
