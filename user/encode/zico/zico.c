/* SPDX-License-Identifier: Apache-2.0 */
/* Makes agent data, traces of a bounded size, and envelopes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/format/cbor.h"
#include "base/text.h"
#include "zico.h"

#define SPANS_MAX (1u << 20)
#define NAMES_MAX 65536u /* with more names or NAMES_BYTES the dictionary starts again */
#define NAMES_BYTES ((size_t)2 << 20) /* all of it is sent again in one body when a session is lost */
#define NS_PER_MS_I 1000000
#define CLOCK_MIN_MS 946684800000 /* 2000: earlier clocks were never set */
#define CLOCK_MAX_MS ((int64_t)INT32_MAX * 1000) /* collectors store seconds in 32 bits */
#define ENVELOPE_VERSION 1

static size_t characters(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

static int check_options(const struct zico_options *o, const char *type, struct err *err)
{
	const struct zico_profile *p = zico_profile(o->profile);

	if (!p)
		return err_set(err, -EINVAL,
			       "zico: no profile \"%s\"; expected document, zico-1.90, zico-1.90.6 or zico-2",
			       o->profile);
	if (!(p->flags & 1u << o->flags))
		return err_set(err, -EINVAL, "zico: releases of profile %s refuse these flags; leave flags out",
			       p->name);
	if (!*type || characters(type) > ZICO_TYPE_MAX)
		return err_set(err, -EINVAL, "zico: a trace type has 1 to 64 characters; shorten it");
	for (const char *s = type; *s;) {
		size_t n = text_utf8_len((const unsigned char *)s, strlen(s));

		if (!n || (unsigned char)*s < 0x20)
			return err_set(
				err, -EINVAL,
				"zico: a trace type is UTF-8 text without control characters; write another one");
		s += n;
	}
	return 0;
}

static int copy_agent(struct zico *z, const struct zico_options *o)
{
	z->agent = calloc(o->n_agent + 1, sizeof(*z->agent));
	if (!z->agent)
		return -ENOMEM;
	for (unsigned i = 0; i < o->n_agent; i++) {
		struct zico_attr *a = &z->agent[z->n_agent];

		if (!o->agent[i].value || !*o->agent[i].value)
			continue;
		z->n_agent++;
		a->key = strdup(o->agent[i].key);
		a->value = strdup(o->agent[i].value);
		if (!a->key || !a->value)
			return -ENOMEM;
	}
	return 0;
}

int zico_new(const struct zico_options *o, struct zico **ret, struct err *err)
{
	const char *type = o->type ? o->type : ZICO_TYPE_DEFAULT;
	int rc = check_options(o, type, err);
	struct zico *z;

	if (rc)
		return rc;
	z = calloc(1, sizeof(*z));
	if (!z || copy_agent(z, o) != 0) {
		zico_free(z);
		return err_set(err, -ENOMEM, "zico: out of memory; free some");
	}
	z->profile = zico_profile(o->profile);
	z->big = o->big_endian;
	z->flags = o->flags;
	z->body_max = o->body_max ? o->body_max : ZICO_BODY_MAX;
	memcpy(z->type, type, strlen(type) + 1);
	*ret = z;
	return 0;
}

void zico_free(struct zico *z)
{
	if (!z)
		return;
	for (unsigned i = 0; i < z->n_agent; i++) {
		free((char *)z->agent[i].key);
		free((char *)z->agent[i].value);
	}
	free(z->agent);
	zico_names_free(&z->names);
	buf_free(&z->nodes);
	hash_free(&z->by_id);
	buf_free(&z->pairs);
	buf_free(&z->text);
	free(z);
}

void zico_forget(struct zico *z)
{
	zico_names_forget(&z->names);
	z->agent_told = false;
}

void zico_told(struct zico *z)
{
	z->names.strings.told = z->names.strings.n;
	z->names.methods.told = z->names.methods.n;
	z->agent_told = true;
}

static void put_agent_attributes(struct zico *z, struct buf *out)
{
	if (z->agent_told || !z->profile->agent_attribute)
		return;
	for (unsigned i = 0; i < z->n_agent; i++) {
		cbw_tag(out, z->profile->agent_attribute);
		cbw_array(out, 2);
		cbw_str(out, zico_clean_value(z, z->agent[i].key));
		cbw_str(out, zico_clean_value(z, z->agent[i].value));
	}
}

static void put_definitions(struct zico *z, struct buf *out)
{
	const struct zico_names *n = &z->names;
	const struct zico_string_row *strings = (const void *)n->string_rows.data;
	const struct zico_method_row *methods = (const void *)n->method_rows.data;

	for (uint32_t i = n->strings.told; i < n->strings.n; i++) {
		cbw_tag(out, z->profile->string);
		cbw_array(out, z->profile->typed_strings ? 3 : 2);
		cbw_uint(out, i + 1);
		cbw_str(out, zico_text_of(n, i + 1));
		if (z->profile->typed_strings)
			cbw_uint(out, strings[i].type);
	}
	for (uint32_t i = n->methods.told; i < n->methods.n; i++) {
		cbw_tag(out, z->profile->method);
		cbw_array(out, 4);
		cbw_uint(out, i + 1);
		cbw_uint(out, methods[i].class_id);
		cbw_uint(out, methods[i].name_id);
		cbw_uint(out, methods[i].signature_id);
	}
}

static int check_trace(const struct trace *t, struct err *err)
{
	int64_t ms = t->n_spans ? t->spans[0].start_real_ns / NS_PER_MS_I : 0;
	const char *wrong;

	if (!t->n_spans || t->n_spans > SPANS_MAX)
		return err_set(err, -EINVAL, "trace: %u spans; a trace has 1 to %u", t->n_spans, SPANS_MAX);
	wrong = trace_check(t);
	if (wrong)
		return err_set(err, -EINVAL, "trace: %s; it is not sent", wrong);
	if (ms < CLOCK_MIN_MS || ms > CLOCK_MAX_MS)
		return err_set(err, -ERANGE, "trace: began at %lld ms, which is no time of this century; set the clock",
			       (long long)ms);
	return 0;
}

/* Encodes again with fewer spans until the trace fits, each time with at least a tenth fewer. */
static int put_trace(struct zico *z, struct buf *body)
{
	size_t start = body->len;
	uint32_t n = z->t->n_spans;

	for (;;) {
		zico_records(z, body);
		if (body->failed || z->names.failed || z->text.failed)
			return -ENOMEM;
		if (body->len - start <= z->body_max || n == 1)
			break;
		n = (uint32_t)((double)z->n_kept * 0.9 * (double)z->body_max / (double)(body->len - start));
		n = n ? n : 1;
		body->len = start;
		zico_tree(z);
		zico_tree_keep(z, n);
	}
	return body->len - start <= z->body_max ? 0 : -EMSGSIZE;
}

int zico_encode(struct zico *z, const struct trace *t, struct buf *agent, struct buf *body, struct err *err)
{
	size_t body_start = body->len, agent_start = agent->len;
	int rc = check_trace(t, err);

	if (rc)
		return rc;
	if (z->names.strings.n > NAMES_MAX || z->names.bytes.len > NAMES_BYTES)
		zico_forget(z);
	z->t = t;
	rc = zico_tree(z);
	if (!rc)
		rc = put_trace(z, body);
	put_agent_attributes(z, agent);
	put_definitions(z, agent);
	if (!rc && agent->failed)
		rc = -ENOMEM;
	z->t = NULL;
	if (!rc)
		return 0;
	body->len = body_start;
	agent->len = agent_start;
	if (rc == -ENOMEM)
		zico_forget(z); /* the dictionary may be incomplete */
	return err_set(err, rc,
		       rc == -ENOMEM ? "trace: out of memory; free some" :
		       rc == -EMSGSIZE ?
				       "trace: too large although nothing is left in it but its top; it is not sent" :
				       "trace: a span whose parent is not before it, or two of one id; it is not sent");
}

int zico_enclose(struct zico *z, const struct trace *t, const uint8_t host[16], struct buf *out, struct err *err)
{
	struct buf agent = { 0 }, body = { 0 };
	int rc;

	zico_forget(z);
	rc = zico_encode(z, t, &agent, &body, err);
	if (!rc) {
		cbw_tag(out, ZICO_ENVELOPE_TAG);
		cbw_array(out, 6);
		cbw_uint(out, ENVELOPE_VERSION);
		cbw_str(out, z->profile->name);
		cbw_bytes(out, host, 16);
		cbw_bytes(out, t->uuid, sizeof(t->uuid));
		cbw_uint(out, agent.len);
		cbw_uint(out, body.len);
		buf_add(out, agent.data, agent.len);
		buf_add(out, body.data, body.len);
		rc = out->failed ? err_set(err, -ENOMEM, "trace: out of memory; free some") : 0;
	}
	buf_free(&agent);
	buf_free(&body);
	return rc;
}

/* The wire formats as a table. `document` follows the protocol document literally: the tag of the record gives the
 * byte order, and its first word has no tag. The others are the formats that releases read. */

#define LAYOUT_1_90 \
	.string = 1, .method = 2, .agent_attribute = 3, .record_big = 8, .record_little = 8, .first_big = 0x0a, \
	.first_little = 0x0b, .last_big = 0x0c, .last_little = 0x0d, .begin = 33, .attributes = 9, .exception = 34, \
	.typed_strings = true, .words = true
#define COLUMNS .name_max = 128, .app_max = 64, .attribute_max = 255

static const struct zico_profile profiles[] = {
	{ .name = "document",
	  .string = 0x0d,
	  .method = 0x0e,
	  .agent_attribute = 0x0f,
	  .record_big = 0x0a,
	  .record_little = 0x0b,
	  .last_big = 0x0d,
	  .last_little = 0x0d,
	  .begin = 33,
	  .attributes = 9,
	  .exception = 34,
	  .upward = 0x26,
	  .typed_strings = true,
	  .words = true,
	  .nested = true,
	  .max_exceptions = 128,
	  .flags = 1 << ZICO_FLAGS_NONE },
	{ .name = "zico-1.90",
	  LAYOUT_1_90,
	  .nested = true,
	  .max_exceptions = 128,
	  .flags = 1 << ZICO_FLAGS_NONE | 1 << ZICO_FLAGS_TOKEN | 1 << ZICO_FLAGS_MASK,
	  COLUMNS },
	{ .name = "zico-1.90.6", LAYOUT_1_90, .flags = 1 << ZICO_FLAGS_NONE | 1 << ZICO_FLAGS_MASK, COLUMNS },
	{ .name = "zico-2",
	  .string = 1,
	  .method = 2,
	  .record_big = 3,
	  .record_little = 3,
	  .last_big = 4,
	  .last_little = 4,
	  .begin = 5,
	  .attributes = 6,
	  .exception = 7,
	  .upward = 6,
	  .one_attribute = true,
	  .flags = 1 << ZICO_FLAGS_NONE },
};

const struct zico_profile *zico_profile(const char *name)
{
	for (unsigned i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

const char *zico_profile_name(unsigned i)
{
	return i < sizeof(profiles) / sizeof(profiles[0]) ? profiles[i].name : NULL;
}
