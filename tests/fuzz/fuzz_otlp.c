// SPDX-License-Identifier: Apache-2.0
/* The answer of a server of OTLP, and a document that comes back from the disk: what is read lies within them. A document
 * that can be wrapped consists of whole items. */
#include <stdlib.h>
#include <string.h>
#include "encode/push.h"

extern const struct push_format push_otlp;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct push_answer a = { 0 };
	struct push_part part = { .head = data };
	struct buf body = { 0 };
	size_t at, n;
	char name[200];

	if (push_otlp.answer(data, size, &a) == 0 && (a.rejected > INT64_MAX || memchr(a.why, 0x1b, sizeof(a.why))))
		abort();
	part.n_head = push_otlp.head(data, size);
	part.items = data + part.n_head;
	part.n_items = size - part.n_head;
	for (at = part.n_head; at < size && (n = push_otlp.item(data + at, size - at)); at += n)
		push_otlp.name(data + at, n, name, sizeof(name));
	if (part.n_head && (push_otlp.wrap(&part, &body) == 0) != (at == size && part.n_items))
		abort();
	buf_free(&body);
	return 0;
}
