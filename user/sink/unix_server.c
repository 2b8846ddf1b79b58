/* SPDX-License-Identifier: Apache-2.0 */
/* unix-listen:///path: serves every client that may open the socket file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/unix_listen.h"
#include "server.h"
#include "unix_path.h"

static void remove_socket_file(void *arg)
{
	unix_listen_remove(arg);
}

static int unix_listen_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop,
			    struct sink **ret, struct err *err)
{
	struct addrs a;
	struct unix_file file = { 0 };
	struct server_place place = { .gone = remove_socket_file };
	int rc = unix_address(u, &a, err);

	if (rc)
		return rc;
	place.fd = unix_listen_file(((struct sockaddr_un *)&a.v[0].a)->sun_path, o->mode ? o->mode : 0660, (gid_t)-1,
				    &file);
	if (place.fd < 0)
		return err_set(err, place.fd, "output \"%s\": %s; %s", u->text, strerrordesc_np(-place.fd),
			       unix_listen_remedy(place.fd));
	snprintf(place.where, sizeof(place.where), "%s", file.path);
	place.arg = malloc(sizeof(file));
	if (place.arg)
		memcpy(place.arg, &file, sizeof(file));
	rc = place.arg ? server_start(&sink_unix_listen, &place, o, loop, ret) : -ENOMEM;
	if (rc) {
		unix_listen_remove(&file);
		close(place.fd);
		free(place.arg);
		return err_set(err, rc, "output \"%s\": out of memory; free some", u->text);
	}
	return 0;
}

const struct sink_ops sink_unix_listen = {
	.scheme = "unix-listen",
	.open = unix_listen_open,
	.wake = server_wake,
	.restart = server_wake,
	.close = server_close,
	.remedy = "let its clients read faster, or more wait with queue=",
};
