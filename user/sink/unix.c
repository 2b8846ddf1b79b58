/* SPDX-License-Identifier: Apache-2.0 */
/* unix:///path: connects to a stream socket, and again when it comes back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "unix_path.h"

static int unix_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		     struct err *err)
{
	struct addrs a = { .n = 1 };
	struct client_peer to = { .url = u, .where = u->path, .fixed = &a };
	int rc = unix_address(u, &a, err);

	if (rc)
		return rc;
	rc = client_start(&sink_unix, &to, o, loop, ret);
	if (rc)
		return err_set(err, rc, "output \"%s\": out of memory; free some", u->text);
	return 0;
}

const struct sink_ops sink_unix = { .scheme = "unix",
				    .open = unix_open,
				    .wake = client_wake,
				    .close = client_close,
				    .remedy = "start its reader first, or let more wait with queue=" };
