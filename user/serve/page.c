/* SPDX-License-Identifier: Apache-2.0 */
/* The page of watts (page.html, one file with all it needs), and the door of the TCP port it is for. */
#include <stdio.h>
#include <string.h>
#include "serve_internal.h"

#define MARK "@NONCE@" /* where the page wants the nonce of its policy */

__asm__(".pushsection .rodata\n"
	".global jd_page_begin\n.global jd_page_end\n"
	"jd_page_begin: .incbin \"user/serve/page.html\"\n"
	"jd_page_end: .byte 0\n"
	".popsection\n");
extern const char jd_page_begin[], jd_page_end[];

/* Nothing from elsewhere, nothing inline but what carries the nonce, in nobody's frame. */
#define POLICY \
	"Content-Security-Policy: default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; " \
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#define SAFETY \
	"X-Content-Type-Options: nosniff\nReferrer-Policy: no-referrer\nCross-Origin-Resource-Policy: same-origin"

static void add_page(struct buf *b, const char *nonce)
{
	const char *at = jd_page_begin, *mark;

	while ((mark = memmem(at, (size_t)(jd_page_end - at), MARK, strlen(MARK)))) {
		buf_add(b, at, (size_t)(mark - at));
		buf_add_str(b, nonce);
		at = mark + strlen(MARK);
	}
	buf_add(b, at, (size_t)(jd_page_end - at));
}

void serve_get_page(struct serve *s, struct http_request *r, const char *rest)
{
	char nonce[WEB_SECRET_SIZE], headers[640];
	struct query q;

	if (!serve_query(r, "", &q))
		return;
	if (web_secret(nonce) != 0) {
		http_error(r, 503, NULL, "page: no random numbers; try again");
		return;
	}
	buf_reset(&s->out);
	add_page(&s->out, nonce);
	snprintf(headers, sizeof(headers), POLICY "\n" SAFETY, nonce, nonce);
	http_reply(r, 200, "text/html; charset=utf-8", headers, &s->out);
}

static const char *argument(const struct http_request *r, const char *name)
{
	for (unsigned i = 0; i < r->n_args; i++)
		if (strcmp(r->names[i], name) == 0)
			return r->values[i];
	return NULL;
}

/* The address bar, the history and a Referer keep no secret. */
static void enter(struct serve *s, struct http_request *r)
{
	struct buf nothing = { 0 };
	char headers[160];

	snprintf(headers, sizeof(headers),
		 "Location: /\nSet-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Strict\n"
		 "Referrer-Policy: no-referrer",
		 s->o.web.cookie, s->o.web.session);
	http_reply(r, 303, "text/plain", headers, &nothing);
}

bool serve_web_admit(struct serve *s, struct http_request *r)
{
	struct web_ask ask = { http_header(r, "Host"), http_header(r, "Cookie"), http_header(r, "Authorization"),
			       strcmp(r->path, "/") == 0 ? argument(r, "token") : NULL };
	enum web_verdict v = web_guard_judge(&s->o.web, &ask);

	if (v == WEB_ENTER)
		enter(s, r);
	else if (v != WEB_ADMIT)
		http_error(r, 403, NULL, "%s", web_guard_reason(v));
	else if (strcmp(r->method, "GET") != 0)
		http_error(r, 405, "Allow: GET, HEAD", "method: this port is to look only; use the Unix socket");
	return r->answered ? false : true;
}
