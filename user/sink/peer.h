/* SPDX-License-Identifier: Apache-2.0 */
/* One stream socket and the documents that wait for it. Loop thread only. The queue outlives the
 * connection: a client attaches the next one to it. */
#ifndef JD_SINK_PEER_H
#define JD_SINK_PEER_H
#include "doc.h"

struct event;
struct event_base;
struct peer;

struct peer_ops {
	struct doc *(*hello)(struct peer *p); /* a reference to the preamble, or NULL */
	void (*sent)(struct peer *p, struct doc *d); /* wholly taken by the kernel; takes the reference */
	void (*broken)(struct peer *p, int err); /* the connection is over; may free the peer */
	bool half_open; /* the other side may stop sending and still read */
};

struct peer {
	const struct peer_ops *ops;
	struct event_base *base;
	int fd; /* -1 = no connection */
	struct event *rd, *wr;
	struct doc_ring queue;
	struct doc *hello; /* the preamble, while it is being sent */
	size_t sent; /* bytes of what is being sent that the kernel has */
	bool greeted;
};

void peer_init(struct peer *p, const struct peer_ops *ops, struct event_base *base);
/* Takes the descriptor, also when it fails. 0 or -ENOMEM. */
int peer_attach(struct peer *p, int fd);
/* Ends the connection. The document that was partly sent, whose rest must never follow on another
 * connection: the caller counts and drops it; NULL when there is none. */
struct doc *peer_detach(struct peer *p);
/* Sends what the socket takes. ops->broken may have been called: do not touch p afterwards
 * unless the owner knows better. */
void peer_kick(struct peer *p);

#endif
