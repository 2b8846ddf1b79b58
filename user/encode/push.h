/* SPDX-License-Identifier: Apache-2.0 */
/* What a sender must know of a format that is pushed to a server over HTTP. A document is a run of items, one for each
 * sample; any run of whole items is a document too, so one that a server refuses is halved until the bad item is alone. */
#ifndef JD_ENCODE_PUSH_H
#define JD_ENCODE_PUSH_H
#include <stddef.h>
#include "base/err.h"

enum push_packing { PUSH_GZIP, PUSH_SNAPPY };

struct push_format {
	const char *type; /* media type of the body */
	const char *const *headers; /* further ones, "Name: value", ends with NULL; NULL = none */
	enum push_packing packing; /* of the body */
	/* The length of the item at p, of n bytes. 0 = that is no item. */
	size_t (*item)(const void *p, size_t n);
	/* Writes into dst what the item is, for people. */
	void (*name)(const void *item, size_t n, char *dst, size_t size);
	/* The word before a token in the header Authorization, for this URL. NULL = Bearer. */
	const char *(*token_scheme)(const char *url);
	/* Refuses parameters of the URL's query that do not fit what is sent. 0 or -EINVAL with err. May be NULL. */
	int (*check)(const char *url, struct err *err);
};

#endif
