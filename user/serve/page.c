/* SPDX-License-Identifier: Apache-2.0 */
/* The page of watts: page.html, one file with everything. */
#include <stdio.h>
#include <string.h>
#include "routes.h"

#define MARK "@NONCE@" /* place of the policy's nonce in the page */

__asm__(".pushsection .rodata\n"
	".global jd_page_begin\n.global jd_page_end\n"
	"jd_page_begin: .incbin \"user/serve/page.html\"\n"
	"jd_page_end: .byte 0\n"
	".popsection\n");
extern const char jd_page_begin[], jd_page_end[];

/* The policy: no content from elsewhere, nothing inline except elements with the nonce, no framing by other pages. */
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
