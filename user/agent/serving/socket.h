/* SPDX-License-Identifier: Apache-2.0 */
/* The listening end of the query socket: made here, or by systemd. */
#ifndef JD_SERVING_SOCKET_H
#define JD_SERVING_SOCKET_H
#include "../base/unix_listen.h"
#include "../model/config.h"

struct serving_socket {
	int fd;
	gid_t group; /* -1 = there is no such group */
	struct unix_file file;
	bool own_file; /* to be removed at the end */
};

int serving_listen(struct serving_socket *sv, const struct config *c, struct err *err);

#endif
