/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded traces taken apart by libcbor into the diagnostic notation of RFC 8949, one item a line. */
#ifndef ZICO_ITEMS_H
#define ZICO_ITEMS_H
#include "zico_fixture.h"
#include <cbor.h>
#include <errno.h>
#include "encode/zico/zico.h"

struct text {
	char s[16384];
	size_t n;
};

static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	t->n += (size_t)vsnprintf(t->s + t->n, sizeof(t->s) - t->n, fmt, ap);
	va_end(ap);
	assert_true(t->n < sizeof(t->s));
}

static void show(struct text *t, const cbor_item_t *i)
{
	switch (cbor_typeof(i)) {
	case CBOR_TYPE_UINT:
		put(t, "%llu", (unsigned long long)cbor_get_int(i));
		break;
	case CBOR_TYPE_BYTESTRING:
		assert_true(cbor_bytestring_is_definite(i));
		put(t, "h'");
		for (size_t n = 0; n < cbor_bytestring_length(i); n++)
			put(t, "%02x", cbor_bytestring_handle(i)[n]);
		put(t, "'");
		break;
	case CBOR_TYPE_STRING:
		assert_true(cbor_string_is_definite(i));
		put(t, "\"%.*s\"", (int)cbor_string_length(i), (const char *)cbor_string_handle(i));
		break;
	case CBOR_TYPE_ARRAY:
		put(t, cbor_array_is_indefinite(i) ? "[_ " : "[");
		for (size_t n = 0; n < cbor_array_size(i); n++) {
			put(t, n ? ", " : "");
			show(t, cbor_array_handle(i)[n]);
		}
		put(t, "]");
		break;
	case CBOR_TYPE_MAP:
		assert_true(cbor_map_is_definite(i));
		put(t, "{");
		for (size_t n = 0; n < cbor_map_size(i); n++) {
			put(t, n ? ", " : "");
			show(t, cbor_map_handle(i)[n].key);
			put(t, ": ");
			show(t, cbor_map_handle(i)[n].value);
		}
		put(t, "}");
		break;
	case CBOR_TYPE_TAG:
		put(t, "%llu(", (unsigned long long)cbor_tag_value(i));
		show(t, i->metadata.tag_metadata.tagged_item); /* cbor_tag_item would take a reference */
		put(t, ")");
		break;
	default:
		fail_msg("an item of type %d", cbor_typeof(i));
	}
}

/* libcbor 0.8 refuses tags 5 to 20 in one byte (c5 to d4): here they get a second one. Heads and strings follow
 * each other flat. */
static void widen(const struct buf *in, struct buf *out)
{
	for (size_t at = 0; at < in->len;) {
		uint8_t first = in->data[at], major = first >> 5, info = first & 31;
		size_t extra = info < 24 || info == 31 ? 0 : (size_t)1 << (info - 24);
		uint64_t arg = info < 24 ? info : 0;

		assert_true(at + 1 + extra <= in->len);
		for (size_t i = 1; i <= extra; i++)
			arg = arg << 8 | in->data[at + i];
		if (major == 6 && !extra)
			buf_add_char(out, (char)0xd8), buf_add_char(out, (char)info);
		else
			buf_add(out, in->data + at, 1 + extra);
		at += 1 + extra;
		if (major == 2 || major == 3) {
			assert_true(at + arg <= in->len);
			buf_add(out, in->data + at, arg);
			at += arg;
		}
	}
}

/* All items of a buffer, one a line. */
static void items(struct text *t, const struct buf *bytes)
{
	struct buf wide = { 0 }, *b = &wide;

	widen(bytes, b);
	t->n = 0;
	t->s[0] = '\0';
	for (size_t at = 0; at < b->len;) {
		struct cbor_load_result r;
		cbor_item_t *i = cbor_load(b->data + at, b->len - at, &r);

		if (!i)
			fail_msg("no CBOR item at %zu of %zu: error %d at %zu", at, b->len, r.error.code,
				 r.error.position);
		show(t, i);
		put(t, "\n");
		at += r.read;
		cbor_decref(&i);
	}
	buf_free(b);
}

struct encoded {
	struct buf agent, trace;
};

static int encode(const struct zico_options *o, const struct trace *t, struct encoded *e, struct err *err)
{
	struct zico *z = NULL;
	int rc;

	assert_int_equal(zico_new(o, &z, err), 0);
	buf_reset(&e->agent);
	buf_reset(&e->trace);
	rc = zico_encode(z, t, &e->agent, &e->trace, err);
	zico_free(z);
	return rc;
}

static void is(const struct zico_options *o, const struct trace *t, const char *agent, const char *trace)
{
	struct encoded e = { 0 };
	struct text text;
	struct err err = { 0 };

	assert_int_equal(encode(o, t, &e, &err), 0);
	items(&text, &e.agent);
	assert_string_equal(text.s, agent);
	items(&text, &e.trace);
	assert_string_equal(text.s, trace);
	buf_free(&e.agent);
	buf_free(&e.trace);
}

/* "cc 48 0a" at byte `at` of the trace (from its end when negative). */
static void has_bytes(const struct zico_options *o, const struct trace *t, long at, const char *hex)
{
	struct encoded e = { 0 };
	struct err err = { 0 };
	unsigned v;
	int used;

	assert_int_equal(encode(o, t, &e, &err), 0);
	at = at < 0 ? (long)e.trace.len + at : at;
	for (; sscanf(hex, " %2x%n", &v, &used) == 1; hex += used, at++) {
		assert_true(at >= 0 && (size_t)at < e.trace.len);
		assert_int_equal(e.trace.data[at], v);
	}
	buf_free(&e.agent);
	buf_free(&e.trace);
}

/* 1 s from tick 0: 15258 ticks of 65536 ns are 999.9 ms. */
static void minimal(struct world *w)
{
	fixture_begin(w);
	fixture_add(w, 0, "sh", 5000000000, 6000000000)->cpu_ns = 250;
}

/* A shell whose make fails because its compiler was killed. */
static void failing(struct world *w)
{
	struct span *s;

	fixture_begin(w);
	s = fixture_add(w, 0, "sh", 0, 4000000000);
	s->exit_code = 2;
	s->exe = "/bin/sh";
	s = fixture_add(w, 0, "make", 1000000000, 3000000000);
	s->exit_code = 2;
	s->exe = "/usr/bin/make";
	s = fixture_add(w, 1, "cc", 1000000000, 2000000000);
	s->end = SPAN_SIGNALED;
	s->signal = 9;
	w->t.n_domains = 2;
	w->t.domains = fixture_domains;
	w->t.interfaces = fixture_interfaces;
	for (int i = 0; i < 3; i++) {
		w->spans[i].n_domains = 2;
		w->spans[i].energy_uj[0] = 1000000;
		w->spans[i].energy_uj[1] = 500000;
	}
}

/* The parts of `text` in this order. */
static void in_order(const char *text, const char *const *parts)
{
	const char *at = text;

	for (; *parts; parts++) {
		const char *hit = strstr(at, *parts);

		if (!hit)
			fail_msg("not found: %s\nin: %s", *parts, at);
		at = hit + strlen(*parts);
	}
}

static void encodes_in_order(const struct zico_options *o, const struct trace *t, bool agent, const char *const *parts)
{
	struct encoded e = { 0 };
	struct text text;
	struct err err = { 0 };

	assert_int_equal(encode(o, t, &e, &err), 0);
	items(&text, agent ? &e.agent : &e.trace);
	in_order(text.s, parts);
	buf_free(&e.agent);
	buf_free(&e.trace);
}

#endif
