/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Documents that one peer sends before other peers get a turn. */
#define PEER_TURN_DOCS 64
#define PEER_TURN_BYTES (1u << 20)
#define PEER_TURN_READS 16

void peer_init(struct peer *p, const struct peer_ops *ops, struct event_base *base)
{
	memset(p, 0, sizeof(*p));
	p->ops = ops;
	p->base = base;
	p->fd = -1;
}

/* Reads and discards the bytes that the peer sends. Unread bytes would turn close() into a reset, which destroys
 * documents still on their way. 0, -EPIPE at the end of the stream, or -errno. */
static int peer_discard(struct peer *p)
{
	char junk[4096];

	for (int i = 0; i < PEER_TURN_READS; i++) {
		ssize_t n = recv(p->fd, junk, sizeof(junk), MSG_DONTWAIT);

		if (n == 0)
			return -EPIPE;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	}
	return 0;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct peer *p = arg;
	int rc = peer_discard(p);

	if (rc == -EPIPE && p->ops->half_open)
		event_del(p->rd);
	else if (rc)
		p->ops->broken(p, rc);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	peer_kick(arg);
}

int peer_attach(struct peer *p, int fd)
{
	p->fd = fd;
	p->sent = 0;
	p->greeted = false;
	p->rd = event_new(p->base, fd, EV_READ | EV_PERSIST, on_readable, p);
	p->wr = event_new(p->base, fd, EV_WRITE, on_writable, p);
	if (!p->rd || !p->wr || event_add(p->rd, NULL) != 0) {
		peer_detach(p);
		return -ENOMEM;
	}
	return 0;
}

struct doc *peer_detach(struct peer *p)
{
	struct doc *torn = NULL;

	if (p->rd)
		event_free(p->rd);
	if (p->wr)
		event_free(p->wr);
	p->rd = p->wr = NULL;
	if (p->fd >= 0) {
		peer_discard(p);
		close(p->fd);
	}
	p->fd = -1;
	if (p->sent && !p->hello)
		torn = doc_ring_take(&p->queue);
	doc_unref(p->hello);
	p->hello = NULL;
	p->sent = 0;
	return torn;
}

/* Sends the preamble as soon as there is one, at the latest before the first document. */
static void peer_greet(struct peer *p)
{
	if (p->greeted)
		return;
	p->hello = p->ops->hello(p);
	p->greeted = p->hello || p->queue.n;
}

/* 1 = the document is sent, 0 = the socket takes no more now, or -errno. */
static int peer_send(struct peer *p, const struct doc *d)
{
	while (p->sent < d->len) {
		ssize_t n = send(p->fd, d->data + p->sent, d->len - p->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0)
			p->sent += (size_t)n;
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return -errno;
	}
	p->sent = 0;
	return 1;
}

static int peer_turn(struct peer *p)
{
	size_t bytes = 0;

	for (int i = 0; i < PEER_TURN_DOCS && bytes < PEER_TURN_BYTES; i++) {
		struct doc *d = p->hello ? p->hello : doc_ring_first(&p->queue);
		int got = d ? peer_send(p, d) : 0;

		if (!d || got < 0)
			return got;
		if (got == 0)
			break;
		bytes += d->len;
		if (p->hello) {
			doc_unref(p->hello);
			p->hello = NULL;
		} else {
			p->ops->sent(p, doc_ring_take(&p->queue));
		}
	}
	return event_add(p->wr, NULL) ? -ENOMEM : 0;
}

void peer_kick(struct peer *p)
{
	int rc;

	if (p->fd < 0 || event_pending(p->wr, EV_WRITE, NULL))
		return;
	peer_greet(p);
	rc = peer_turn(p);
	if (rc)
		p->ops->broken(p, rc);
}
