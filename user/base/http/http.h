/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server on one listening socket, run by the I/O loop (libmicrohttpd). It accepts, identifies the peer
 * of a Unix socket, and bounds what clients may send, how long they may take and how many there are. Its owner
 * answers. All callbacks run on the loop's thread.
 *
 * Limits: request head 16 KiB, path and query 4 KiB, body 64 KiB (8 of more than 16 KiB at once), 10 s for the first request
 * head, 60 s between two. Not supported: TLS, trailers, upgrades. */
#ifndef JD_HTTP_H
#define JD_HTTP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"

#define HTTP_BODY_MAX 65536
#define HTTP_BODY_SHORT 16384 /* one of more bytes needs one of these places: */
#define HTTP_LONG_BODIES 8
#define HTTP_TARGET_MAX 4096
#define HTTP_HEAD_MAX 16384
#define HTTP_GROUPS_MAX 256
#define HTTP_ARGS_MAX 16

struct loop;
struct http;
struct MHD_Connection;

struct http_peer {
	bool local; /* a Unix socket: the members below are known */
	uid_t uid;
	gid_t gid;
	unsigned n_groups;
	gid_t groups[HTTP_GROUPS_MAX];
};

struct http_request {
	struct MHD_Connection *conn;
	struct http *server;
	const struct http_peer *peer;
	const char *method; /* "GET" for HEAD too */
	const char *path; /* percent-decoded */
	const char *target; /* path and query as they were sent */
	const char *accept; /* NULL = anything */
	const char *body; /* of a POST; not ended by a NUL; NULL = none */
	size_t body_len;
	bool head;
	bool answered;
	unsigned n_args; /* of the query, percent-decoded; a value may be NULL */
	const char *names[HTTP_ARGS_MAX], *values[HTTP_ARGS_MAX];
};

struct http_options {
	int fd; /* listening; taken over */
	bool local;
	unsigned max_clients;
	/* Answers with one of the functions below, now or, after http_wait, later. */
	void (*answer)(void *arg, struct http_request *r);
	/* A request has ended, answered or not; may be NULL. */
	void (*done)(void *arg, struct MHD_Connection *conn);
	void *arg;
};

struct http_stats {
	uint64_t requests, refused;
	unsigned clients;
};

/* Starts the server. 0, or negative errno and *ret is NULL. *ret is set before the first call of answer, which may come
 * before this returns. */
int http_start(const struct http_options *o, struct loop *loop, struct http **ret);
void http_stop(struct http *h); /* not on the loop's thread; NULL accepted */
void http_forget(struct http *h); /* the same, but the listening socket stays the caller's */
struct http_stats http_figures(const struct http *h); /* on the loop's thread */

/* Answers. headers: further lines "Name: value\n..."; NULL = none. */
void http_reply(struct http_request *r, unsigned status, const char *type, const char *headers, const struct buf *body);
void http_error(struct http_request *r, unsigned status, const char *headers, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* A header of the request, NULL when it has none; valid while the request is. */
const char *http_header(const struct http_request *r, const char *name);

/* Index of the type that an Accept header likes best (RFC 9110, 12.5.1). types ends with NULL; parameters are not
 * looked at. The first on a tie, or when accept is NULL or empty. -1 = none. */
int http_accept(const char *accept, const char *const *types);

/* Postpones the answer: the connection sleeps until http_again, and then answer is called anew. */
void http_wait(struct http_request *r);
void http_again(struct MHD_Connection *conn);

/* An answer without an end. read writes at most n bytes to dst: how many, 0 = none now (http_again goes on), -1 = the
 * end. */
struct http_stream_ops {
	ssize_t (*read)(void *arg, char *dst, size_t n);
	void (*free)(void *arg); /* the client has left, or read ended it */
};
/* Answers with a stream. 0, or -ENOMEM: then free was not called and nothing is answered. */
int http_stream(struct http_request *r, const char *type, const struct http_stream_ops *ops, void *arg);
/* The same with a status and header lines of the caller, as in http_reply. */
int http_pass(struct http_request *r, unsigned status, const char *headers, const struct http_stream_ops *ops,
	      void *arg);

#endif
