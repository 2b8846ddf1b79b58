/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of http*.c: connections and the daemon behind them. */
#ifndef JD_HTTP_INTERNAL_H
#define JD_HTTP_INTERNAL_H
#include <microhttpd.h>
#include "http.h"

struct http_client { /* a connection */
	struct http_peer peer;
	struct http *server;
	struct MHD_Connection *conn;
	int fd;
	uint64_t since_ns; /* it waits for a request; 0 = one is being answered */
	bool first, cut;
	bool suspended;
	size_t held; /* bytes of its answer, until that was taken or given up */
	struct http_client *next, **at;
};

struct http {
	struct http_options o;
	struct loop *loop;
	struct MHD_Daemon *daemon;
	struct event *acceptor, *ready, *timer, *sweep;
	struct http_client *clients;
	struct http_stats stats;
	size_t held; /* of all of them */
	bool stopping;
};

/* http_answer.c: MHD's callbacks about requests. */
enum MHD_Result http_on_request(void *arg, struct MHD_Connection *conn, const char *url, const char *method,
				const char *version, const char *data, size_t *size, void **state);
void *http_on_uri(void *arg, const char *uri, struct MHD_Connection *conn);
void http_on_completed(void *arg, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode why);
struct http_client *http_client_of(struct MHD_Connection *conn);
void http_let_go(struct http_client *c); /* its answer waits no more */

#endif
