/* SPDX-License-Identifier: Apache-2.0 */
#include "web_bridge.h"
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define AHEAD_BYTES (1u << 20) /* of the agent's answer, while the client does not read */
#define HEAD_S 10
#define IDLE_S 7200 /* an agent's interval may be an hour */

struct link { /* a client's connection */
	struct web_bridge *bridge;
	struct bufferevent *client, *agent; /* agent NULL: no request yet, or its answer is complete */
	struct link *next, **at;
};

struct web_bridge {
	struct event_base *base;
	struct event *acceptor, *stop[2];
	struct sockaddr_un to;
	struct web_guard guard;
	struct link *links;
	unsigned n_links, port;
	int fd;
};

static void link_free(struct link *l)
{
	*l->at = l->next;
	if (l->next)
		l->next->at = l->at;
	l->bridge->n_links--;
	if (l->client)
		bufferevent_free(l->client);
	if (l->agent)
		bufferevent_free(l->agent);
	free(l);
}

/* Ends with what is still to be sent. */
static void on_drained(struct bufferevent *bev, void *arg)
{
	struct link *l = arg;

	if (!l->agent)
		link_free(l);
}

static void on_client_gone(struct bufferevent *bev, short what, void *arg)
{
	link_free(arg);
}

static void finish(struct link *l)
{
	if (l->agent)
		bufferevent_free(l->agent);
	l->agent = NULL;
	bufferevent_disable(l->client, EV_READ);
	if (!evbuffer_get_length(bufferevent_get_output(l->client)))
		link_free(l);
}

static void refuse(struct link *l, const char *status, const char *reason)
{
	struct evbuffer *out = bufferevent_get_output(l->client);

	/* reasons are our own words: nothing in them to escape */
	evbuffer_add_printf(out,
			    "HTTP/1.1 %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
			    "Connection: close\r\nContent-Length: %zu\r\n\r\n{\"error\":\"%s\"}\n",
			    status, strlen(reason) + 13, reason);
	finish(l);
}

static void enter(struct link *l)
{
	const struct web_guard *g = &l->bridge->guard;

	evbuffer_add_printf(bufferevent_get_output(l->client),
			    "HTTP/1.1 303 See Other\r\nLocation: /\r\n"
			    "Set-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Strict\r\nReferrer-Policy: no-referrer\r\n"
			    "Cache-Control: no-store\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
			    g->cookie, g->session);
	finish(l);
}

/* The client's buffer takes what the agent sends, up to a limit. */
static void on_answer(struct bufferevent *agent, void *arg)
{
	struct link *l = arg;
	struct evbuffer *out = bufferevent_get_output(l->client);

	evbuffer_add_buffer(out, bufferevent_get_input(agent));
	if (evbuffer_get_length(out) > AHEAD_BYTES)
		bufferevent_disable(agent, EV_READ);
}

/* Below the low-water mark: the agent may go on. */
static void on_room(struct bufferevent *client, void *arg)
{
	struct link *l = arg;

	if (l->agent)
		bufferevent_enable(l->agent, EV_READ);
	else if (!evbuffer_get_length(bufferevent_get_output(client)))
		on_drained(client, l);
}

static void on_agent_event(struct bufferevent *agent, short what, void *arg)
{
	struct link *l = arg;

	if (what & BEV_EVENT_CONNECTED)
		return;
	on_answer(agent, l);
	finish(l);
}

static void forward(struct link *l, const struct web_request *r)
{
	struct web_bridge *b = l->bridge;

	l->agent = bufferevent_socket_new(b->base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (!l->agent || bufferevent_socket_connect(l->agent, (struct sockaddr *)&b->to, sizeof(b->to)) != 0) {
		refuse(l, "502 Bad Gateway", "agent: not there; is jouled running?");
		return;
	}
	bufferevent_setcb(l->agent, on_answer, NULL, on_agent_event, l);
	bufferevent_setcb(l->client, NULL, on_room, on_client_gone, l);
	evbuffer_add_printf(bufferevent_get_output(l->agent), "%s %s HTTP/1.1\r\nHost: jouled\r\nConnection: close\r\n",
			    r->method, r->target);
	if (r->accept)
		evbuffer_add_printf(bufferevent_get_output(l->agent), "Accept: %s\r\n", r->accept);
	evbuffer_add(bufferevent_get_output(l->agent), "\r\n", 2);
	bufferevent_enable(l->agent, EV_READ | EV_WRITE);
}

static void answer(struct link *l, char *head)
{
	const struct timeval idle = { .tv_sec = IDLE_S }, *none = NULL;
	struct web_request r;
	enum web_verdict v;

	bufferevent_setcb(l->client, NULL, on_room, on_client_gone, l);
	bufferevent_set_timeouts(l->client, none, &idle);
	if (web_parse(head, &r) != 0) {
		refuse(l, "400 Bad Request", "request: not HTTP/1.1 as a browser writes it; use one");
		return;
	}
	v = web_guard_judge(&l->bridge->guard, &r.ask);
	if (v == WEB_ENTER)
		enter(l);
	else if (v != WEB_ADMIT)
		refuse(l, "403 Forbidden", web_guard_reason(v));
	else if (strcmp(r.method, "GET") != 0 && strcmp(r.method, "HEAD") != 0)
		refuse(l, "405 Method Not Allowed", "method: this port is to look only; use the Unix socket");
	else
		forward(l, &r);
}

static void on_request(struct bufferevent *client, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(client);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	char head[WEB_HEAD_MAX + 1];
	size_t n = evbuffer_get_length(in);

	if (end.pos < 0 && n < WEB_HEAD_MAX)
		return;
	if (end.pos < 0 || end.pos + 4 > WEB_HEAD_MAX) {
		refuse(arg, "431 Request Header Fields Too Large", "request head: more than 8 KiB; send less");
		return;
	}
	n = (size_t)end.pos + 4;
	evbuffer_remove(in, head, n);
	head[n] = '\0';
	answer(arg, head);
}

static void on_accept(evutil_socket_t listener, short what, void *arg)
{
	struct web_bridge *b = arg;
	const struct timeval limit = { .tv_sec = HEAD_S };
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct link *l = fd >= 0 && b->n_links < WEB_CLIENTS_MAX ? calloc(1, sizeof(*l)) : NULL;

	if (l)
		l->client = bufferevent_socket_new(b->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!l || !l->client) {
		free(l);
		if (fd >= 0)
			close(fd);
		return;
	}
	l->bridge = b;
	l->next = b->links;
	if (l->next)
		l->next->at = &l->next;
	l->at = &b->links;
	b->links = l;
	b->n_links++;
	bufferevent_setwatermark(l->client, EV_READ, 0, WEB_HEAD_MAX);
	bufferevent_setwatermark(l->client, EV_WRITE, AHEAD_BYTES / 4, 0);
	bufferevent_set_timeouts(l->client, &limit, NULL);
	bufferevent_setcb(l->client, on_request, NULL, on_client_gone, l);
	bufferevent_enable(l->client, EV_READ | EV_WRITE);
}

static void on_signal(evutil_socket_t n, short what, void *arg)
{
	event_base_loopbreak(((struct web_bridge *)arg)->base);
}

static int listen_loopback(struct web_bridge *b, unsigned port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int one = 1;

	b->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (b->fd < 0)
		return -errno;
	setsockopt(b->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(b->fd, (struct sockaddr *)&a, len) != 0 || listen(b->fd, SOMAXCONN) != 0 ||
	    getsockname(b->fd, (struct sockaddr *)&a, &len) != 0)
		return -errno;
	b->port = ntohs(a.sin_port);
	return 0;
}

static int make_events(struct web_bridge *b)
{
	b->base = event_base_new();
	if (!b->base)
		return -ENOMEM;
	b->acceptor = event_new(b->base, b->fd, EV_READ | EV_PERSIST, on_accept, b);
	b->stop[0] = evsignal_new(b->base, SIGINT, on_signal, b);
	b->stop[1] = evsignal_new(b->base, SIGTERM, on_signal, b);
	if (!b->acceptor || !b->stop[0] || !b->stop[1] || event_add(b->acceptor, NULL) || event_add(b->stop[0], NULL) ||
	    event_add(b->stop[1], NULL))
		return -ENOMEM;
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

int web_bridge_open(unsigned port, const char *socket, struct web_bridge **ret, struct err *err)
{
	struct web_bridge *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return err_set(err, -ENOMEM, "web: out of memory; free some");
	b->fd = -1;
	b->to.sun_family = AF_UNIX;
	rc = strlen(socket) < sizeof(b->to.sun_path) ? listen_loopback(b, port) : -ENAMETOOLONG;
	if (rc) {
		web_bridge_close(b);
		return err_set(err, rc, "web: 127.0.0.1:%u: %s; choose another --port, or 0 for any", port,
			       strerrordesc_np(-rc));
	}
	memcpy(b->to.sun_path, socket, strlen(socket) + 1);
	rc = web_guard_init(&b->guard, b->port, true);
	if (!rc)
		rc = make_events(b);
	if (rc) {
		web_bridge_close(b);
		return err_set(err, rc, "web: %s; free memory", strerrordesc_np(-rc));
	}
	*ret = b;
	return 0;
}

unsigned web_bridge_port(const struct web_bridge *b)
{
	return b->port;
}

const struct web_guard *web_bridge_guard(const struct web_bridge *b)
{
	return &b->guard;
}

void web_bridge_run(struct web_bridge *b)
{
	event_base_dispatch(b->base);
}

void web_bridge_close(struct web_bridge *b)
{
	struct event *all[] = { b ? b->acceptor : NULL, b ? b->stop[0] : NULL, b ? b->stop[1] : NULL };

	if (!b)
		return;
	while (b->links)
		link_free(b->links);
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i])
			event_free(all[i]);
	if (b->base)
		event_base_free(b->base);
	if (b->fd >= 0)
		close(b->fd);
	free(b);
}
