/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "push_record.h"

/* Before a body. No document begins so: protobuf knows no such tag, a text no such byte. */
static const char mark[4] = "\xffjb1";

int push_body_make(struct push_body *b, const struct push_format *f, const struct push_part *part)
{
	const void *plain = part->items;
	size_t n = part->n_items;
	int rc = 0;

	buf_reset(&b->packed);
	if (f->wrap && n) {
		buf_reset(&b->wrapped);
		rc = f->wrap(part, &b->wrapped);
		plain = b->wrapped.data;
		n = b->wrapped.len;
	}
	return rc ? rc : pack(&b->packer, f->packing, plain, n, &b->packed);
}

void push_body_free(struct push_body *b)
{
	packer_fini(&b->packer);
	buf_free(&b->wrapped);
	buf_free(&b->packed);
}

size_t push_middle(const struct push_format *f, const struct buf *document, size_t at, size_t end)
{
	const size_t half = at + (end - at) / 2;
	size_t p = at, n;

	while (p < half && (n = f->item(document->data + p, end - p)) && (p == at || p + n < end))
		p += n;
	return p == at ? end : p;
}

int push_record_make(struct push_body *b, const struct push_format *f, const void *document, size_t n, struct buf *out)
{
	const size_t head = f->head ? f->head(document, n) : 0;
	const struct push_part part = { document, (const char *)document + head, head, n - head };
	int rc = part.n_items ? push_body_make(b, f, &part) : -ENODATA;

	if (rc)
		return rc;
	buf_add(out, mark, sizeof(mark));
	buf_add(out, b->packed.data, b->packed.len);
	return out->failed ? -ENOMEM : 0;
}

const void *push_record_body(const struct buf *record, size_t *ret_n)
{
	if (record->len < sizeof(mark) || memcmp(record->data, mark, sizeof(mark)) != 0)
		return NULL;
	*ret_n = record->len - sizeof(mark);
	return record->data + sizeof(mark);
}

int push_record_open(const struct push_format *f, const struct buf *record, struct buf *scratch, struct buf *out)
{
	size_t n;
	const void *body = push_record_body(record, &n);
	int rc;

	if (!body)
		return -EBADMSG;
	if (!f->unwrap)
		return unpack(f->packing, body, n, out);
	buf_reset(scratch);
	rc = unpack(f->packing, body, n, scratch);
	return rc ? rc : f->unwrap(scratch->data, scratch->len, out);
}
