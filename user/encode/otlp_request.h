/* SPDX-License-Identifier: Apache-2.0 */
/* What requests of OpenTelemetry's protocol have in common, whatever they carry. A document in the spool is a head, which
 * holds the resource and the scope, and then items. Field numbers and types are those of opentelemetry-proto 1.x. */
#ifndef JD_OTLP_REQUEST_H
#define JD_OTLP_REQUEST_H
#include <stdint.h>
#include "encode/push.h"

#define OTLP_ITEM 0x12 /* ScopeMetrics.metrics, ScopeSpans.spans = 2 */
#define OTLP_KEY 0x0a /* KeyValue.key = 1 */
#define OTLP_VALUE 0x12 /* KeyValue.value = 2 */
#define OTLP_STRING 0x0a /* AnyValue.string_value = 1 */
#define OTLP_INT 0x18 /* AnyValue.int_value = 3 */

/* A name of the resource; one without a value is left out. */
struct otlp_name {
	const char *key, *value;
};

void otlp_field(struct buf *b, char tag, const void *data, size_t len);
/* Appends a text as the field with that tag, also an empty one. Bytes that are no UTF-8 become U+FFFD. */
void otlp_string(struct buf *b, char tag, const char *text);
/* Appends a KeyValue as the field with that tag. Bytes that are no UTF-8 become U+FFFD in a text. An empty text is left
 * out. */
void otlp_text(struct buf *b, char tag, const char *key, const char *value);
void otlp_number(struct buf *b, char tag, const char *key, uint64_t value);
/* Appends the head of a document: names of the machine and the agent, then n more. b->failed tells of no memory. */
void otlp_make_head(struct buf *b, const char *sensor, const struct otlp_name *more, unsigned n);
/* Takes what stands in out from `from` on, which are items, into a request with that head. 0, -EBADMSG: it is none;
 * -ENOMEM. */
int otlp_enclose(const struct push_part *part, struct buf *out, size_t from);
/* Takes a request apart that otlp_enclose made: appends its head to out, and finds the items in it. 0, -EBADMSG: it is
 * none; -ENOMEM. */
int otlp_disclose(const char *body, size_t n, struct buf *out, const char **ret_items, size_t *ret_n);
/* As those of struct push_format. */
size_t otlp_head(const void *document, size_t n);
int otlp_answer(const void *body, size_t n, struct push_answer *ret);

#endif
