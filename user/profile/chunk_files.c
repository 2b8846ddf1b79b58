/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk_files.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/array.h"
#include "encode/pack.h"

#define HALF ".part" /* the end of the name of what is not written to its end */
#define END ".pb.gz"
#define PLAIN_MAX ((size_t)64 << 20)
#define PACKED_MAX (16u << 20)

void chunk_file_name(const struct chunk_file *c, char ret[CHUNK_NAME_MAX])
{
	snprintf(ret, CHUNK_NAME_MAX, "%lld-%lld" END, (long long)c->from_ns, (long long)c->until_ns);
}

static bool read_name(const char *name, struct chunk_file *ret)
{
	long long from, until;
	char again[CHUNK_NAME_MAX];

	if (sscanf(name, "%lld-%lld", &from, &until) != 2 || from < 0 || until < from)
		return false;
	*ret = (struct chunk_file){ .from_ns = from, .until_ns = until };
	chunk_file_name(ret, again);
	return strcmp(again, name) == 0;
}

static int enter(struct chunk_files *f, const struct chunk_file *c)
{
	uint32_t at = f->n;

	if (ARRAY_ROOM(f->v, f->cap, f->n + 1))
		return -ENOMEM;
	while (at && f->v[at - 1].from_ns > c->from_ns)
		at--;
	memmove(f->v + at + 1, f->v + at, (f->n - at) * sizeof(*f->v));
	f->v[at] = *c;
	f->n++;
	f->bytes += c->bytes;
	return 0;
}

static void remove_first(struct chunk_files *f)
{
	char name[CHUNK_NAME_MAX];

	chunk_file_name(&f->v[0], name);
	unlinkat(f->fd, name, 0);
	f->bytes -= f->v[0].bytes;
	f->n--;
	memmove(f->v, f->v + 1, f->n * sizeof(*f->v));
}

static void trim(struct chunk_files *f, int64_t now_ns, uint64_t room)
{
	while (f->n && (f->v[0].until_ns < now_ns - (int64_t)f->keep_ns || f->bytes + room > f->bytes_max))
		remove_first(f);
}

/* A name of ours has no slash, and is no link: the directory is the agent's alone. */
static int look(struct chunk_files *f)
{
	const int copy = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	int rc = 0;

	if (!dir) {
		rc = -errno;
		if (copy >= 0)
			close(copy);
		return rc;
	}
	for (const struct dirent *e; !rc && (e = readdir(dir));) {
		const size_t n = strlen(e->d_name), half = strlen(HALF);
		struct chunk_file c;
		struct stat st;

		if (n > half && strcmp(e->d_name + n - half, HALF) == 0)
			unlinkat(f->fd, e->d_name, 0);
		else if (read_name(e->d_name, &c) && fstatat(f->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			 S_ISREG(st.st_mode)) {
			c.bytes = (uint64_t)st.st_size;
			rc = enter(f, &c);
		}
	}
	closedir(dir);
	return rc;
}

int chunk_files_open(struct chunk_files *f, const char *dir, struct err *err)
{
	char *slash;
	int rc;

	f->fd = -1;
	f->dir = strdup(dir);
	if (!f->dir)
		return err_set(err, -ENOMEM, "profile: out of memory; free some");
	slash = strrchr(f->dir, '/');
	if (slash && slash != f->dir) {
		*slash = '\0';
		mkdir(f->dir, 0755); /* failures show below */
		*slash = '/';
	}
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return err_set(err, -errno, "profile: %.300s: %s; give a state-dir that can be written", dir,
			       strerror(errno));
	f->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = f->fd < 0 ? -errno : look(f);
	return rc ? err_set(err, rc, "profile: %.300s: %s; make it readable for jouled", dir, strerror(-rc)) : 0;
}

int chunk_file_write(int dir, const char *name, const void *data, size_t n)
{
	char half[NAME_MAX + 1];
	size_t done = 0;
	int fd, rc = 0;

	if (snprintf(half, sizeof(half), "%s" HALF, name) >= (int)sizeof(half))
		return -ENAMETOOLONG;
	fd = openat(dir, half, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	while (!rc && done < n) {
		const ssize_t got = write(fd, (const char *)data + done, n - done);

		if (got < 0 && errno != EINTR)
			rc = -errno;
		done += got > 0 ? (size_t)got : 0;
	}
	if (close(fd) != 0 && !rc)
		rc = -errno;
	if (!rc && renameat(dir, half, dir, name) != 0)
		rc = -errno;
	if (rc)
		unlinkat(dir, half, 0);
	return rc;
}

int chunk_files_add(struct chunk_files *f, const struct chunk_file *c, const void *data, struct err *err)
{
	char name[CHUNK_NAME_MAX];
	int rc = c->bytes > f->bytes_max || c->bytes > PACKED_MAX ? -EFBIG : 0;

	chunk_file_name(c, name);
	if (!rc) {
		trim(f, c->until_ns, c->bytes);
		rc = chunk_file_write(f->fd, name, data, c->bytes);
	}
	if (!rc)
		rc = enter(f, c);
	return rc ? err_set(err, rc, "profile: %.300s: a minute is lost: %s; %s", f->dir, strerror(-rc),
			    rc == -EFBIG ? "name fewer cgroups in profile.cgroups" : err_write_remedy(-rc)) :
		    0;
}

int chunk_files_read(const struct chunk_files *f, uint32_t i, struct buf *out)
{
	struct buf packed = { .limit = PACKED_MAX };
	char name[CHUNK_NAME_MAX];
	ssize_t got = 1;
	int fd, rc = 0;

	chunk_file_name(&f->v[i], name);
	fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	while (!rc && got > 0) {
		if (!buf_reserve(&packed, 65536)) {
			rc = -EBADMSG; /* no chunk is as long */
			break;
		}
		got = read(fd, packed.data + packed.len, 65536);
		rc = got < 0 ? -errno : 0;
		packed.len += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	buf_reset(out);
	out->limit = PLAIN_MAX;
	if (!rc)
		rc = unpack(PACK_GZIP, packed.data, packed.len, out);
	buf_free(&packed);
	return rc;
}

void chunk_files_close(struct chunk_files *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->dir);
	free(f->v);
	*f = (struct chunk_files){ .fd = -1 };
}
