/* SPDX-License-Identifier: Apache-2.0 */
/* Processes between their end and being handed over. */
#include "spans_internal.h"

void spans_ending(const struct spans *s, void (*each)(void *ctx, const struct span *span), void *ctx)
{
	struct span span;

	for (const struct process *p = s->table.first_ended; p; p = p->newer) {
		spans_fill(s, p, &span);
		each(ctx, &span);
	}
}
