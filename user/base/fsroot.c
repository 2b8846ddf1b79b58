/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fsroot.h"
#include "parse.h"
#include "text.h"

#define DENIED_MAX 4096

struct fsroot {
	int fd; /* of dir */
	bool live;
	char *dir;
	char denied[DENIED_MAX]; /* captured: text of DIR/denied */
};

/* A captured machine is read by any user, tests by root: what the machine itself refused stands in
 * DIR/denied, one path or pattern a line. No such file: nothing was refused. */
static void load_denied(struct fsroot *r)
{
	ssize_t n = -1;
	int fd = openat(r->fd, "denied", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0) {
		n = read(fd, r->denied, sizeof(r->denied) - 1);
		close(fd);
	}
	r->denied[n > 0 ? n : 0] = '\0';
}

static bool is_denied(const struct fsroot *r, const char *path)
{
	const char *line = r->denied;
	char pattern[256];

	path += strspn(path, "/");
	while (*line) {
		size_t len = strcspn(line, "\n");

		if (len && len < sizeof(pattern)) {
			memcpy(pattern, line, len);
			pattern[len] = '\0';
			if (text_glob(pattern + strspn(pattern, "/"), path))
				return true;
		}
		line += len + (line[len] == '\n');
	}
	return false;
}

int fsroot_open(const char *dir, struct fsroot **ret)
{
	struct fsroot *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	r->dir = strdup(dir);
	if (!r->dir)
		goto fail;
	r->live = strcmp(dir, "/") == 0;
	r->fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = -errno;
	if (r->fd < 0)
		goto fail;
	if (!r->live)
		load_denied(r);
	*ret = r;
	return 0;
fail:
	fsroot_close(r);
	return err;
}

void fsroot_close(struct fsroot *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	free(r->dir);
	free(r);
}

bool fsroot_is_live(const struct fsroot *r)
{
	return r->live;
}

const char *fsroot_dir(const struct fsroot *r)
{
	return r->dir;
}

/* openat2(2) came with Linux 5.6; inside it a concurrent rename makes ".." answer EAGAIN. */
static int open_in_root(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = -1;

	for (int tries = 0; tries < 8; tries++) {
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd >= 0 ? fd : -errno;
}

/* Without openat2 (old kernel, or a seccomp filter that does not know it): one component at a
 * time, no symbolic link and no "..", so that nothing can lead out. */
static int open_by_steps(int root, const char *path, int flags)
{
	int dir = root, fd = -ENOENT;
	char name[256];

	path += strspn(path, "/");
	do {
		size_t len = strcspn(path, "/");
		const char *next = path + len + strspn(path + len, "/");

		if (len >= sizeof(name))
			fd = -ENAMETOOLONG;
		else if (len == 2 && memcmp(path, "..", 2) == 0)
			fd = -EXDEV;
		else {
			memcpy(name, len ? path : ".", len ? len : 1);
			name[len ? len : 1] = '\0';
			fd = openat(dir, name, O_NOFOLLOW | O_CLOEXEC | (*next ? O_PATH | O_DIRECTORY : flags));
			fd = fd < 0 ? -errno : fd;
		}
		if (dir != root)
			close(dir);
		dir = fd;
		path = next;
	} while (fd >= 0 && *path);
	return fd;
}

int fsroot_openat(const struct fsroot *r, const char *path, int flags)
{
	int fd;

	if (r->live) {
		fd = openat(r->fd, path, flags | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (is_denied(r, path) && !(flags & O_PATH))
		return -EACCES;
	/* a captured machine is a stranger's directory: a FIFO in it must not block */
	flags |= O_CLOEXEC | (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY);
	fd = open_in_root(r->fd, path, flags);
	if (fd == -ENOSYS || fd == -EPERM)
		fd = open_by_steps(r->fd, path, flags);
	return fd;
}

/* O_PATH touches nothing but the name: what it is, is seen before it is opened. */
static int open_plain(int found)
{
	char path[64];
	struct stat st;
	int fd;

	if (fstat(found, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int fsroot_open_below(const struct fsroot *r, const char *dir, const char *below)
{
	const struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int at = fsroot_openat(r, dir, O_PATH | O_DIRECTORY), found, fd;

	if (at < 0)
		return at;
	found = (int)syscall(SYS_openat2, at, below, &how, sizeof(how));
	found = found < 0 ? -errno : found;
	if (found == -ENOSYS || found == -EPERM)
		found = open_by_steps(at, below, O_PATH);
	close(at);
	if (found < 0)
		return found;
	fd = open_plain(found);
	close(found);
	return fd;
}

int fsroot_read(const struct fsroot *r, const char *path, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n = 0;
	int fd, err;

	if (size < 2)
		return -EFBIG;
	fd = fsroot_openat(r, path, O_RDONLY);
	if (fd < 0)
		return fd;
	do {
		n = read(fd, text + len, size - len);
		if (n > 0)
			len += (size_t)n;
	} while ((n > 0 && len < size) || (n < 0 && errno == EINTR));
	err = n < 0 ? -errno : len == size ? -EFBIG : 0;
	close(fd);
	if (err)
		return err;
	if (len && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	return (int)len;
}

int fsroot_read_u64(const struct fsroot *r, const char *path, uint64_t *ret)
{
	char text[64];
	int n = fsroot_read(r, path, text, sizeof(text));

	return n < 0 ? n : parse_u64(text, ret);
}

DIR *fsroot_opendir(const struct fsroot *r, const char *path)
{
	int fd = fsroot_openat(r, path, O_RDONLY | O_DIRECTORY);
	DIR *d;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

bool fsroot_exists(const struct fsroot *r, const char *path)
{
	int fd;

	if (r->live)
		return faccessat(r->fd, path, F_OK, 0) == 0;
	fd = fsroot_openat(r, path, O_PATH);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}
