/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: checked, handed to the owner, answered. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "http_internal.h"
#include "json.h"

#define STREAM_BLOCK 65536
#define HELD_MAX ((size_t)64 << 20) /* of answers that wait for their readers, all together */
#define HELD_SMALL 65536 /* such a one is never refused */

struct pending { /* a request between its first byte and its end */
	struct http_request r;
	const char *wrong; /* what is wrong with its target; NULL = nothing */
	unsigned status; /* for that */
	size_t body;
	bool begun;
};

struct stream {
	const struct http_stream_ops *ops;
	void *arg;
	struct http *server;
	struct MHD_Connection *conn;
};

struct http_client *http_client_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* What a query string cannot hide: a NUL cuts the decoded text, a broken escape is taken as it is. */
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

void *http_on_uri(void *arg, const char *uri, struct MHD_Connection *conn)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->wrong = wrong_escape(uri);
	p->status = MHD_HTTP_BAD_REQUEST;
	if (strlen(uri) > HTTP_TARGET_MAX) {
		p->wrong = "longer than 4096 bytes; ask for less";
		p->status = MHD_HTTP_URI_TOO_LONG;
	}
	return p;
}

void http_let_go(struct http_client *c)
{
	c->server->held -= c->held;
	c->held = 0;
}

/* Clients that ask and do not read must not fill the memory. One answer fits always. */
static bool may_hold(const struct http_client *c, size_t bytes)
{
	return !c || bytes <= HELD_SMALL || !c->server->held || c->server->held + bytes <= HELD_MAX;
}

void http_on_completed(void *arg, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode why)
{
	struct http_client *c = http_client_of(conn);

	free(*state);
	*state = NULL;
	if (!c || !c->at)
		return;
	http_let_go(c);
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
	struct http_client *c = http_client_of(r->conn);
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

/* Answers what must not reach the owner. */
static void check(struct http_request *r, const struct pending *p)
{
	const char *length = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	size_t head = 0;

	MHD_get_connection_values_n(r->conn, MHD_HEADER_KIND, add_size, &head);
	MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, add_argument, r);
	if (p->wrong)
		http_error(r, p->status, NULL, "request target: %s", p->wrong);
	else if (head > HTTP_HEAD_MAX)
		http_error(r, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, NULL,
			   "request head: more than %d bytes; send less", HTTP_HEAD_MAX);
	else if (length && (strlen(length) > 10 || strtoull(length, NULL, 10) > HTTP_BODY_MAX))
		http_error(r, MHD_HTTP_CONTENT_TOO_LARGE, NULL, "request body: more than %d bytes; send none",
			   HTTP_BODY_MAX);
	else if (r->n_args > HTTP_ARGS_MAX)
		http_error(r, MHD_HTTP_BAD_REQUEST, NULL, "query: more than %d parameters; leave some out",
			   HTTP_ARGS_MAX);
}

static void begin(struct pending *p, struct http_client *c, struct MHD_Connection *conn, const char *method)
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

enum MHD_Result http_on_request(void *arg, struct MHD_Connection *conn, const char *url, const char *method,
				const char *version, const char *data, size_t *size, void **state)
{
	struct http_client *c = http_client_of(conn);
	struct pending *p = *state;

	if (!c || !c->at || !p || c->server->stopping)
		return MHD_NO;
	p->r.path = url;
	if (!p->begun) {
		begin(p, c, conn, method);
		return MHD_YES;
	}
	if (*size) {
		p->body += *size;
		*size = 0;
		return p->body > HTTP_BODY_MAX ? MHD_NO : MHD_YES;
	}
	if (p->r.answered)
		return MHD_YES;
	c->since_ns = 0;
	c->server->o.answer(c->server->o.arg, &p->r);
	return p->r.answered || c->suspended ? MHD_YES : MHD_NO;
}

void http_wait(struct http_request *r)
{
	struct http_client *c = http_client_of(r->conn);

	c->suspended = true;
	MHD_suspend_connection(r->conn);
}

static ssize_t read_stream(void *arg, uint64_t at, char *dst, size_t n)
{
	struct stream *s = arg;
	struct http_client *c = http_client_of(s->conn);
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

int http_stream(struct http_request *r, const char *type, const struct http_stream_ops *ops, void *arg)
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
	MHD_add_response_header(res, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(res, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	send_response(r, MHD_HTTP_OK, res);
	return 0;
}
