/* SPDX-License-Identifier: Apache-2.0 */
/* stdout: whatever descriptor 1 is. Its flags are left alone: they belong to the shell, too. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"

static int stdout_open(const struct sink_url *u, const struct sink_options *o, struct loop *loop, struct sink **ret,
		       struct err *err)
{
	int code, fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd < 0) {
		code = -errno;
		return err_set(err, code,
			       "output \"%s\": standard output is not open: %s; start without closing it, or use null:",
			       u->text, strerrordesc_np(-code));
	}
	code = disk_start(&sink_stdout, fd, NULL, o, ret);
	if (code) {
		close(fd);
		return err_set(err, code, "output \"%s\": no writer thread: %s; raise the limit of memory or tasks",
			       u->text, strerrordesc_np(-code));
	}
	return 0;
}

const struct sink_ops sink_stdout = { .scheme = "stdout", .open = stdout_open, .wake = disk_wake, .close = disk_close };
