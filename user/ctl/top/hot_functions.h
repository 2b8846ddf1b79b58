/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions used most in the last seconds. An agent's profile is of whole minutes: two answers that begin at the same
 * time are subtracted, function by function. */
#ifndef JD_CTL_HOT_FUNCTIONS_H
#define JD_CTL_HOT_FUNCTIONS_H
#include "profile/pprof_sum.h"

#define HOT_SPAN_NS 10000000000ull

struct hot_function {
	const char *name; /* from outside, to be made safe */
	uint64_t uj, samples; /* its own, without what it called */
	unsigned quality;
};

struct hot_list {
	const struct hot_function *v; /* most energy first, then most samples */
	unsigned n;
	uint64_t uj, samples; /* of all of them */
	uint64_t span_ns; /* 0 = there was no answer yet */
};

struct hot_functions;
struct hot_functions *hot_functions_new(void); /* NULL = out of memory */
/* Takes an answer. The list is then of what came since the newest answer before that is at least HOT_SPAN_NS older and of
 * the same begin; where there is none, of all of this answer. 0, or -ENOMEM and the list stays. */
int hot_functions_take(struct hot_functions *h, const struct pprof_sum *answer);
struct hot_list hot_functions_list(const struct hot_functions *h); /* valid until the next call that takes */
void hot_functions_free(struct hot_functions *h); /* NULL accepted */

#endif
