/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a context switch in the kernel, computed from growing sums. It is the median over the last
 * intervals: a mean since the start would keep every burst (a cold cache, a hypervisor's pause) for ever. */
#ifndef JD_SERVE_STATUS_H
#define JD_SERVE_STATUS_H
#include <stdint.h>

#define COST_INTERVALS 31
#define COST_SAMPLES 8 /* fewer samples wait for the next interval */

struct switch_cost {
	uint64_t ns, samples; /* sums at the end of the last interval */
	uint32_t mean[COST_INTERVALS];
	unsigned n, next;
};

/* ns and samples: the present sums, which only grow. Returns the cost of one switch in ns, 0 while there is no
 * sample. */
uint64_t switch_cost_follow(struct switch_cost *c, uint64_t ns, uint64_t samples);

#endif
