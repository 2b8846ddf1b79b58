/* SPDX-License-Identifier: Apache-2.0 */
/* Segment files: names, whole reads and writes, and the way through records that may be damaged. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "spool_internal.h"

#define WINDOW 65536u

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
	uLong crc = crc32(0, (const Bytef *)&h->len, sizeof(h->len));

	crc = crc32(crc, (const Bytef *)&h->real_ns, sizeof(h->real_ns));
	return (uint32_t)crc32(crc, data, h->len);
}

static bool plausible(const struct spool_head *h, uint64_t at, uint64_t size)
{
	return h->magic == SPOOL_MAGIC && !h->zero && h->len <= SPOOL_RECORD_MAX && at + SPOOL_HEAD + h->len <= size;
}

/* The next place where a record may begin. */
static int search(int fd, uint64_t *at, uint64_t size)
{
	static const uint32_t magic = SPOOL_MAGIC;
	char window[WINDOW];

	while (*at + sizeof(magic) <= size) {
		size_t n = size - *at < WINDOW ? (size_t)(size - *at) : WINDOW;
		const char *hit;
		int err = spool_read_all(fd, window, n, *at);

		if (err)
			return err;
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
	int err = 0;

	while (!err && pos + SPOOL_HEAD <= size) {
		err = spool_read_all(fd, ret, SPOOL_HEAD, pos);
		if (err || plausible(ret, pos, size))
			break;
		pos++;
		err = search(fd, &pos, size);
	}
	if (!err && pos + SPOOL_HEAD > size)
		err = -ENOENT;
	if (err == -ENODATA)
		err = -ENOENT;
	if (err)
		pos = size > start ? size : start;
	*ret_skipped += pos - start;
	*at = pos;
	return err;
}

/* Does its checksum hold? 0, -EBADMSG, or negative errno. */
static int check_record(int fd, const struct spool_head *h, uint64_t at, struct buf *room)
{
	uint8_t *to;
	int err;

	buf_reset(room);
	to = buf_reserve(room, h->len + 1);
	if (!to)
		return -ENOMEM;
	err = spool_read_all(fd, to, h->len, at + SPOOL_HEAD);
	return err ? err : spool_crc(h, to) == h->crc ? 0 : -EBADMSG;
}

/* In the last file a length that was changed must not end it in the midst of a record that is whole. */
static int scan(struct spool *s, struct spool_segment *g, uint64_t at, bool last)
{
	struct spool_head h;
	struct buf room = { 0 };
	uint64_t skipped = 0, end = at;
	int fd = spool_file_open(s, g->number, last ? O_RDWR : O_RDONLY), err, whole;

	if (fd < 0)
		return fd;
	for (;;) {
		err = spool_find(fd, &at, g->size, &h, &skipped);
		whole = !err && last ? check_record(fd, &h, at, &room) : 0;
		if (whole == -EBADMSG) {
			at++;
			continue;
		}
		g->unreadable |= err == -EIO || whole == -EIO;
		if (!err && whole != -EIO)
			err = whole;
		if (err)
			break;
		at += SPOOL_HEAD + h.len;
		end = at;
		spool_counted(g, h.real_ns);
	}
	/* A record that was being written: nothing may follow half of one. */
	if (err == -ENOENT && last && !g->unreadable && end < g->size && ftruncate(fd, (off_t)end) == 0) {
		s->stats.damaged_bytes += g->size - end;
		g->size = end;
	}
	close(fd);
	buf_free(&room);
	return err == -ENOENT || err == -EIO ? 0 : err;
}

int spool_look_at(struct spool *s, struct spool_segment *g, uint64_t at, bool last)
{
	struct stat st;
	int fd = spool_file_open(s, g->number, O_RDONLY), err;

	if (fd < 0)
		return fd;
	err = fstat(fd, &st) ? -errno : 0;
	close(fd);
	if (err)
		return err;
	g->size = (uint64_t)st.st_size;
	err = g->size > at ? scan(s, g, at, last) : 0;
	s->stats.bytes += g->size;
	s->stats.waiting += g->waiting;
	return err;
}
