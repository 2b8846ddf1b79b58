/* SPDX-License-Identifier: Apache-2.0 */
#include "totals_internal.h"
#include "totals_late.h"

void totals_name_late(struct totals *t, uint64_t id, struct names *n)
{
	for (uint32_t i = TOTAL_FIRST_CGROUP; i < t->n_rows; i++)
		if (t->rows[i].used && t->rows[i].id == id)
			totals_call(t, i, n, t->adds);
}
