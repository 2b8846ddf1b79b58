/* SPDX-License-Identifier: Apache-2.0 */
#include "cost.h"
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t cost_follow(struct cost *c, uint64_t ns, uint64_t samples)
{
	uint32_t sorted[COST_INTERVALS];

	if (samples - c->samples >= COST_SAMPLES) {
		c->mean[c->next] = (uint32_t)((ns - c->ns) / (samples - c->samples));
		c->next = (c->next + 1) % COST_INTERVALS;
		c->n += c->n < COST_INTERVALS;
		c->ns = ns;
		c->samples = samples;
	}
	if (!c->n)
		return samples ? ns / samples : 0;
	memcpy(sorted, c->mean, c->n * sizeof(sorted[0]));
	qsort(sorted, c->n, sizeof(sorted[0]), by_size);
	return sorted[c->n / 2];
}
