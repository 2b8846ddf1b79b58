/* SPDX-License-Identifier: Apache-2.0 */
/* unix:///path: connects to a stream socket, and comes back when it does. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "unix_path.h"

static int unix_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		     struct err *err)
{
	struct addrs a = { .n = 1 };
	int code = unix_address(u, &a, err);

	if (code)
		return code;
	code = client_start(&sink_unix, u->path, u, &a, o, loop, ret);
	if (code)
		return err_set(err, code, "output \"%s\": out of memory; free some", u->text);
	return 0;
}

const struct sink_ops sink_unix = { .scheme = "unix", .open = unix_open, .wake = client_wake, .close = client_close };
