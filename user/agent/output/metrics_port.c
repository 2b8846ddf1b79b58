/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "serve/serve.h"
#include "sink/tcp_listen.h"
#include "metrics_port.h"

struct page {
	struct server_place place; /* fd is -1 once the server owns it */
	struct serve_page *page;
	unsigned max_clients;
	char to[128];
};

static int look(const struct output_config *oc, bool replays, struct sink_url *u, struct err *err)
{
	int rc = sink_url_scheme(oc->to, u, err);

	if (!rc)
		rc = sink_url_rest(oc->to, SINK_URL_ADDR_PORT, u, err);
	if (!rc && replays)
		rc = err_set(err, -EINVAL,
			     "output \"%s\": a page of the running agent, and there is none with --replay; "
			     "write openmetrics=file:///PATH",
			     u->text);
	return rc;
}

int page_check(const struct output_config *oc, bool replays, struct err *err)
{
	struct sink_url u;

	return look(oc, replays, &u, err);
}

int page_open(const struct output_config *oc, bool replays, struct page **ret, struct err *err)
{
	struct sink_url u;
	struct page *p;
	int rc = look(oc, replays, &u, err);

	if (rc)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, -ENOMEM, "output \"%s\": out of memory; free some", u.text);
	rc = tcp_listen_place(&u, oc->port_file, &p->place, err);
	if (rc) {
		free(p);
		return rc;
	}
	p->max_clients = (unsigned)oc->max_clients;
	snprintf(p->to, sizeof(p->to), "%s", u.text);
	*ret = p;
	return 0;
}

int page_start(struct page *p, struct serve *s, struct err *err)
{
	int rc = p->page ? 0 : serve_page_open(s, p->place.fd, p->max_clients, &p->page);

	if (rc)
		return err_set(err, rc, "output \"%s\": %s; free memory or raise the limit of open files", p->to,
			       strerror(-rc));
	if (p->place.fd >= 0)
		log_info("output %s: listening on %s", p->to, p->place.where);
	p->place.fd = -1;
	return 0;
}

void page_stats(const struct page *p, struct sink_stats *ret, uint64_t *ret_number)
{
	*ret = (struct sink_stats){ .up = true };
	snprintf(ret->state, sizeof(ret->state), "listening on %.100s", p->place.where);
	*ret_number = p->page ? serve_page_number(p->page) : 0;
}

void page_close(struct page *p)
{
	if (!p)
		return;
	serve_page_close(p->page);
	if (p->place.fd >= 0)
		close(p->place.fd);
	p->place.gone(p->place.arg);
	free(p->place.arg);
	free(p);
}
