/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a trace: children by index, calls, who failed, and which spans have room. */
#include <errno.h>
#include <string.h>
#include "zico_internal.h"

struct slot {
	uint64_t id;
	uint32_t index;
	uint32_t used;
};

bool zico_killed(const struct span *s)
{
	return s->kind == SPAN_PROCESS && (s->end == SPAN_SIGNALED || s->end == SPAN_OOM);
}

bool zico_failed(const struct span *s)
{
	return zico_killed(s) || (s->kind == SPAN_PROCESS && s->end == SPAN_EXITED && s->exit_code);
}

static struct slot *slot_of(const struct zico *z, uint32_t mask, uint64_t id)
{
	struct slot *slots = (struct slot *)z->index.data;
	uint64_t h = id * 0x9e3779b97f4a7c15u;

	for (uint32_t at = (uint32_t)(h >> 32) & mask;; at = (at + 1) & mask)
		if (!slots[at].used || slots[at].id == id)
			return &slots[at];
}

static uint32_t index_size(uint32_t n)
{
	uint32_t size = 16;

	while (size < n * 2)
		size *= 2;
	return size;
}

static int make_rooms(struct zico *z, uint32_t n_slots)
{
	buf_reset(&z->nodes);
	buf_reset(&z->index);
	if (!buf_reserve(&z->nodes, z->t->n_spans * sizeof(struct zico_node)) ||
	    !buf_reserve(&z->index, n_slots * sizeof(struct slot)))
		return -ENOMEM;
	memset(z->index.data, 0, n_slots * sizeof(struct slot));
	return 0;
}

static void hang(struct zico *z, uint32_t i, uint32_t parent)
{
	struct zico_node *p = zico_node(z, parent);

	if (p->last == ZICO_NONE)
		p->first = i;
	else
		zico_node(z, p->last)->next = i;
	p->last = i;
	zico_node(z, i)->parent = parent;
	zico_node(z, i)->depth = p->depth + 1;
}

static int add_node(struct zico *z, uint32_t i, uint32_t mask)
{
	const struct span *s = &z->t->spans[i];
	struct slot *own = slot_of(z, mask, s->id), *parent;

	*zico_node(z, i) = (struct zico_node){
		.parent = ZICO_NONE,
		.first = ZICO_NONE,
		.last = ZICO_NONE,
		.next = ZICO_NONE,
		.calls = s->calls ? s->calls : 1,
		.cause = ZICO_NONE,
		.killed = ZICO_NONE,
	};
	if (own->used)
		return -EINVAL;
	if (i) {
		parent = slot_of(z, mask, s->parent);
		if (!parent->used)
			return -EINVAL;
		hang(z, i, parent->index);
	}
	*own = (struct slot){ s->id, i, 1 };
	return 0;
}

static void add_calls(struct zico *z)
{
	for (uint32_t i = z->t->n_spans; i-- > 1;) {
		struct zico_node *n = zico_node(z, i), *p = zico_node(z, n->parent);

		p->calls = p->calls + n->calls < p->calls ? UINT64_MAX : p->calls + n->calls;
	}
}

/* Exceptions that have room: those nearest to the top come first in a trace. */
static void choose_exceptions(struct zico *z)
{
	uint32_t max = z->profile->max_exceptions ? z->profile->max_exceptions : UINT32_MAX;

	z->n_fails = z->n_unsaid = 0;
	for (uint32_t i = 0; i < z->t->n_spans; i++) {
		struct zico_node *n = zico_node(z, i);

		n->fails = n->kept && zico_failed(&z->t->spans[i]);
		if (n->fails && z->n_fails == max) {
			n->fails = false;
			z->n_unsaid++;
		}
		z->n_fails += n->fails;
	}
}

void zico_tree_keep(struct zico *z, uint32_t n)
{
	uint32_t per_depth[ZICO_DEPTH_MAX] = { 0 }, left = n, depth;
	uint64_t energy_uj;

	for (uint32_t i = 0; i < z->t->n_spans; i++)
		if (zico_node(z, i)->depth < ZICO_DEPTH_MAX)
			per_depth[zico_node(z, i)->depth]++;
	for (depth = 0; depth < ZICO_DEPTH_MAX && per_depth[depth] <= left; depth++)
		left -= per_depth[depth];
	z->n_kept = 0;
	z->left_out_uj = 0;
	for (uint32_t i = 0; i < z->t->n_spans; i++) {
		struct zico_node *node = zico_node(z, i);

		node->kept = node->depth < depth || (node->depth == depth && depth < ZICO_DEPTH_MAX && left);
		left -= node->kept && node->depth == depth;
		z->n_kept += node->kept;
		if (!node->kept && span_energy_uj(z->t, &z->t->spans[i], &energy_uj))
			z->left_out_uj += energy_uj;
	}
	choose_exceptions(z);
}

int zico_tree(struct zico *z)
{
	uint32_t n_slots = index_size(z->t->n_spans);
	int err = make_rooms(z, n_slots);

	for (uint32_t i = 0; i < z->t->n_spans && !err; i++)
		err = add_node(z, i, n_slots - 1);
	if (err)
		return err;
	add_calls(z);
	zico_tree_keep(z, z->t->n_spans);
	return 0;
}
