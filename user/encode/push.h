/* SPDX-License-Identifier: Apache-2.0 */
/* What a sender must know of a format that is pushed to a server over HTTP. A document is a run of items, one for each
 * sample; any run of whole items is a document too, so one that a server refuses is halved until the bad item is alone. */
#ifndef JD_ENCODE_PUSH_H
#define JD_ENCODE_PUSH_H
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "pack.h"

struct push_part {
	const void *head, *items;
	size_t n_head, n_items;
};

/* What a server says that took a document. */
struct push_answer {
	uint64_t rejected; /* items that it did not take */
	char why[200]; /* its words, on one line, escaped; "" = none */
};

struct push_format {
	const char *type; /* media type of the body */
	const char *const *headers; /* further ones, "Name: value", ends with NULL; NULL = none */
	enum packing packing; /* of the body */
	/* The length of what stands in a document before its items. NULL = nothing does. */
	size_t (*head)(const void *document, size_t n);
	/* Appends the body that is sent for a run of items. 0, -EBADMSG: they are none; -ENOMEM. NULL = the run itself. */
	int (*wrap)(const struct push_part *part, struct buf *out);
	/* Appends the document of a whole body that wrap made. 0, -EBADMSG: it is none; -ENOMEM. NULL = wrap is NULL. */
	int (*unwrap)(const void *body, size_t n, struct buf *out);
	/* The length of the item at p, of n bytes. 0 = that is no item. */
	size_t (*item)(const void *p, size_t n);
	/* Writes into dst what the item is, for people. */
	void (*name)(const void *item, size_t n, char *dst, size_t size);
	/* Reads the body of an answer that says "taken". 0, or -EBADMSG: it is not of this format. NULL = it says nothing. */
	int (*answer)(const void *body, size_t n, struct push_answer *ret);
	/* Writes parameters of this document that are added to the URL's query; "" = none. May be NULL. */
	void (*query)(const char *url, const void *document, size_t n, char *dst, size_t size);
	const char *remedy; /* where nothing is at the path: which one it may be; NULL = no hint */
	/* The word before a token in the header Authorization, for this URL. NULL = Bearer. */
	const char *(*token_scheme)(const char *url);
	/* Refuses parameters of the URL's query that do not fit what is sent. 0 or -EINVAL with err. May be NULL. */
	int (*check)(const char *url, struct err *err);
};

#endif
