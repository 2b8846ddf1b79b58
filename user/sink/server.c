/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"
#include "peer.h"

#define ACCEPTS_PER_TURN 16
/* Bytes that the kernel may hold for one client beside its queue; the kernel doubles the figure. Without this
 * limit it would hold megabytes per client that does not read, and the server would notice such a client late. */
#define GUEST_SNDBUF (256 << 10)

/* Limits per channel. The peer is an untrusted virtual machine: it must not take the places of others or make
 * much data wait. A connection lost at the other side may still be counted here beside its successor. */
#define CHANNEL_CLIENTS 4
#define CHANNEL_QUEUE (64u << 10)

struct server;

struct guest {
	struct peer peer; /* first member: a struct peer of this sink is a guest */
	struct server *server;
	struct guest *next, **at;
	uint32_t epoch; /* epoch of the preamble it got */
	uint32_t channel;
};

struct server {
	struct sink s;
	struct loop *loop;
	struct server_place place;
	struct event *acceptor, *submitted, *pause;
	struct guest *guests;
	unsigned n, max;
	uint32_t epoch; /* epoch of all guests */
	uint64_t slow, turned_away;
};

/* Adds to the figures. queued: change of the number of waiting documents. d: a document that has ended as `end`, or
 * NULL. */
static void server_count(struct server *v, int queued, const struct doc *d, enum sink_end_of end)
{
	pthread_mutex_lock(&v->s.lock);
	v->s.stats.queued += (uint32_t)queued;
	v->s.stats.clients = v->n;
	if (d)
		sink_count(&v->s, d, end);
	pthread_cond_broadcast(&v->s.changed);
	pthread_mutex_unlock(&v->s.lock);
}

static void server_say(struct server *v, const char *trouble)
{
	sink_state(&v->s, true, "listening on %.80s%s%s; %llu too slow, %llu turned away", v->place.where,
		   trouble ? ", no new clients: " : "", trouble ? trouble : "", (unsigned long long)v->slow,
		   (unsigned long long)v->turned_away);
}

/* Removes a guest. end: how the documents that wait for it end. */
static void guest_leave(struct guest *g, enum sink_end_of end)
{
	struct server *v = g->server;
	struct doc *d = peer_detach(&g->peer);

	*g->at = g->next;
	if (g->next)
		g->next->at = g->at;
	for (; d || (d = doc_ring_take(&g->peer.queue)); d = NULL) {
		server_count(v, -1, d, end);
		doc_unref(d);
	}
	/* Last, so that the documents are counted before the guest is seen to be gone. */
	v->n--;
	server_count(v, 0, NULL, end);
	doc_ring_free(&g->peer.queue);
	free(g);
}

static struct doc *guest_hello(struct peer *p)
{
	struct guest *g = (struct guest *)p;

	return sink_preamble(&g->server->s, &g->epoch);
}

static void guest_sent(struct peer *p, struct doc *d)
{
	server_count(((struct guest *)p)->server, -1, d, SINK_DELIVERED);
	doc_unref(d);
}

static void guest_broken(struct peer *p, int rc)
{
	guest_leave((struct guest *)p, rc == -EPIPE || rc == -ECONNRESET ? SINK_LEFT : SINK_DROPPED);
}

static const struct peer_ops guest_ops = {
	.hello = guest_hello,
	.sent = guest_sent,
	.broken = guest_broken,
	.half_open = true,
};

/* Not half_open: a peer that has gone must free its place among the channel's few at once, not at the next
 * send. */
static const struct peer_ops channel_ops = { .hello = guest_hello, .sent = guest_sent, .broken = guest_broken };

/* Takes the descriptor over. 0 or -ENOMEM. */
static int guest_enter(struct server *v, int fd, uint32_t channel)
{
	struct guest *g = calloc(1, sizeof(*g));
	int one = 1, room = GUEST_SNDBUF;

	if (!g) {
		close(fd);
		return -ENOMEM;
	}
	/* Has no effect on Unix sockets. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	g->server = v;
	g->channel = channel;
	peer_init(&g->peer, channel ? &channel_ops : &guest_ops, loop_base(v->loop));
	if (peer_attach(&g->peer, fd)) {
		free(g);
		return -ENOMEM;
	}
	g->next = v->guests;
	if (g->next)
		g->next->at = &g->next;
	g->at = &v->guests;
	v->guests = g;
	v->n++;
	pthread_mutex_lock(&v->s.lock);
	v->s.stats.arrivals++;
	pthread_mutex_unlock(&v->s.lock);
	server_count(v, 0, NULL, SINK_DELIVERED);
	peer_kick(&g->peer);
	return 0;
}

/* Out of descriptors or memory: the pending connection stays readable, so try again later. */
static void server_pause(struct server *v, int rc)
{
	struct timeval second = { .tv_sec = 1 };

	event_del(v->acceptor);
	event_add(v->pause, &second);
	server_say(v, strerrordesc_np(rc));
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
	struct server *v = arg;

	event_add(v->acceptor, NULL);
	server_say(v, NULL);
}

static bool is_crowded(const struct server *v, uint32_t channel)
{
	unsigned n = 0;

	for (const struct guest *g = channel ? v->guests : NULL; g; g = g->next)
		n += g->channel == channel;
	return n >= CHANNEL_CLIENTS;
}

/* Gets the channel of a connection that is admitted, or returns false. */
static bool may_enter(struct server *v, int fd, uint32_t *ret_channel)
{
	*ret_channel = 0;
	return v->n < v->max && (!v->place.admit || v->place.admit(v->place.arg, fd, ret_channel) == 0) &&
	       !is_crowded(v, *ret_channel);
}

static void on_connection(evutil_socket_t listener, short what, void *arg)
{
	struct server *v = arg;

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		uint32_t channel;

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
			return server_pause(v, errno);
		/* Any other error concerns a connection that is already gone (accept(2)). */
		if (fd < 0)
			return;
		if (!may_enter(v, fd, &channel)) {
			close(fd);
			v->turned_away++;
			server_say(v, NULL);
			continue;
		}
		if (guest_enter(v, fd, channel))
			return server_pause(v, ENOMEM);
	}
}

/* One document alone may be of any size, except on a channel. */
static bool has_room(const struct guest *g, const struct doc *d)
{
	const size_t held = g->peer.queue.bytes, bound = g->server->s.bound;

	if (g->channel)
		return held + doc_charge(d->len) <= (bound < CHANNEL_QUEUE ? bound : CHANNEL_QUEUE);
	return !held || held + doc_charge(d->len) <= bound;
}

static void guest_offer(struct guest *g, struct doc *d)
{
	struct server *v = g->server;

	if (has_room(g, d) && doc_ring_add(&g->peer.queue, doc_ref(d)) == 0) {
		server_count(v, 1, NULL, SINK_DELIVERED);
		peer_kick(&g->peer);
		return;
	}
	server_count(v, 0, d, SINK_DROPPED);
	v->slow++;
	sink_failed(&v->s, 0, "a client was too slow");
	guest_leave(g, SINK_DROPPED);
	server_say(v, NULL);
}

/* Offers a document to the guests of its epoch: the preamble of another epoch would make them misread it. */
static void server_offer(struct server *v, struct doc *d)
{
	for (struct guest *g = v->guests, *next; g; g = next) {
		next = g->next;
		if (g->epoch == d->epoch && (!d->channel || d->channel == g->channel))
			guest_offer(g, d);
	}
}

static void server_end_old(struct server *v)
{
	uint32_t epoch;

	doc_unref(sink_preamble(&v->s, &epoch));
	if (epoch == v->epoch)
		return;
	v->epoch = epoch;
	for (struct guest *g = v->guests, *next; g; g = next) {
		next = g->next;
		if (g->epoch != epoch)
			guest_leave(g, SINK_DROPPED);
	}
}

static void on_submitted(evutil_socket_t fd, short what, void *arg)
{
	struct server *v = arg;
	struct doc_list l = sink_take(&v->s);
	struct doc *d;

	while ((d = doc_list_take(&l))) {
		server_offer(v, d);
		pthread_mutex_lock(&v->s.lock);
		v->s.held -= doc_charge(d->len);
		v->s.stats.early_documents += !v->s.stats.arrivals;
		pthread_mutex_unlock(&v->s.lock);
		server_count(v, -1, NULL, SINK_DELIVERED);
		doc_unref(d);
	}
	server_end_old(v);
}

/* Frees what belongs to the loop. Runs on the loop. */
static void server_end(void *arg)
{
	struct server *v = arg;
	struct event *all[] = { v->acceptor, v->submitted, v->pause };

	if (v->guests && v->s.stats.queued)
		sink_failed(&v->s, 0, "a client was too slow");
	while (v->guests)
		guest_leave(v->guests, SINK_DROPPED);
	for (unsigned i = 0; i < 3; i++)
		if (all[i])
			event_free(all[i]);
}

int server_start(const struct sink_ops *ops, const struct server_place *p, const struct sink_options *o,
		 struct loop *loop, struct sink **ret)
{
	struct event_base *base = loop_base(loop);
	struct server *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->loop = loop;
	v->place = *p;
	v->max = o->max_clients ? o->max_clients : SERVER_CLIENTS_MAX;
	v->acceptor = event_new(base, p->fd, EV_READ | EV_PERSIST, on_connection, v);
	v->submitted = event_new(base, -1, 0, on_submitted, v);
	v->pause = evtimer_new(base, on_pause_over, v);
	if (sink_init(&v->s, ops, o->queue_bytes) || !v->acceptor || !v->submitted || !v->pause)
		goto fail;
	server_say(v, NULL);
	if (event_add(v->acceptor, NULL))
		goto fail;
	*ret = &v->s;
	return 0;
fail:
	server_end(v);
	sink_fini(&v->s);
	free(v);
	return -ENOMEM;
}

void server_wake(struct sink *s)
{
	event_active(((struct server *)s)->submitted, EV_TIMEOUT, 0);
}

/* Stops listening. A client that is closed and reconnects at once must find no listener; otherwise its
 * connection would never be accepted. Runs on the loop. */
static void server_refuse(void *arg)
{
	struct server *v = arg;

	event_del(v->pause);
	event_del(v->acceptor);
	close(v->place.fd);
	if (v->place.gone)
		v->place.gone(v->place.arg);
}

void server_close(struct sink *s, uint64_t deadline_ns)
{
	struct server *v = (struct server *)s;

	loop_call(v->loop, server_refuse, v);
	pthread_mutex_lock(&s->lock);
	while (s->stats.queued && sink_wait(s, deadline_ns))
		;
	pthread_mutex_unlock(&s->lock);
	loop_call(v->loop, server_end, v);
	free(v->place.arg);
	sink_fini(s);
	free(v);
}
