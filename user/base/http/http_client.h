/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client of both programs (libcurl): one request at a time over TCP, TLS or a Unix socket, on a thread
 * that may block. Redirects are not followed. Headers, where credentials are, never appear in a message. A connection
 * stays open for the next request until one of the files of certificates changes. */
#ifndef JD_HTTP_CLIENT_H
#define JD_HTTP_CLIENT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "secret.h"

struct http_client;

struct http_client_options {
	const char *subject; /* subject of messages: the URL as configured; copied */
	const char *unix_path; /* socket to connect to, copied; NULL = TCP to the host of the URL */
	const char *ca_file; /* trusted certificates, copied; NULL = those of the system only */
	const char *cert_file, *key_file; /* of this client, copied; NULL = none, or the key is in cert_file */
	struct http_secret_files secrets; /* copied */
	bool only_ca_file; /* the system's certificates are not trusted */
	bool insecure; /* any certificate and host name is accepted */
	bool proxies; /* http_proxy, https_proxy and no_proxy are obeyed */
	uint64_t timeout_ns; /* of one request, 0 = 60 s */
	uint64_t connect_ns; /* of its connection, 0 = 10 s */
	const atomic_bool *stop; /* ends http_client_ask early with -ECANCELED; may be NULL */
	size_t answer_max; /* bytes of a body without take; 0 = 64 KiB */
	const char *not_this; /* literal for messages about a longer answer: "this is no collector" */
	const char *remedy; /* literal for messages about a refused certificate: "name its authority with ca-file" */
	/* Takes bodies piece by piece; NULL: they go to struct http_answer. 0, or a negative errno that ends the
	 * request with that errno. */
	int (*take)(void *arg, long status, const char *data, size_t n);
	void *arg;
};

struct http_ask {
	const char *url;
	const char *const *headers; /* "Name: value", ends with NULL; may be NULL */
	bool post; /* else GET */
	bool del; /* DELETE in place of both */
	bool anonymous; /* without the client's secrets: the headers say who asks, or nobody */
	bool last; /* is made although *stop is set */
	const char *type; /* content type of a POST; may be NULL */
	const void *body; /* of a POST; must stay until the request has ended */
	size_t len;
	bool endless; /* the answer has no end: only connecting has a time limit */
};

struct http_answer {
	long status; /* 0 = no request was sent */
	uint64_t retry_after_ns; /* as the server asked by Retry-After; 0 = it did not */
	struct buf body; /* ends with a NUL that is not counted; owned by the caller, reused */
};

int http_client_new(const struct http_client_options *o, struct http_client **ret, struct err *err);
void http_client_free(struct http_client *c); /* NULL accepted */
/* Checks that the URL is http://HOST[:PORT][/PATH] or https://. 0, or -EINVAL with err. */
int http_client_check_url(const char *url, struct err *err);
/* Sends a request and waits for the answer. 0: an answer came, with any status. -ECONNREFUSED: no server answers; the
 * errno of connect() for a Unix socket; -ECONNRESET (and the like): the server or the connection failed; -EKEYREJECTED:
 * the certificate is refused; -EACCES: a file of credentials cannot be used; -EMSGSIZE: the answer is too long; -ETIMEDOUT; -ECANCELED; or the value that take
 * returned. */
int http_client_ask(struct http_client *c, const struct http_ask *ask, struct http_answer *ret, struct err *err);

/* The same in steps, for a client with take: http_client_begin, then http_client_turn until it returns 0 or less. A
 * turn lasts until data came, fd (-1 = none) has input, or wait_ms passed. 1: the request goes on. 0: it has ended.
 * Else as http_client_ask. */
int http_client_begin(struct http_client *c, const struct http_ask *ask, struct err *err);
int http_client_turn(struct http_client *c, int fd, int wait_ms, struct err *err);
void http_client_stop(struct http_client *c); /* gives up the request that was begun */
bool http_client_running(const struct http_client *c); /* a request was begun and has not ended */
/* True when a file of certificates or secrets has changed since the last request. */
bool http_client_changed(const struct http_client *c);
long http_client_status(const struct http_client *c); /* of the last answer, 0 = there was none */
/* A header of the last answer. False, and "" in dst, when it has none or one that does not fit. */
bool http_client_header(struct http_client *c, const char *name, char *dst, size_t size);

#endif
