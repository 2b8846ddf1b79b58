/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as collectors stand them: UTF-8, without control characters (their store marks types with those
 * below 0x10), never empty, and names that their pattern "void package.class.method()" splits. */
#include <ctype.h>
#include <string.h>
#include "../base/text.h"
#include "zico_internal.h"

/* U+0085, U+2028, U+2029: ends of lines, which no "." of that pattern matches; the name would be shown as none. */
static bool ends_line(const char *s, size_t n)
{
	return (n == 2 && !memcmp(s, "\xc2\x85", 2)) ||
	       (n == 3 && (!memcmp(s, "\xe2\x80\xa8", 3) || !memcmp(s, "\xe2\x80\xa9", 3)));
}

static void add_replacement(struct buf *b)
{
	buf_add(b, "\xef\xbf\xbd", 3);
}

/* One character of s; how many bytes it took. plain: blank for control characters, else keep(c) or '_'. */
static size_t add_char(struct buf *b, const char *s, size_t left, const char *punctuation)
{
	unsigned char c = (unsigned char)*s;
	size_t n = text_utf8_len((const unsigned char *)s, left);

	if (!n) {
		add_replacement(b);
		return 1;
	}
	if (punctuation && ends_line(s, n))
		buf_add_char(b, '_');
	else if (n > 1)
		buf_add(b, s, n);
	else if (punctuation)
		buf_add_char(b, isalnum(c) || (c && strchr(punctuation, c)) ? (char)c : '_');
	else
		buf_add_char(b, c < 0x20 || c == 0x7f ? ' ' : (char)c);
	return n;
}

static const char *finish(struct zico *z, const char *instead)
{
	struct buf *b = &z->text;

	if (!b->len)
		buf_add_str(b, instead);
	buf_add_char(b, '\0');
	z->names.failed |= b->failed;
	return b->failed ? instead : (const char *)b->data;
}

static void add_text(struct buf *b, const char *s, const char *punctuation)
{
	size_t left = strnlen(s, ZICO_TEXT_MAX), n;

	for (; left; s += n, left -= n)
		n = add_char(b, s, left, punctuation);
}

const char *zico_clean_value(struct zico *z, const char *s)
{
	buf_reset(&z->text);
	add_text(&z->text, s, NULL);
	return finish(z, "?");
}

/* A path's components with a dot in front of each. */
static void add_path(struct buf *b, const char *path)
{
	size_t left = strnlen(path, ZICO_TEXT_MAX), n;

	for (; left; path += n, left -= n) {
		if (*path != '/') {
			n = add_char(b, path, left, "._-@:$");
			continue;
		}
		n = 1;
		if (left > 1 && path[1] != '/')
			buf_add_char(b, '.');
	}
}

/* "cgroup.system.slice.nginx.service", for functions "binary.usr.sbin.nginx". */
const char *zico_clean_class(struct zico *z, const struct span *s)
{
	struct buf *b = &z->text;
	const char *path = s->kind == SPAN_FUNCTION ? s->binary : s->cgroup;
	size_t start;

	buf_reset(b);
	buf_add_str(b, s->kind == SPAN_FUNCTION ? "binary" : "cgroup");
	start = b->len;
	if (path && *path && *path != '/')
		buf_add_char(b, '.');
	add_path(b, path ? path : "");
	if (b->len == start)
		buf_add_str(b, path && *path ? ".root" : ".unknown");
	return finish(z, "cgroup.unknown");
}

const char *zico_clean_name(struct zico *z, const struct span *s)
{
	const char *name = s->kind == SPAN_FUNCTION ? s->symbol : s->comm;

	buf_reset(&z->text);
	add_text(&z->text, name ? name : "", "_-@:$/+");
	return finish(z, "unknown");
}

static const char *skip_type(const char *s)
{
	while (*s == '[')
		s++;
	if (*s && strchr("BCDFIJSZ", *s))
		return s + 1;
	if (*s != 'L' || strchr("/;", s[1]) || !s[1])
		return NULL;
	for (s++; *s && *s != ';'; s++)
		if (strchr(".[()", *s) || (*s == '/' && (s[1] == '/' || s[1] == ';')))
			return NULL;
	return *s ? s + 1 : NULL;
}

bool zico_signature_ok(const char *s)
{
	if (*s++ != '(')
		return false;
	while (s && *s && *s != ')')
		s = skip_type(s);
	if (!s || !*s)
		return false;
	s++;
	s = *s == 'V' ? s + 1 : skip_type(s);
	return s && !*s;
}
