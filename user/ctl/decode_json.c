/* SPDX-License-Identifier: Apache-2.0 */
/* PowerAPI reports: JSON documents one behind the other, a line each or spread over many.
 *
 *	hwpc   {"timestamp":T,"sensor":S,"target":"/a","groups":{GROUP:{SOCKET:{CPU:{EVENT:n}}}},"metadata":{}}
 *	power  {"timestamp":T,"sensor":S,"target":"/a","power":1.25,"metadata":{}}
 *
 * T is milliseconds since the Unix epoch or ISO text. Other keys are passed on. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include "decode.h"
#include "json_scan.h"

#define TEXT_MAX (4u << 20)
#define TREE_MAX (32u << 20) /* a tree takes up to 80 times its text */
#define LEVELS_MAX 16

struct reports {
	struct decoding *d;
	struct buf text;
};

/* jansson's memory, counted: there is one tree at a time. */
static size_t tree_bytes;

static void *tree_malloc(size_t n)
{
	void *p = tree_bytes + n <= TREE_MAX ? malloc(n) : NULL;

	tree_bytes += p ? malloc_usable_size(p) : 0;
	return p;
}

static void tree_free(void *p)
{
	tree_bytes -= p ? malloc_usable_size(p) : 0;
	free(p);
}

static int digits(const char **s, int n)
{
	int v = 0;

	for (; n; n--, ++*s) {
		if (!isdigit((unsigned char)**s))
			return -1;
		v = v * 10 + **s - '0';
	}
	return v;
}

static bool is_offset(const char *s)
{
	if (!strcmp(s, "") || !strcmp(s, "Z"))
		return true;
	if (*s != '+' && *s != '-')
		return false;
	s++;
	if (digits(&s, 2) < 0)
		return false;
	s += *s == ':';
	return digits(&s, 2) >= 0 && !*s;
}

bool decode_is_iso_time(const char *s)
{
	static const struct {
		char after;
		int n, low, high;
	} part[] = {
		{ '-', 4, 0, 9999 }, { '-', 2, 1, 12 }, { 'T', 2, 1, 31 },
		{ ':', 2, 0, 23 },   { ':', 2, 0, 59 }, { 0, 2, 0, 60 },
	};

	for (unsigned i = 0; i < 6; i++) {
		int v = digits(&s, part[i].n);

		if (v < part[i].low || v > part[i].high)
			return false;
		if (part[i].after && *s++ != part[i].after)
			return false;
	}
	if (*s == '.') {
		if (!isdigit((unsigned char)*++s))
			return false;
		while (isdigit((unsigned char)*s))
			s++;
	}
	return is_offset(s);
}

/* 1 = something else follows, 0 = the end. */
static int skip_space(struct input *in)
{
	for (;;) {
		const uint8_t *p;
		int n = input_peek(in, 1, &p), k = 0;

		while (k < n && strchr(" \t\r\n", p[k]) && p[k])
			k++;
		if (n <= 0 || k < n)
			return n <= 0 ? n : input_take(in, NULL, (size_t)k, "space") ?: 1;
		input_take(in, NULL, (size_t)k, "space");
	}
}

/* The text of the next document. 1, 0 = there is none. */
static int next_text(struct reports *r, uint64_t *ret_offset)
{
	struct input *in = r->d->in;
	struct json_scan s = { 0 };
	const uint8_t *p;
	int n = skip_space(in), err;
	uint8_t bad;

	if (n <= 0)
		return n;
	*ret_offset = input_offset(in);
	buf_reset(&r->text);
	while ((n = input_peek(in, 1, &p)) > 0) {
		size_t good = json_scan(&s, p, (size_t)n);

		bad = good < (size_t)n ? p[good] : 0;
		err = input_append(in, &r->text, good, "a report");
		if (err || s.state == JSON_SCAN_DONE)
			return err ? err : 1;
		if (s.expected)
			return input_fail(in, input_offset(in), s.expected,
					  bad > 0x20 && bad < 0x7f ? "'%c'" : "byte 0x%02x", bad);
		if (r->text.len > TEXT_MAX)
			return input_fail(in, *ret_offset, "a report of at most 4 MiB", "a longer one");
	}
	return n < 0 ? n : input_take(in, NULL, 1, "the rest of a report");
}

static int fail(struct reports *r, uint64_t offset, const char *expected, const char *found)
{
	return input_fail(r->d->in, offset, expected, "%s", found);
}

/* What is left to be wrong: names that stand twice, numbers that are too large, halves of surrogate pairs. */
static int parse(struct reports *r, uint64_t offset, json_t **ret)
{
	json_error_t e;

	json_set_alloc_funcs(tree_malloc, tree_free);
	*ret = json_loadb((const char *)r->text.data, r->text.len, JSON_REJECT_DUPLICATES, &e);
	if (*ret)
		return 0;
	if (json_error_code(&e) == json_error_out_of_memory || !e.text[0])
		return fail(r, offset, "a report that takes at most 32 MiB", "a larger one");
	return fail(r, offset + (uint64_t)(e.position > 0 ? e.position - 1 : 0), "a report", e.text);
}

/* groups: objects of groups, sockets, cpus and events around numbers. NULL, or what is wrong. */
static const char *check_groups(const json_t *v, int level)
{
	const char *key;
	json_t *sub;

	if (level == 5)
		return json_is_number(v) ? NULL : "an event that is no number";
	if (!json_is_object(v))
		return "something else than group, socket, cpu and event, each in an object";
	json_object_foreach((json_t *)v, key, sub) {
		const char *bad = check_groups(sub, level + 1);

		if (bad)
			return bad;
	}
	return NULL;
}

static bool is_time(const json_t *v)
{
	const char *s = json_string_value(v);

	return json_is_integer(v) || (s && (decode_is_iso_time(s) || (*s && !s[strspn(s, "0123456789")])));
}

/* Which report it is; NULL after a failure. */
static const char *check(struct reports *r, const json_t *doc, uint64_t offset)
{
	const json_t *groups = json_object_get(doc, "groups"), *power = json_object_get(doc, "power");
	const json_t *meta = json_object_get(doc, "metadata");
	const char *kind = groups ? "hwpc" : power ? "power" : NULL, *want = r->d->format, *bad;

	if (!kind || (groups && power) || (want && strcmp(want, kind) != 0))
		fail(r, offset,
		     want ? "a report of the format asked for" : "a report with either groups (hwpc) or power",
		     kind ? groups && power ? "one with both" : kind : "one with neither");
	else if (!is_time(json_object_get(doc, "timestamp")))
		fail(r, offset, "a timestamp, milliseconds or ISO text",
		     json_object_get(doc, "timestamp") ? "something else" : "a report without");
	else if (!json_is_string(json_object_get(doc, "sensor")) || !json_is_string(json_object_get(doc, "target")))
		fail(r, offset, "sensor and target, as text", "a report without one of them");
	else if (meta && !json_is_object(meta) && !json_is_null(meta))
		fail(r, offset, "metadata that is an object", "something else");
	else if (power && !json_is_number(power))
		fail(r, offset, "power as a number of watts", "something else");
	else if (groups && (bad = check_groups(groups, 1)))
		fail(r, offset, "numbers by group, socket, cpu and event", bad);
	else
		return kind;
	return NULL;
}

static bool fits(const json_t *v, int level)
{
	const char *name;
	json_t *sub;
	size_t i;

	if (level == LEVELS_MAX)
		return !json_is_array(v) && !json_is_object(v);
	json_array_foreach(v, i, sub)
		if (!fits(sub, level + 1))
			return false;
	json_object_foreach((json_t *)v, name, sub)
		if (!fits(sub, level + 1))
			return false;
	return true;
}

static void put(struct out *o, const char *key, const json_t *v)
{
	const char *name;
	json_t *sub;
	size_t i;

	switch (json_typeof(v)) {
	case JSON_STRING:
		out_str(o, key, json_string_value(v));
		return;
	case JSON_INTEGER:
		out_i64(o, key, json_integer_value(v));
		return;
	case JSON_REAL:
		out_double(o, key, json_real_value(v));
		return;
	case JSON_NULL:
		out_null(o, key);
		return;
	case JSON_TRUE:
	case JSON_FALSE:
		out_bool(o, key, json_is_true(v));
		return;
	case JSON_ARRAY:
		out_list(o, key);
		json_array_foreach(v, i, sub)
			put(o, NULL, sub);
		out_list_end(o);
		return;
	case JSON_OBJECT:
		out_map(o, key);
		json_object_foreach((json_t *)v, name, sub)
			put(o, name, sub);
		out_map_end(o);
	}
}

static int put_report(struct reports *r, const json_t *doc, const char *kind, uint64_t offset)
{
	static const char *const ours[] = { "format", "kind", "record", "offset" };
	const char *key;
	json_t *v;
	int err;

	if (!fits(doc, 0))
		return fail(r, offset, "at most 16 levels", "more");
	for (unsigned i = 0; i < 4; i++)
		if (json_object_get(doc, ours[i]))
			return fail(r, offset, "keys of a report", "format, kind, record or offset");
	out_record(r->d->out, kind, "report", offset);
	json_object_foreach((json_t *)doc, key, v) {
		put(r->d->out, key, v);
		err = out_spill(r->d->out);
		if (err)
			return decode_write_failed(r->d, err);
	}
	return decode_record_end(r->d, offset);
}

static int json_next(void *state)
{
	struct reports *r = state;
	uint64_t offset = 0;
	const char *kind;
	json_t *doc;
	int err = next_text(r, &offset);

	if (err <= 0)
		return err;
	err = parse(r, offset, &doc);
	if (err)
		return err;
	kind = check(r, doc, offset);
	err = kind ? put_report(r, doc, kind, offset) : input_failure(r->d->in)->code;
	json_decref(doc);
	return err;
}

static int json_open(struct decoding *d, void **ret_state)
{
	struct reports *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->d = d;
	*ret_state = r;
	return 0;
}

static void json_close(void *state)
{
	struct reports *r = state;

	if (!r)
		return;
	buf_free(&r->text);
	free(r);
}

const struct decoder decoder_json = { json_open, json_next, json_close };
