/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the nested records of a trace:
 *
 *	T [ first, begin (top only), attributes, children ..., attributes, upward, exception, flags, last ] open array
 *
 * Collectors of zico-2 gather the attributes of all records in one map of the trace, for the list. The last value of
 * a key wins, so for zico-2 the top's own attributes come after its children.
 *
 * first and last are one word of 64 bits each. The low 40 bits are ticks of 65536 ns. Above them first has the
 * method's number and last the number of calls; from 2^24 calls on these bits are 0 and the number follows in a
 * second word. zico-2 has numbers instead: ns and method; then tag 4 on [ns, calls], or [ns, calls, flags] of a
 * failed record. */
#include <errno.h>
#include <string.h>
#include "base/format/cbor.h"
#include "zico.h"

#define TICK_SHIFT 16
#define TICKS_MAX ((1ull << 40) - 1)
#define HIGH_MAX ((1ull << 24) - 1)
#define ZICO_2_START_NS 1000000000ull /* instants count from 1 s, because 0 could be read as "none" */
#define ZICO_2_ERROR 0x1008u /* its collectors test 8 in the tree of a trace and 0x1000 in the list */

static uint64_t instant(const struct zico *z, uint64_t ns)
{
	return ns > z->base_ns ? ns - z->base_ns : 0;
}

static void put_word(const struct zico *z, uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[z->big ? 7 - i : i] = (uint8_t)(v >> 8 * i);
}

static void put_first(struct zico *z, const struct span *s, struct buf *out)
{
	const struct zico_profile *p = z->profile;
	uint8_t tag = z->big ? p->first_big : p->first_little, word[8];
	uint64_t at = instant(z, s->start_ns), method = zico_method_id(z, s);

	if (!p->words) {
		cbw_uint(out, ZICO_2_START_NS + at);
		cbw_uint(out, method);
		return;
	}
	if (tag)
		cbw_tag(out, tag);
	put_word(z, word, at >> TICK_SHIFT | method << 40);
	cbw_bytes(out, word, sizeof(word));
}

static bool zico_failed(const struct span *s);

static void put_last(struct zico *z, uint32_t i, struct buf *out)
{
	const struct zico_profile *p = z->profile;
	const struct span *s = &z->t->spans[i];
	uint64_t at = instant(z, s->end_ns), calls = zico_node(z, i)->calls;
	bool long_form = calls > HIGH_MAX;
	uint8_t words[16];

	cbw_tag(out, z->big ? p->last_big : p->last_little);
	if (!p->words) {
		cbw_array(out, zico_failed(s) ? 3 : 2);
		cbw_uint(out, ZICO_2_START_NS + (i || at > instant(z, s->start_ns) ? at : at + 1));
		cbw_uint(out, calls);
		if (zico_failed(s))
			cbw_uint(out, ZICO_2_ERROR);
		return;
	}
	/* the list divides by the duration of the top */
	if (!i && at >> TICK_SHIFT <= instant(z, s->start_ns) >> TICK_SHIFT)
		at += 1 << TICK_SHIFT;
	put_word(z, words, at >> TICK_SHIFT | (long_form ? 0 : calls << 40));
	put_word(z, words + 8, calls);
	cbw_bytes(out, words, long_form ? 16 : 8);
}

/* Writes one at the top only: a second one would overwrite the time of the record above it. */
static void put_begin(struct zico *z, struct buf *out)
{
	const struct span *top = &z->t->spans[0];
	int64_t shift_ns = (int64_t)(z->base_ns - top->start_ns);
	uint32_t span_id;

	cbw_tag(out, z->profile->begin);
	cbw_array(out, z->profile->words ? 2 : 4);
	cbw_uint(out, (uint64_t)(top->start_real_ns + shift_ns) / 1000000);
	cbw_uint(out, zico_string_id(z, ZICO_TEXT, z->type));
	if (z->profile->words)
		return;
	memcpy(&span_id, z->t->uuid, sizeof(span_id));
	cbw_uint(out, (span_id & INT32_MAX) | 1);
	cbw_uint(out, 0);
}

static void enter(struct zico *z, uint32_t i, struct buf *out)
{
	cbw_tag(out, z->big ? z->profile->record_big : z->profile->record_little);
	cbw_open_array(out);
	put_first(z, &z->t->spans[i], out);
	if (!i)
		put_begin(z, out);
	if (i || !z->profile->one_attribute)
		zico_span_attrs(z, i, out);
}

static void leave(struct zico *z, uint32_t i, struct buf *out)
{
	if (!i && z->profile->one_attribute)
		zico_span_attrs(z, i, out);
	zico_closing_attrs(z, i, out);
	zico_upward_attrs(z, i, out);
	zico_exception(z, i, out);
	put_last(z, i, out);
	cbw_break(out);
}

static uint32_t kept_from(const struct zico *z, uint32_t i)
{
	while (i != ZICO_NONE && !zico_node(z, i)->kept)
		i = zico_node(z, i)->next;
	return i;
}

/* Chooses tick 0. A tree that has run for more than 2.3 years begins later here, so that its ticks fit. */
static void choose_base(struct zico *z)
{
	const struct trace *t = z->t;
	uint64_t last_ns = 0;

	for (uint32_t i = 0; i < t->n_spans; i++)
		if (t->spans[i].end_ns > last_ns)
			last_ns = t->spans[i].end_ns;
	z->base_ns = t->spans[0].start_ns;
	z->started_earlier = last_ns > z->base_ns && (last_ns - z->base_ns) >> TICK_SHIFT >= TICKS_MAX;
	if (z->started_earlier)
		z->base_ns = last_ns - ((TICKS_MAX - 1) << TICK_SHIFT);
}

void zico_records(struct zico *z, struct buf *out)
{
	uint32_t i = 0, next;

	choose_base(z);
	z->n_exceptions = 0;
	z->killed_uj = 0;
	z->killed_any = false;
	z->killed_last = ZICO_NONE;
	enter(z, 0, out);
	next = kept_from(z, zico_node(z, 0)->first);
	while (i != ZICO_NONE && !out->failed) {
		if (next != ZICO_NONE) {
			i = next;
			enter(z, i, out);
			next = kept_from(z, zico_node(z, i)->first);
			continue;
		}
		leave(z, i, out);
		next = kept_from(z, zico_node(z, i)->next);
		i = zico_node(z, i)->parent;
	}
}

/* The tree of a trace: children by index, calls, failures, and which spans have room. */

bool zico_killed(const struct span *s)
{
	return s->kind == SPAN_PROCESS && (s->end == SPAN_SIGNALED || s->end == SPAN_OOM);
}

static bool zico_failed(const struct span *s)
{
	return zico_killed(s) || (s->kind == SPAN_PROCESS && s->end == SPAN_EXITED && s->exit_code);
}

static int make_rooms(struct zico *z)
{
	buf_reset(&z->nodes);
	hash_clear(&z->by_id);
	return buf_reserve(&z->nodes, z->t->n_spans * sizeof(struct zico_node)) ?
		       hash_reserve(&z->by_id, z->t->n_spans) :
		       -ENOMEM;
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

static int add_node(struct zico *z, uint32_t i)
{
	const struct span *s = &z->t->spans[i];
	uint32_t parent;

	*zico_node(z, i) = (struct zico_node){
		.parent = ZICO_NONE,
		.first = ZICO_NONE,
		.last = ZICO_NONE,
		.next = ZICO_NONE,
		.calls = s->calls ? s->calls : 1,
		.cause = ZICO_NONE,
		.killed = ZICO_NONE,
	};
	if (hash_find(&z->by_id, s->id) != HASH_NONE)
		return -EINVAL;
	if (i) {
		parent = hash_find(&z->by_id, s->parent);
		if (parent == HASH_NONE)
			return -EINVAL;
		hang(z, i, parent);
	}
	hash_add(&z->by_id, s->id, i);
	return 0;
}

static void add_calls(struct zico *z)
{
	for (uint32_t i = z->t->n_spans; i-- > 1;) {
		struct zico_node *n = zico_node(z, i), *p = zico_node(z, n->parent);

		p->calls = p->calls + n->calls < p->calls ? UINT64_MAX : p->calls + n->calls;
	}
}

/* Chooses the exceptions that have room: those nearest to the top come first. */
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
	int rc = make_rooms(z);

	for (uint32_t i = 0; i < z->t->n_spans && !rc; i++)
		rc = add_node(z, i);
	if (rc)
		return rc;
	add_calls(z);
	zico_tree_keep(z, z->t->n_spans);
	return 0;
}
