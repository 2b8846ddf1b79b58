/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values of ZICO. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "decode_zico.h"

enum { STRINGS, METHODS };

/* Makes room for an id and sets *ret to its place in the table; NULL for ids that are not kept. */
static int place(struct zico *z, int kind, uint64_t id, uint32_t **ret)
{
	struct zico_names *names = &z->names;

	*ret = NULL;
	if (id >= ZICO_IDS)
		return 0;
	if (ARRAY_ZEROED(names->at[kind], names->n[kind], id + 1) != 0)
		return cbr_fail(z->in, "a name", "more than there is memory for");
	*ret = &names->at[kind][id];
	return 0;
}

static int define(struct zico *z, int kind, uint64_t id, const void *p, size_t n)
{
	struct buf *bytes = &z->names.bytes;
	uint32_t *at;
	int rc = place(z, kind, id, &at);

	if (rc || !at || (*at && bytes->len - (*at - 1) >= n && !memcmp(bytes->data + *at - 1, p, n)))
		return rc;
	bytes->limit = ZICO_NAMES_BYTES;
	*at = (uint32_t)bytes->len + 1;
	buf_add(bytes, p, n);
	return bytes->failed ? cbr_fail(z->in, "at most 8 MiB of names", "more") : 0;
}

int zico_define_string(struct zico *z, uint64_t id, const char *text)
{
	return define(z, STRINGS, id, text, strlen(text) + 1);
}

int zico_define_method(struct zico *z, uint64_t id, const uint32_t v[3])
{
	return define(z, METHODS, id, v, 3 * sizeof(*v));
}

static const void *look_up(const struct zico *z, int kind, uint64_t id)
{
	uint32_t at = id < z->names.n[kind] ? z->names.at[kind][id] : 0;

	return at ? z->names.bytes.data + at - 1 : NULL;
}

const char *zico_string(const struct zico *z, uint64_t id)
{
	return look_up(z, STRINGS, id);
}

bool zico_method(const struct zico *z, uint64_t id, uint32_t ret[3])
{
	const void *v = look_up(z, METHODS, id);

	if (v)
		memcpy(ret, v, 3 * sizeof(*ret));
	return v;
}

int zico_element(struct zico *z, struct cbr_iter *it, const char *what)
{
	int got = cbr_more(z->in, it);

	return got > 0 ? 0 : got < 0 ? got : cbr_fail(z->in, what, "the end of the array");
}

int zico_room(struct zico *z)
{
	return z->d->out->buf.failed ? cbr_fail(z->in, "a trace that takes at most 24 MiB as text", "a larger one") : 0;
}

static int read_text(struct zico *z, const char *key)
{
	int rc;

	buf_reset(&z->text);
	rc = cbr_text(z->in, &z->text, ZICO_TEXT_MAX, "text of at most 4 MiB");
	if (!rc)
		out_str(z->d->out, key, (const char *)z->text.data);
	return rc ? rc : zico_room(z);
}

static int read_bytes(struct zico *z, const char *key)
{
	size_t n = 0;
	uint8_t *to;
	int rc;

	buf_reset(&z->text);
	to = buf_reserve(&z->text, ZICO_BYTES_MAX);
	if (!to)
		return cbr_fail(z->in, "bytes", "more than there is memory for");
	rc = cbr_bytes(z->in, to, ZICO_BYTES_MAX, &n, "at most 64 KiB");
	if (!rc)
		out_hex(z->d->out, key, to, n);
	return rc ? rc : zico_room(z);
}

/* Reads a string that is given by its id. */
static int read_id(struct zico *z, const char *key)
{
	uint64_t id = 0;
	int rc = cbr_uint_max(z->in, UINT32_MAX, &id, "the id of a string");

	if (!rc)
		out_reference(z->d->out, key, id, zico_string(z, id));
	return rc ? rc : zico_room(z);
}

static int read_number(struct zico *z, const char *key, uint8_t first)
{
	uint64_t u = 0;
	int64_t i = 0;
	int rc = first >> 5 ? cbr_int(z->in, &i, "a number") : cbr_uint(z->in, &u, "a number");

	if (!rc && first >> 5)
		out_i64(z->d->out, key, i);
	else if (!rc)
		out_u64(z->d->out, key, u);
	return rc;
}

static int read_simple(struct zico *z, const char *key, uint8_t first)
{
	unsigned v = 0;
	double real = 0;
	int rc;

	if (first >= 0xf9 && first <= 0xfb) {
		rc = cbr_double(z->in, &real, "a number");
		if (!rc)
			out_double(z->d->out, key, real);
		return rc;
	}
	rc = cbr_simple(z->in, &v, "true, false or null");
	if (rc)
		return rc;
	if (v < 20 || v > 23)
		return cbr_fail(z->in, "true, false or null", "simple value %u", v);
	if (v < 22)
		out_bool(z->d->out, key, v == 21);
	else
		out_null(z->d->out, key);
	return 0;
}

static int read_value(struct zico *z, const char *key, int level);

static int read_list(struct zico *z, const char *key, int level)
{
	struct cbr_iter it;
	int rc = cbr_array(z->in, &it, "a list");

	if (rc)
		return rc;
	out_list(z->d->out, key);
	while (!rc && (rc = cbr_more(z->in, &it)) > 0)
		rc = read_value(z, NULL, level + 1);
	out_list_end(z->d->out);
	return rc;
}

static int read_pairs(struct zico *z, const char *key, int level)
{
	struct cbr_iter it;
	int rc = cbr_map(z->in, &it, "a map");

	if (rc)
		return rc;
	out_list(z->d->out, key);
	while (!rc && (rc = cbr_more(z->in, &it)) > 0) {
		out_map(z->d->out, NULL);
		rc = read_value(z, "key", level);
		if (!rc)
			rc = read_value(z, "value", level);
		out_map_end(z->d->out);
	}
	out_list_end(z->d->out);
	return rc;
}

/* Reads a reference to a string. A value behind any other tag is written together with its tag. */
static int read_tagged(struct zico *z, const char *key, int level)
{
	uint64_t tag = 0;
	int rc = cbr_any_tag(z->in, &tag, "a tag");

	if (rc || tag == TAG_REFERENCE)
		return rc ? rc : read_id(z, key);
	out_map(z->d->out, key);
	out_u64(z->d->out, "tag", tag);
	rc = read_value(z, "value", level + 1);
	out_map_end(z->d->out);
	return rc;
}

static int read_value(struct zico *z, const char *key, int level)
{
	uint8_t first;
	int rc = cbr_peek(z->in, &first, "a value");

	if (!rc)
		rc = zico_room(z);
	if (rc)
		return rc;
	if (first >> 5 >= 4 && first >> 5 <= 6 && level == ZICO_VALUE_LEVELS)
		return cbr_fail(z->in, "values of at most 8 levels", "one more");
	switch (first >> 5) {
	case 0:
	case 1:
		return read_number(z, key, first);
	case 2:
		return read_bytes(z, key);
	case 3:
		return read_text(z, key);
	case 4:
		return read_list(z, key, level);
	case 6:
		return read_tagged(z, key, level);
	case 7:
		return read_simple(z, key, first);
	}
	out_map(z->d->out, key);
	rc = read_pairs(z, "map", level + 1);
	out_map_end(z->d->out);
	return rc;
}

int zico_value(struct zico *z, const char *key)
{
	return read_value(z, key, 0);
}

int zico_map(struct zico *z, const char *key)
{
	return read_pairs(z, key, 0);
}

int zico_string_or_id(struct zico *z, const char *key)
{
	uint8_t first;
	int rc = cbr_peek(z->in, &first, "a string");

	if (rc)
		return rc;
	if (first >> 5 == 3)
		return read_text(z, key);
	if (first >> 5 == 7)
		return read_simple(z, key, first);
	if (first >> 5 == 6)
		rc = cbr_tag(z->in, TAG_REFERENCE, "a reference to a string (tag 6)");
	return rc ? rc : read_id(z, key);
}

int zico_number(struct zico *z, const char *key)
{
	uint64_t v = 0;
	int rc = cbr_uint(z->in, &v, "a number");

	if (!rc)
		out_u64(z->d->out, key, v);
	return rc;
}

int zico_fields(struct zico *z, const struct zico_field *f, int required, int n, const char *what)
{
	struct cbr_iter it;
	int rc = cbr_array(z->in, &it, what), got = 0, i = 0;

	while (!rc && i < n && (got = cbr_more(z->in, &it)) > 0) {
		rc = f[i].read(z, f[i].key);
		i++;
	}
	if (rc || got < 0)
		return rc ? rc : got;
	if (i < required)
		return cbr_fail(z->in, what, "%d elements instead of %d", i, required);
	got = i == n ? cbr_more(z->in, &it) : 0;
	return got > 0 ? cbr_fail(z->in, what, "more than %d elements", n) : got;
}

static int read_frame(struct zico *z)
{
	static const struct zico_field fields[] = {
		{ "class", zico_string_or_id },
		{ "method", zico_string_or_id },
		{ "file", zico_string_or_id },
		{ "line", zico_value },
	};

	return zico_fields(z, fields, 4, 4, "a line of a stack");
}

int zico_stack(struct zico *z, const char *key)
{
	struct cbr_iter it;
	int rc = cbr_array(z->in, &it, "a stack");

	if (rc)
		return rc;
	out_list(z->d->out, key);
	while (!rc && (rc = cbr_more(z->in, &it)) > 0) {
		out_map(z->d->out, NULL);
		rc = read_frame(z);
		out_map_end(z->d->out);
	}
	out_list_end(z->d->out);
	return rc ? rc : zico_room(z);
}
