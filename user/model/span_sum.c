/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "span.h"

/* What domains add up to: a package's own parts are in it, and psys is the whole platform. */
static uint64_t sum_of(const struct trace *t, const struct span *s, const char *prefix, bool *ret_any)
{
	uint64_t sum = 0;

	for (unsigned d = 0; d < t->n_domains && d < s->n_domains; d++) {
		if (strncmp(t->domains[d], prefix, strlen(prefix)) != 0)
			continue;
		sum += s->energy_uj[d];
		*ret_any = true;
	}
	return sum;
}

bool span_energy_uj(const struct trace *t, const struct span *s, uint64_t *ret)
{
	bool package = false, any = false;
	uint64_t sum = sum_of(t, s, "package", &package);

	any = package;
	if (!package)
		sum = sum_of(t, s, "psys", &any);
	if (package || !any)
		sum += sum_of(t, s, "dram", &any) + sum_of(t, s, "gpu", &any);
	if (!any)
		sum = sum_of(t, s, "", &any);
	if (any)
		*ret = sum;
	return any;
}
