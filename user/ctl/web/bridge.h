/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the agent's page on a TCP port of loopback, for browsers: the server and the guard of the agent's own port
 * (base/http), with answers from the agent's Unix socket. A request is written anew: only the path, Accept and the
 * method GET or HEAD reach the agent. The agent's answer goes back as it comes, at the browser's pace. At most 64
 * connections. */
#ifndef JD_CTL_WEB_BRIDGE_H
#define JD_CTL_WEB_BRIDGE_H
#include "base/err.h"
#include "base/http/web_guard.h"

struct web_bridge;

/* Listens on 127.0.0.1; port 0 = any. Blocks SIGINT and SIGTERM for web_bridge_run. 0 or negative errno. */
int web_bridge_open(unsigned port, const char *socket, struct web_bridge **ret, struct err *err);
unsigned web_bridge_port(const struct web_bridge *b);
const struct web_guard *web_bridge_guard(const struct web_bridge *b);
/* Serves until SIGINT or SIGTERM. */
void web_bridge_run(struct web_bridge *b);
void web_bridge_close(struct web_bridge *b); /* NULL accepted */

#endif
