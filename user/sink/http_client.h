/* SPDX-License-Identifier: Apache-2.0 */
/* One POST at a time over HTTP or HTTPS (libcurl), for a thread that may wait. Certificates and host
 * names are verified; redirects are not followed; proxies as http_proxy, https_proxy and no_proxy say. An
 * answer is kept up to a bound, what is longer is an error. */
#ifndef JD_HTTP_CLIENT_H
#define JD_HTTP_CLIENT_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/buf.h"
#include "../base/err.h"

#define HTTP_ANSWER_MAX 65536

struct http_client;

struct http_client_options {
	const char *subject; /* of messages: the URL as configured */
	const char *ca_file; /* trusted certificates instead of the system's; NULL = those */
	uint64_t timeout_ns; /* of one request, 0 = 60 s */
	const atomic_bool *stop; /* ends a request early with -ECANCELED; may be NULL */
};

struct http_post {
	const char *url;
	const char *const *headers; /* "Name: value", ends with NULL; may be NULL */
	const char *type; /* content type */
	const void *body;
	size_t len;
};

struct http_reply {
	long status;
	struct buf body; /* NUL-terminated, the NUL not counted; the caller's, reused */
};

int http_client_new(const struct http_client_options *o, struct http_client **ret, struct err *err);
/* Is it http://HOST[:PORT][/PATH] or https://? -EINVAL with err. */
int http_client_check_url(const char *url, struct err *err);
void http_client_free(struct http_client *c); /* NULL accepted */
/* 0: there is an answer, whatever its status. -ECONNREFUSED (and the like): nobody is there; -EKEYREJECTED:
 * the certificate is refused; -EMSGSIZE: the answer is too long; -ETIMEDOUT; -ECANCELED. */
int http_client_post(struct http_client *c, const struct http_post *p, struct http_reply *ret, struct err *err);

#endif
