/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
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
#define STEPS_DEPTH 64
#define STEPS_LINKS 40 /* as in the kernel: MAXSYMLINKS */

struct fsroot {
	int fd; /* of dir */
	bool live;
	char *dir;
	char denied[DENIED_MAX]; /* captured: text of DIR/denied */
};

/* Loads DIR/denied: the paths that the captured machine refused, one path or pattern a line. Without this file nothing
 * was refused. The modes of the files do not tell it, because any user reads a captured machine and root runs the
 * tests. */
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
	int rc = -ENOMEM;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	r->dir = strdup(dir);
	if (!r->dir)
		goto fail;
	r->live = strcmp(dir, "/") == 0;
	r->fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	rc = -errno;
	if (r->fd < 0)
		goto fail;
	if (!r->live)
		load_denied(r);
	*ret = r;
	return 0;
fail:
	fsroot_close(r);
	return rc;
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

/* openat2(2) came with Linux 5.6. A concurrent rename makes ".." fail with EAGAIN. */
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

struct steps {
	int dirs[STEPS_DEPTH]; /* directories walked through so far, below the root */
	unsigned depth, links;
	int root;
	bool follow;
	char rest[PATH_MAX]; /* rest of the path, not walked yet */
};

static int here(const struct steps *s)
{
	return s->depth ? s->dirs[s->depth - 1] : s->root;
}

static void up(struct steps *s)
{
	if (s->depth) /* the parent of the root is the root */
		close(s->dirs[--s->depth]);
}

/* Puts the target of a link before the rest of the path. -EINPROGRESS: the walk goes on; or another -errno. */
static int follow_link(struct steps *s, int link, const char *next)
{
	char to[PATH_MAX];
	ssize_t n = readlinkat(link, "", to, sizeof(to));
	size_t left = strlen(next);

	if (n < 0)
		return -errno;
	if (!s->follow || s->links++ == STEPS_LINKS)
		return -ELOOP;
	if ((size_t)n + 1 + left >= sizeof(s->rest))
		return -ENAMETOOLONG;
	while (*to == '/' && s->depth)
		up(s);
	memmove(s->rest + n + !!left, next, left + 1);
	memcpy(s->rest, to, (size_t)n);
	if (left)
		s->rest[n] = '/';
	return -EINPROGRESS;
}

/* Opens one component, which is not the last one unless flags say so. Returns the final descriptor, -EINPROGRESS when
 * the walk goes on, or -errno. */
static int step(struct steps *s, const char *name, const char *next, int flags)
{
	int fd = openat(here(s), name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = -EINPROGRESS;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0)
		rc = -errno;
	else if (S_ISLNK(st.st_mode) && (*next || !(flags & O_NOFOLLOW)))
		rc = follow_link(s, fd, next);
	else if ((*next || flags & O_DIRECTORY) && !S_ISDIR(st.st_mode))
		rc = -ENOTDIR;
	else if (!*next && flags & O_PATH)
		return fd;
	else if (!*next)
		rc = (rc = openat(here(s), name, flags | O_NOFOLLOW | O_CLOEXEC)) < 0 ? -errno : rc;
	else if (s->depth == STEPS_DEPTH)
		rc = -ENAMETOOLONG;
	else {
		s->dirs[s->depth++] = fd;
		memmove(s->rest, next, strlen(next) + 1);
		return rc;
	}
	close(fd);
	return rc;
}

/* Opens a path without openat2, which a seccomp filter may refuse: one component at a time, each from the directory
 * before it, so that nothing leads out of the root. follow false: links and ".." are refused. */
static int open_by_steps(int root, const char *path, int flags, bool follow)
{
	struct steps s = { .root = root, .follow = follow };
	int fd = strlen(path) < sizeof(s.rest) ? -EINPROGRESS : -ENAMETOOLONG;
	char name[NAME_MAX + 1];

	if (fd == -EINPROGRESS)
		memcpy(s.rest, path, strlen(path) + 1);
	while (fd == -EINPROGRESS) {
		size_t skip = strspn(s.rest, "/"), len = strcspn(s.rest + skip, "/");
		const char *at = s.rest + skip, *next = at + len + strspn(at + len, "/");
		int wanted = flags | (at[len] && !*next ? O_DIRECTORY : 0); /* "name/" */
		bool dots = len == 2 && memcmp(at, "..", 2) == 0;

		if (len >= sizeof(name))
			fd = -ENAMETOOLONG;
		else if (dots && !follow)
			fd = -EXDEV;
		else if (dots || (len == 1 && *at == '.') || !len) {
			if (dots)
				up(&s);
			if (!*next)
				fd = (fd = openat(here(&s), ".", flags | O_CLOEXEC)) < 0 ? -errno : fd;
			memmove(s.rest, next, strlen(next) + 1);
		} else {
			memcpy(name, at, len);
			name[len] = '\0';
			fd = step(&s, name, next, wanted);
		}
	}
	while (s.depth)
		up(&s);
	return fd;
}

/* Opens path as a process with that root directory would. */
static int open_within(int root, const char *path, int flags)
{
	int fd = open_in_root(root, path, flags | O_CLOEXEC);

	return fd == -ENOSYS || fd == -EPERM ? open_by_steps(root, path, flags, true) : fd;
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
	flags |= (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY);
	return open_within(r->fd, path, flags);
}

int fsroot_open_plain(int found)
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
		found = open_by_steps(at, below, O_PATH | O_NOFOLLOW, false);
	close(at);
	if (found < 0)
		return found;
	fd = fsroot_open_plain(found);
	close(found);
	return fd;
}

int fsroot_find_inside(const struct fsroot *r, const char *dir, const char *path)
{
	int at = fsroot_openat(r, dir, O_PATH | O_DIRECTORY), found;

	if (at < 0)
		return at;
	found = open_within(at, path, O_PATH);
	close(at);
	return found;
}

int fsroot_read(const struct fsroot *r, const char *path, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n = 0;
	int fd, rc;

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
	rc = n < 0 ? -errno : len == size ? -EFBIG : 0;
	close(fd);
	if (rc)
		return rc;
	if (len && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	return (int)len;
}

int fsroot_readf(const struct fsroot *r, char *text, size_t size, const char *fmt, ...)
{
	char path[4096];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return n < (int)sizeof(path) ? fsroot_read(r, path, text, size) : -ENAMETOOLONG;
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
