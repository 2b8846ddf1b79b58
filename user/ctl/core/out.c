/* SPDX-License-Identifier: Apache-2.0 */
/* What a record holds, as text or JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/text.h"
#include "out.h"

static void text_line(struct out *o)
{
	buf_add_char(&o->buf, '\n');
	for (int i = 0; i <= o->depth; i++)
		buf_add(&o->buf, "  ", 2);
	o->fresh = true;
	o->closed = false;
}

/* A word of text: as it is where that cannot be misread, else in quotes. */
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

/* What stands before a value. */
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

/* JSON carries text only; what is none keeps its bytes as \xNN. */
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

/* JSON has no NaN: null. */
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
	/* The double nearest to that text: it prints as that text. */
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
		o->buf.len -= !o->buf.failed; /* the closing quote comes behind the digits */
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
