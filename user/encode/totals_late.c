/* SPDX-License-Identifier: Apache-2.0 */
#include "totals_internal.h"
#include "totals_late.h"

void totals_name_late(struct totals *t, uint64_t id, struct names *n)
{
	for (uint32_t i = t->ended_first; i != TOTALS_NONE; i = t->rows[i].ended_next)
		if (t->rows[i].id == id)
			totals_call(t, i, n, t->adds);
}
