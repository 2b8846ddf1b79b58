/* SPDX-License-Identifier: Apache-2.0 */
/* From a TCP port of loopback to the agent's Unix socket, for browsers. A request is read, judged
 * (base/web_guard.h) and written anew: nothing that a client sent but the path, Accept and the method GET or
 * HEAD reaches the agent. What the agent answers goes back as it comes, at the client's pace.
 *
 * Limits: request head 8 KiB within 10 s, one request a connection, 64 connections. */
#ifndef JD_CTL_WEB_BRIDGE_H
#define JD_CTL_WEB_BRIDGE_H
#include <stdbool.h>
#include "../base/err.h"
#include "../base/web_guard.h"

#define WEB_HEAD_MAX 8192
#define WEB_CLIENTS_MAX 64

struct web_request { /* points into the head, which is taken apart in place */
	const char *method, *target, *accept;
	struct web_ask ask;
	char token[WEB_SECRET_SIZE];
};

/* Takes a request's head apart: a string that ends with its empty line. 0 or -EINVAL. */
int web_parse(char *head, struct web_request *ret);

struct web_bridge;

/* Listens on 127.0.0.1; port 0 = any. 0 or negative errno. */
int web_bridge_open(unsigned port, const char *socket, struct web_bridge **ret, struct err *err);
unsigned web_bridge_port(const struct web_bridge *b);
const struct web_guard *web_bridge_guard(const struct web_bridge *b);
/* Until SIGINT or SIGTERM. */
void web_bridge_run(struct web_bridge *b);
void web_bridge_close(struct web_bridge *b); /* NULL accepted */

#endif
