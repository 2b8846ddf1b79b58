/* SPDX-License-Identifier: Apache-2.0 */
/* One row of the table and a text: default, check, store, free, and the message of a refusal. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "keys.h"

#define FOUND_MAX 60 /* bytes of a wrong value that a message repeats */

static void *field(const struct key *k, void *base)
{
	return (char *)base + k->offset;
}

int key_error(const struct origin *o, const char *name, struct err *err, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (o->file)
		return err_set(err, -EINVAL, "%s:%u: %s%s%s%s", o->file, o->line, *name ? o->path : "", name,
			       *name ? ": " : "", text);
	if (strncmp(o->flag, "--", 2) == 0)
		return err_set(err, -EINVAL, "%s: %s", o->flag, text);
	return err_set(err, -EINVAL, "%s: %s%s%s", o->flag, name, *name ? ": " : "", text);
}

static const char *word_of(const struct key *k, unsigned i)
{
	return k->word ? k->word(i) : k->words[i];
}

static void join_words(const struct key *k, char *ret, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; word_of(k, i) && at < size; i++)
		at += (size_t)snprintf(ret + at, size - at, "%s%s",
				       i == 0            ? "" :
				       word_of(k, i + 1) ? ", " :
							   " or ",
				       word_of(k, i));
}

static void show_duration(uint64_t ns, char *ret, size_t size)
{
	if (ns % (3600 * NS_PER_S) == 0)
		snprintf(ret, size, "%lluh", (unsigned long long)(ns / (3600 * NS_PER_S)));
	else if (ns % NS_PER_S == 0)
		snprintf(ret, size, "%llus", (unsigned long long)(ns / NS_PER_S));
	else
		snprintf(ret, size, "%llums", (unsigned long long)(ns / NS_PER_MS));
}

void key_expected(const struct key *k, char *ret, size_t size)
{
	char low[24], high[24];

	switch (k->type) {
	case KEY_STRING:
		snprintf(ret, size, "a text");
		break;
	case KEY_WORD:
	case KEY_ENUM:
		join_words(k, ret, size);
		break;
	case KEY_COUNT:
		snprintf(ret, size, "a whole number from %llu to %llu", (unsigned long long)k->min,
			 (unsigned long long)k->max);
		break;
	case KEY_BYTES:
		snprintf(ret, size, "bytes from %llu to %llu, such as 64KiB or 4MiB", (unsigned long long)k->min,
			 (unsigned long long)k->max);
		break;
	case KEY_DURATION:
		show_duration(k->min, low, sizeof(low));
		show_duration(k->max, high, sizeof(high));
		snprintf(ret, size, "a duration from %s to %s, such as 500ms or 2s", low, high);
		break;
	case KEY_WATTS:
		snprintf(ret, size, "watts, a number from 0 to %llu", (unsigned long long)k->max);
		break;
	case KEY_PERCENT:
		snprintf(ret, size, "a share such as 1%% or 0.5%%, at most %llu%%", (unsigned long long)k->max);
		break;
	case KEY_BOOL:
		snprintf(ret, size, "true or false");
		break;
	case KEY_LIST:
		snprintf(ret, size, "a list of at most %llu, such as [a, b]", (unsigned long long)k->max);
		break;
	case KEY_MAP:
		snprintf(ret, size, "a map, such as { %s: ... }", k->sub[0].name);
		break;
	case KEY_MAPS:
		snprintf(ret, size, "a list of at most %llu maps, such as [{ %s: ... }]", (unsigned long long)k->max,
			 k->sub[0].name);
		break;
	}
}

static int refuse(const struct key *k, const char *text, const struct origin *o, struct err *err)
{
	char wanted[300], found[FOUND_MAX];

	key_expected(k, wanted, sizeof(wanted));
	text_escape(found, sizeof(found), text);
	return key_error(o, k->name, err, "\"%s\" is not valid; expected %s", found, wanted);
}

static int set_text(char **to, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

static int word_index(const struct key *k, const char *text)
{
	for (unsigned i = 0; word_of(k, i); i++)
		if (strcmp(word_of(k, i), text) == 0)
			return (int)i;
	return -EINVAL;
}

static int set_number(const struct key *k, void *base, const char *text)
{
	uint64_t v;
	int rc;

	rc = k->type == KEY_DURATION ? parse_duration_ns(text, &v) :
	     k->type == KEY_BYTES    ? parse_bytes(text, &v) :
				       parse_u64(text, &v);
	if (rc)
		return rc;
	if (v < k->min || v > k->max)
		return -ERANGE;
	*(uint64_t *)field(k, base) = v;
	return 0;
}

static int set_watts(const struct key *k, void *base, const char *text)
{
	double v;
	int rc = parse_double(text, &v);

	if (rc)
		return rc;
	if (v < 0 || v > (double)k->max)
		return -ERANGE;
	*(double *)field(k, base) = v;
	return 0;
}

/* Takes "1%" but not "1", which some would read as all of it. */
static int set_percent(const struct key *k, void *base, const char *text)
{
	size_t len = strlen(text);
	char number[32];
	double v;

	if (len < 2 || len > sizeof(number) || text[len - 1] != '%')
		return -EINVAL;
	memcpy(number, text, len - 1);
	number[len - 1] = '\0';
	if (parse_double(number, &v) || v <= 0 || v > (double)k->max)
		return -EINVAL;
	*(double *)field(k, base) = v / 100;
	return 0;
}

/* 0, -ENOMEM, or another errno when the text is not a value of this row. */
static int set_value(const struct key *k, void *base, const char *text)
{
	int i;

	switch (k->type) {
	case KEY_STRING:
		return set_text(field(k, base), text);
	case KEY_WORD:
		return word_index(k, text) < 0 ? -EINVAL : set_text(field(k, base), text);
	case KEY_ENUM:
		i = word_index(k, text);
		if (i >= 0)
			*(int *)field(k, base) = i;
		return i < 0 ? i : 0;
	case KEY_WATTS:
		return set_watts(k, base, text);
	case KEY_PERCENT:
		return set_percent(k, base, text);
	case KEY_BOOL:
		return parse_bool(text, field(k, base)) ? 0 : -EINVAL;
	case KEY_COUNT:
	case KEY_BYTES:
	case KEY_DURATION:
		return set_number(k, base, text);
	default:
		return -EINVAL;
	}
}

int key_set(const struct key *k, void *base, const char *text, const struct origin *o, struct err *err)
{
	bool typed = k->type == KEY_COUNT || k->type == KEY_BOOL || k->type == KEY_WATTS;
	const char *wanted = k->refuse ? k->refuse(text) : NULL;
	char found[FOUND_MAX];
	int rc;

	if (wanted) {
		text_escape(found, sizeof(found), text);
		return key_error(o, k->name, err, "\"%s\" is not valid; expected %s", found, wanted);
	}
	rc = o->quoted && typed ? -EINVAL : set_value(k, base, text);
	if (rc == -ENOMEM)
		return err_set(err, rc, "configuration: out of memory; free some");
	return rc ? refuse(k, text, o, err) : 0;
}

int key_list_add(const struct key *k, void *base, const char *text, const struct origin *o, struct err *err)
{
	struct str_list *list = field(k, base);
	const char *wanted = k->refuse ? k->refuse(text) : NULL;
	char found[FOUND_MAX], *copy;

	if (wanted) {
		text_escape(found, sizeof(found), text);
		if (k->hidden)
			found[strcspn(found, "=")] = '\0';
		return key_error(o, k->name, err, "\"%s\" is not valid; expected %s", found, wanted);
	}
	if (list->n >= k->max)
		return key_error(o, k->name, err, "more than %llu entries; shorten the list",
				 (unsigned long long)k->max);
	copy = strdup(text);
	if (!copy || ARRAY_RESIZE(list->v, list->n + 1) != 0 || ARRAY_RESIZE(list->line, list->n + 1) != 0) {
		free(copy);
		return err_set(err, -ENOMEM, "configuration: out of memory; free some");
	}
	list->line[list->n] = o->file ? o->line : 0;
	list->v[list->n++] = copy;
	return 0;
}

void *key_maps_add(const struct key *k, void *base)
{
	unsigned *n = (unsigned *)((char *)base + k->maps->count_offset);
	char **elems = field(k, base);
	void *elem;

	if (array_resize(elems, *n + 1, k->maps->elem_size) != 0)
		return NULL;
	elem = *elems + *n * k->maps->elem_size;
	memset(elem, 0, k->maps->elem_size);
	++*n;
	return key_defaults(k->sub, elem) ? NULL : elem;
}

static int list_defaults(const struct key *k, void *base)
{
	static const struct origin nowhere = { .flag = "default", .path = "" };
	const char *s = k->def;
	char word[SCHEMA_NAME_MAX];
	int rc = 0;

	while (s && *s && !rc) {
		size_t len = strcspn(s, ",");

		snprintf(word, sizeof(word), "%.*s", (int)len, s);
		rc = key_list_add(k, base, word, &nowhere, NULL);
		s += len;
		s += strspn(s, ", ");
	}
	return rc;
}

int key_defaults(const struct key *keys, void *base)
{
	int rc = 0;

	for (const struct key *k = keys; k->name && !rc; k++) {
		if (k->type == KEY_MAP)
			rc = key_defaults(k->sub, base);
		else if (k->type == KEY_LIST)
			rc = list_defaults(k, base);
		else if (k->def && k->type != KEY_MAPS)
			rc = set_value(k, base, k->def);
		else if (k->type == KEY_WATTS)
			*(double *)field(k, base) = NAN;
	}
	return rc;
}

static void free_maps(const struct key *k, void *base)
{
	unsigned *n = (unsigned *)((char *)base + k->maps->count_offset);
	char **elems = field(k, base);

	for (unsigned i = 0; i < *n; i++)
		key_free(k->sub, *elems + i * k->maps->elem_size);
	free(*elems);
	*elems = NULL;
	*n = 0;
}

void key_free(const struct key *keys, void *base)
{
	for (const struct key *k = keys; k->name; k++) {
		if (k->type == KEY_STRING || k->type == KEY_WORD) {
			char **text = field(k, base);

			free(*text);
			*text = NULL;
		} else if (k->type == KEY_LIST) {
			str_list_free(field(k, base));
		} else if (k->type == KEY_MAP) {
			key_free(k->sub, base);
		} else if (k->type == KEY_MAPS) {
			free_maps(k, base);
		}
	}
}
