/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a document that waits for its server: the body as it will be sent. It is packed once, takes a
 * fraction of the room, and only a refused one is opened again. */
#ifndef JD_PUSH_RECORD_H
#define JD_PUSH_RECORD_H
#include "encode/push.h"

/* The body of a run of items. {0} is an empty one; reused, so that steady state allocates nothing. */
struct push_body {
	struct packer packer;
	struct buf wrapped, packed;
};

/* Makes the body of a part of a document. 0; -EBADMSG: these are no items; -ENOMEM. */
int push_body_make(struct push_body *b, const struct push_format *f, const struct push_part *part);
void push_body_free(struct push_body *b); /* its members */

/* The end of the first half of the items between `at` and `end`: always less than all of them, so that a refused part
 * becomes smaller until one item is left, whose end it is then. */
size_t push_middle(const struct push_format *f, const struct buf *document, size_t at, size_t end);

/* Appends the record of a document. 0; -ENODATA: the document has no items; -EBADMSG, -ENOMEM. */
int push_record_make(struct push_body *b, const struct push_format *f, const void *document, size_t n, struct buf *out);
/* The body in a record, within it. NULL: it holds a document that was kept as it was. */
const void *push_record_body(const struct buf *record, size_t *ret_n);
/* Appends the document of a record that has a body. 0; -EBADMSG: it does not read; -ENOMEM. */
int push_record_open(const struct push_format *f, const struct buf *record, struct buf *scratch, struct buf *out);

#endif
