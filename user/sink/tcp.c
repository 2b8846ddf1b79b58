/* SPDX-License-Identifier: Apache-2.0 */
/* tcp://host:port: connects, and comes back when the peer does. */
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
	int code;

	snprintf(where, sizeof(where), strchr(u->host, ':') ? "[%s]:%u" : "%s:%u", u->host, u->port);
	code = client_start(&sink_tcp, where, u, numeric ? &a : NULL, o, loop, ret);
	if (code)
		return err_set(err, code, "output \"%s\": out of memory; free some", u->text);
	return 0;
}

const struct sink_ops sink_tcp = { .scheme = "tcp", .open = tcp_open, .wake = client_wake, .close = client_close };
