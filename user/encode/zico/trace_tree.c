/* SPDX-License-Identifier: Apache-2.0 */
/* Records within each other:
 *
 *	T [ first, begin (top only), attributes, children ..., attributes, upward, exception, flags, last ] open array
 *
 * Collectors of zico-2 gather the attributes of all records in the list's map of the trace, the last one of a key wins: there
 * the top's own stand behind its children.
 *
 * first and last are one word of 64 bits: ticks of 65536 ns in the low 40, above them the method's number and
 * the number of calls; from 2^24 calls on they are 0 there and follow in a second word. zico-2 has numbers
 * instead: ns and method; tag 4 on [ns, calls], or [ns, calls, flags] of a failed one. */
#include <string.h>
#include "../base/cbor.h"
#include "zico_internal.h"

#define TICK_SHIFT 16
#define TICKS_MAX ((1ull << 40) - 1)
#define HIGH_MAX ((1ull << 24) - 1)
#define ZICO_2_START_NS 1000000000ull /* instants count from 1 s: 0 might be taken for none */
#define ZICO_2_ERROR 0x1008u /* its collectors look at 8 in the tree of a trace, at 0x1000 in the list */

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
	/* the list divides by the top's duration */
	if (!i && at >> TICK_SHIFT <= instant(z, s->start_ns) >> TICK_SHIFT)
		at += 1 << TICK_SHIFT;
	put_word(z, words, at >> TICK_SHIFT | (long_form ? 0 : calls << 40));
	put_word(z, words + 8, calls);
	cbw_bytes(out, words, long_form ? 16 : 8);
}

/* One, at the top: a second one would overwrite the time of the record above it. */
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
	buf_add_char(out, (char)0x9f);
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
	buf_add_char(out, (char)0xff);
}

static uint32_t kept_from(const struct zico *z, uint32_t i)
{
	while (i != ZICO_NONE && !zico_node(z, i)->kept)
		i = zico_node(z, i)->next;
	return i;
}

/* Room to measure ticks in: a tree that has run for more than 2.3 years begins later here. */
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
