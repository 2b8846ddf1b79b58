/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clock.h"
#include "http_internal.h"
#include "loop.h"

#define ACCEPTS_PER_TURN 32
#define FIRST_NS (10 * NS_PER_S) /* for the first request's head */
#define NEXT_NS (60 * NS_PER_S) /* for one more */
#define POOL_BYTES (48u << 10) /* above 32 KiB it is mapped: only what is touched is resident */

#define BUSY "{\"error\":\"clients: as many as allowed are connected; try again, or less\"}"
static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
			   "Connection: close\r\nContent-Length: 73\r\n\r\n" BUSY;
_Static_assert(sizeof(BUSY) - 1 == 73, "Content-Length");

static void run(struct http *h)
{
	unsigned long long ms;
	struct timeval tv;

	MHD_run(h->daemon);
	if (MHD_get_timeout(h->daemon, &ms) != MHD_YES) {
		evtimer_del(h->timer);
		return;
	}
	tv = (struct timeval){ .tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000) };
	evtimer_add(h->timer, &tv);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	run(arg);
}

/* Whoever takes longer over a request's head than allowed is cut off: the library's own timeout begins
 * anew with every byte. So is who has said that nothing more comes: the library, told once by epoll of bytes
 * and end together, takes the bytes and waits for more. */
static bool never_asks(const struct http_client *c, uint64_t now_ns)
{
	char byte;

	return now_ns - c->since_ns >= (c->first ? FIRST_NS : NEXT_NS) ||
	       recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;
	uint64_t now = clock_mono_ns();

	for (struct http_client *c = h->clients; c; c = c->next) {
		if (!c->since_ns || c->cut || !never_asks(c, now))
			continue;
		shutdown(c->fd, SHUT_RDWR);
		c->cut = true;
	}
	event_add(h->acceptor, NULL);
	run(h);
}

static void know_peer(struct http_client *c)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	c->peer.local = c->server->o.local && getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0;
	if (!c->peer.local)
		return;
	c->peer.uid = cred.uid;
	c->peer.gid = cred.gid;
	len = sizeof(c->peer.groups);
	/* more groups than fit: ERANGE, and he is judged by his first one */
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, c->peer.groups, &len) == 0)
		c->peer.n_groups = len / sizeof(gid_t);
}

static void client_begins(struct http *h, struct MHD_Connection *conn, void **slot)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_client *c = calloc(1, sizeof(*c));

	*slot = c;
	if (!c || !info)
		return;
	c->server = h;
	c->conn = conn;
	c->fd = info->connect_fd;
	c->since_ns = clock_mono_ns();
	c->first = true;
	know_peer(c);
	c->next = h->clients;
	if (c->next)
		c->next->at = &c->next;
	c->at = &h->clients;
	h->clients = c;
	h->stats.clients++;
}

static void client_ends(struct http_client *c)
{
	if (!c || !c->at) {
		free(c);
		return;
	}
	http_let_go(c);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	c->server->stats.clients--;
	free(c);
}

static void on_connection(void *arg, struct MHD_Connection *conn, void **slot, enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		client_begins(arg, conn, slot);
	else
		client_ends(*slot);
}

/* The answer fits the socket's buffer; who does not read it loses it. */
static void turn_away(struct http *h, int fd)
{
	h->stats.refused++;
	if (send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		shutdown(fd, SHUT_WR);
	close(fd);
}

static void on_accept(evutil_socket_t listener, short what, void *arg)
{
	struct http *h = arg;
	struct sockaddr_storage a;

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		socklen_t len = sizeof(a);
		int one = 1, fd = accept4(listener, (struct sockaddr *)&a, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
			event_del(h->acceptor); /* pending ones stay readable: the sweep looks again */
			break;
		}
		if (fd < 0)
			break;
		if (!h->o.local)
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (h->stats.clients >= h->o.max_clients)
			turn_away(h, fd);
		else if (MHD_add_connection(h->daemon, fd, (struct sockaddr *)&a, len) != MHD_YES)
			h->stats.refused++; /* it closed the descriptor */
	}
	run(h);
}

/* Frees what belongs to the loop; runs there. Sleeping connections must wake before the daemon ends. */
static void end(void *arg)
{
	struct http *h = arg;
	struct event *all[] = { h->acceptor, h->ready, h->timer, h->sweep };

	h->stopping = true;
	if (h->daemon) {
		for (struct http_client *c = h->clients; c; c = c->next)
			if (c->suspended) {
				c->suspended = false;
				MHD_resume_connection(c->conn);
			}
		MHD_run(h->daemon);
		MHD_stop_daemon(h->daemon);
	}
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i])
			event_free(all[i]);
}

static void begin(void *arg)
{
	struct http *h = arg;
	const struct timeval second = { .tv_sec = 1 };

	if (event_add(h->acceptor, NULL) || event_add(h->ready, NULL) || event_add(h->sweep, &second))
		h->stopping = true;
}

static int make(struct http *h)
{
	struct event_base *base = loop_base(h->loop);
	const union MHD_DaemonInfo *info;

	h->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
				     http_on_request, h, MHD_OPTION_CONNECTION_LIMIT, h->o.max_clients,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,
				     MHD_OPTION_CONNECTION_TIMEOUT, 60u, MHD_OPTION_URI_LOG_CALLBACK, http_on_uri, h,
				     MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, h, MHD_OPTION_NOTIFY_CONNECTION,
				     on_connection, h, MHD_OPTION_END);
	info = h->daemon ? MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return -ENOMEM;
	h->acceptor = event_new(base, h->o.fd, EV_READ | EV_PERSIST, on_accept, h);
	h->ready = event_new(base, info->listen_fd, EV_READ | EV_PERSIST, on_ready, h);
	h->timer = evtimer_new(base, on_ready, h);
	h->sweep = event_new(base, -1, EV_PERSIST, on_sweep, h);
	return h->acceptor && h->ready && h->timer && h->sweep ? 0 : -ENOMEM;
}

int http_start(const struct http_options *o, struct loop *loop, struct http **ret)
{
	struct http *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->o = *o;
	h->loop = loop;
	err = make(h);
	if (!err) {
		*ret = h; /* somebody may wait already: he is answered before this returns */
		loop_call(loop, begin, h);
	}
	if (err || h->stopping) {
		loop_call(loop, end, h);
		free(h);
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

void http_forget(struct http *h)
{
	if (!h)
		return;
	loop_call(h->loop, end, h);
	free(h);
}

void http_stop(struct http *h)
{
	int fd = h ? h->o.fd : -1;

	http_forget(h);
	if (fd >= 0)
		close(fd);
}

struct http_stats http_figures(const struct http *h)
{
	return h->stats;
}

void http_again(struct MHD_Connection *conn)
{
	struct http_client *c = http_client_of(conn);

	if (!c || !c->suspended)
		return;
	c->suspended = false;
	MHD_resume_connection(conn);
	event_active(c->server->timer, EV_TIMEOUT, 0);
}
