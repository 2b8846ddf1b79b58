// SPDX-License-Identifier: Apache-2.0
/* The answer of a server of OTLP, and a document and a body that come back from the disk: what is read lies within them. A
 * document that can be wrapped consists of whole items, and its body can be unwrapped. */
#include <stdlib.h>
#include <string.h>
#include "encode/push.h"

extern const struct push_format push_otlp, push_otlp_traces;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void document(const struct push_format *f, const uint8_t *data, size_t size)
{
	struct push_part part = { .head = data, .n_head = f->head(data, size) };
	struct buf body = { 0 }, again = { 0 };
	size_t at, n;
	char name[200];

	part.items = data + part.n_head;
	part.n_items = size - part.n_head;
	for (at = part.n_head; at < size && (n = f->item(data + at, size - at)); at += n)
		f->name(data + at, n, name, sizeof(name));
	if (part.n_head && (f->wrap(&part, &body) == 0) != (at == size && part.n_items))
		abort();
	if (body.len && at == size && f->unwrap(body.data, body.len, &again))
		abort();
	buf_reset(&again);
	f->unwrap(data, size, &again);
	buf_free(&again);
	buf_free(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct push_answer a = { 0 };

	if (push_otlp.answer(data, size, &a) == 0 && (a.rejected > INT64_MAX || memchr(a.why, 0x1b, sizeof(a.why))))
		abort();
	document(&push_otlp, data, size);
	document(&push_otlp_traces, data, size);
	return 0;
}
