/* SPDX-License-Identifier: Apache-2.0 */
/* unix-listen:///path: serves whoever may open the socket file. A file left behind by a crash is
 * replaced; one that somebody listens on, or that is no socket, is never touched. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server.h"
#include "unix_path.h"

struct socket_file {
	dev_t dev;
	ino_t ino;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* Two agents that both find a stale file must not remove each other's new one: whoever replaces
 * it holds the directory's lock. The descriptor, or negative errno. */
static int lock_directory(const struct addrs *a)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd;

	memcpy(dir, ((const struct sockaddr_un *)&a->v[0].a)->sun_path, sizeof(dir));
	*(strrchr(dir, '/') + 1) = 0;
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

/* 0 = the name is free now, -EEXIST = no socket, -EADDRINUSE = in use, or -errno. */
static int clear_stale(const struct addrs *a)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&a->v[0].a;
	struct stat st;
	int fd, code;

	if (lstat(un->sun_path, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	code = connect(fd, (const struct sockaddr *)un, a->v[0].len) == 0 ? 0 : errno;
	close(fd);
	/* Only "refused" proves that nobody is there; a full backlog or another type is somebody. */
	if (code != ECONNREFUSED)
		return code == EACCES ? -EACCES : -EADDRINUSE;
	return unlink(un->sun_path) == 0 ? 0 : -errno;
}

static int listen_at(const struct addrs *a, mode_t mode, struct socket_file *ret_file)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&a->v[0].a;
	struct stat st;
	int code = clear_stale(a), fd;

	if (code)
		return code;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Before bind() the file gets this mode less the umask, so it is never more open than asked;
	 * afterwards exactly it. */
	if (fchmod(fd, mode) || bind(fd, (const struct sockaddr *)un, a->v[0].len)) {
		code = -errno;
		close(fd);
		return code;
	}
	if (chmod(un->sun_path, mode) || listen(fd, SOMAXCONN) || lstat(un->sun_path, &st)) {
		code = -errno;
		unlink(un->sun_path);
		close(fd);
		return code;
	}
	ret_file->dev = st.st_dev;
	ret_file->ino = st.st_ino;
	return fd;
}

/* Only while the name is still ours: a successor may have taken it over. */
static void remove_socket_file(void *arg)
{
	struct socket_file *f = arg;
	struct stat st;

	if (lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		unlink(f->path);
}

static const char *remedy(int code)
{
	switch (code) {
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
	default:
		return "choose another place";
	}
}

static int unix_listen_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop,
			    struct sink **ret, struct err *err)
{
	struct addrs a;
	struct socket_file file = { 0 };
	struct server_place place = { .gone = remove_socket_file };
	int lock, code = unix_address(u, &a, err);

	if (code)
		return code;
	lock = lock_directory(&a);
	place.fd = lock < 0 ? lock : listen_at(&a, o->mode ? o->mode : 0660, &file);
	if (lock >= 0)
		close(lock);
	if (place.fd < 0)
		return err_set(err, place.fd, "output \"%s\": %s; %s", u->text, strerrordesc_np(-place.fd), remedy(place.fd));
	memcpy(file.path, ((struct sockaddr_un *)&a.v[0].a)->sun_path, sizeof(file.path));
	snprintf(place.where, sizeof(place.where), "%s", file.path);
	place.arg = malloc(sizeof(file));
	if (place.arg)
		memcpy(place.arg, &file, sizeof(file));
	code = place.arg ? server_start(&sink_unix_listen, &place, o, loop, ret) : -ENOMEM;
	if (code) {
		remove_socket_file(&file);
		close(place.fd);
		free(place.arg);
		return err_set(err, code, "output \"%s\": out of memory; free some", u->text);
	}
	return 0;
}

const struct sink_ops sink_unix_listen = {
	.scheme = "unix-listen", .open = unix_listen_open, .wake = server_wake, .restart = server_wake,
	.close = server_close,
};
