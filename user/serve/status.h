/* SPDX-License-Identifier: Apache-2.0 */
/* What a switch costs in the kernel, from sums that grow: the median over the last intervals, because a mean since the
 * start keeps every burst (a cold cache, a hypervisor's pause) for ever. */
#ifndef JD_SERVE_COST_H
#define JD_SERVE_COST_H
#include <stdint.h>

#define COST_INTERVALS 31
#define COST_SAMPLES 8 /* fewer wait for the next interval */

struct cost {
	uint64_t ns, samples; /* of which intervals were made */
	uint32_t mean[COST_INTERVALS];
	unsigned n, next;
};

/* ns and samples: the sums of now; they may only grow. The cost of one, 0 while there is no sample. */
uint64_t cost_follow(struct cost *c, uint64_t ns, uint64_t samples);

#endif
