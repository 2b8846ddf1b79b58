/* SPDX-License-Identifier: Apache-2.0 */
/* ZICO: agent data and traces. decode_zico.h has the layout. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "decode_zico.h"

/* Name of a string's type; NULL for an unknown one. */
static const char *type_name(uint64_t type)
{
	static const char *const names[] = {
		[0] = "text", [4] = "keyword", [5] = "class", [6] = "method", [7] = "uuid", [8] = "signature",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : NULL;
}

static void begin(struct zico *z, const char *kind, uint64_t offset)
{
	out_record(z->d->out, "zico", kind, offset);
	out_str(z->d->out, "dialect", zico_dialect_names[z->dialect]);
}

static int read_string(struct zico *z, uint64_t tag, uint64_t offset)
{
	struct cbr_iter it;
	uint64_t id = 0, type = 0;
	int rc = cbr_array(z->in, &it, "the array of a string"), typed = 0;

	if (!rc)
		rc = zico_element(z, &it, "id and text of a string");
	if (!rc)
		rc = cbr_uint_max(z->in, UINT32_MAX, &id, "the id of a string");
	if (!rc)
		rc = zico_element(z, &it, "id and text of a string");
	buf_reset(&z->text);
	if (!rc)
		rc = cbr_text(z->in, &z->text, ZICO_TEXT_MAX, "text of at most 4 MiB");
	if (!rc)
		typed = cbr_more(z->in, &it);
	if (typed > 0)
		rc = cbr_uint_max(z->in, UINT8_MAX, &type, "the type of a string");
	else if (!rc && tag == DOC_STRING)
		rc = cbr_fail(z->in, "id, text and type of a string", "no type");
	if (typed > 0 && !rc && cbr_more(z->in, &it) > 0)
		rc = cbr_fail(z->in, "id, text and type of a string", "more");
	if (rc || typed < 0)
		return rc ? rc : typed;
	z->dialect = tag == DOC_STRING ? ZICO_DOCUMENT : typed ? ZICO_1 : ZICO_2;
	begin(z, "string", offset);
	out_u64(z->d->out, "id", id);
	out_str(z->d->out, "text", (const char *)z->text.data);
	if (typed && type_name(type))
		out_str(z->d->out, "type", type_name(type));
	else if (typed)
		out_u64(z->d->out, "type", type);
	return zico_define_string(z, id, (const char *)z->text.data);
}

static int read_method(struct zico *z, uint64_t tag, uint64_t offset)
{
	static const char *const parts[] = { "id", "class", "name", "signature" };
	struct cbr_iter it;
	uint64_t v[4] = { 0 };
	uint32_t ids[3];
	int rc = cbr_array(z->in, &it, "the array of a method");

	for (int i = 0; !rc && i < 4; i++) {
		rc = zico_element(z, &it, "id, class, name and signature of a method");
		if (!rc)
			rc = cbr_uint_max(z->in, UINT32_MAX, &v[i], "an id");
		ids[i ? i - 1 : 0] = (uint32_t)v[i];
	}
	if (!rc && (rc = cbr_more(z->in, &it)) > 0)
		rc = cbr_fail(z->in, "id, class, name and signature of a method", "more");
	if (rc)
		return rc;
	/* ZICO 1 and ZICO 2 write methods alike. The dialect of the strings before them decides. */
	z->dialect = tag == DOC_METHOD ? ZICO_DOCUMENT : z->dialect == ZICO_2 ? ZICO_2 : ZICO_1;
	begin(z, "method", offset);
	out_u64(z->d->out, parts[0], v[0]);
	for (int i = 1; i < 4; i++)
		out_reference(z->d->out, parts[i], v[i], zico_string(z, v[i]));
	return zico_define_method(z, v[0], ids);
}

static int read_attribute(struct zico *z, uint64_t tag, uint64_t offset)
{
	static const struct zico_field fields[] = { { "key", zico_string_or_id }, { "value", zico_value } };

	z->dialect = tag == DOC_ATTRIBUTE ? ZICO_DOCUMENT : ZICO_1;
	begin(z, "attribute", offset);
	return zico_fields(z, fields, 2, 2, "key and value of an agent's attribute");
}

static int read_uuid(struct zico *z, const char *key)
{
	uint8_t bytes[16];
	size_t n = 0;
	int rc = cbr_bytes(z->in, bytes, sizeof(bytes), &n, "16 bytes of a uuid");

	if (!rc && n != sizeof(bytes))
		rc = cbr_fail(z->in, "16 bytes of a uuid", "%zu", n);
	if (!rc)
		out_hex(z->d->out, key, bytes, n);
	return rc;
}

/* The envelope stands before each trace in files and on sockets (docs/formats/zico.md). */
static int read_envelope(struct zico *z, uint64_t offset)
{
	static const struct zico_field fields[] = {
		{ "version", zico_number }, { "profile", zico_value },      { "host", read_uuid },
		{ "trace", read_uuid },     { "agent_bytes", zico_number }, { "trace_bytes", zico_number },
	};

	out_record(z->d->out, "zico", "envelope", offset);
	return zico_fields(z, fields, 6, 6, "an envelope");
}

static int zico_trace(struct zico *z, uint64_t tag, uint64_t offset);

static int read_item(struct zico *z, uint64_t tag, uint64_t offset)
{
	uint8_t first = 0;
	int rc = tag == TAG_ATTRIBUTE ? cbr_peek(z->in, &first, "an array") : 0;

	if (rc)
		return rc;
	if (tag == TAG_ENVELOPE)
		return read_envelope(z, offset);
	if (tag == DOC_STRING || tag == TAG_STRING)
		return read_string(z, tag, offset);
	if (tag == DOC_METHOD || tag == TAG_METHOD)
		return read_method(z, tag, offset);
	/* The records of ZICO 2 are open arrays. */
	if (tag == DOC_ATTRIBUTE || (tag == TAG_ATTRIBUTE && first != 0x9f))
		return read_attribute(z, tag, offset);
	if (tag == TAG_RECORD || tag == Z2_RECORD || tag == DOC_RECORD_6 || tag == DOC_RECORD_7 ||
	    tag == DOC_RECORD_BIG || tag == DOC_RECORD_LITTLE)
		return zico_trace(z, tag, offset);
	return cbr_fail(z->in, "agent data or a trace behind its tag", "tag %llu", (unsigned long long)tag);
}

static int zico_next(void *state)
{
	struct zico *z = state;
	uint64_t offset = cbr_offset(z->in), tag = 0;
	int rc = cbr_at_end(z->in);

	if (rc > 0)
		return 0;
	if (!rc)
		rc = cbr_any_tag(z->in, &tag, "agent data or a trace, which begins with a tag");
	if (!rc)
		rc = read_item(z, tag, offset);
	return rc ? input_fail_as(z->d->in, &z->err) : decode_record_end(z->d, offset);
}

static void zico_close(void *state)
{
	struct zico *z = state;

	if (!z)
		return;
	cbr_free(z->in);
	buf_free(&z->text);
	buf_free(&z->names.bytes);
	free(z->names.at[0]);
	free(z->names.at[1]);
	free(z);
}

static int zico_open(struct decoding *d, void **ret_state)
{
	struct zico *z = calloc(1, sizeof(*z));

	const uint8_t *p;
	char subject[220];
	/* Base64 is ASCII; the tags that items begin with are not. */
	bool text = input_peek(d->in, 1, &p) > 0 && p[0] < 0x80 && isalnum(p[0]);

	snprintf(subject, sizeof(subject), "%s%s", input_subject(d->in), text ? " (base64 taken off)" : "");
	if (z) {
		z->base64.in = d->in;
		z->in = text ? cbr_new_from(zico_read_base64, &z->base64, subject) :
			       cbr_new_from(input_read, d->in, subject);
	}
	if (!z || !z->in) {
		zico_close(z);
		return -ENOMEM;
	}
	z->d = d;
	cbr_err(z->in, &z->err);
	*ret_state = z;
	return 0;
}

const struct decoder decoder_zico = { zico_open, zico_next, zico_close };

/* A trace is records within records. They are written as a list of events with their depth, in the order of the input.
 * The code does not recurse, because the input decides how deep records go. */

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

/* The word at the start of a record is a byte string. In ZICO 1 a tag before it tells its byte order. */
static int read_first_word(struct zico *z, struct zico_level *l, uint64_t *ret_method)
{
	uint64_t tag = 0;
	uint8_t bytes[8];
	size_t n = 0;
	int rc = z->dialect == ZICO_1 ? cbr_any_tag(z->in, &tag, "the start of a record (tag 10 or 11)") : 0;

	if (!rc && z->dialect == ZICO_1) {
		l->big = tag == TAG_FIRST_BIG;
		if (!l->big && tag != TAG_FIRST_LITTLE)
			return cbr_fail(z->in, "the start of a record (tag 10 or 11)", "tag %llu",
					(unsigned long long)tag);
	}
	if (!rc)
		rc = cbr_bytes(z->in, bytes, sizeof(bytes), &n, "8 bytes of a record's start");
	if (!rc && n != 8)
		rc = cbr_fail(z->in, "8 bytes of a record's start", "%zu", n);
	if (rc)
		return rc;
	l->start = word(bytes, l->big) & TICKS_MASK;
	*ret_method = word(bytes, l->big) >> 40;
	return 0;
}

static int read_first_numbers(struct zico *z, struct zico_level *l, uint64_t *ret_method)
{
	int rc = cbr_uint(z->in, &l->start, "the start of a record in ns");

	if (!rc)
		rc = zico_element(z, &l->items, "a method's id");
	return rc ? rc : cbr_uint_max(z->in, UINT32_MAX, ret_method, "a method's id");
}

/* Reads the start of a record, behind the record's tag. */
static int enter(struct zico *z, int depth, uint64_t tag)
{
	struct zico_level *l = &z->level[depth];
	uint64_t method = 0;
	int rc;

	*l = (struct zico_level){ .big = tag == DOC_RECORD_BIG || tag == DOC_RECORD_6 };
	rc = cbr_array(z->in, &l->items, "the array of a record");
	if (!rc)
		rc = zico_element(z, &l->items, "the start of a record");
	if (!rc)
		rc = z->dialect == ZICO_2 ? read_first_numbers(z, l, &method) : read_first_word(z, l, &method);
	if (rc)
		return rc;
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
	int rc = cbr_bytes(z->in, bytes, sizeof(bytes), &n, "8 or 16 bytes of a record's end");
	/* The document has one tag for the end, which is in the byte order of its record. */
	bool big = tag == TAG_LAST_BIG || (z->dialect == ZICO_DOCUMENT && z->level[depth].big);

	if (!rc && n != 8 && n != 16)
		rc = cbr_fail(z->in, "8 or 16 bytes of a record's end", "%zu", n);
	if (rc)
		return rc;
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
	int rc = cbr_uint(z->in, &calls, "a number of calls");

	if (!rc)
		put_last(z, z->depth, z->stop, calls);
	return rc;
}

static int read_last_numbers(struct zico *z, int depth)
{
	static const struct zico_field fields[] = { { NULL, read_stop },
						    { NULL, read_calls },
						    { "flags", zico_number } };
	int rc;

	event(z, "leave", depth);
	rc = zico_fields(z, fields, 2, 3, "the end of a record");
	out_map_end(z->d->out);
	return rc;
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

/* [key, value] is for this record, [type, key, value] for the record above that began a trace of that type. */
static int trace_read_attribute(struct zico *z, const char *key)
{
	static const struct zico_field fields[] = {
		{ "type", zico_string_or_id },
		{ "key", zico_string_or_id },
		{ "value", zico_value },
	};
	uint8_t first;
	int rc = cbr_peek(z->in, &first, "an attribute"), upward = 0;

	if (!rc) {
		upward = first == 0x83;
		rc = zico_fields(z, fields + !upward, 2 + upward, 2 + upward, "an attribute");
	}
	return rc;
}

/* Items that may stand in a record between its start and its end. */
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
	{ ZICO_2, ZICO_2, Z2_ATTRIBUTE, "attribute", NULL, trace_read_attribute },
	{ ZICO_2, ZICO_2, Z2_EXCEPTION, "exception", NULL, read_exception },
	{ ZICO_2, ZICO_2, Z2_EXCEPTION_SEEN, "exception-seen", "id", zico_number },
};

static int trace_read_item(struct zico *z, int depth, uint64_t tag)
{
	int rc;

	for (unsigned i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		const struct item *it = &items[i];

		if (it->tag != tag || z->dialect < it->from || z->dialect > it->to)
			continue;
		event(z, it->event, depth);
		rc = it->read(z, it->key);
		out_map_end(z->d->out);
		return rc;
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

/* Reads one item of the innermost record. */
static int step(struct zico *z)
{
	struct zico_level *l = &z->level[z->depth];
	uint64_t tag = 0;
	int rc = cbr_more(z->in, &l->items);

	if (rc < 0)
		return rc;
	if (!rc && !l->last)
		return cbr_fail(z->in, "the end of a record before that of its array", "none");
	if (!rc) {
		z->depth--;
		return 0;
	}
	if (l->last)
		return cbr_fail(z->in, "nothing behind the end of a record", "another item");
	rc = cbr_any_tag(z->in, &tag, "a part of a record, which begins with a tag");
	if (rc)
		return rc;
	if (is_last(z->dialect, tag))
		return z->dialect == ZICO_2 ? read_last_numbers(z, z->depth) : read_last_word(z, z->depth, tag);
	if (!is_record(z->dialect, tag))
		return trace_read_item(z, z->depth, tag);
	if (z->depth + 1 == ZICO_RECORD_LEVELS)
		return cbr_fail(z->in, "records of at most 1024 levels", "one more");
	return enter(z, ++z->depth, tag);
}

/* Reads the array behind the tag of a trace record, with all that is in it. */
static int zico_trace(struct zico *z, uint64_t tag, uint64_t offset)
{
	struct out *o = z->d->out;
	int rc;

	z->dialect = is_record(ZICO_1, tag) ? ZICO_1 : is_record(ZICO_2, tag) ? ZICO_2 : ZICO_DOCUMENT;
	out_record(o, "zico", "trace", offset);
	out_str(o, "dialect", zico_dialect_names[z->dialect]);
	out_list(o, "events");
	z->depth = 0;
	rc = enter(z, 0, tag);
	while (!rc && z->depth >= 0) {
		rc = step(z);
		if (!rc)
			rc = zico_room(z);
	}
	out_list_end(o);
	return rc;
}
