/* SPDX-License-Identifier: Apache-2.0 */
/* Who caused the energy of disks and networks at the wall, or in psys (docs/attribution.md): each row claims its own bytes and
 * requests times the prices that the domain carries. The energy follows the work by about a second, because statistics of devices
 * are read that often. So a claim waits until energy comes, for two seconds at least; then it is dropped. */
#ifndef JD_WORK_CHARGE_H
#define JD_WORK_CHARGE_H
#include "model/snapshot.h"

enum work_cause { WORK_DISK, WORK_NETWORK, WORK_CAUSES };

struct work_debt { /* of a row, by key */
	uint32_t generation;
	uint32_t seen; /* interval in which the row was there last */
	int64_t due[WORK_CAUSES]; /* claimed and not paid, 2^-16 uJ; below 0: less than a microjoule in advance */
	uint64_t fresh[WORK_CAUSES]; /* of it claimed since the last turn, at most */
};

struct work_debts {
	unsigned domain; /* whose causes they are; UINT_MAX = there is none */
	unsigned cap_keys, cap_rows;
	struct work_debt *debts; /* [cap_keys] */
	struct work_debt gone; /* rows that have ended: nobody gets theirs */
	uint32_t interval;
	uint64_t turned_ns;
	double claimed[WORK_CAUSES], before[WORK_CAUSES]; /* since the last turn, and between the two before */
	double over[WORK_CAUSES]; /* part of the claims for which no energy came: 0 to 1 */
	uint64_t *weight, *part; /* [cap_rows + 1] */
	int64_t *carry; /* [cap_rows + 1] */
	uint64_t *range_uj; /* [cap_rows] */
};

/* Room for s, whose keys are below `keys`, and for its domain of that kind. Without prices none is needed. 0 or -ENOMEM. */
int work_reserve(struct work_debts *w, const struct snapshot *s, enum domain_kind kind, uint32_t keys);
/* Takes the claims of the interval, once per interval, before the first payment. */
void work_claim(struct work_debts *w, const struct snapshot *s, unsigned d);
/* Pays claims out of uj, energy of a cause in this interval, into the rows' energy in domain d. Returns what was paid. The rest is what
 * nobody caused: of devices or packets that no row is counted for, or of rows that have ended. */
uint64_t work_pay(struct work_debts *w, struct snapshot *s, unsigned d, enum work_cause cause, uint64_t uj);
/* How far what was paid to a row in domain d in this interval may be off, in uJ, because more was claimed than there was: traffic within the
 * machine costs a device nothing, and is counted all the same. */
uint64_t work_range_uj(const struct work_debts *w, unsigned d, unsigned row);
/* Forgets everything and frees it. */
void work_free(struct work_debts *w);

#endif
