/* SPDX-License-Identifier: Apache-2.0 */
/* Segment files: names, complete reads and writes, and the search for records in damaged files. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "segment.h"

#define WINDOW 65536u

const char spool_file_head[SPOOL_FILE_HEAD] = "jouled spool 1\n";

int spool_file_number(const char *name, uint64_t *ret)
{
	for (int i = 0; i < 16; i++)
		if (!isxdigit((unsigned char)name[i]))
			return -EINVAL;
	if (strcmp(name + 16, ".spool") != 0)
		return -EINVAL;
	*ret = strtoull(name, NULL, 16);
	return 0;
}

static void name_of(uint64_t number, char name[SPOOL_NAME_MAX])
{
	snprintf(name, SPOOL_NAME_MAX, "%016" PRIx64 ".spool", number);
}

int spool_file_open(const struct spool *s, uint64_t number, int flags)
{
	char name[SPOOL_NAME_MAX];
	int fd;

	name_of(number, name);
	fd = openat(s->dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

void spool_file_remove(const struct spool *s, uint64_t number)
{
	char name[SPOOL_NAME_MAX];

	name_of(number, name);
	unlinkat(s->dir, name, 0);
}

int spool_write_all(int fd, const void *p, size_t n, uint64_t at)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = pwrite(fd, (const char *)p + done, n - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		done += (size_t)got;
	}
	return 0;
}

int spool_read_all(int fd, void *p, size_t n, uint64_t at)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(fd, (char *)p + done, n - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -ENODATA;
		done += (size_t)got;
	}
	return 0;
}

uint32_t spool_crc(const struct spool_head *h, const void *data)
{
	uint32_t crc = crc32_gzip_refl(0, (const uint8_t *)&h->len, sizeof(h->len));

	crc = crc32_gzip_refl(crc, (const uint8_t *)&h->real_ns, sizeof(h->real_ns));
	if (h->weight) /* older spools have none, and checksums without it */
		crc = crc32_gzip_refl(crc, (const uint8_t *)&h->weight, sizeof(h->weight));
	return crc32_gzip_refl(crc, data, h->len);
}

static bool plausible(const struct spool_head *h, uint64_t at, uint64_t size)
{
	return h->magic == SPOOL_MAGIC && h->len <= SPOOL_RECORD_MAX && at + SPOOL_HEAD + h->len <= size;
}

/* Finds the next offset at which a record may begin. */
static int search(int fd, uint64_t *at, uint64_t size)
{
	static const uint32_t magic = SPOOL_MAGIC;
	char window[WINDOW];

	while (*at + sizeof(magic) <= size) {
		size_t n = size - *at < WINDOW ? (size_t)(size - *at) : WINDOW;
		const char *hit;
		int rc = spool_read_all(fd, window, n, *at);

		if (rc)
			return rc;
		hit = memmem(window, n, &magic, sizeof(magic));
		if (hit) {
			*at += (uint64_t)(hit - window);
			return 0;
		}
		*at += n - sizeof(magic) + 1;
	}
	return -ENOENT;
}

int spool_find(int fd, uint64_t *at, uint64_t size, struct spool_head *ret, uint64_t *ret_skipped)
{
	const uint64_t start = *at;
	uint64_t pos = start;
	int rc = 0;

	while (!rc && pos + SPOOL_HEAD <= size) {
		rc = spool_read_all(fd, ret, SPOOL_HEAD, pos);
		if (rc || plausible(ret, pos, size))
			break;
		pos++;
		rc = search(fd, &pos, size);
	}
	if (!rc && pos + SPOOL_HEAD > size)
		rc = -ENOENT;
	if (rc == -ENODATA)
		rc = -ENOENT;
	if (rc)
		pos = size > start ? size : start;
	*ret_skipped += pos - start;
	*at = pos;
	return rc;
}

/* Checks the checksum. 0, -EBADMSG, or negative errno. */
static int check_record(int fd, const struct spool_head *h, uint64_t at, struct buf *room)
{
	uint8_t *to;
	int rc;

	buf_reset(room);
	to = buf_reserve(room, h->len + 1);
	if (!to)
		return -ENOMEM;
	rc = spool_read_all(fd, to, h->len, at + SPOOL_HEAD);
	return rc ? rc : spool_crc(h, to) == h->crc ? 0 : -EBADMSG;
}

/* Counts the records of a segment. In the last file checksums are checked too: a damaged length must not cut
 * the file in the middle of a whole record. */
static int scan(struct spool *s, struct spool_segment *g, uint64_t at, bool last)
{
	struct spool_head h;
	struct buf room = { 0 };
	uint64_t skipped = 0, end = at;
	int fd = spool_file_open(s, g->number, last ? O_RDWR : O_RDONLY), rc, whole;

	if (fd < 0)
		return fd;
	for (;;) {
		rc = spool_find(fd, &at, g->size, &h, &skipped);
		whole = !rc && last ? check_record(fd, &h, at, &room) : 0;
		if (whole == -EBADMSG) {
			at++;
			continue;
		}
		g->unreadable |= rc == -EIO || whole == -EIO;
		if (!rc && whole != -EIO)
			rc = whole;
		if (rc)
			break;
		at += SPOOL_HEAD + h.len;
		end = at;
		spool_counted(g, h.real_ns, h.weight);
	}
	/* Cut off a record that was being written: nothing may follow half a record. */
	if (rc == -ENOENT && last && !g->unreadable && end < g->size && ftruncate(fd, (off_t)end) == 0) {
		s->stats.damaged_bytes += g->size - end;
		g->size = end;
	}
	close(fd);
	buf_free(&room);
	return rc == -ENOENT || rc == -EIO ? 0 : rc;
}

int spool_look_at(struct spool *s, struct spool_segment *g, uint64_t at, bool last)
{
	struct stat st;
	int fd = spool_file_open(s, g->number, O_RDONLY), rc;

	if (fd < 0)
		return fd;
	rc = fstat(fd, &st) ? -errno : 0;
	close(fd);
	if (rc)
		return rc;
	g->size = (uint64_t)st.st_size;
	rc = g->size > at ? scan(s, g, at, last) : 0;
	s->stats.bytes += g->size;
	s->stats.waiting += g->waiting;
	return rc;
}
