/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include "spans.h"

const char *spans_label(const struct span *s)
{
	const char *name = s->kind == SPAN_FUNCTION ? s->symbol : s->comm;

	return *name ? name : "?";
}

/* Traces come in preorder, where a span's parent is the one before it or one above that; other orders are right too. */
static uint32_t find_parent(const struct spans_shape *s, uint32_t i)
{
	const uint64_t id = s->t->spans[i].parent;
	uint32_t at = i - 1;

	while (s->t->spans[at].id != id && at)
		at = s->up[at];
	if (s->t->spans[at].id == id)
		return at;
	for (at = i; at-- > 0;)
		if (s->t->spans[at].id == id)
			return at;
	return 0;
}

int spans_shape(struct spans_shape *s, const struct trace *t, const char *command)
{
	const size_t n = t->n_spans;

	*s = (struct spans_shape){ .t = t,
				   .up = calloc(n, sizeof(*s->up)),
				   .depth = calloc(n, sizeof(*s->depth)),
				   .shown = calloc(n, sizeof(*s->shown)),
				   .own_uj = calloc(n, sizeof(*s->own_uj)),
				   .all_uj = calloc(n, sizeof(*s->all_uj)) };
	if (!s->up || !s->depth || !s->shown || !s->own_uj || !s->all_uj) {
		spans_shape_free(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		s->up[i] = i ? find_parent(s, i) : 0;
		s->depth[i] = i ? s->depth[s->up[i]] + 1 : 0;
		s->shown[i] = span_picked(&t->spans[i], command) || (i && s->shown[s->up[i]]);
		s->has_energy |= span_energy_uj(t, &t->spans[i], &s->own_uj[i]);
	}
	for (uint32_t i = (uint32_t)n; i-- > 0;) {
		s->all_uj[i] += s->own_uj[i];
		if (i)
			s->all_uj[s->up[i]] += s->all_uj[i];
	}
	return 0;
}

void spans_shape_free(struct spans_shape *s)
{
	free(s->up);
	free(s->depth);
	free(s->shown);
	free(s->own_uj);
	free(s->all_uj);
	*s = (struct spans_shape){ 0 };
}
