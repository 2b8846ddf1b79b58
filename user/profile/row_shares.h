/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of stacks: what a row of the ledger got in an interval is split over its samples of that interval, in whole
 * microjoules. A sample weighs what it stands for (its period) times the price of that in the domain. Per row and domain:
 * sum of its stacks + none_uj = sum_uj, always. */
#ifndef JD_ROW_SHARES_H
#define JD_ROW_SHARES_H
#include "base/hash.h"
#include "room.h"
#include "stacks.h"

#define ROW_SHARES_MAX 65536

enum share_kind { SHARE_CGROUP, SHARE_KERNEL, SHARE_OTHER }; /* OTHER: idle, irq+steal: they have no stacks */

struct share_row {
	uint64_t id; /* of the cgroup */
	enum share_kind kind;
	char *name; /* from outside */
	unsigned quality;
	uint64_t *sum_uj, *none_uj; /* by domain; none: of intervals without a sample */
	uint64_t *step_uj, *last_uj; /* what came in the interval that goes on; the total so far */
};

struct row_shares {
	unsigned n_domains;
	struct share_row *rows;
	uint32_t n_rows, rows_cap;
	struct hash by_name;
	uint64_t *uj; /* [stack * n_domains + domain] */
	int64_t *carry;
	uint32_t *row_of; /* by stack; HASH_NONE = its cgroup has no row */
	uint32_t stacks_cap;
	uint64_t without_row; /* samples of cgroups without a row */
	double (*price)[STACK_COLUMNS]; /* [domain]; NULL = time has the only price, everywhere */
	struct room *room; /* borrowed; NULL = no limit */
};

/* The row of a name, made where it is new. NULL = no memory, or no room. */
struct share_row *row_shares_row(struct row_shares *r, const char *name, uint64_t id);
/* Takes a new total of a row. count: what is more than the total before belongs to the interval that goes on; a smaller
 * total is that of a new cgroup of the same name. Without count it is where counting begins. */
void row_shares_total(struct share_row *row, unsigned domain, uint64_t total_uj, bool count);
/* Sets the prices of a domain from this interval on: joules for a nanosecond, and for a count of each event; 0 for what is
 * not sampled. Without any price that is above 0, energy follows time. 0 or -ENOMEM. */
int row_shares_price(struct row_shares *r, unsigned domain, const double joules[STACK_COLUMNS]);
/* Ends an interval: splits what came and forgets which samples were fresh. 0 or -ENOMEM, and then nothing is done. */
int row_shares_split(struct row_shares *r, struct stacks *stacks);
/* Bytes that it keeps for each stack, at most. */
static inline size_t row_shares_beside(unsigned n_domains)
{
	return n_domains * (sizeof(uint64_t) + sizeof(int64_t)) + sizeof(uint32_t);
}
static inline uint64_t row_shares_uj(const struct row_shares *r, uint32_t stack, unsigned domain)
{
	return stack < r->stacks_cap ? r->uj[(size_t)stack * r->n_domains + domain] : 0;
}
void row_shares_free(struct row_shares *r); /* all but its room and its number of domains */

#endif
