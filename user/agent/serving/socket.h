/* SPDX-License-Identifier: Apache-2.0 */
/* The listening end of the query socket, made by the agent or passed by systemd. */
#ifndef JD_SERVING_SOCKET_H
#define JD_SERVING_SOCKET_H
#include "base/unix_listen.h"
#include "model/config/config.h"

struct serving_socket {
	int fd;
	gid_t group; /* -1 = there is no such group */
	struct unix_file file;
	bool own_file; /* the agent removes it at the end */
};

int serving_listen(struct serving_socket *sv, const struct socket_config *c, struct err *err);

#endif
