/* SPDX-License-Identifier: Apache-2.0 */
#include "web_guard.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

int web_secret(char ret[WEB_SECRET_SIZE])
{
	unsigned char bytes[(WEB_SECRET_SIZE - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int web_guard_init(struct web_guard *g, unsigned port, bool once)
{
	int rc;

	*g = (struct web_guard){ .once = once };
	snprintf(g->cookie, sizeof(g->cookie), "jouled-%u", port);
	rc = web_secret(g->token);
	return rc ? rc : web_secret(g->session);
}

/* Compares in the same time for every difference, so that the time does not tell the secret. */
static bool same(const char *text, size_t len, const char *secret)
{
	unsigned char differ = 0;

	if (len != WEB_SECRET_SIZE - 1)
		return false;
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)text[i] ^ (unsigned char)secret[i];
	return !differ;
}

/* True for an address, localhost and the name of this machine: none of these can be made to point elsewhere. */
static bool own_host(const char *host)
{
	char name[256], own[256] = "";
	unsigned char address[16];
	size_t n;

	if (!host)
		return false;
	n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	if (n >= sizeof(name) || n > strlen(host))
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	if (name[0] == '[') {
		name[n - 1] = '\0';
		return inet_pton(AF_INET6, name + 1, address) == 1;
	}
	gethostname(own, sizeof(own) - 1);
	return inet_pton(AF_INET, name, address) == 1 || strcasecmp(name, "localhost") == 0 ||
	       (own[0] && strcasecmp(name, own) == 0);
}

/* Cookie: a=b; jouled-8480=SECRET; ... */
static bool has_cookie(const struct web_guard *g, const char *list)
{
	size_t len = strlen(g->cookie);

	for (; list && *list; list += strcspn(list, ";"), list += strspn(list, "; "))
		if (strncmp(list, g->cookie, len) == 0 && list[len] == '=' &&
		    same(list + len + 1, strcspn(list + len + 1, "; "), g->session))
			return true;
	return false;
}

enum web_verdict web_guard_judge(struct web_guard *g, const struct web_ask *ask)
{
	const char *bearer = ask->authorization && !strncasecmp(ask->authorization, "Bearer ", 7) ?
				     ask->authorization + 7 :
				     NULL;
	bool right = ask->token && same(ask->token, strlen(ask->token), g->token);

	if (!own_host(ask->host))
		return WEB_STRANGE_HOST;
	if (has_cookie(g, ask->cookie))
		return right ? WEB_ENTER : WEB_ADMIT;
	if (right && g->once && g->spent)
		return WEB_SPENT;
	if (right) {
		g->spent = true;
		return WEB_ENTER;
	}
	if (g->open || (bearer && !g->once && same(bearer, strlen(bearer), g->token)))
		return WEB_ADMIT;
	return WEB_UNKNOWN;
}

/* "subject: cause; remedy" of a refusal. */
static const char *reason(enum web_verdict v)
{
	switch (v) {
	case WEB_STRANGE_HOST:
		return "Host: not a name of this machine; use its address, such as http://127.0.0.1:PORT/";
	case WEB_SPENT:
		return "token: it was used already; start joulectl web again for a new one";
	default:
		return "token: there is none, or a wrong one; open the page by the URL that joulectl web printed";
	}
}

static void refuse(const struct web_guard *g, struct http_request *r, enum web_verdict v)
{
	if (v == WEB_UNKNOWN && g->token_file)
		http_error(r, 403, NULL,
			   "token: there is none, or a wrong one; open this address with /?token=SECRET, where SECRET "
			   "is what %s on this machine holds",
			   g->token_file);
	else
		http_error(r, 403, NULL, "%s", reason(v));
}

static const char *token_of(const struct http_request *r)
{
	for (unsigned i = 0; strcmp(r->path, "/") == 0 && i < r->n_args; i++)
		if (strcmp(r->names[i], "token") == 0)
			return r->values[i];
	return NULL;
}

/* Replaces the token in the URL by a session cookie: address bar, browser history and Referer do not keep a
 * secret. */
static void enter(const struct web_guard *g, struct http_request *r)
{
	struct buf nothing = { 0 };
	char headers[160];

	snprintf(headers, sizeof(headers),
		 "Location: /\nSet-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Strict\n"
		 "Referrer-Policy: no-referrer",
		 g->cookie, g->session);
	http_reply(r, 303, "text/plain", headers, &nothing);
}

bool web_guard_admit(struct web_guard *g, struct http_request *r)
{
	struct web_ask ask = { http_header(r, "Host"), http_header(r, "Cookie"), http_header(r, "Authorization"),
			       token_of(r) };
	enum web_verdict v = web_guard_judge(g, &ask);

	if (v == WEB_ENTER)
		enter(g, r);
	else if (v != WEB_ADMIT)
		refuse(g, r, v);
	else if (strcmp(r->method, "GET") != 0)
		http_error(r, 405, "Allow: GET, HEAD", "method: this port is to look only; use the Unix socket");
	return !r->answered;
}
