/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "named_file.h"

#define STEP 65536

int named_file_read(const char *path, size_t most, const char *remedy, struct buf *out, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = fd < 0 ? -errno : 0;
	struct stat st;
	ssize_t n = 1;

	if (!rc && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return err_set(err, -EINVAL, "%.200s: no regular file; %s", path, remedy);
	}
	while (!rc && n > 0) {
		uint8_t *at = out->len <= most ? buf_reserve(out, STEP) : NULL;

		n = at ? read(fd, at, STEP) : -1;
		rc = at ? n < 0 ? -errno : 0 : -EFBIG;
		out->len += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	return rc ? err_set(err, rc, "%.200s: %s; %s", path, strerror(-rc), remedy) : 0;
}
