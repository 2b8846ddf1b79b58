// SPDX-License-Identifier: Apache-2.0
#include "file_replace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_file(const char *path, const char *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), err = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0600) != 0)
		err = -errno;
	/* what a disk that fills up did not take is refused by the next write, with its cause */
	for (size_t done = 0; !err && done < size; done += (size_t)n) {
		n = write(fd, data + done, size - done);
		if (n <= 0)
			err = n ? -errno : -ENOSPC;
	}
	if (!err && fsync(fd) != 0)
		err = -errno;
	if (close(fd) != 0 && !err)
		err = -errno;
	return err;
}

int file_replace(const char *path, const void *data, size_t n)
{
	char next[FILE_REPLACE_MAX + 8];
	int rc;

	if (snprintf(next, sizeof(next), "%s.new", path) >= (int)sizeof(next))
		return -ENAMETOOLONG;
	rc = write_file(next, data, n);
	if (!rc && rename(next, path) != 0)
		rc = -errno;
	if (rc)
		unlink(next);
	return rc;
}

ssize_t file_load(const char *path, void *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n, done = 0;

	if (fd < 0)
		return -errno;
	while ((size_t)done < size && (n = read(fd, (char *)ret + done, size - (size_t)done)) != 0) {
		if (n < 0) {
			done = -errno;
			break;
		}
		done += n;
	}
	close(fd);
	return done;
}
