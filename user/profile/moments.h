/* SPDX-License-Identifier: Apache-2.0 */
/* When a profile's energy was spent: at the end of each interval, what each stack and each row without a sample got in it,
 * and what each domain has so far. Bounded: beyond MOMENTS_MAX intervals the last one grows, and the energy of stacks that
 * found no room is told at the end, so sums hold always. Kept only for forms with a time axis. */
#ifndef JD_PROFILE_MOMENTS_H
#define JD_PROFILE_MOMENTS_H
#include "profile_data.h"

#define MOMENTS_MAX 16384 /* 4.5 hours */
#define MOMENT_SHARES_MAX (1u << 20)

struct moment_share {
	uint32_t thread; /* 0 = without a sample, otherwise 1 + the process in struct code */
	uint32_t moment;
	uint32_t at; /* the stack, or the row */
	uint64_t uj;
};

struct moments {
	struct profile_report of; /* whose energy */
	uint64_t *end_ns; /* CLOCK_MONOTONIC; an interval begins where the one before ends, the first with the profile */
	uint64_t *sum_uj; /* [moment * n_domains + domain]: up to its end */
	uint32_t n, cap, sums_cap;
	struct moment_share *shares; /* by thread and moment after moments_end, by moment before */
	uint32_t n_shares, shares_cap;
	uint64_t late_uj; /* told at the end, for want of room */
	/* private */
	uint64_t *stack_uj, *row_uj; /* told so far */
	uint32_t stacks_cap, rows_cap;
	bool ending;
};

/* Ends an interval, after its energy was split. 0 or -ENOMEM, and then what was not told comes with the next. */
int moments_take(struct moments *m);
/* Tells what is left and sorts the shares; what is not asked for (any more) has none. 0 or -ENOMEM. */
int moments_end(struct moments *m);
void moments_free(struct moments *m); /* zeroed accepted */

#endif
