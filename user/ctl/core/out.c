/* SPDX-License-Identifier: Apache-2.0 */
/* Records are built in a buffer, and written when they are whole. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "out.h"

#define SPILL_BYTES 65536u

void out_init(struct out *o, bool json, int (*write)(void *arg, const void *p, size_t n), void *arg)
{
	*o = (struct out){ .json = json, .write = write, .arg = arg, .buf.limit = OUT_RECORD_MAX };
}

void out_free(struct out *o)
{
	buf_free(&o->buf);
}

/* Returns the place of the next DEL or C1 control (U+0080 to U+009F), n = none. JSON allows them, but terminals obey
 * them. */
static size_t next_control(const uint8_t *p, size_t at, size_t n)
{
	for (; at < n; at++)
		if (p[at] == 0x7f || (p[at] == 0xc2 && at + 1 < n && p[at + 1] >= 0x80 && p[at + 1] < 0xa0))
			break;
	return at;
}

static int write_json(struct out *o, size_t n)
{
	const uint8_t *p = o->buf.data;
	size_t at = 0;
	int rc = 0;

	while (!rc && at < n) {
		size_t stop = next_control(p, at, n);
		char escape[8];

		if (stop > at)
			rc = o->write(o->arg, p + at, stop - at);
		at = stop;
		if (rc || at == n)
			break;
		snprintf(escape, sizeof(escape), "\\u00%02x", p[at] == 0x7f ? 0x7f : p[at + 1]);
		at += p[at] == 0x7f ? 1 : 2;
		rc = o->write(o->arg, escape, 6);
	}
	return rc;
}

static int write_first(struct out *o, size_t n)
{
	int rc = !n ? 0 : o->json ? write_json(o, n) : o->write(o->arg, o->buf.data, n);

	if (n && n < o->buf.len)
		memmove(o->buf.data, o->buf.data + n, o->buf.len - n);
	o->buf.len -= n;
	o->whole = 0;
	return rc;
}

int out_flush(struct out *o)
{
	return write_first(o, o->whole);
}

int out_spill(struct out *o)
{
	return !o || o->buf.len < SPILL_BYTES ? 0 : write_first(o, o->buf.len);
}

void out_drop(struct out *o)
{
	o->buf.len = o->whole;
	o->buf.failed = false;
}

void out_record(struct out *o, const char *format, const char *kind, uint64_t offset)
{
	o->records++;
	if (o->json) {
		json_init(&o->j, &o->buf);
		json_object_begin(&o->j);
		json_key_str(&o->j, "format", format);
		json_key_str(&o->j, "kind", kind);
		json_key_u64(&o->j, "record", o->records);
		json_key_u64(&o->j, "offset", offset);
		return;
	}
	buf_printf(&o->buf, "%s %s %llu at byte %llu:", format, kind, (unsigned long long)o->records,
		   (unsigned long long)offset);
	o->depth = 0;
	o->closed = o->fresh = false;
}

int out_record_end(struct out *o)
{
	int rc;

	if (o->json)
		json_object_end(&o->j);
	buf_add_char(&o->buf, '\n');
	if (o->buf.failed) {
		rc = o->buf.cap < OUT_RECORD_MAX / 2 ? -ENOMEM : -EFBIG;
		out_drop(o);
		return rc;
	}
	o->whole = o->buf.len;
	return o->whole < SPILL_BYTES ? 0 : out_flush(o);
}

/* Contents of a record, as text or JSON. */

static void text_line(struct out *o)
{
	buf_add_char(&o->buf, '\n');
	for (int i = 0; i <= o->depth; i++)
		buf_add(&o->buf, "  ", 2);
	o->fresh = true;
	o->closed = false;
}

/* Adds a word of text. A word that could be misread is put in quotes. */
static void text_word(struct out *o, const char *s)
{
	size_t n = strlen(s), room = n * 4 + 1;
	bool quoted = !*s || s[strcspn(s, " =\"#")];
	uint8_t *to;

	if (quoted)
		buf_add_char(&o->buf, '"');
	to = buf_reserve(&o->buf, room);
	if (!to)
		return;
	text_escape((char *)to, room, s);
	o->buf.len += strlen((char *)to);
	if (quoted)
		buf_add_char(&o->buf, '"');
}

/* Adds the text before a value: a blank or a new line, and the key. */
static void text_key(struct out *o, const char *key)
{
	if (o->closed)
		text_line(o);
	if (!o->fresh)
		buf_add_char(&o->buf, ' ');
	o->fresh = false;
	if (!key)
		return;
	text_word(o, key);
	buf_add_char(&o->buf, '=');
}

static bool is_utf8(const char *s)
{
	size_t left = strlen(s);

	while (left) {
		size_t n = text_utf8_len((const unsigned char *)s, left);

		if (!n)
			return false;
		s += n;
		left -= n;
	}
	return true;
}

/* Adds a string of JSON, which must be UTF-8. In another string the bytes are written as \xNN. */
static void json_text(struct out *o, const char *s, bool key)
{
	char *escaped = NULL;
	size_t room = strlen(s) * 4 + 1;

	if (!is_utf8(s)) {
		escaped = malloc(room);
		if (!escaped) {
			o->buf.failed = true;
			return;
		}
		s = text_escape(escaped, room, s);
	}
	if (key)
		json_key(&o->j, s);
	else
		json_str(&o->j, s);
	free(escaped);
}

static void value_key(struct out *o, const char *key)
{
	if (!o->json)
		text_key(o, key);
	else if (key)
		json_text(o, key, true);
}

static void container(struct out *o, const char *key)
{
	if (o->json) {
		value_key(o, key);
		return;
	}
	text_line(o);
	if (key) {
		text_word(o, key);
		buf_add_char(&o->buf, ':');
	} else {
		buf_add_char(&o->buf, '-');
	}
	o->fresh = false;
	o->depth++;
}

static void container_end(struct out *o)
{
	o->depth--;
	o->closed = true;
}

void out_map(struct out *o, const char *key)
{
	if (!o)
		return;
	container(o, key);
	if (o->json)
		json_object_begin(&o->j);
}

void out_list(struct out *o, const char *key)
{
	if (!o)
		return;
	container(o, key);
	if (o->json)
		json_array_begin(&o->j);
}

void out_map_end(struct out *o)
{
	if (!o)
		return;
	if (o->json)
		json_object_end(&o->j);
	else
		container_end(o);
}

void out_list_end(struct out *o)
{
	if (!o)
		return;
	if (o->json)
		json_array_end(&o->j);
	else
		container_end(o);
}

void out_str(struct out *o, const char *key, const char *s)
{
	if (!o)
		return;
	value_key(o, key);
	if (o->json)
		json_text(o, s, false);
	else
		text_word(o, s);
}

void out_u64(struct out *o, const char *key, uint64_t v)
{
	if (!o)
		return;
	value_key(o, key);
	if (o->json)
		json_u64(&o->j, v);
	else
		buf_add_u64(&o->buf, v);
}

void out_i64(struct out *o, const char *key, int64_t v)
{
	if (!o)
		return;
	value_key(o, key);
	if (o->json)
		json_i64(&o->j, v);
	else
		buf_add_i64(&o->buf, v);
}

/* JSON has no NaN and no infinity: they become null. */
void out_double(struct out *o, const char *key, double v)
{
	struct json plain;

	if (!o)
		return;
	value_key(o, key);
	if (o->json) {
		json_double(&o->j, v);
	} else if (!isfinite(v)) {
		buf_printf(&o->buf, "%g", v);
	} else {
		json_init(&plain, &o->buf);
		json_double(&plain, v);
	}
}

void out_float(struct out *o, const char *key, float v)
{
	char text[32];

	for (int digits = 6; digits <= 9; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, (double)v);
		if (strtof(text, NULL) == v)
			break;
	}
	/* This double is the nearest to the text, so it prints as the text. */
	out_double(o, key, isfinite(v) ? strtod(text, NULL) : (double)v);
}

void out_bool(struct out *o, const char *key, bool v)
{
	if (!o)
		return;
	value_key(o, key);
	if (o->json)
		json_bool(&o->j, v);
	else
		buf_add_str(&o->buf, v ? "true" : "false");
}

void out_null(struct out *o, const char *key)
{
	if (!o)
		return;
	value_key(o, key);
	if (o->json)
		json_double(&o->j, (double)NAN);
	else
		buf_add_str(&o->buf, "null");
}

void out_words(struct out *o, const char *key, const struct field_words *w, unsigned v)
{
	char words[96] = "";
	size_t at = 0;

	for (unsigned bit = 0; bit < w->n; bit++)
		if (v & 1u << bit)
			at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%s", at ? "+" : "",
					       w->name(1u << bit));
	out_str(o, key, *words ? words : w->name(0));
}

void out_fields(struct out *o, const struct fields *t, const void *obj, unsigned in)
{
	for (const struct field *f = t->list; o && f < t->list + t->n; f++) {
		uint64_t v = field_number(f, obj);
		double real;

		if (!field_shown(f, obj, in))
			continue;
		memcpy(&real, &v, sizeof(real));
		if (f->words && f->words->bits)
			out_words(o, f->name, f->words, (unsigned)v);
		else if (f->words || f->type == FIELD_CHARS || f->type == FIELD_STRING)
			out_str(o, f->name, field_text(f, obj));
		else if (f->type == FIELD_DOUBLE)
			out_double(o, f->name, real);
		else if (f->type == FIELD_BOOL)
			out_bool(o, f->name, v);
		else if (f->type == FIELD_INT || f->type == FIELD_I64)
			out_i64(o, f->name, (int64_t)v);
		else
			out_u64(o, f->name, v);
	}
}

void out_hex(struct out *o, const char *key, const void *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *s = p;
	char two[3] = "";

	if (!o)
		return;
	value_key(o, key);
	if (o->json)
		json_str(&o->j, "");
	if (o->json)
		o->buf.len -= !o->buf.failed; /* the closing quote is taken back and added behind the digits */
	for (size_t i = 0; i < n; i++) {
		two[0] = digits[s[i] >> 4];
		two[1] = digits[s[i] & 15];
		buf_add(&o->buf, two, 2);
	}
	if (o->json)
		buf_add_char(&o->buf, '"');
}

void out_metric(struct out *o, int64_t id, const char *name, int64_t value)
{
	if (!o)
		return;
	if (o->json) {
		json_object_begin(&o->j);
		json_key(&o->j, "id");
		json_i64(&o->j, id);
		if (name)
			out_str(o, "name", name);
		json_key(&o->j, "value");
		json_i64(&o->j, value);
		json_object_end(&o->j);
		return;
	}
	text_key(o, name);
	if (!name) {
		buf_add_char(&o->buf, '#');
		buf_add_i64(&o->buf, id);
		buf_add_char(&o->buf, '=');
	}
	buf_add_i64(&o->buf, value);
}

void out_reference(struct out *o, const char *key, uint64_t id, const char *text)
{
	if (!o)
		return;
	value_key(o, key);
	if (o->json) {
		json_object_begin(&o->j);
		json_key_u64(&o->j, "ref", id);
		if (text)
			out_str(o, "text", text);
		json_object_end(&o->j);
	} else if (text) {
		text_word(o, text);
	} else {
		buf_add_char(&o->buf, '#');
		buf_add_u64(&o->buf, id);
	}
}
