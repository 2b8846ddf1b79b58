/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: records within each other, put out in the order of the wire as a list of events with their
 * depth. No recursion: how deep calls go is up to whoever wrote it. */
#include <errno.h>
#include <string.h>
#include "decode_zico.h"

#define TICKS_MASK ((1ull << 40) - 1)
#define TICK_NS 65536

const char *const zico_dialect_names[] = { "zico-1.90", "document", "zico-2" };

static void event(struct zico *z, const char *name, int depth)
{
	out_map(z->d->out, NULL);
	out_str(z->d->out, "event", name);
	out_u64(z->d->out, "depth", (uint64_t)depth);
}

static uint64_t word(const uint8_t *p, bool big)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v |= (uint64_t)p[i] << 8 * (big ? 7 - i : i);
	return v;
}

static void put_method(struct zico *z, uint64_t id)
{
	static const char *const parts[] = { "class", "name", "signature" };
	struct out *o = z->d->out;
	uint32_t v[3];

	out_u64(o, "method", id);
	if (!zico_method(z, id, v))
		return;
	for (int i = 0; i < 3; i++)
		out_reference(o, parts[i], v[i], zico_string(z, v[i]));
}

/* The word at the start of a record: a byte string, in ZICO 1 behind a tag that tells its order. */
static int read_first_word(struct zico *z, struct zico_level *l, uint64_t *ret_method)
{
	uint64_t tag = 0;
	uint8_t bytes[8];
	size_t n = 0;
	int err = z->dialect == ZICO_1 ? cbr_any_tag(z->in, &tag, "the start of a record (tag 10 or 11)") : 0;

	if (!err && z->dialect == ZICO_1) {
		l->big = tag == TAG_FIRST_BIG;
		if (!l->big && tag != TAG_FIRST_LITTLE)
			return cbr_fail(z->in, "the start of a record (tag 10 or 11)", "tag %llu",
					(unsigned long long)tag);
	}
	if (!err)
		err = cbr_bytes(z->in, bytes, sizeof(bytes), &n, "8 bytes of a record's start");
	if (!err && n != 8)
		err = cbr_fail(z->in, "8 bytes of a record's start", "%zu", n);
	if (err)
		return err;
	l->start = word(bytes, l->big) & TICKS_MASK;
	*ret_method = word(bytes, l->big) >> 40;
	return 0;
}

static int read_first_numbers(struct zico *z, struct zico_level *l, uint64_t *ret_method)
{
	int err = cbr_uint(z->in, &l->start, "the start of a record in ns");

	if (!err)
		err = zico_element(z, &l->items, "a method's id");
	return err ? err : cbr_uint_max(z->in, UINT32_MAX, ret_method, "a method's id");
}

/* Behind the tag of a record. */
static int enter(struct zico *z, int depth, uint64_t tag)
{
	struct zico_level *l = &z->level[depth];
	uint64_t method = 0;
	int err;

	*l = (struct zico_level){ .big = tag == DOC_RECORD_BIG || tag == DOC_RECORD_6 };
	err = cbr_array(z->in, &l->items, "the array of a record");
	if (!err)
		err = zico_element(z, &l->items, "the start of a record");
	if (!err)
		err = z->dialect == ZICO_2 ? read_first_numbers(z, l, &method) : read_first_word(z, l, &method);
	if (err)
		return err;
	event(z, "enter", depth);
	out_u64(z->d->out, z->dialect == ZICO_2 ? "ns" : "tick", l->start);
	if (z->dialect != ZICO_2)
		out_str(z->d->out, "order", l->big ? "big" : "little");
	put_method(z, method);
	out_map_end(z->d->out);
	return 0;
}

static void put_last(struct zico *z, int depth, uint64_t stop, uint64_t calls)
{
	struct zico_level *l = &z->level[depth];
	int64_t taken = (int64_t)(stop - l->start);

	out_u64(z->d->out, z->dialect == ZICO_2 ? "ns" : "tick", stop);
	out_i64(z->d->out, "duration_ns", z->dialect == ZICO_2 ? taken : taken * TICK_NS);
	out_u64(z->d->out, "calls", calls);
	l->last = true;
}

static int read_last_word(struct zico *z, int depth, uint64_t tag)
{
	uint8_t bytes[16];
	size_t n = 0;
	int err = cbr_bytes(z->in, bytes, sizeof(bytes), &n, "8 or 16 bytes of a record's end");
	/* The document has one tag for the end, in the order of its record. */
	bool big = tag == TAG_LAST_BIG || (z->dialect == ZICO_DOCUMENT && z->level[depth].big);

	if (!err && n != 8 && n != 16)
		err = cbr_fail(z->in, "8 or 16 bytes of a record's end", "%zu", n);
	if (err)
		return err;
	event(z, "leave", depth);
	put_last(z, depth, word(bytes, big) & TICKS_MASK, n == 16 ? word(bytes + 8, big) : word(bytes, big) >> 40);
	out_map_end(z->d->out);
	return 0;
}

static int read_stop(struct zico *z, const char *key)
{
	return cbr_uint(z->in, &z->stop, "the stop of a record in ns");
}

static int read_calls(struct zico *z, const char *key)
{
	uint64_t calls = 0;
	int err = cbr_uint(z->in, &calls, "a number of calls");

	if (!err)
		put_last(z, z->depth, z->stop, calls);
	return err;
}

static int read_last_numbers(struct zico *z, int depth)
{
	static const struct zico_field fields[] = { { NULL, read_stop },
						    { NULL, read_calls },
						    { "flags", zico_number } };
	int err;

	event(z, "leave", depth);
	err = zico_fields(z, fields, 2, 3, "the end of a record");
	out_map_end(z->d->out);
	return err;
}

static int read_begin(struct zico *z, const char *key)
{
	static const struct zico_field fields[] = {
		{ "clock_ms", zico_number },
		{ "type", zico_string_or_id },
		{ "span", zico_number },
		{ "parent", zico_number },
	};

	return zico_fields(z, fields, 2, z->dialect == ZICO_2 ? 4 : 2, "the begin of a trace");
}

static int read_exception(struct zico *z, const char *key)
{
	static const struct zico_field fields[] = {
		{ "id", zico_number },   { "class", zico_string_or_id }, { "message", zico_string_or_id },
		{ "cause", zico_value }, { "stack", zico_stack },        { "attributes", zico_value },
	};

	return zico_fields(z, fields, 5, z->dialect == ZICO_2 ? 6 : 5, "an exception");
}

static int read_upward(struct zico *z, const char *key)
{
	static const struct zico_field fields[] = { { "type", zico_string_or_id }, { "attributes", zico_map } };

	return zico_fields(z, fields, 2, 2, "an upward attribute");
}

/* [key, value], or for the record above that began a trace of that type [type, key, value]. */
static int read_attribute(struct zico *z, const char *key)
{
	static const struct zico_field fields[] = {
		{ "type", zico_string_or_id },
		{ "key", zico_string_or_id },
		{ "value", zico_value },
	};
	uint8_t first;
	int err = cbr_peek(z->in, &first, "an attribute"), upward = 0;

	if (!err) {
		upward = first == 0x83;
		err = zico_fields(z, fields + !upward, 2 + upward, 2 + upward, "an attribute");
	}
	return err;
}

/* What may stand in a record between its start and its end. */
static const struct item {
	enum zico_dialect from, to;
	uint64_t tag;
	const char *event, *key;
	int (*read)(struct zico *z, const char *key);
} items[] = {
	{ ZICO_1, ZICO_DOCUMENT, TAG_BEGIN, "begin", NULL, read_begin },
	{ ZICO_1, ZICO_DOCUMENT, TAG_ATTRIBUTES, "attributes", "attributes", zico_map },
	{ ZICO_1, ZICO_DOCUMENT, TAG_UPWARD, "upward", NULL, read_upward },
	{ ZICO_1, ZICO_DOCUMENT, TAG_EXCEPTION, "exception", NULL, read_exception },
	{ ZICO_1, ZICO_DOCUMENT, TAG_EXCEPTION_SEEN, "exception-seen", "id", zico_number },
	{ ZICO_1, ZICO_DOCUMENT, TAG_FLAGS, "flags", "mask", zico_number },
	{ ZICO_1, ZICO_DOCUMENT, TAG_FLAG, "flag", "token", zico_number },
	{ ZICO_2, ZICO_2, Z2_BEGIN, "begin", NULL, read_begin },
	{ ZICO_2, ZICO_2, Z2_ATTRIBUTE, "attribute", NULL, read_attribute },
	{ ZICO_2, ZICO_2, Z2_EXCEPTION, "exception", NULL, read_exception },
	{ ZICO_2, ZICO_2, Z2_EXCEPTION_SEEN, "exception-seen", "id", zico_number },
};

static int read_item(struct zico *z, int depth, uint64_t tag)
{
	int err;

	for (unsigned i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		const struct item *it = &items[i];

		if (it->tag != tag || z->dialect < it->from || z->dialect > it->to)
			continue;
		event(z, it->event, depth);
		err = it->read(z, it->key);
		out_map_end(z->d->out);
		return err;
	}
	return cbr_fail(z->in, "a part of a record", "tag %llu", (unsigned long long)tag);
}

static bool is_record(enum zico_dialect dialect, uint64_t tag)
{
	switch (dialect) {
	case ZICO_1:
		return tag == TAG_RECORD;
	case ZICO_2:
		return tag == Z2_RECORD;
	case ZICO_DOCUMENT:
		break;
	}
	return tag == DOC_RECORD_BIG || tag == DOC_RECORD_LITTLE || tag == DOC_RECORD_6 || tag == DOC_RECORD_7;
}

static bool is_last(enum zico_dialect dialect, uint64_t tag)
{
	return dialect == ZICO_2 ? tag == Z2_LAST : tag == TAG_LAST_BIG || tag == TAG_LAST_LITTLE;
}

/* One item of the innermost record. */
static int step(struct zico *z)
{
	struct zico_level *l = &z->level[z->depth];
	uint64_t tag = 0;
	int err = cbr_more(z->in, &l->items);

	if (err < 0)
		return err;
	if (!err && !l->last)
		return cbr_fail(z->in, "the end of a record before that of its array", "none");
	if (!err) {
		z->depth--;
		return 0;
	}
	if (l->last)
		return cbr_fail(z->in, "nothing behind the end of a record", "another item");
	err = cbr_any_tag(z->in, &tag, "a part of a record, which begins with a tag");
	if (err)
		return err;
	if (is_last(z->dialect, tag))
		return z->dialect == ZICO_2 ? read_last_numbers(z, z->depth) : read_last_word(z, z->depth, tag);
	if (!is_record(z->dialect, tag))
		return read_item(z, z->depth, tag);
	if (z->depth + 1 == ZICO_RECORD_LEVELS)
		return cbr_fail(z->in, "records of at most 1024 levels", "one more");
	return enter(z, ++z->depth, tag);
}

int zico_trace(struct zico *z, uint64_t tag, uint64_t offset)
{
	struct out *o = z->d->out;
	int err;

	z->dialect = is_record(ZICO_1, tag) ? ZICO_1 : is_record(ZICO_2, tag) ? ZICO_2 : ZICO_DOCUMENT;
	out_record(o, "zico", "trace", offset);
	out_str(o, "dialect", zico_dialect_names[z->dialect]);
	out_list(o, "events");
	z->depth = 0;
	err = enter(z, 0, tag);
	while (!err && z->depth >= 0) {
		err = step(z);
		if (!err)
			err = zico_room(z);
	}
	out_list_end(o);
	return err;
}
