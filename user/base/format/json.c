/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "base/text.h"

#define JSON_DEPTH 32

void json_init(struct json *j, struct buf *out)
{
	j->out = out;
	j->comma = 0;
	j->depth = 0;
}

static void json_value(struct json *j)
{
	uint32_t bit = 1u << j->depth;

	if (j->comma & bit)
		buf_add_char(j->out, ',');
	j->comma |= bit;
}

static void json_open(struct json *j, char c)
{
	json_value(j);
	buf_add_char(j->out, c);
	if (j->depth == JSON_DEPTH - 1) {
		j->out->failed = true;
		return;
	}
	j->depth++;
	j->comma &= ~(1u << j->depth);
}

static void json_close(struct json *j, char c)
{
	buf_add_char(j->out, c);
	if (j->depth)
		j->depth--;
}

void json_object_begin(struct json *j)
{
	json_open(j, '{');
}

void json_object_end(struct json *j)
{
	json_close(j, '}');
}

void json_array_begin(struct json *j)
{
	json_open(j, '[');
}

void json_array_end(struct json *j)
{
	json_close(j, ']');
}

/* RFC 8259 section 7. Returns how many bytes of s it dealt with. */
static size_t add_special(struct buf *out, const unsigned char *s, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	const char *name = "\"\\\b\f\n\r\t", *letter = "\"\\bfnrt", *at;
	size_t len;

	if (s[0] >= 0x80) {
		len = text_utf8_len(s, n);
		buf_add(out, len ? (const void *)s : "\xef\xbf\xbd", len ? len : 3);
		return len ? len : 1;
	}
	at = strchr(name, s[0]);
	if (at) {
		buf_add_char(out, '\\');
		buf_add_char(out, letter[at - name]);
	} else {
		buf_add(out, "\\u00", 4);
		buf_add_char(out, hex[s[0] >> 4]);
		buf_add_char(out, hex[s[0] & 15]);
	}
	return 1;
}

static void add_string(struct buf *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text);

	buf_add_char(out, '"');
	while (left) {
		size_t n = text_plain_run(s, left);

		buf_add(out, s, n);
		if (n < left)
			n += add_special(out, s + n, left - n);
		s += n;
		left -= n;
	}
	buf_add_char(out, '"');
}

void json_key(struct json *j, const char *key)
{
	json_value(j);
	add_string(j->out, key);
	buf_add_char(j->out, ':');
	j->comma &= ~(1u << j->depth); /* the value that follows takes no comma and sets the bit again */
}

void json_str(struct json *j, const char *s)
{
	json_value(j);
	add_string(j->out, s);
}

void json_u64(struct json *j, uint64_t v)
{
	json_value(j);
	buf_add_u64(j->out, v);
}

void json_i64(struct json *j, int64_t v)
{
	json_value(j);
	buf_add_i64(j->out, v);
}

void json_double(struct json *j, double v)
{
	char text[40];

	json_value(j);
	if (!isfinite(v)) {
		buf_add(j->out, "null", 4);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_add_str(j->out, text);
}

void json_bool(struct json *j, bool v)
{
	json_value(j);
	buf_add_str(j->out, v ? "true" : "false");
}

void json_key_u64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

void json_key_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}
