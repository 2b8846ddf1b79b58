/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics: on the query socket, and on TCP ports that answer nothing else (outputs to http-listen). Each page
 * is made from the same totals when it is requested. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/own.h"
#include "encode/metrics/openmetrics.h"
#include "routes.h"

struct serve_page {
	struct serve *s;
	uint64_t number;
	struct http *http;
	uint64_t documents, bytes; /* used on the loop only */
	struct serve_page *next; /* under the server's lock */
};

/* Writes the page. Names of outputs are copied, so that the lock is not held while the page is made. */
static int write_metrics(struct serve *s, const struct totals *t, bool version_1)
{
	struct series_output outputs[SERIES_OUTPUTS];
	struct series_self self = { .cpu_ns = own_cpu_ns(),
				    .resident_bytes = own_resident_bytes(s->root),
				    .outputs = outputs,
				    .cost = serve_cost_now(s),
				    .audit = s->audit };
	char names[SERIES_OUTPUTS][sizeof(s->outputs->to)];

	pthread_mutex_lock(&s->lock);
	for (; self.n_outputs < s->n_outputs && self.n_outputs < SERIES_OUTPUTS; self.n_outputs++) {
		struct serve_output *o = &s->outputs[self.n_outputs];

		serve_page_figures(s, o);
		memcpy(names[self.n_outputs], o->to, sizeof(names[0]));
		outputs[self.n_outputs] = (struct series_output){ names[self.n_outputs], o->documents,
								  o->dropped_documents };
	}
	pthread_mutex_unlock(&s->lock);
	return openmetrics_write(t->view ? t->view : t, &self, version_1, &s->scratch, &s->out);
}

/* True = answered with the page, which is in s->out. */
static bool answer(struct serve *s, struct http_request *r)
{
	static const char *const types[] = { "text/plain", "application/openmetrics-text", NULL };
	const struct totals *t = serve_totals(s);
	struct query q;
	int type;

	if (!serve_query(r, "", &q) || (type = serve_negotiate(r, types)) < 0)
		return false;
	if (!t) {
		http_error(r, 503, "Retry-After: 1", "metrics: the first interval is not over; try again");
		return false;
	}
	buf_reset(&s->out);
	if (write_metrics(s, t, type == 1) != 0)
		s->out.failed = true;
	http_reply(r, 200, openmetrics_types[type], "Vary: Accept", &s->out);
	return !s->out.failed;
}

void serve_get_metrics(struct serve *s, struct http_request *r, const char *rest)
{
	answer(s, r);
}

static void say_where(struct serve *s, struct http_request *r)
{
	buf_reset(&s->out);
	buf_add_str(&s->out, "jouled: the page for Prometheus is /metrics\n");
	http_reply(r, 200, "text/plain; charset=utf-8", NULL, &s->out);
}

static void page_route(void *arg, struct http_request *r)
{
	struct serve_page *p = arg;
	bool metrics = strcmp(r->path, "/metrics") == 0;

	if (serve_health(p->s, r))
		return;
	if (!metrics && strcmp(r->path, "/") != 0) {
		http_error(r, 404, NULL, "path: there is nothing; try /metrics, /healthz or /readyz");
	} else if (strcmp(r->method, "GET") != 0) {
		http_error(r, 405, "Allow: GET, HEAD", "method: this port is to look only; use GET");
	} else if (!metrics) {
		say_where(p->s, r);
	} else if (answer(p->s, r) && !r->head) {
		p->documents++;
		p->bytes += p->s->out.len;
	}
}

/* With the lock held. */
void serve_page_figures(const struct serve *s, struct serve_output *o)
{
	struct http_stats h;

	for (const struct serve_page *p = s->pages; p; p = p->next) {
		if (p->number != o->page)
			continue;
		h = http_figures(p->http);
		o->documents = p->documents;
		o->bytes = p->bytes;
		o->dropped_documents = h.refused;
		o->clients = h.clients;
	}
}

int serve_page_open(struct serve *s, int fd, unsigned max_clients, struct serve_page **ret)
{
	struct http_options ho = { .fd = fd, .max_clients = max_clients, .answer = page_route };
	struct serve_page *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	p->s = s;
	p->number = ++s->page_numbers;
	ho.arg = p;
	rc = http_start(&ho, s->loop, &p->http);
	if (rc) {
		free(p);
		return rc;
	}
	pthread_mutex_lock(&s->lock);
	p->next = s->pages;
	s->pages = p;
	pthread_mutex_unlock(&s->lock);
	*ret = p;
	return 0;
}

uint64_t serve_page_number(const struct serve_page *p)
{
	return p->number;
}

void serve_page_close(struct serve_page *p)
{
	struct serve_page **at;

	if (!p)
		return;
	pthread_mutex_lock(&p->s->lock);
	for (at = &p->s->pages; *at != p;)
		at = &(*at)->next;
	*at = p->next;
	pthread_mutex_unlock(&p->s->lock);
	http_stop(p->http);
	free(p);
}
