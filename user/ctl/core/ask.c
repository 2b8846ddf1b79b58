/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "source.h"

/* HOST:PORT, [HOST]:PORT. 0 or -EINVAL. */
static int split_host(const char *text, char host[256], char port[6])
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return -EINVAL;
	}
	if (!n || n > 255 || !colon[1] || strlen(colon + 1) > 5 || colon[1 + strspn(colon + 1, "0123456789")])
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = 0;
	snprintf(port, 6, "%s", colon + 1);
	return 0;
}

static int connect_any(const struct addrinfo *list)
{
	int code = -EADDRNOTAVAIL;

	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			return fd;
		code = -errno;
		if (fd >= 0)
			close(fd);
	}
	return code;
}

static int open_tcp(const char *where, const char *rest, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *list;
	char host[256], port[6];
	int fd, code;

	if (split_host(rest, host, port) != 0)
		return err_set(err, -EINVAL, "%.128s: not an address; tcp://HOST:PORT", where);
	code = getaddrinfo(host, port, &hints, &list);
	if (code)
		return err_set(err, -EHOSTUNREACH, "%.128s: %s; check the name", where, gai_strerror(code));
	fd = connect_any(list);
	freeaddrinfo(list);
	if (fd < 0)
		return err_set(err, fd, "%.128s: %s; is an output listening there?", where, strerrordesc_np(-fd));
	return fd;
}

static int open_unix(const char *where, const char *path, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, code;

	if (*path != '/' || strlen(path) >= sizeof(a.sun_path))
		return err_set(err, -EINVAL, "%.128s: not a socket; unix:///PATH, at most %zu bytes", where,
			       sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	code = -errno;
	if (fd >= 0)
		close(fd);
	return err_set(err, code, "%.128s: %s; is an output listening there?", where, strerrordesc_np(-code));
}

int source_open(const char *where, struct err *err)
{
	int fd, code;

	if (!strncmp(where, "tcp://", 6))
		return open_tcp(where, where + 6, err);
	if (!strncmp(where, "unix://", 7))
		return open_unix(where, where + 7, err);
	if (!strncmp(where, "file://", 7))
		where += 7;
	fd = !strcmp(where, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(where, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	code = -errno;
	return err_set(err, code, "%.128s: %s; name a file that can be read", where, strerrordesc_np(-code));
}
