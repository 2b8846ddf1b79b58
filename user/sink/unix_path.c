/* SPDX-License-Identifier: Apache-2.0 */
#include "unix_path.h"

#include <errno.h>
#include <string.h>

int unix_address(const struct sink_url *u, struct addrs *ret, struct err *err)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&ret->v[0].a;
	size_t n = strlen(u->path);

	if (n >= sizeof(un->sun_path))
		return err_set(err, -EINVAL, "output \"%s\": a socket's path has at most %zu bytes; use a shorter one",
			       u->text, sizeof(un->sun_path) - 1);
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, u->path, n);
	ret->v[0].len = sizeof(*un);
	ret->n = 1;
	return 0;
}
