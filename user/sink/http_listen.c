/* SPDX-License-Identifier: Apache-2.0 */
/* http-listen://addr:port: the last document, to whoever asks with GET /metrics. A document comes in one
 * or more representations, each after lines "Content-Type: ...", "Content-Length: ..." and an empty one;
 * Accept chooses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/http.h"
#include "../base/loop.h"
#include "impl.h"
#include "tcp_listen.h"

#define TYPE_HEAD "Content-Type: "
#define LENGTH_HEAD "Content-Length: "
#define VARIANTS_MAX 4
#define PAGE_BYTES ((size_t)64 << 20)   /* default bound: one page waits, rarely two */

struct page {
	struct sink s;
	struct loop *loop;
	struct http *http;
	struct server_place place;
	struct doc *last;            /* on the loop */
};

struct variant {
	char type[128];
	struct buf body;             /* within the document */
};

/* The next representation at *at; false = there is none. */
static bool next_variant(const struct doc *d, size_t *at, struct variant *v)
{
	const char *p = (const char *)d->data + *at, *end = (const char *)d->data + d->len, *line, *length;
	size_t n;

	if ((size_t)(end - p) <= sizeof(TYPE_HEAD) + sizeof(LENGTH_HEAD) || strncmp(p, TYPE_HEAD, strlen(TYPE_HEAD)) != 0)
		return false;
	p += strlen(TYPE_HEAD);
	line = memchr(p, '\n', (size_t)(end - p));
	if (!line || (size_t)(line - p) >= sizeof(v->type))
		return false;
	memcpy(v->type, p, (size_t)(line - p));
	v->type[line - p] = '\0';
	length = line + 1 + strlen(LENGTH_HEAD);
	p = length < end ? memchr(length, '\n', (size_t)(end - length)) : NULL;
	n = p ? strtoul(length, NULL, 10) : 0;
	if (!p || (size_t)(end - p) < 2 + n)
		return false;
	v->body = (struct buf){ .data = (uint8_t *)d->data + (p + 2 - (const char *)d->data), .len = n };
	*at = (size_t)(p + 2 - (const char *)d->data) + n;
	return true;
}

static void answer_page(struct page *pg, struct http_request *r)
{
	struct variant v[VARIANTS_MAX];
	const char *types[VARIANTS_MAX + 1] = { NULL };
	size_t at = 0;
	int n = 0, chosen;

	while (pg->last && n < VARIANTS_MAX && next_variant(pg->last, &at, &v[n])) {
		types[n] = v[n].type;
		n++;
	}
	chosen = n ? http_accept(r->accept, types) : -1;
	if (!n)
		http_error(r, 503, "Retry-After: 1", "page: the first interval is not over; try again");
	else if (chosen < 0)
		http_error(r, 406, NULL, "Accept: none of these is wanted; there is %s%s%s", types[0], n > 1 ? ", " : "",
			   n > 1 ? types[1] : "");
	else
		http_reply(r, 200, v[chosen].type, "Vary: Accept", &v[chosen].body);
}

static void answer(void *arg, struct http_request *r)
{
	if (strcmp(r->path, "/metrics") != 0)
		http_error(r, 404, NULL, "path: there is nothing; try /metrics");
	else if (strcmp(r->method, "GET") != 0)
		http_error(r, 405, "Allow: GET, HEAD", "method: not for /metrics; use GET");
	else if (r->n_args)
		http_error(r, 400, NULL, "query: this request takes no parameters; leave them out");
	else
		answer_page(arg, r);
}

/* On the loop: only the newest document counts. */
static void take_page(void *arg)
{
	struct page *pg = arg;
	struct doc_list l = sink_take(&pg->s);
	struct doc *d;

	while ((d = doc_list_take(&l))) {
		doc_unref(pg->last);
		pg->last = doc_ref(d);
		sink_done(&pg->s, d, true);
	}
}

static void page_wake(struct sink *s)
{
	struct page *pg = (struct page *)s;

	/* without memory the page is taken with the next document */
	loop_post(pg->loop, take_page, pg);
}

static void page_close(struct sink *s, uint64_t deadline_ns)
{
	struct page *pg = (struct page *)s;

	http_stop(pg->http);
	loop_call(pg->loop, take_page, pg);
	doc_unref(pg->last);
	pg->place.gone(pg->place.arg);
	free(pg->place.arg);
	sink_fini(s);
	free(pg);
}

static int page_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		     struct err *err)
{
	struct http_options ho = { .max_clients = o->max_clients ? o->max_clients : 512, .answer = answer };
	struct page *pg = calloc(1, sizeof(*pg));
	size_t bound = o->queue_bytes > PAGE_BYTES ? o->queue_bytes : PAGE_BYTES;
	int code;

	if (!pg)
		return err_set(err, -ENOMEM, "output \"%s\": out of memory; free some", u->text);
	ho.arg = pg;
	pg->loop = loop;
	code = tcp_listen_place(u, o->port_file, &pg->place, err);
	if (code) {
		free(pg);
		return code;
	}
	ho.fd = pg->place.fd;
	code = sink_init(&pg->s, &sink_http_listen, bound);
	if (!code)
		code = http_start(&ho, loop, &pg->http);
	if (code) {
		close(ho.fd);
		pg->place.gone(pg->place.arg);
		free(pg->place.arg);
		sink_fini(&pg->s);
		free(pg);
		return err_set(err, code, "output \"%s\": out of memory; free some", u->text);
	}
	sink_state(&pg->s, true, "listening on %.80s", pg->place.where);
	*ret = &pg->s;
	return 0;
}

const struct sink_ops sink_http_listen = {
	.scheme = "http-listen", .open = page_open, .wake = page_wake, .close = page_close,
};
