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
#include "base/log.h"
#include "base/parse.h"
#include "socket.h"

#define FIRST_PASSED_FD 3

/* The socket that systemd passed (sd_listen_fds(3)); -1 = none. */
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
	/* systemd chose its flags; children must not inherit it, and accept must never block */
	return fcntl(FIRST_PASSED_FD, F_SETFD, FD_CLOEXEC) || fcntl(FIRST_PASSED_FD, F_SETFL, O_NONBLOCK) ?
		       -1 :
		       FIRST_PASSED_FD;
}

/* Makes one level only: a misspelt path should not become a tree. */
static void make_directory(const char *path)
{
	char dir[sizeof(((struct unix_file *)0)->path)];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		mkdir(dir, 0755); /* failures show when the socket is opened */
	}
}

/* Only CAP_CHOWN can give a file to a group that the agent is not in, and a container with few rights lacks it.
 * Then the socket is for its owner only, which is better than no socket. */
static int listen_on_file(struct serving_socket *sv, const struct socket_config *c)
{
	mode_t mode = strcmp(c->others, "coarse") == 0 ? 0666 : 0660;
	int fd = unix_listen_file(c->path, mode, sv->group, &sv->file);

	if (fd != -EPERM || sv->group == (gid_t)-1)
		return fd;
	fd = unix_listen_file(c->path, mode, (gid_t)-1, &sv->file);
	if (fd >= 0)
		log_warn(
			"socket: it cannot be given to the group %s: only root may connect; give CAP_CHOWN, or start jouled with that group",
			c->group);
	return fd;
}

int serving_listen(struct serving_socket *sv, const struct socket_config *c, struct err *err)
{
	const struct group *g = getgrnam(c->group);

	sv->group = g ? g->gr_gid : (gid_t)-1;
	if (!g)
		log_info("socket: there is no group %s: only root may connect; groupadd --system %s", c->group,
			 c->group);
	sv->fd = passed_socket();
	if (sv->fd >= 0)
		return 0;
	make_directory(c->path);
	sv->fd = listen_on_file(sv, c);
	sv->own_file = sv->fd >= 0;
	if (sv->fd < 0)
		return err_set(err, sv->fd, "socket %s: %s; %s", c->path, strerrordesc_np(-sv->fd),
			       unix_listen_remedy(sv->fd));
	return 0;
}
