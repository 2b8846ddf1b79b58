// SPDX-License-Identifier: Apache-2.0
/* Weights of a domain that no CPU feeds: the time at full use that its driver tells of each row. Busy is all
 * of it, for idle power is learned by it as elsewhere by the CPUs'. Always estimated: use says how long something
 * ran there and not what it drew, and work that waits for memory counts in full. */
#include <string.h>
#include "weight.h"
#include "split.h"

void weights_use(struct weights *w, const struct snapshot *s, unsigned domain)
{
	const struct snap_domain *d = &s->domains[domain];
	uint64_t duration = d->end_ns > d->start_ns ? d->end_ns - d->start_ns : 0, sum = 0;

	memset(w->weight, 0, (s->n_rows + 1) * sizeof(*w->weight));
	memset(w->cpus, 0, s->schema->n_cpus);
	for (unsigned i = 0; i < s->n_uses; i++) {
		const struct snap_use *u = &s->uses[i];
		uint64_t ns = u->ns < duration ? u->ns : duration;

		if (u->domain != domain)
			continue;
		w->weight[u->row == USE_NOBODY ? s->n_rows : u->row] += ns;
		sum += ns;
	}
	memcpy(w->time_ns, w->weight, s->n_rows * sizeof(*w->time_ns));
	w->time_ns[s->n_rows] = 0;
	w->busy_ns = sum < duration ? sum : duration;
	w->elapsed_ns = duration;
	w->n_cpus = 1;
	w->whole = true;
	w->quality = QUALITY_ESTIMATED;
	w->misses = w->valid = false;
	w->of = s->schema->domains[domain];
}
