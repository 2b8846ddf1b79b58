/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a profile: what was spent in each itself, and with what it called. */
#ifndef JD_PROFILE_FUNCTIONS_H
#define JD_PROFILE_FUNCTIONS_H
#include <stdint.h>
#include "base/hash.h"
#include "ctl/spans/ctl_spans.h"

struct profile_function {
	const char *name; /* borrowed */
	uint64_t own_uj, all_uj, own_cpu_ns;
	unsigned quality;
	uint32_t seen; /* the last stack that was added: a recursive call counts once */
};

/* {0} is the empty list. */
struct profile_functions {
	struct profile_function *v;
	uint32_t n, cap, n_stacks;
	struct hash by_name;
};

/* Adds a stack; labels before `first` are no code. Labels are borrowed. 0 or -ENOMEM. */
int profile_functions_add(struct profile_functions *f, const struct flame_stack *s, unsigned first);
/* NULL = there is none of that name. */
struct profile_function *profile_functions_find(const struct profile_functions *f, const char *name);
void profile_functions_free(struct profile_functions *f);

#endif
