/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/log.h"
#include "../base/parse.h"
#include "serving_socket.h"

#define FIRST_PASSED_FD 3

/* The socket that systemd opened for us (sd_listen_fds(3)); -1 = none. */
static int passed_socket(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	socklen_t len = sizeof(int);
	int type = 0, listening = 0, domain = 0;
	uint64_t n;

	if (!pid || !count || parse_u64(pid, &n) != 0 || n != (uint64_t)getpid() || parse_u64(count, &n) != 0 || !n)
		return -1;
	if (getsockopt(FIRST_PASSED_FD, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_STREAM ||
	    getsockopt(FIRST_PASSED_FD, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_UNIX ||
	    getsockopt(FIRST_PASSED_FD, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0 || !listening)
		return -1;
	/* our own, of whatever mode: children get none, accepting never blocks */
	return fcntl(FIRST_PASSED_FD, F_SETFD, FD_CLOEXEC) || fcntl(FIRST_PASSED_FD, F_SETFL, O_NONBLOCK) ?
		       -1 :
		       FIRST_PASSED_FD;
}

/* One level: a misspelt path should not become a tree. */
static void make_directory(const char *path)
{
	char dir[sizeof(((struct unix_file *)0)->path)];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		mkdir(dir, 0755); /* what fails here is said by opening the socket in it */
	}
}

/* A group that it is not in can be given a file by CAP_CHOWN alone, which a container with few rights has not: better a
 * socket for its owner than none. */
static int listen_on_file(struct serving_socket *sv, const struct config *c)
{
	mode_t mode = strcmp(c->socket_others, "coarse") == 0 ? 0666 : 0660;
	int fd = unix_listen_file(c->socket, mode, sv->group, &sv->file);

	if (fd != -EPERM || sv->group == (gid_t)-1)
		return fd;
	fd = unix_listen_file(c->socket, mode, (gid_t)-1, &sv->file);
	if (fd >= 0)
		log_warn(
			"socket: it cannot be given to the group %s: only root may connect; give CAP_CHOWN, or start jouled with that group",
			c->socket_group);
	return fd;
}

int serving_listen(struct serving_socket *sv, const struct config *c, struct err *err)
{
	const struct group *g = getgrnam(c->socket_group);

	sv->group = g ? g->gr_gid : (gid_t)-1;
	if (!g)
		log_info("socket: there is no group %s: only root may connect; groupadd --system %s", c->socket_group,
			 c->socket_group);
	sv->fd = passed_socket();
	if (sv->fd >= 0)
		return 0;
	make_directory(c->socket);
	sv->fd = listen_on_file(sv, c);
	sv->own_file = sv->fd >= 0;
	if (sv->fd < 0)
		return err_set(err, sv->fd, "socket %s: %s; %s", c->socket, strerrordesc_np(-sv->fd),
			       unix_listen_remedy(sv->fd));
	return 0;
}
