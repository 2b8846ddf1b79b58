/* SPDX-License-Identifier: Apache-2.0 */
/* ZICO: agent data, and which items are traces (decode_zico.h has the layout). */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "decode_zico.h"

/* What a string stands for, by its type. */
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
	int err = cbr_array(z->in, &it, "the array of a string"), typed = 0;

	if (!err)
		err = zico_element(z, &it, "id and text of a string");
	if (!err)
		err = cbr_uint_max(z->in, UINT32_MAX, &id, "the id of a string");
	if (!err)
		err = zico_element(z, &it, "id and text of a string");
	buf_reset(&z->text);
	if (!err)
		err = cbr_text(z->in, &z->text, ZICO_TEXT_MAX, "text of at most 4 MiB");
	if (!err)
		typed = cbr_more(z->in, &it);
	if (typed > 0)
		err = cbr_uint_max(z->in, UINT8_MAX, &type, "the type of a string");
	else if (!err && tag == DOC_STRING)
		err = cbr_fail(z->in, "id, text and type of a string", "no type");
	if (typed > 0 && !err && cbr_more(z->in, &it) > 0)
		err = cbr_fail(z->in, "id, text and type of a string", "more");
	if (err || typed < 0)
		return err ? err : typed;
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
	int err = cbr_array(z->in, &it, "the array of a method");

	for (int i = 0; !err && i < 4; i++) {
		err = zico_element(z, &it, "id, class, name and signature of a method");
		if (!err)
			err = cbr_uint_max(z->in, UINT32_MAX, &v[i], "an id");
		ids[i ? i - 1 : 0] = (uint32_t)v[i];
	}
	if (!err && (err = cbr_more(z->in, &it)) > 0)
		err = cbr_fail(z->in, "id, class, name and signature of a method", "more");
	if (err)
		return err;
	/* ZICO 1 and 2 write methods alike: then it is whose strings came before. */
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
	int err = cbr_bytes(z->in, bytes, sizeof(bytes), &n, "16 bytes of a uuid");

	if (!err && n != sizeof(bytes))
		err = cbr_fail(z->in, "16 bytes of a uuid", "%zu", n);
	if (!err)
		out_hex(z->d->out, key, bytes, n);
	return err;
}

/* What stands before each trace in files and on sockets (docs/formats/zico.md). */
static int read_envelope(struct zico *z, uint64_t offset)
{
	static const struct zico_field fields[] = {
		{ "version", zico_number }, { "profile", zico_value },      { "host", read_uuid },
		{ "trace", read_uuid },     { "agent_bytes", zico_number }, { "trace_bytes", zico_number },
	};

	out_record(z->d->out, "zico", "envelope", offset);
	return zico_fields(z, fields, 6, 6, "an envelope");
}

static int read_item(struct zico *z, uint64_t tag, uint64_t offset)
{
	uint8_t first = 0;
	int err = tag == TAG_ATTRIBUTE ? cbr_peek(z->in, &first, "an array") : 0;

	if (err)
		return err;
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
	int err = cbr_at_end(z->in);

	if (err > 0)
		return 0;
	if (!err)
		err = cbr_any_tag(z->in, &tag, "agent data or a trace, which begins with a tag");
	if (!err)
		err = read_item(z, tag, offset);
	return err ? input_fail_as(z->d->in, &z->err) : decode_record_end(z->d, offset);
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
	/* Tags are no ASCII. */
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
