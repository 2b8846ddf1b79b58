/* SPDX-License-Identifier: Apache-2.0 */
/* tcp://host:port: connects to a peer, and again when the peer comes back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client.h"

static int tcp_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		    struct err *err)
{
	struct addrs a;
	char where[300];
	bool numeric = resolve_numeric(u->host, u->port, &a);
	struct client_peer to = { .url = u, .where = where, .fixed = numeric ? &a : NULL };
	int rc;

	snprintf(where, sizeof(where), strchr(u->host, ':') ? "[%s]:%u" : "%s:%u", u->host, u->port);
	rc = client_start(&sink_tcp, &to, o, loop, ret);
	if (rc)
		return err_set(err, rc, "output \"%s\": out of memory; free some", u->text);
	return 0;
}

const struct sink_ops sink_tcp = { .scheme = "tcp",
				   .open = tcp_open,
				   .wake = client_wake,
				   .close = client_close,
				   .remedy = "start its reader first, or let more wait with queue=" };
