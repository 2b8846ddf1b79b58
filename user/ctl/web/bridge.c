/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/loop.h"
#include "bridge.h"

#define AHEAD_BYTES (1u << 20) /* bytes of the agent's answer that are read while the browser reads none */
#define HEAD_MAX 8192 /* bytes of the head of the agent's answer */
#define CLIENTS_MAX 64

struct link { /* a request and the agent's answer to it */
	struct web_bridge *bridge;
	struct MHD_Connection *conn;
	struct bufferevent *agent;
	bool ended; /* the agent's connection is closed */
	struct link *next;
};

struct web_bridge {
	struct loop *loop;
	struct http *http;
	struct web_guard guard;
	struct sockaddr_un to;
	struct link *links;
	sigset_t signals;
	unsigned port;
	int fd; /* -1 once the server owns it */
};

static struct link **link_of(struct web_bridge *b, const struct MHD_Connection *conn)
{
	struct link **l = &b->links;

	while (*l && (*l)->conn != conn)
		l = &(*l)->next;
	return l;
}

static void on_done(void *arg, struct MHD_Connection *conn)
{
	struct link **at = link_of(arg, conn), *l = *at;

	if (!l)
		return;
	*at = l->next;
	if (l->agent)
		bufferevent_free(l->agent);
	free(l);
}

static void on_answer(struct bufferevent *agent, void *arg)
{
	http_again(((struct link *)arg)->conn);
}

static void on_agent_event(struct bufferevent *agent, short what, void *arg)
{
	struct link *l = arg;

	if (what & BEV_EVENT_CONNECTED)
		return;
	l->ended = true;
	http_again(l->conn);
}

/* Returns the agent's next bytes. The read buffer of the agent's connection has a limit, so that the agent waits for
 * the browser. */
static ssize_t read_answer(void *arg, char *dst, size_t n)
{
	struct link *l = arg;
	int got = evbuffer_remove(bufferevent_get_input(l->agent), dst, n);

	return got > 0 ? got : l->ended ? -1 : 0;
}

static void leave_answer(void *arg)
{
	/* on_done frees the link */
}

/* true = the header is about the agent's connection, not about its answer. */
static bool of_connection(const char *line)
{
	static const char *const names[] = { "Connection:", "Content-Length:", "Date:", "Transfer-Encoding:" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncasecmp(line, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Parses the head of an answer, a string that ends with the head's empty line. Each line of ret_headers ends with one
 * \n. Returns the status, 0 = not HTTP/1. */
static unsigned parse_head(char *head, char ret_headers[HEAD_MAX])
{
	unsigned status = 0;
	size_t n = 0;

	if (sscanf(head, "HTTP/1.%*c %3u", &status) != 1)
		return 0;
	for (char *line = strstr(head, "\r\n") + 2, *end; (end = strstr(line, "\r\n")) && end != line; line = end + 2)
		if (!of_connection(line)) {
			memcpy(ret_headers + n, line, (size_t)(end - line));
			n += (size_t)(end - line);
			ret_headers[n++] = '\n';
		}
	ret_headers[n] = '\0';
	return status;
}

/* Answers once the head of the agent's answer is there. */
static void pass(struct link *l, struct http_request *r)
{
	static const struct http_stream_ops ops = { read_answer, leave_answer };
	struct evbuffer *in = bufferevent_get_input(l->agent);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	char head[HEAD_MAX], headers[HEAD_MAX];
	size_t n = end.pos < 0 ? 0 : (size_t)end.pos + 4;
	unsigned status = 0;

	if (!n && !l->ended && evbuffer_get_length(in) < HEAD_MAX) {
		http_wait(r);
		return;
	}
	if (n && n < sizeof(head)) {
		evbuffer_remove(in, head, n);
		head[n] = '\0';
		status = parse_head(head, headers);
	}
	if (!status)
		http_error(r, 502, NULL, "agent: not there; is jouled running?");
	else if (http_pass(r, status, headers, &ops, l) != 0)
		http_error(r, 503, NULL, "web: out of memory; free some");
}

/* Browsers send only printable ASCII. Other characters must not reach the agent's request line. */
static bool printable(const char *s)
{
	for (; *s; s++)
		if (*s < 0x20 || *s > 0x7e)
			return false;
	return true;
}

static struct link *forward(struct web_bridge *b, const struct http_request *r)
{
	struct link *l = calloc(1, sizeof(*l));
	struct evbuffer *out;

	if (l)
		l->agent = bufferevent_socket_new(loop_base(b->loop), -1, BEV_OPT_CLOSE_ON_FREE);
	if (!l || !l->agent) {
		free(l);
		return NULL;
	}
	l->bridge = b;
	l->conn = r->conn;
	l->next = b->links;
	b->links = l;
	bufferevent_setcb(l->agent, on_answer, NULL, on_agent_event, l);
	bufferevent_setwatermark(l->agent, EV_READ, 0, AHEAD_BYTES);
	/* HTTP/1.0: the end of the connection is the end of the answer */
	out = bufferevent_get_output(l->agent);
	evbuffer_add_printf(out, "%s %s HTTP/1.0\r\nHost: jouled\r\n", r->head ? "HEAD" : "GET", r->target);
	if (r->accept)
		evbuffer_add_printf(out, "Accept: %s\r\n", r->accept);
	evbuffer_add(out, "\r\n", 2);
	if (bufferevent_socket_connect(l->agent, (struct sockaddr *)&b->to, sizeof(b->to)) != 0)
		l->ended = true;
	bufferevent_enable(l->agent, EV_READ | EV_WRITE);
	return l;
}

static void answer(void *arg, struct http_request *r)
{
	struct web_bridge *b = arg;
	struct link *l = *link_of(b, r->conn);

	if (l) {
		pass(l, r);
		return;
	}
	if (!web_guard_admit(&b->guard, r))
		return;
	if (r->target[0] != '/' || !printable(r->target) || strchr(r->target, ' ') ||
	    (r->accept && !printable(r->accept))) {
		http_error(r, 400, NULL, "request: not HTTP/1.1 as a browser writes it; use one");
		return;
	}
	l = forward(b, r);
	if (l)
		pass(l, r);
	else
		http_error(r, 503, NULL, "web: out of memory; free some");
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

static int start(struct web_bridge *b)
{
	const struct http_options o = {
		.fd = b->fd, .max_clients = CLIENTS_MAX, .answer = answer, .done = on_done, .arg = b
	};
	int rc = web_guard_init(&b->guard, b->port, true);

	/* the loop's thread inherits the mask, so it is set before that thread starts */
	sigemptyset(&b->signals);
	sigaddset(&b->signals, SIGINT);
	sigaddset(&b->signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &b->signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (!rc)
		rc = loop_start(&b->loop);
	if (!rc)
		rc = http_start(&o, b->loop, &b->http);
	if (!rc)
		b->fd = -1;
	return rc;
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
	rc = start(b);
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
	int number;

	sigwait(&b->signals, &number);
}

void web_bridge_close(struct web_bridge *b)
{
	if (!b)
		return;
	http_stop(b->http);
	loop_stop(b->loop);
	if (b->fd >= 0)
		close(b->fd);
	free(b);
}
