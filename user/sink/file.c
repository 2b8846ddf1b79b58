/* SPDX-License-Identifier: Apache-2.0 */
/* file:///path: appends documents to a file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"

int disk_open_file(const char *path, bool truncate)
{
	/* O_NONBLOCK: a FIFO without a reader is an error at once; otherwise open would block. */
	int fd = open(path,
		      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (truncate ? O_TRUNC : 0),
		      0644);
	struct stat st;

	if (fd < 0)
		return -errno;
	/* Writing documents to a raw disk would be a mistake that cannot be undone. */
	if (fstat(fd, &st) == 0 && S_ISBLK(st.st_mode)) {
		close(fd);
		return -ENOTSUP;
	}
	return fd;
}

static const char *remedy(int rc)
{
	if (rc == -ENXIO)
		return "start the FIFO's reader first";
	return rc == -ENOTSUP ? "name a file, not a block device" : err_write_remedy(rc);
}

static int file_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		     struct err *err)
{
	int rc, fd = disk_open_file(u->path, o->truncate);

	if (fd < 0)
		return err_set(err, fd, "output \"%s\": %s; %s", u->text, strerrordesc_np(-fd), remedy(fd));
	rc = disk_start(&sink_file, fd, u->path, o, ret);
	if (rc) {
		close(fd);
		return err_set(err, rc, "output \"%s\": no writer thread: %s; raise the limit of memory or tasks",
			       u->text, strerrordesc_np(-rc));
	}
	return 0;
}

const struct sink_ops sink_file = {
	.scheme = "file", .open = file_open, .wake = disk_wake, .close = disk_close, .remedy = "write elsewhere"
};
