/* SPDX-License-Identifier: Apache-2.0 */
/* stdout: writes to descriptor 1. Its flags are not changed, because the shell shares them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"

static int stdout_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		       struct err *err)
{
	int rc, fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd < 0) {
		rc = -errno;
		return err_set(err, rc,
			       "output \"%s\": standard output is not open: %s; start without closing it, or use null:",
			       u->text, strerrordesc_np(-rc));
	}
	rc = disk_start(&sink_stdout, fd, NULL, o, ret);
	if (rc) {
		close(fd);
		return err_set(err, rc, "output \"%s\": no writer thread: %s; raise the limit of memory or tasks",
			       u->text, strerrordesc_np(-rc));
	}
	return 0;
}

const struct sink_ops sink_stdout = {
	.scheme = "stdout", .open = stdout_open, .wake = disk_wake, .close = disk_close, .remedy = "write elsewhere"
};
