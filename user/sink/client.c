/* SPDX-License-Identifier: Apache-2.0 */
/* The connecting sink: it looks up, connects and sends. When a step fails or the connection breaks, it waits
 * and starts again. Documents wait meanwhile, up to the bound. Everything except start and close runs on the
 * loop. */
#include "client.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "peer.h"

#define BACKOFF_FIRST_MS 100u
#define BACKOFF_LAST_MS 30000u
#define CONNECT_TIMEOUT_S 10
#define STABLE_NS (5 * NS_PER_S) /* a connection that lasted this long resets the back-off */
#define DEAD_PEER_MS 30000 /* data not acknowledged for so long: the peer is gone */

struct client {
	struct sink s;
	struct loop *loop;
	struct event_base *base;
	struct peer peer;
	struct event *submitted, *resolved, *timer, *connecting;
	struct resolve *resolve;
	struct sink_url *url;
	char where[160];
	bool numeric; /* addrs is fixed: no look-up */
	struct addrs addrs;
	unsigned at; /* index of the address being tried */
	int fd; /* socket being connected; -1 = none */
	unsigned failures, seed;
	uint64_t up_ns;
	bool was_up, waiting, draining;
	bool gave_up; /* under s.lock: the last try of a closing sink has failed */
};

static void client_connect(struct client *c);

/* The delay doubles each time. Up to half of it is added at random, so that many agents do not return at once. */
static unsigned client_backoff_ms(struct client *c)
{
	unsigned ms = BACKOFF_FIRST_MS << (c->failures < 9 ? c->failures : 9);

	ms += (unsigned)rand_r(&c->seed) % (ms / 2);
	if (c->failures < 9)
		c->failures++;
	return ms < BACKOFF_LAST_MS ? ms : BACKOFF_LAST_MS;
}

static void client_retry(struct client *c, const char *why)
{
	unsigned ms = client_backoff_ms(c);
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	c->waiting = true;
	event_add(c->timer, &tv);
	if (c->draining) {
		pthread_mutex_lock(&c->s.lock);
		c->gave_up = true;
		pthread_mutex_unlock(&c->s.lock);
	}
	sink_failed(&c->s, 0, why);
	if (c->draining) /* the last try */
		sink_state(&c->s, false, "%.90s: %.60s", c->where, why);
	else
		sink_state(&c->s, false, "%.90s: %.40s, next try in %u.%u s", c->where, why, ms / 1000,
			   ms % 1000 / 100);
}

static void client_up(struct client *c, int fd)
{
	int one = 1, ms = DEAD_PEER_MS;

	event_del(c->timer);
	/* Has no effect on Unix sockets. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (peer_attach(&c->peer, fd)) {
		client_retry(c, "out of memory");
		return;
	}
	c->up_ns = clock_mono_ns();
	pthread_mutex_lock(&c->s.lock);
	c->s.stats.reconnects += c->was_up;
	c->s.stats.arrivals++;
	c->s.stats.clients = 1;
	pthread_mutex_unlock(&c->s.lock);
	c->was_up = true;
	sink_state(&c->s, true, "connected to %.140s", c->where);
	peer_kick(&c->peer);
}

static void client_stop_connecting(struct client *c)
{
	if (c->connecting)
		event_free(c->connecting);
	c->connecting = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* Where nobody listens, TCP joins a socket to itself when it was given the port that it asks for. Documents would
 * go round and count as sent, and a server that starts would find its port taken. */
static bool is_own_port(int fd)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

	return getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 && own.ss_family != AF_UNIX &&
	       own_len == peer_len && memcmp(&own, &peer, own_len) == 0;
}

/* 0, or the errno of why the socket leads nowhere. */
static int connect_result(int fd)
{
	const struct linger reset = { .l_onoff = 1 }; /* the port is free at once */
	socklen_t len = sizeof(int);
	int rc = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &rc, &len) != 0)
		return errno;
	if (rc || !is_own_port(fd))
		return rc;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return ECONNREFUSED;
}

/* The socket is writable or the connection was refused; a timeout event means that no answer came. */
static void on_connected(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	int rc = what & EV_TIMEOUT ? ETIMEDOUT : connect_result(fd);

	if (!rc)
		c->fd = -1;
	client_stop_connecting(c);
	if (!rc) {
		client_up(c, fd);
	} else if (++c->at < c->addrs.n) {
		client_connect(c);
	} else {
		client_retry(c, strerrordesc_np(rc));
	}
}

/* Tries the addresses from c->at on, until a connection is in progress. */
static void client_connect(struct client *c)
{
	struct timeval tv = { .tv_sec = CONNECT_TIMEOUT_S };
	int rc = EADDRNOTAVAIL;

	for (; c->at < c->addrs.n; c->at++) {
		const struct sockaddr *a = (const struct sockaddr *)&c->addrs.v[c->at].a;
		int fd = socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (fd < 0) {
			rc = errno;
			continue;
		}
		rc = connect(fd, a, c->addrs.v[c->at].len) == 0 ? connect_result(fd) : errno;
		if (!rc) {
			client_up(c, fd);
			return;
		}
		c->fd = fd;
		if (rc == EINPROGRESS) {
			c->connecting = event_new(c->base, fd, EV_WRITE, on_connected, c);
			if (c->connecting && event_add(c->connecting, &tv) == 0)
				return;
			rc = ENOMEM;
		}
		client_stop_connecting(c);
	}
	client_retry(c, strerrordesc_np(rc));
}

static void client_try(struct client *c)
{
	c->waiting = false;
	c->at = 0;
	if (c->numeric) {
		client_connect(c);
		return;
	}
	if (resolve_start(c->url->host, c->url->port, c->resolved, &c->resolve))
		client_retry(c, "no thread for the look-up");
	else
		sink_state(&c->s, false, "looking up %.140s", c->where);
}

static void on_resolved(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	const char *why = resolve_result(c->resolve, &c->addrs);

	resolve_free(c->resolve);
	c->resolve = NULL;
	if (why)
		client_retry(c, why);
	else
		client_connect(c);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	client_try(arg);
}

static void on_submitted(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	struct doc_list l = sink_take(&c->s);
	struct doc *d;

	while ((d = doc_list_take(&l)))
		if (doc_ring_add(&c->peer.queue, d))
			sink_done(&c->s, d, SINK_DROPPED);
	peer_kick(&c->peer);
}

static struct doc *client_hello(struct peer *p)
{
	uint32_t epoch; /* never changes: this kind of sink cannot be restarted */

	return sink_preamble(&((struct client *)((char *)p - offsetof(struct client, peer)))->s, &epoch);
}

static void client_sent(struct peer *p, struct doc *d)
{
	sink_done(&((struct client *)((char *)p - offsetof(struct client, peer)))->s, d, SINK_DELIVERED);
}

static void client_broken(struct peer *p, int rc)
{
	struct client *c = (struct client *)((char *)p - offsetof(struct client, peer));
	struct doc *torn = peer_detach(p);

	if (torn)
		sink_done(&c->s, torn, SINK_DROPPED);
	if (clock_mono_ns() - c->up_ns >= STABLE_NS)
		c->failures = 0;
	pthread_mutex_lock(&c->s.lock);
	c->s.stats.clients = 0;
	pthread_mutex_unlock(&c->s.lock);
	client_retry(c, rc == -EPIPE ? "closed by the peer" : strerrordesc_np(-rc));
}

static const struct peer_ops client_peer_ops = {
	.hello = client_hello,
	.sent = client_sent,
	.broken = client_broken,
};

static void client_begin(void *arg)
{
	client_try(arg);
}

/* Frees what belongs to the loop. Runs on the loop. */
static void client_end(void *arg)
{
	struct client *c = arg;
	struct doc *d;

	doc_unref(peer_detach(&c->peer));
	while ((d = doc_ring_take(&c->peer.queue)))
		doc_unref(d);
	doc_ring_free(&c->peer.queue);
	client_stop_connecting(c);
	resolve_free(c->resolve);
	struct event *all[] = { c->submitted, c->resolved, c->timer };
	for (unsigned i = 0; i < 3; i++)
		if (all[i])
			event_free(all[i]);
}

static void client_free(struct client *c)
{
	sink_fini(&c->s);
	free(c->url);
	free(c);
}

int client_start(const struct sink_ops *ops, const struct client_peer *to, const struct sink_options *o,
		 struct loop *loop, struct sink **ret)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->fd = -1;
	c->loop = loop;
	c->base = loop_base(loop);
	c->seed = (unsigned)clock_mono_ns() ^ (unsigned)(uintptr_t)c;
	snprintf(c->where, sizeof(c->where), "%s", to->where);
	peer_init(&c->peer, &client_peer_ops, c->base);
	c->numeric = to->fixed;
	if (to->fixed)
		c->addrs = *to->fixed;
	c->url = malloc(sizeof(*c->url));
	c->submitted = event_new(c->base, -1, 0, on_submitted, c);
	c->resolved = event_new(c->base, -1, 0, on_resolved, c);
	c->timer = evtimer_new(c->base, on_timer, c);
	if (sink_init(&c->s, ops, o->queue_bytes) || !c->url || !c->submitted || !c->resolved || !c->timer)
		goto fail;
	*c->url = *to->url;
	sink_state(&c->s, false, "connecting to %.140s", c->where);
	if (loop_post(loop, client_begin, c))
		goto fail;
	*ret = &c->s;
	return 0;
fail:
	client_end(c);
	client_free(c);
	return -ENOMEM;
}

void client_wake(struct sink *s)
{
	event_active(((struct client *)s)->submitted, EV_TIMEOUT, 0);
}

/* Tries a last time at once, without the rest of the back-off. */
static void client_drain(void *arg)
{
	struct client *c = arg;

	c->draining = true;
	if (c->waiting) {
		event_del(c->timer);
		client_try(c);
	}
}

void client_close(struct sink *s, uint64_t deadline_ns)
{
	struct client *c = (struct client *)s;

	pthread_mutex_lock(&s->lock);
	bool drain = s->stats.queued;
	pthread_mutex_unlock(&s->lock);
	if (drain) {
		loop_call(c->loop, client_drain, c);
		pthread_mutex_lock(&s->lock);
		while (s->stats.queued && !c->gave_up && sink_wait(s, deadline_ns))
			;
		pthread_mutex_unlock(&s->lock);
	}
	loop_call(c->loop, client_end, c);
	client_free(c);
}
