/* SPDX-License-Identifier: Apache-2.0 */
/* tcp-listen://addr:port: serves every client that connects. With port 0 the kernel chooses a port. The port
 * file gets it as bare decimal text without a newline. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "resolve.h"
#include "tcp_listen.h"

struct port_file {
	dev_t dev;
	ino_t ino;
	char path[];
};

static int write_text(int fd, unsigned port, struct port_file *f)
{
	struct stat st;
	char text[8];
	int len = snprintf(text, sizeof(text), "%u", port);

	if (fchmod(fd, 0644) != 0 || fstat(fd, &st) != 0)
		return -errno;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return write(fd, text, (size_t)len) == len ? 0 : -EIO;
}

/* Writes the file under another name and renames it, so that a reader never sees half a number. */
static int write_port(struct port_file *f, unsigned port)
{
	char temp[4096 + 8];
	int fd, rc;

	if (snprintf(temp, sizeof(temp), "%s.XXXXXX", f->path) >= (int)sizeof(temp))
		return -ENAMETOOLONG;
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = write_text(fd, port, f);
	close(fd);
	if (!rc && rename(temp, f->path) != 0)
		rc = -errno;
	if (rc)
		unlink(temp);
	return rc;
}

/* Makes and writes the port file. *ret is NULL when none is configured. */
static int make_port_file(const char *path, unsigned port, struct port_file **ret)
{
	struct port_file *f;
	int rc;

	*ret = NULL;
	if (!path)
		return 0;
	f = calloc(1, sizeof(*f) + strlen(path) + 1);
	if (!f)
		return -ENOMEM;
	memcpy(f->path, path, strlen(path) + 1);
	rc = write_port(f, port);
	if (rc)
		free(f);
	else
		*ret = f;
	return rc;
}

static const char *remedy(int rc)
{
	switch (rc) {
	case -EADDRINUSE:
		return "another program listens there: choose another port, or 0 for any";
	case -EACCES:
		return "ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher one";
	case -EADDRNOTAVAIL:
		return "no interface has this address: use one of this machine's";
	default:
		return "check the address";
	}
}

static int listen_on(const struct addrs *a, struct sockaddr_storage *ret_bound)
{
	const struct sockaddr *sa = (const struct sockaddr *)&a->v[0].a;
	socklen_t len = sizeof(*ret_bound);
	int one = 1, rc, fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* Without it a restart would wait for the TIME_WAIT of the last connection. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, sa, a->v[0].len) == 0 && listen(fd, SOMAXCONN) == 0 &&
	    getsockname(fd, (struct sockaddr *)ret_bound, &len) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Removes the file only if this sink wrote it: a successor may have written its own. */
static void remove_port_file(void *arg)
{
	struct port_file *f = arg;
	struct stat st;

	if (f && lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		unlink(f->path);
}

int tcp_listen_place(const struct sink_url *u, const char *port_file, struct server_place *ret, struct err *err)
{
	struct sockaddr_storage bound;
	struct server_place place = { .gone = remove_port_file };
	struct port_file *file;
	struct addrs a;
	int rc;

	if (!resolve_numeric(strcmp(u->host, "localhost") ? u->host : "127.0.0.1", u->port, &a))
		return err_set(err, -EINVAL,
			       "output \"%s\": \"%.80s\" is not an address of this machine; write for example "
			       "127.0.0.1, [::1] or 0.0.0.0",
			       u->text, u->host);
	place.fd = listen_on(&a, &bound);
	if (place.fd < 0)
		return err_set(err, place.fd, "output \"%s\": %s; %s", u->text, strerrordesc_np(-place.fd),
			       remedy(place.fd));
	/* The port is at the same offset in both families (ip(7), ipv6(7)). */
	unsigned port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
	snprintf(place.where, sizeof(place.where), strchr(u->host, ':') ? "[%.100s]:%u" : "%.100s:%u", u->host, port);
	rc = make_port_file(port_file, port, &file);
	if (rc) {
		close(place.fd);
		return err_set(err, rc, "port-file \"%.200s\": %s; create its directory and make it writable",
			       port_file, strerrordesc_np(-rc));
	}
	place.arg = file;
	*ret = place;
	return 0;
}

static int tcp_listen_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
			   struct err *err)
{
	struct server_place place;
	int rc = tcp_listen_place(u, o->port_file, &place, err);

	if (rc)
		return rc;
	rc = server_start(&sink_tcp_listen, &place, o, loop, ret);
	if (rc) {
		close(place.fd);
		remove_port_file(place.arg);
		free(place.arg);
		return err_set(err, rc, "output \"%s\": out of memory; free some", u->text);
	}
	return 0;
}

const struct sink_ops sink_tcp_listen = {
	.scheme = "tcp-listen",
	.open = tcp_listen_open,
	.wake = server_wake,
	.restart = server_wake,
	.close = server_close,
	.remedy = "let its clients read faster, or more wait with queue=",
};
