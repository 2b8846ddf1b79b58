/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve.h"

#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/thread.h"

struct resolve {
	pthread_mutex_t lock;
	struct event *done; /* NULL: the caller has gone */
	int holders; /* references: of the caller and the thread */
	char host[256];
	uint16_t port;
	int gai;
	struct addrs addrs;
};

static int lookup(const char *host, uint16_t port, int flags, struct addrs *ret)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV }, *list;
	char service[8];
	int gai;

	snprintf(service, sizeof(service), "%u", port);
	gai = getaddrinfo(host, service, &hints, &list);
	if (gai)
		return gai;
	ret->n = 0;
	for (struct addrinfo *a = list; a && ret->n < ADDRS_MAX; a = a->ai_next) {
		if (a->ai_addrlen > sizeof(ret->v[0].a))
			continue;
		memcpy(&ret->v[ret->n].a, a->ai_addr, a->ai_addrlen);
		ret->v[ret->n++].len = a->ai_addrlen;
	}
	freeaddrinfo(list);
	return ret->n ? 0 : EAI_NONAME;
}

bool resolve_numeric(const char *host, uint16_t port, struct addrs *ret)
{
	return lookup(host, port, AI_NUMERICHOST, ret) == 0;
}

static void resolve_put(struct resolve *r)
{
	pthread_mutex_lock(&r->lock);
	bool last = --r->holders == 0;
	pthread_mutex_unlock(&r->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static void *resolve_thread(void *arg)
{
	struct resolve *r = arg;

	r->gai = lookup(r->host, r->port, AI_ADDRCONFIG, &r->addrs);
	/* A machine that has only loopback has no "configured" family. */
	if (r->gai)
		r->gai = lookup(r->host, r->port, 0, &r->addrs);
	pthread_mutex_lock(&r->lock);
	if (r->done)
		event_active(r->done, EV_TIMEOUT, 0);
	pthread_mutex_unlock(&r->lock);
	resolve_put(r);
	return NULL;
}

int resolve_start(const char *host, uint16_t port, struct event *done, struct resolve **ret)
{
	struct resolve *r = calloc(1, sizeof(*r));
	pthread_t thread;
	int rc;

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->lock, NULL);
	r->done = done;
	r->holders = 2;
	r->port = port;
	snprintf(r->host, sizeof(r->host), "%s", host);
	/* Uses the default stack size, because name service modules may need a lot. */
	rc = thread_start(&thread, "jouled-dns", 0, resolve_thread, r);
	if (rc) {
		pthread_mutex_destroy(&r->lock);
		free(r);
		return rc;
	}
	pthread_detach(thread);
	*ret = r;
	return 0;
}

const char *resolve_result(struct resolve *r, struct addrs *ret)
{
	if (r->gai)
		return gai_strerror(r->gai);
	*ret = r->addrs;
	return NULL;
}

void resolve_free(struct resolve *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->done = NULL;
	pthread_mutex_unlock(&r->lock);
	resolve_put(r);
}
