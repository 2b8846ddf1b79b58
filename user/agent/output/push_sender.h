/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one document to a server, and judges the answer. A document that is refused is halved until the bad item is
 * alone, which is named and dropped; the rest arrives. */
#ifndef JD_PUSH_SENDER_H
#define JD_PUSH_SENDER_H
#include "base/http/http_client.h"
#include "delivery.h"
#include "push_record.h"

struct push_sender {
	struct delivery *d;
	const struct push_format *format;
	const char *url;
	struct http_client *http;
	struct http_answer answer;
	struct push_body body;
	struct push_body kept; /* of the writer's thread */
	struct buf document, scratch; /* of a record that was refused */
	/* Of the record that is sent. */
	struct spool_mark mark;
	bool whole; /* its body was not refused */
	bool opened; /* it stands in document */
	size_t head; /* bytes before its items */
	size_t at; /* everything before was taken or dropped */
	size_t bad_end; /* a bad item stands between `at` and this; 0 = none is known */
	unsigned n_bad; /* items dropped */
	bool took; /* the server has taken a part of it */
	unsigned refused; /* how often it was refused as a whole */
	bool gave_up; /* the document before was dropped as a whole */
};

/* As deliver of struct delivery; arg is a struct push_sender. */
bool push_deliver(void *arg, const struct buf *record, const struct spool_mark *mark);
/* As keep of struct delivery. */
int push_keep(void *arg, const void *document, size_t n, struct buf *out);
/* Sends a document without items, which servers take and store nothing of. 0; -EBADMSG: the server takes no such document,
 * -ENOTSUP: nothing takes any at the path; -EACCES: it does not accept who asks; -ECONNREFUSED and the like. err: why, with the server's own words. */
int push_sender_try(struct push_sender *s, struct err *err);
void push_sender_free(struct push_sender *s); /* its members */

#endif
