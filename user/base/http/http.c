/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/format/json.h"
#include "base/loop.h"
#include "http.h"

#define ACCEPTS_PER_TURN 32
#define FIRST_NS (10 * NS_PER_S) /* time for the head of the first request */
#define NEXT_NS (60 * NS_PER_S) /* time for the head of each later request */
#define POOL_BYTES (48u << 10) /* memory above 32 KiB is mapped, so only touched pages are resident */

#define BUSY "{\"error\":\"clients: as many as allowed are connected; try again, or less\"}"
static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
			   "Connection: close\r\nContent-Length: 73\r\n\r\n" BUSY;
_Static_assert(sizeof(BUSY) - 1 == 73, "Content-Length");

struct client {
	struct http_peer peer;
	struct http *server;
	struct MHD_Connection *conn;
	int fd;
	uint64_t since_ns; /* since when it waits for a request; 0 = one is being answered */
	bool first, cut;
	bool suspended;
	size_t held; /* bytes of its answer, until the client took it or left */
	struct client *next, **at;
};

/* The daemon and its connections. */
struct http {
	struct http_options o;
	struct loop *loop;
	struct MHD_Daemon *daemon;
	struct event *acceptor, *ready, *timer, *sweep;
	struct client *clients;
	struct http_stats stats;
	size_t held; /* bytes of all answers */
	unsigned long_bodies; /* requests that have a place for more than HTTP_BODY_SHORT bytes */
	bool stopping;
};

static struct client *client_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

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

/* True when a connection must be cut. It took too long over the head of a request (the library's own timeout begins
 * anew with every byte), or its client has closed its side: when epoll reports bytes and the end at once, the
 * library takes the bytes and waits for more. */
static bool never_asks(const struct client *c, uint64_t now_ns)
{
	char byte;

	return now_ns - c->since_ns >= (c->first ? FIRST_NS : NEXT_NS) ||
	       recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;
	uint64_t now = clock_mono_ns();

	for (struct client *c = h->clients; c; c = c->next) {
		if (!c->since_ns || c->cut || !never_asks(c, now))
			continue;
		shutdown(c->fd, SHUT_RDWR);
		c->cut = true;
	}
	event_add(h->acceptor, NULL);
	run(h);
}

static void know_peer(struct client *c)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	c->peer.local = c->server->o.local && getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0;
	if (!c->peer.local)
		return;
	c->peer.uid = cred.uid;
	c->peer.gid = cred.gid;
	len = sizeof(c->peer.groups);
	/* with more groups than fit (ERANGE) the peer is judged by its first one */
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, c->peer.groups, &len) == 0)
		c->peer.n_groups = len / sizeof(gid_t);
}

static void client_begins(struct http *h, struct MHD_Connection *conn, void **slot)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct client *c = calloc(1, sizeof(*c));

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

/* Forgets the bytes of an answer that waits no more. */
static void let_go(struct client *c)
{
	c->server->held -= c->held;
	c->held = 0;
}

static void client_ends(struct client *c)
{
	if (!c || !c->at) {
		free(c);
		return;
	}
	let_go(c);
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

/* The answer fits the socket's buffer. A client that does not read it loses it. */
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
			event_del(h->acceptor); /* the sweep tries again */
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

/* Requests: checked, handed to the owner, answered. */

#define STREAM_BLOCK 65536
#define HELD_MAX ((size_t)64 << 20) /* bytes of all answers that wait for their readers */
#define HELD_SMALL 65536 /* an answer of so many bytes is never refused */

struct pending { /* a request between its first byte and its end */
	struct http_request r; /* its target is `uri` */
	const char *wrong; /* the error in its target; NULL = none */
	unsigned status; /* HTTP status of that error */
	char *body; /* HTTP_BODY_SHORT bytes from the first one that came, HTTP_BODY_MAX where more came */
	bool long_body; /* it has a place for that */
	bool begun;
	char uri[];
};

struct stream {
	const struct http_stream_ops *ops;
	void *arg;
	struct http *server;
	struct MHD_Connection *conn;
};

/* Finds an escape that must be refused: the library would cut the decoded text at a NUL and take a broken escape as it
 * is. NULL = none. */
static const char *wrong_escape(const char *uri)
{
	for (const char *s = uri; (s = strchr(s, '%')); s += 3) {
		if (!isxdigit((unsigned char)s[1]) || !isxdigit((unsigned char)s[2]))
			return "a broken %XX; write two hexadecimal digits";
		if (s[1] == '0' && s[2] == '0')
			return "a zero byte; leave it out";
	}
	return NULL;
}

static void *on_uri(void *arg, const char *uri, struct MHD_Connection *conn)
{
	size_t len = strlen(uri);
	struct pending *p = calloc(1, sizeof(*p) + len + 1);

	if (!p)
		return NULL;
	memcpy(p->uri, uri, len);
	p->r.target = p->uri;
	p->wrong = wrong_escape(uri);
	p->status = MHD_HTTP_BAD_REQUEST;
	if (len > HTTP_TARGET_MAX) {
		p->wrong = "longer than 4096 bytes; shorten its path or pattern";
		p->status = MHD_HTTP_URI_TOO_LONG;
	}
	return p;
}

/* True when so many more bytes may be held: clients that ask and do not read must not fill the memory. A small answer,
 * and one answer alone, are always allowed. */
static bool may_hold(const struct client *c, size_t bytes)
{
	return !c || bytes <= HELD_SMALL || !c->server->held || c->server->held + bytes <= HELD_MAX;
}

/* True when the request has a place for a long body, now at the latest. */
static bool may_be_long(struct pending *p)
{
	struct http *h = p->r.server;

	if (!p->long_body && h->long_bodies < HTTP_LONG_BODIES) {
		p->long_body = true;
		h->long_bodies++;
	}
	return p->long_body;
}

static void free_pending(struct pending *p)
{
	if (p && p->long_body)
		p->r.server->long_bodies--;
	if (p)
		free(p->body);
	free(p);
}

static void on_completed(void *arg, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode why)
{
	struct client *c = client_of(conn);

	free_pending(*state);
	*state = NULL;
	if (!c || !c->at)
		return;
	let_go(c);
	if (c->server->o.done)
		c->server->o.done(c->server->o.arg, conn);
	c->since_ns = clock_mono_ns();
	c->first = false;
}

const char *http_header(const struct http_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}

static void send_response(struct http_request *r, unsigned status, struct MHD_Response *res)
{
	r->answered = true;
	if (!res)
		return;
	MHD_queue_response(r->conn, status, res);
	MHD_destroy_response(res);
}

static void add_headers(struct MHD_Response *res, const char *headers)
{
	char line[512], *colon;

	for (; headers && *headers; headers += strcspn(headers, "\n"), headers += *headers == '\n') {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(headers, "\n"), headers);
		colon = strstr(line, ": ");
		if (!colon)
			continue;
		*colon = '\0';
		MHD_add_response_header(res, line, colon + 2);
	}
}

void http_reply(struct http_request *r, unsigned status, const char *type, const char *headers, const struct buf *body)
{
	struct client *c = client_of(r->conn);
	struct MHD_Response *res;

	if (body->failed) {
		http_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, "answer: out of memory; ask for less");
		return;
	}
	if (!may_hold(c, body->len)) {
		http_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "Retry-After: 1",
			   "answer: too many wait for their readers; try again");
		return;
	}
	res = MHD_create_response_from_buffer(body->len, body->data ? body->data : (uint8_t *)"",
					      MHD_RESPMEM_MUST_COPY);
	if (res) {
		MHD_add_response_header(res, MHD_HTTP_HEADER_CONTENT_TYPE, type);
		MHD_add_response_header(res, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
		add_headers(res, headers);
		if (c) {
			c->held += body->len;
			c->server->held += body->len;
		}
	}
	send_response(r, status, res);
}

void http_error(struct http_request *r, unsigned status, const char *headers, const char *fmt, ...)
{
	char text[512];
	uint8_t room[2048];
	struct buf b = { .data = room, .cap = sizeof(room), .limit = sizeof(room) };
	struct json j;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_init(&j, &b);
	json_object_begin(&j);
	json_key_str(&j, "error", text);
	json_object_end(&j);
	buf_add_char(&b, '\n');
	if (b.failed)
		b.len = 0, b.failed = false;
	http_reply(r, status, "application/json", headers, &b);
}

static enum MHD_Result add_size(void *arg, enum MHD_ValueKind kind, const char *name, size_t n, const char *value,
				size_t len)
{
	*(size_t *)arg += n + len + 4;
	return MHD_YES;
}

static enum MHD_Result add_argument(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct http_request *r = arg;

	if (r->n_args < HTTP_ARGS_MAX) {
		r->names[r->n_args] = name;
		r->values[r->n_args] = value;
	}
	r->n_args++;
	return MHD_YES;
}

/* Answers requests that must not reach the owner. */
static void check(struct http_request *r, struct pending *p)
{
	const char *length = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	unsigned long long bytes = length ? strlen(length) > 10 ? ULLONG_MAX : strtoull(length, NULL, 10) : 0;
	size_t head = 0;

	MHD_get_connection_values_n(r->conn, MHD_HEADER_KIND, add_size, &head);
	MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, add_argument, r);
	if (p->wrong)
		http_error(r, p->status, NULL, "request target: %s", p->wrong);
	else if (head > HTTP_HEAD_MAX)
		http_error(r, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, NULL,
			   "request head: more than %d bytes; send less", HTTP_HEAD_MAX);
	else if (bytes > HTTP_BODY_MAX)
		http_error(r, MHD_HTTP_CONTENT_TOO_LARGE, NULL, "request body: more than %d bytes; send less",
			   HTTP_BODY_MAX);
	else if (bytes > HTTP_BODY_SHORT && !may_be_long(p))
		http_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "Retry-After: 1\n",
			   "request body: %d of more than %d bytes are being read; try again", HTTP_LONG_BODIES,
			   HTTP_BODY_SHORT);
	else if (r->n_args > HTTP_ARGS_MAX)
		http_error(r, MHD_HTTP_BAD_REQUEST, NULL, "query: more than %d parameters; leave some out",
			   HTTP_ARGS_MAX);
}

static void answer_begin(struct pending *p, struct client *c, struct MHD_Connection *conn, const char *method)
{
	p->begun = true;
	p->r.conn = conn;
	p->r.server = c->server;
	p->r.peer = &c->peer;
	p->r.head = strcmp(method, "HEAD") == 0;
	p->r.method = p->r.head ? "GET" : method;
	p->r.accept = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	c->server->stats.requests++;
	check(&p->r, p);
}

/* False: it is longer than a body may be, or memory ran out. */
static bool keep_body(struct pending *p, const char *data, size_t size)
{
	const bool was_short = p->r.body_len <= HTTP_BODY_SHORT, is_long = p->r.body_len + size > HTTP_BODY_SHORT;

	if (size > HTTP_BODY_MAX - p->r.body_len || (is_long && !may_be_long(p)))
		return false;
	if (!p->body || (was_short && is_long)) {
		char *body = realloc(p->body, is_long ? HTTP_BODY_MAX : HTTP_BODY_SHORT);

		if (!body)
			return false;
		p->body = body;
	}
	memcpy(p->body + p->r.body_len, data, size);
	p->r.body = p->body;
	p->r.body_len += size;
	return true;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *conn, const char *url, const char *method,
				  const char *version, const char *data, size_t *size, void **state)
{
	struct client *c = client_of(conn);
	struct pending *p = *state;

	if (!c || !c->at || !p || c->server->stopping)
		return MHD_NO;
	p->r.path = url;
	if (!p->begun) {
		answer_begin(p, c, conn, method);
		return MHD_YES;
	}
	if (*size) {
		bool kept = keep_body(p, data, *size);

		*size = 0;
		return kept ? MHD_YES : MHD_NO;
	}
	if (p->r.answered)
		return MHD_YES;
	c->since_ns = 0;
	c->server->o.answer(c->server->o.arg, &p->r);
	return p->r.answered || c->suspended ? MHD_YES : MHD_NO;
}

void http_wait(struct http_request *r)
{
	struct client *c = client_of(r->conn);

	c->suspended = true;
	MHD_suspend_connection(r->conn);
}

static ssize_t read_stream(void *arg, uint64_t at, char *dst, size_t n)
{
	struct stream *s = arg;
	struct client *c = client_of(s->conn);
	ssize_t got = s->server->stopping ? -1 : s->ops->read(s->arg, dst, n);

	if (got < 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (!got && c) {
		c->suspended = true;
		MHD_suspend_connection(s->conn);
	}
	return got;
}

static void free_stream(void *arg)
{
	struct stream *s = arg;

	s->ops->free(s->arg);
	free(s);
}

int http_pass(struct http_request *r, unsigned status, const char *headers, const struct http_stream_ops *ops,
	      void *arg)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct MHD_Response *res;

	if (!s)
		return -ENOMEM;
	*s = (struct stream){ ops, arg, r->server, r->conn };
	res = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, s, free_stream);
	if (!res) {
		free(s);
		return -ENOMEM;
	}
	add_headers(res, headers);
	send_response(r, status, res);
	return 0;
}

int http_stream(struct http_request *r, const char *type, const struct http_stream_ops *ops, void *arg)
{
	char headers[160];

	snprintf(headers, sizeof(headers), "Content-Type: %s\nCache-Control: no-store", type);
	return http_pass(r, MHD_HTTP_OK, headers, ops, arg);
}

/* Start and end. */

/* Frees everything that belongs to the loop, on its thread. Sleeping connections must wake before the daemon ends. */
static void end(void *arg)
{
	struct http *h = arg;
	struct event *all[] = { h->acceptor, h->ready, h->timer, h->sweep };

	h->stopping = true;
	if (h->daemon) {
		for (struct client *c = h->clients; c; c = c->next)
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

	errno = 0;
	h->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, h,
		MHD_OPTION_CONNECTION_LIMIT, h->o.max_clients, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, 60u, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
	if (!h->daemon)
		return errno == EMFILE || errno == ENFILE ? -errno : -ENOMEM;
	info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
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
	int rc;

	if (!h)
		return -ENOMEM;
	h->o = *o;
	h->loop = loop;
	rc = make(h);
	if (!rc) {
		*ret = h; /* a client that waits already is answered before this returns */
		loop_call(loop, begin, h);
	}
	if (rc || h->stopping) {
		loop_call(loop, end, h);
		free(h);
		*ret = NULL;
		return rc ? rc : -ENOMEM;
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
	struct client *c = client_of(conn);

	if (!c || !c->suspended)
		return;
	c->suspended = false;
	MHD_resume_connection(conn);
	event_active(c->server->timer, EV_TIMEOUT, 0);
}
