/* SPDX-License-Identifier: Apache-2.0 */
#include "totals_internal.h"
#include "totals_late.h"

void totals_name_late(struct totals *t, uint64_t id, struct names *n)
{
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++) {
		struct total_row *r = &t->rows[i];

		if (!r->used || r->id != id)
			continue;
		names_set(&r->names, n);
		r->changed = t->adds;
	}
}
