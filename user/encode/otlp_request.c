/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/format/varint.h"
#include "base/text.h"
#include "emit.h"
#include "otlp_request.h"
#include "protobuf.h"

#define RESOURCES 0x0a /* ExportMetricsServiceRequest.resource_metrics, ExportTraceServiceRequest.resource_spans = 1 */
#define RESOURCE 0x0a /* ResourceMetrics.resource, ResourceSpans.resource = 1 */
#define SCOPES 0x12 /* ResourceMetrics.scope_metrics, ResourceSpans.scope_spans = 2 */
#define SCOPE 0x0a /* ScopeMetrics.scope, ScopeSpans.scope = 1 */
#define ATTRIBUTES 0x0a /* Resource.attributes = 1 */
#define NAME 0x0a /* InstrumentationScope.name = 1 */
#define VERSION 0x12 /* InstrumentationScope.version = 2 */

void otlp_field(struct buf *b, char tag, const void *data, size_t len)
{
	char *p = (char *)buf_reserve(b, protobuf_whole(len));

	if (!p)
		return;
	p = protobuf_head(p, tag, len);
	if (len)
		p = emit_mem(p, data, len);
	b->len = (size_t)((uint8_t *)p - b->data);
}

/* The length of a text when bytes that are no UTF-8 have become U+FFFD. dst NULL: it is only counted. */
static size_t clean(const char *text, size_t n, char *dst)
{
	size_t len = 0;

	for (size_t at = 0, step; at < n; at += step) {
		const unsigned char *s = (const unsigned char *)text + at;
		size_t size = text_plain_run(s, n - at);

		if (!size)
			size = text_utf8_len(s, n - at);
		step = size ? size : 1;
		if (dst)
			memcpy(dst + len, size ? text + at : "\xef\xbf\xbd", size ? size : 3);
		len += size ? size : 3;
	}
	return len;
}

void otlp_string(struct buf *b, char tag, const char *text)
{
	const size_t raw = strlen(text), len = clean(text, raw, NULL);
	char *p = (char *)buf_reserve(b, protobuf_whole(len));

	if (!p)
		return;
	p = protobuf_head(p, tag, len);
	p += clean(text, raw, p);
	b->len = (size_t)((uint8_t *)p - b->data);
}

void otlp_text(struct buf *b, char tag, const char *key, const char *value)
{
	const size_t k = strlen(key), raw = strlen(value), v = clean(value, raw, NULL), any = protobuf_whole(v);
	const size_t len = protobuf_whole(k) + protobuf_whole(any);
	char *p = v ? (char *)buf_reserve(b, protobuf_whole(len)) : NULL;

	if (!p)
		return;
	p = protobuf_head(p, tag, len);
	p = protobuf_head(p, OTLP_KEY, k);
	p = emit_mem(p, key, k);
	p = protobuf_head(p, OTLP_VALUE, any);
	p = protobuf_head(p, OTLP_STRING, v);
	p += clean(value, raw, p);
	b->len = (size_t)((uint8_t *)p - b->data);
}

void otlp_number(struct buf *b, char tag, const char *key, uint64_t value)
{
	const size_t k = strlen(key), any = 1 + protobuf_size(value);
	const size_t len = protobuf_whole(k) + protobuf_whole(any);
	char *p = (char *)buf_reserve(b, protobuf_whole(len));

	if (!p)
		return;
	p = protobuf_head(p, tag, len);
	p = protobuf_head(p, OTLP_KEY, k);
	p = emit_mem(p, key, k);
	p = protobuf_head(p, OTLP_VALUE, any);
	p = protobuf_head(p, OTLP_INT, value);
	b->len = (size_t)((uint8_t *)p - b->data);
}

/* Prometheus makes job and instance of service.name and service.instance.id; VictoriaMetrics makes a label of each
 * attribute, so both stand here under these names, too. */
void otlp_make_head(struct buf *head, const char *sensor, const struct otlp_name *more, unsigned n)
{
	const struct otlp_name names[] = { { "host.name", sensor },
					   { "service.name", "jouled" },
					   { "service.instance.id", sensor },
					   { "service.version", JOULED_VERSION },
					   { "job", "jouled" },
					   { "instance", sensor } };
	struct buf b = { 0 };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		otlp_text(&b, ATTRIBUTES, names[i].key, names[i].value);
	for (unsigned i = 0; i < n; i++)
		otlp_text(&b, ATTRIBUTES, more[i].key, more[i].value);
	otlp_field(head, RESOURCE, b.data, b.len);
	head->failed = head->failed || b.failed;
	b.len = 0;
	otlp_field(&b, NAME, "jouled", 6);
	otlp_field(&b, VERSION, JOULED_VERSION, strlen(JOULED_VERSION));
	otlp_field(head, SCOPE, b.data, b.len);
	head->failed = head->failed || b.failed;
	buf_free(&b);
}

size_t otlp_head(const void *document, size_t n)
{
	const char *p = document, *content;
	size_t len, resource = protobuf_field(p, n, RESOURCE, &content, &len);
	size_t scope = resource ? protobuf_field(p + resource, n - resource, SCOPE, &content, &len) : 0;

	return scope ? resource + scope : 0;
}

/* The items are there first, for their length stands before them; they are moved behind what holds them. */
int otlp_enclose(const struct push_part *part, struct buf *out, size_t from)
{
	const char *head = part->head, *content;
	size_t len, resource = protobuf_field(head, part->n_head, RESOURCE, &content, &len);
	size_t scope = part->n_head - resource, items = out->len - from, scoped, whole, room;
	char *p;

	if (!resource || !items || out->failed)
		return out->failed ? -ENOMEM : -EBADMSG;
	scoped = scope + items;
	whole = resource + protobuf_whole(scoped);
	room = protobuf_whole(whole) - items;
	if (!buf_reserve(out, room))
		return -ENOMEM;
	memmove(out->data + from + room, out->data + from, items);
	p = protobuf_head((char *)out->data + from, RESOURCES, whole);
	p = emit_mem(p, head, resource);
	p = protobuf_head(p, SCOPES, scoped);
	emit_mem(p, head + resource, scope);
	out->len += room;
	return 0;
}

int otlp_disclose(const char *body, size_t n, struct buf *out, const char **ret_items, size_t *ret_n)
{
	const char *whole, *scoped, *content;
	size_t n_whole, n_scoped, len, resource, scope;

	if (!n || protobuf_field(body, n, RESOURCES, &whole, &n_whole) != n)
		return -EBADMSG;
	resource = protobuf_field(whole, n_whole, RESOURCE, &content, &len);
	if (!resource || resource == n_whole ||
	    protobuf_field(whole + resource, n_whole - resource, SCOPES, &scoped, &n_scoped) != n_whole - resource)
		return -EBADMSG;
	scope = protobuf_field(scoped, n_scoped, SCOPE, &content, &len);
	if (!scope)
		return -EBADMSG;
	buf_add(out, whole, resource);
	buf_add(out, scoped, scope);
	*ret_items = scoped + scope;
	*ret_n = n_scoped - scope;
	return out->failed ? -ENOMEM : 0;
}

/* Takes a field: its number, its number as value, or its bytes. False = no such message. */
static bool take_field(struct varint_reader *r, uint64_t *ret_tag, uint64_t *ret_value, const uint8_t **ret_bytes)
{
	*ret_tag = varint_take(r);
	*ret_bytes = NULL;
	*ret_value = 0;
	switch (*ret_tag & 7) {
	case 0:
		*ret_value = varint_take(r);
		break;
	case 1:
		varint_bytes(r, 8);
		break;
	case 2:
		*ret_value = varint_take(r);
		*ret_bytes = varint_bytes(r, *ret_value);
		break;
	case 5:
		varint_bytes(r, 4);
		break;
	default:
		return false;
	}
	return !r->bad && *ret_tag >> 3;
}

/* ExportMetricsPartialSuccess, ExportTracePartialSuccess: rejected_data_points or rejected_spans = 1, error_message = 2. */
static int take_partial(const uint8_t *data, size_t n, struct push_answer *ret)
{
	struct varint_reader r = { .at = data, .end = data + n };
	const uint8_t *bytes;
	uint64_t tag, value;
	char text[100];

	while (r.at < r.end) {
		if (!take_field(&r, &tag, &value, &bytes))
			return -EBADMSG;
		if (tag == (1 << 3 | 0))
			ret->rejected = value <= INT64_MAX ? value : 0;
		if (tag != (2 << 3 | 2))
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)(value < sizeof(text) ? value : sizeof(text) - 1),
			 (const char *)bytes);
		text_escape(ret->why, sizeof(ret->why), text);
	}
	return 0;
}

/* ExportMetricsServiceResponse, ExportTraceServiceResponse: partial_success = 1. An empty one: everything was taken. */
int otlp_answer(const void *body, size_t n, struct push_answer *ret)
{
	struct varint_reader r = { .at = body, .end = (const uint8_t *)body + n };
	const uint8_t *bytes;
	uint64_t tag, value;
	int rc = 0;

	while (n && r.at < r.end && !rc) {
		if (!take_field(&r, &tag, &value, &bytes))
			return -EBADMSG;
		if (tag == (1 << 3 | 2))
			rc = take_partial(bytes, value, ret);
	}
	return rc;
}
