/* SPDX-License-Identifier: Apache-2.0 */
#include "unix_listen.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Two agents that both find a stale file must not remove each other's new one, so an agent locks the directory while it
 * replaces the file. Returns the descriptor of the lock, or negative errno. */
static int lock_directory(const struct sockaddr_un *un)
{
	char dir[sizeof(un->sun_path)], *slash;
	int fd;

	memcpy(dir, un->sun_path, sizeof(dir));
	slash = strrchr(dir, '/');
	if (!slash)
		return -EINVAL;
	slash[1] = 0;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (int i = 0; i < 40; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		usleep(25000);
	}
	close(fd);
	return -EAGAIN;
}

/* Removes a stale socket file. 0 = the name is free, -EEXIST = no socket, -EADDRINUSE = in use, or -errno. */
static int clear_stale(const struct sockaddr_un *un)
{
	struct stat st;
	int fd, rc;

	if (lstat(un->sun_path, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)un, sizeof(*un)) == 0 ? 0 : errno;
	close(fd);
	/* only "refused" proves that no process listens: a full backlog or another socket type gives another error */
	if (rc != ECONNREFUSED)
		return rc == EACCES ? -EACCES : -EADDRINUSE;
	return unlink(un->sun_path) == 0 ? 0 : -errno;
}

/* Before bind() the socket gets this mode, so that the file has it less the umask and is never more open than asked.
 * With a group the file is open to its owner alone until the group is set. */
static int bind_file(int fd, const struct sockaddr_un *un, mode_t mode, gid_t group)
{
	if (fchmod(fd, group == (gid_t)-1 ? mode : mode & 0700) || bind(fd, (const struct sockaddr *)un, sizeof(*un)))
		return -errno;
	if ((group != (gid_t)-1 && lchown(un->sun_path, (uid_t)-1, group)) || chmod(un->sun_path, mode) ||
	    listen(fd, SOMAXCONN)) {
		int rc = -errno;

		unlink(un->sun_path);
		return rc;
	}
	return 0;
}

static int listen_at(const struct sockaddr_un *un, mode_t mode, gid_t group, struct unix_file *ret)
{
	struct stat st;
	int rc = clear_stale(un), fd;

	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = bind_file(fd, un, mode, group);
	if (!rc && lstat(un->sun_path, &st) != 0)
		rc = -errno;
	if (rc) {
		close(fd);
		return rc;
	}
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	memcpy(ret->path, un->sun_path, sizeof(ret->path));
	return fd;
}

int unix_listen_file(const char *path, mode_t mode, gid_t group, struct unix_file *ret)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int lock, fd;

	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, path, strlen(path));
	lock = lock_directory(&un);
	if (lock < 0)
		return lock;
	fd = listen_at(&un, mode, group, ret);
	close(lock);
	return fd;
}

void unix_listen_remove(const struct unix_file *f)
{
	struct stat st;

	if (lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		unlink(f->path);
}

const char *unix_listen_remedy(int rc)
{
	switch (rc) {
	case -EEXIST:
		return "it is not a socket: remove it or choose another name";
	case -EADDRINUSE:
		return "another program uses it: stop that or choose another name";
	case -ENOENT:
	case -ENOTDIR:
		return "create the directory first";
	case -EACCES:
	case -EPERM:
		return "give the agent's user write permission on the directory";
	case -ENAMETOOLONG:
		return "choose a path shorter than 108 bytes";
	case -EMFILE:
	case -ENFILE:
		return "raise the limit of open files";
	default:
		return "choose another place";
	}
}
