/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cbor.h"
#include "fields.h"

static const void *at(const struct field *f, const void *obj)
{
	return (const char *)obj + f->offset;
}

uint64_t field_number(const struct field *f, const void *obj)
{
	const void *p = at(f, obj);
	uint64_t start;

	switch (f->type) {
	case FIELD_U8:
		return *(const uint8_t *)p;
	case FIELD_U16:
		return *(const uint16_t *)p;
	case FIELD_U32:
		return *(const uint32_t *)p;
	case FIELD_INT:
		return (uint64_t)(int64_t) * (const int *)p;
	case FIELD_BOOL:
		return *(const bool *)p;
	case FIELD_LENGTH:
		memcpy(&start, (const char *)obj + f->from, sizeof(start));
		return *(const uint64_t *)p - start;
	case FIELD_U64:
	case FIELD_I64:
	case FIELD_DOUBLE:
		memcpy(&start, p, sizeof(start));
		return start;
	default:
		return 0;
	}
}

static double real_of(const struct field *f, const void *obj)
{
	return *(const double *)at(f, obj);
}

const char *field_text(const struct field *f, const void *obj)
{
	const char *s = f->type == FIELD_CHARS  ? at(f, obj) :
			f->type == FIELD_STRING ? *(const char *const *)at(f, obj) :
			f->words                ? f->words->name((unsigned)field_number(f, obj)) :
						  NULL;

	return s ? s : "";
}

static bool is_text(const struct field *f)
{
	return f->type == FIELD_CHARS || f->type == FIELD_STRING;
}

static bool is_form(const struct field *f, unsigned in)
{
	return !f->in || f->in & in;
}

bool field_shown(const struct field *f, const void *obj, unsigned in)
{
	if (!is_form(f, in))
		return false;
	if (!(f->how & FIELD_SOME))
		return true;
	if (f->type == FIELD_DOUBLE)
		return isfinite(real_of(f, obj));
	return is_text(f) ? *field_text(f, obj) != '\0' : field_number(f, obj) != 0;
}

static void put_json(struct json *j, const struct field *f, const void *obj)
{
	uint64_t v = field_number(f, obj);
	char hex[20];

	if (is_text(f) || f->words) {
		json_str(j, field_text(f, obj));
	} else if (f->how & FIELD_HEX) {
		snprintf(hex, sizeof(hex), "%llx", (unsigned long long)v);
		json_str(j, hex);
	} else if (f->type == FIELD_DOUBLE) {
		json_double(j, real_of(f, obj));
	} else if (f->type == FIELD_BOOL) {
		json_bool(j, v);
	} else if (f->type == FIELD_INT || f->type == FIELD_I64) {
		json_i64(j, (int64_t)v);
	} else {
		json_u64(j, v);
	}
}

void fields_json(struct json *j, const struct fields *t, const void *obj, unsigned in)
{
	for (const struct field *f = t->list; f < t->list + t->n; f++)
		if (field_shown(f, obj, in)) {
			json_key(j, f->name);
			put_json(j, f, obj);
		}
}

void json_key_fields(struct json *j, const char *key, const struct fields *t, const void *obj, unsigned in)
{
	json_key(j, key);
	json_object_begin(j);
	fields_json(j, t, obj, in);
	json_object_end(j);
}

void field_cbor(struct buf *b, const struct field *f, const void *obj)
{
	uint64_t v = field_number(f, obj);

	if (is_text(f) || (f->words && f->how & FIELD_SPELLED))
		cbw_str(b, field_text(f, obj));
	else if (f->type == FIELD_DOUBLE)
		cbw_double(b, real_of(f, obj));
	else if (f->type == FIELD_BOOL && !(f->how & FIELD_DIGIT))
		cbw_bool(b, v);
	else if (f->type == FIELD_INT || f->type == FIELD_I64)
		cbw_int(b, (int64_t)v);
	else
		cbw_uint(b, v);
}

void fields_cbor(struct buf *b, const struct fields *t, const void *obj, unsigned in)
{
	for (const struct field *f = t->list; f < t->list + t->n; f++)
		if (field_shown(f, obj, in)) {
			cbw_str(b, f->name);
			field_cbor(b, f, obj);
		}
}

unsigned fields_count(const struct fields *t, const void *obj, unsigned in)
{
	unsigned n = 0;

	for (const struct field *f = t->list; f < t->list + t->n; f++)
		n += field_shown(f, obj, in);
	return n;
}

void fields_by_key(const struct fields *t, unsigned in, const struct field **ret, unsigned n)
{
	for (const struct field *f = t->list; f < t->list + t->n; f++)
		if (is_form(f, in) && f->key < n)
			ret[f->key] = f;
}

static void store(const struct field *f, void *obj, uint64_t v)
{
	char *p = (char *)obj + f->offset;
	uint64_t start;

	switch (f->type) {
	case FIELD_U8:
		*(uint8_t *)p = (uint8_t)v;
		break;
	case FIELD_U16:
		*(uint16_t *)p = (uint16_t)v;
		break;
	case FIELD_U32:
		*(uint32_t *)p = (uint32_t)v;
		break;
	case FIELD_INT:
		*(int *)p = (int)(int64_t)v;
		break;
	case FIELD_BOOL:
		*(bool *)p = v != 0;
		break;
	case FIELD_LENGTH:
		memcpy(&start, (const char *)obj + f->from, sizeof(start));
		v += start;
		memcpy(p, &v, sizeof(v));
		break;
	case FIELD_U64:
	case FIELD_I64:
	case FIELD_DOUBLE:
		memcpy(p, &v, sizeof(v));
		break;
	default:
		break;
	}
}

static uint64_t largest(const struct field *f)
{
	static const uint64_t of_type[] = {
		[FIELD_U8] = UINT8_MAX, [FIELD_U16] = UINT16_MAX, [FIELD_U32] = UINT32_MAX, [FIELD_U64] = UINT64_MAX,
		[FIELD_INT] = INT_MAX,  [FIELD_I64] = INT64_MAX,  [FIELD_BOOL] = 1,
	};

	if (f->max || (f->words && !f->words->bits))
		return f->max ? f->max : f->words->n - 1;
	return f->type < sizeof(of_type) / sizeof(of_type[0]) ? of_type[f->type] : UINT64_MAX;
}

/* Finds the value that a word names. */
static bool value_of(const struct field_words *w, const char *word, uint64_t *ret)
{
	for (unsigned i = 0; i < w->n + w->bits; i++) {
		unsigned v = w->bits ? i ? 1u << (i - 1) : 0 : i;

		if (strcmp(word, w->name(v)) == 0) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static int read_word(struct cbr *in, const struct field *f, const char *what, uint64_t *ret)
{
	char word[32];
	int rc = cbr_str(in, word, sizeof(word), NULL, what);

	if (!rc && !value_of(f->words, word, ret))
		rc = cbr_fail(in, what, "the word \"%s\"", word);
	return rc;
}

static int read_signed(struct cbr *in, const struct field *f, const char *what, uint64_t *ret)
{
	int64_t v = 0;
	int rc = cbr_int(in, &v, what);

	if (!rc && f->type == FIELD_INT && (v > INT_MAX || v < INT_MIN))
		rc = cbr_fail(in, what, "%lld, which is too large", (long long)v);
	*ret = (uint64_t)v;
	return rc;
}

int field_cbor_read(struct cbr *in, const struct field *f, void *obj)
{
	const char *what = f->what ? f->what : f->name;
	uint64_t v = 0;
	bool is = false;
	double real = 0;
	int rc;

	if (f->type <= FIELD_U64 && !(f->how & FIELD_SPELLED)) {
		rc = cbr_uint_max(in, largest(f), &v, what);
		if (!rc)
			store(f, obj, v);
		return rc;
	}
	if (f->type == FIELD_CHARS)
		return cbr_str(in, (char *)obj + f->offset, f->size, NULL, what);
	if (f->words && f->how & FIELD_SPELLED) {
		rc = read_word(in, f, what, &v);
	} else if (f->type == FIELD_DOUBLE) {
		rc = cbr_double(in, &real, what);
		memcpy(&v, &real, sizeof(v));
	} else if (f->type == FIELD_BOOL && !(f->how & FIELD_DIGIT)) {
		rc = cbr_bool(in, &is, what);
		v = is;
	} else if ((f->type == FIELD_INT || f->type == FIELD_I64) && !f->max) {
		rc = read_signed(in, f, what, &v);
	} else {
		rc = cbr_uint_max(in, largest(f), &v, what);
	}
	if (!rc)
		store(f, obj, v);
	return rc;
}

int fields_cbor_read(struct cbr *in, const struct fields *t, unsigned form, const char *key, void *obj)
{
	for (const struct field *f = t->list; f < t->list + t->n; f++)
		if (is_form(f, form) && strcmp(f->name, key) == 0)
			return field_cbor_read(in, f, obj);
	return 1;
}

/* Reads a number. Negative numbers are accepted for signed fields only. */
static bool json_number_of(const json_t *v, const struct field *f, uint64_t *ret)
{
	json_int_t n = json_integer_value(v);
	const char *s = json_string_value(v);
	char *end;

	if (f->words)
		return s && value_of(f->words, s, ret);
	if (f->how & FIELD_HEX) {
		*ret = s ? strtoull(s, &end, 16) : 0;
		return s && !*end && strlen(s) <= 16;
	}
	*ret = f->type == FIELD_BOOL ? json_is_true(v) : (uint64_t)n;
	return f->type == FIELD_BOOL ||
	       (json_is_integer(v) && (n >= 0 || f->type == FIELD_INT || f->type == FIELD_I64));
}

static void take_json(const json_t *v, const struct field *f, void *obj)
{
	const char *s = json_string_value(v);
	char *p = (char *)obj + f->offset;
	double real;
	uint64_t n;

	if (f->type == FIELD_STRING) {
		memcpy(p, &s, s ? sizeof(s) : 0);
	} else if (f->type == FIELD_CHARS) {
		if (s)
			snprintf(p, f->size, "%s", s);
	} else if (f->type == FIELD_DOUBLE) {
		real = json_number_value(v);
		memcpy(p, &real, json_is_number(v) ? sizeof(real) : 0);
	} else if (json_number_of(v, f, &n)) {
		store(f, obj, n);
	}
}

void fields_json_read(const void *object, const struct fields *t, void *obj, unsigned in)
{
	for (const struct field *f = t->list; f < t->list + t->n; f++) {
		const json_t *v = is_form(f, in) ? json_object_get(object, f->name) : NULL;

		if (v)
			take_json(v, f, obj);
	}
}
