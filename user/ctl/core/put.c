/* SPDX-License-Identifier: Apache-2.0 */
#include "put.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

static bool lost;

int put_all(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n) {
		ssize_t put = write(fd, at, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0) {
			lost |= errno != EPIPE;
			return -errno;
		}
		at += put;
		n -= (size_t)put;
	}
	return 0;
}

int put_file(const char *path, const struct buf *b, struct err *err)
{
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : STDOUT_FILENO, rc;

	if (fd < 0)
		return err_write(err, -errno, path, NULL);
	rc = put_all(fd, b->data, b->len);
	if (path && close(fd) != 0 && !rc) {
		rc = -errno;
		lost = true;
	}
	return rc ? err_write(err, rc, path ? path : "stdout", "it is not complete") : 0;
}

int put_check(const char *path, struct err *err)
{
	const int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	const char *base = strrchr(path, '/');
	char dir[PATH_MAX];

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno == ENXIO) /* a pipe that nobody reads yet */
		return 0;
	if (errno != ENOENT)
		return err_write(err, -errno, path, NULL);
	snprintf(dir, sizeof(dir), "%.*s", base ? (int)(base - path) + 1 : 1, base ? path : ".");
	return access(dir, W_OK | X_OK) == 0 ? 0 : err_write(err, -errno, path, NULL);
}

int put_end(int status, int if_lost)
{
	struct err err;
	bool failed;

	errno = 0;
	failed = fflush(stdout) != 0 || ferror(stdout);
	if (failed && errno == EPIPE)
		return status;
	if (failed && !lost) {
		err_write(&err, -errno, "stdout", "what was printed is not complete");
		log_error("%s", err.text);
	}
	return failed || lost ? if_lost : status;
}
