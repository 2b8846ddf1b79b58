/* SPDX-License-Identifier: Apache-2.0 */
/* One stream socket and the documents that wait for it. Loop thread only. The queue outlives the connection: a
 * client attaches the next connection to it. */
#ifndef JD_SINK_PEER_H
#define JD_SINK_PEER_H
#include "doc.h"

struct event;
struct event_base;
struct peer;

struct peer_ops {
	struct doc *(*hello)(struct peer *p); /* returns a reference to the preamble, or NULL */
	void (*sent)(struct peer *p, struct doc *d); /* the kernel has all of d; takes the reference */
	void (*broken)(struct peer *p, int rc); /* the connection is over; may free the peer */
	bool half_open; /* the peer may stop sending and still read */
};

struct peer {
	const struct peer_ops *ops;
	struct event_base *base;
	int fd; /* -1 = no connection */
	struct event *rd, *wr;
	struct doc_ring queue;
	struct doc *hello; /* the preamble, while it is being sent */
	size_t sent; /* bytes of the current document that the kernel has taken */
	bool greeted;
};

void peer_init(struct peer *p, const struct peer_ops *ops, struct event_base *base);
/* Takes the descriptor over, even on failure. 0 or -ENOMEM. */
int peer_attach(struct peer *p, int fd);
/* Ends the connection. Returns the document that was partly sent, or NULL. Its rest must never follow on
 * another connection: the caller counts and drops it. */
struct doc *peer_detach(struct peer *p);
/* Sends as much as the socket takes. ops->broken may run and free p, so do not use p afterwards unless its
 * owner keeps it. */
void peer_kick(struct peer *p);

#endif
