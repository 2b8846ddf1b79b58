/* SPDX-License-Identifier: Apache-2.0 */
/* Guards a page on a TCP port. A browser that opens it must have the secret in the URL, which becomes a cookie of
 * that port. Other sites cannot use the browser: a name that was made to point here (DNS rebinding) is refused by
 * Host, and other sites by the cookie (SameSite=Strict) and because there is no CORS. */
#ifndef JD_WEB_GUARD_H
#define JD_WEB_GUARD_H
#include <stdbool.h>
#include "http.h"

#define WEB_SECRET_SIZE 33 /* 128 random bits as hexadecimal digits, and a NUL */

struct web_guard {
	char token[WEB_SECRET_SIZE]; /* in the URL; also good as Authorization: Bearer unless `once` */
	char session[WEB_SECRET_SIZE]; /* in the cookie */
	char cookie[24]; /* its name: cookies know hosts, not ports */
	bool once; /* the token opens one session, then it is spent */
	bool spent;
	bool open; /* no secret is needed */
	const char *token_file; /* that holds the token, told in a refusal; NULL = there is none. Borrowed. */
};

struct web_ask { /* of a request; NULL = it has none */
	const char *host, *cookie, *authorization;
	const char *token; /* "token" of the query */
};

enum web_verdict {
	WEB_ADMIT,
	WEB_ENTER, /* the token is right: send the cookie and redirect to the path without it */
	WEB_STRANGE_HOST,
	WEB_SPENT,
	WEB_UNKNOWN, /* 403 */
};

/* Makes new secrets. 0 or negative errno. */
int web_guard_init(struct web_guard *g, unsigned port, bool once);
enum web_verdict web_guard_judge(struct web_guard *g, const struct web_ask *ask);
/* Judges a request to a guarded port, where only GET and HEAD are allowed. False: the request is already answered. */
bool web_guard_admit(struct web_guard *g, struct http_request *r);
/* A new secret; also a nonce for a page's policy. 0 or negative errno. */
int web_secret(char ret[WEB_SECRET_SIZE]);

#endif
