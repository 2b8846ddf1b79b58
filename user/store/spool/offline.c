/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "segment.h"

struct looking {
	int (*each)(void *ctx, int64_t real_ns, const void *data, size_t len);
	void *ctx;
	struct buf record;
};

static int read_segment(struct looking *l, int fd)
{
	uint64_t at = SPOOL_FILE_HEAD, skipped = 0;
	char head[SPOOL_FILE_HEAD];
	struct spool_head h;
	struct stat st;
	int rc = 0;

	if (fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || spool_read_all(fd, head, sizeof(head), 0) != 0 ||
	    memcmp(head, spool_file_head, sizeof(head)) != 0)
		return -ENODATA;
	while (!rc && spool_find(fd, &at, (uint64_t)st.st_size, &h, &skipped) == 0) {
		uint8_t *to;

		buf_reset(&l->record);
		to = buf_reserve(&l->record, h.len + 1);
		if (!to)
			return -ENOMEM;
		if (spool_read_all(fd, to, h.len, at + SPOOL_HEAD) != 0)
			break;
		if (spool_crc(&h, to) != h.crc) {
			at++; /* not a record */
			continue;
		}
		rc = l->each(l->ctx, h.real_ns, to, h.len);
		at += SPOOL_HEAD + h.len;
	}
	return rc;
}

static int is_segment(const struct dirent *e)
{
	uint64_t number;

	return spool_file_number(e->d_name, &number) == 0;
}

static int read_directory(struct looking *l, int dir)
{
	struct dirent **list;
	int n = scandirat(dir, ".", &list, is_segment, alphasort), rc = n ? 0 : -ENODATA;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		int fd = rc ? -1 : openat(dir, list[i]->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0) {
			rc = read_segment(l, fd);
			close(fd);
			if (rc == -ENODATA && n > 1)
				rc = 0;
		}
		free(list[i]);
	}
	free(list);
	return rc;
}

int spool_read(const char *path, int (*each)(void *ctx, int64_t real_ns, const void *data, size_t len), void *ctx,
	       struct err *err)
{
	struct looking l = { .each = each, .ctx = ctx };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	struct stat st;

	if (fd < 0)
		return err_set(err, -errno, "%s: %s; name a spool or a file of traces", path, strerrordesc_np(errno));
	rc = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? read_directory(&l, fd) : read_segment(&l, fd);
	close(fd);
	buf_free(&l.record);
	if (rc == -ENOMEM)
		err_set(err, rc, "%s: out of memory; free some", path);
	return rc;
}
