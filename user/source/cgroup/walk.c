/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the mounted tree: openat and getdents64 per directory, no stat, since d_ino is the cgroup's id.
 * Races with the events are harmless: the programs are attached before the walk and their records taken after it, so
 * every change during the walk is told again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "walk.h"

#define DENTS_SIZE 32768u
#define MAX_CGROUPS 1000000u /* a hostile tree ends here; the rest is resolved id by id */
#define MAX_TODO_BYTES (256u << 20)

struct linux_dirent64 { /* getdents64(2); libc has no public name for it */
	uint64_t d_ino;
	int64_t d_off;
	unsigned short d_reclen;
	unsigned char d_type;
	char d_name[];
};

static int add_entry(struct lifecycle *l, uint64_t id, const char *path, uint64_t born_ns)
{
	struct cgroup *known = cgroup_find(l->table, id), *cg;

	if (!known && cgroup_table_count(l->table) >= MAX_CGROUPS)
		return -E2BIG;
	cg = cgroup_add(l->table, id, path, lifecycle_depth(path), known ? 0 : born_ns);
	if (!cg)
		return -ENOMEM;
	cg->walk = l->walk;
	return 0;
}

/* A directory's child: into the table and onto the list of directories still to read. Beyond
 * PATH_MAX the kernel opens nothing by path; such a cgroup stays unresolved. */
static int visit(struct lifecycle *l, const char *dir, const struct linux_dirent64 *d, uint64_t born_ns)
{
	char path[CGROUP_PATH_MAX];
	size_t n = strlen(dir), m = strlen(d->d_name);
	int rc;

	if (d->d_type != DT_DIR || !strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
		return 0;
	if (n + 1 + m >= sizeof(path))
		return 0;
	memcpy(path, dir, n);
	path[n] = '/';
	memcpy(path + n + 1, d->d_name, m + 1);
	rc = add_entry(l, d->d_ino, path, born_ns);
	if (rc)
		return rc;
	buf_add(&l->todo, path, n + m + 2);
	return l->todo.failed ? -ENOMEM : 0;
}

/* dir: "" for the mount's root, else "/a/b". A directory that went away meanwhile is no error. */
static int read_dir(struct lifecycle *l, const char *dir, uint64_t born_ns)
{
	int fd = openat(l->mount_fd, *dir ? dir + 1 : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return errno == ENOENT || errno == ENODEV || errno == EACCES ? 0 : -errno;
	while (!rc) {
		long n = syscall(SYS_getdents64, fd, l->dents, DENTS_SIZE);

		if (n <= 0) {
			rc = n < 0 && errno != ENOENT && errno != ENODEV ? -errno : 0;
			break;
		}
		for (long at = 0; at < n && !rc;) {
			const struct linux_dirent64 *d = (const void *)(l->dents + at);

			rc = visit(l, dir, d, born_ns);
			at += d->d_reclen;
		}
	}
	close(fd);
	return rc;
}

/* Takes the last path off the list. */
static void take_last(struct buf *todo, char ret_path[CGROUP_PATH_MAX])
{
	size_t end = todo->len - 1, start = end;

	while (start && todo->data[start - 1])
		start--;
	memcpy(ret_path, todo->data + start, end - start + 1);
	todo->len = start;
}

/* Ends cgroups that the walk did not meet, unless the kernel still knows them: such a cgroup was renamed during the
 * walk, lies outside the mount, or lies too deep for a path. Where the kernel may not be asked and only a part of the tree is to be
 * seen, those that no walk ever met live outside of it (or inside, but ended between two walks, and the record of their end was lost). */
static void end_unseen(struct lifecycle *l)
{
	char path[CGROUP_PATH_MAX];
	struct cgroup *cg;
	unsigned pos = 0;

	while ((cg = cgroup_next(l->table, &pos))) {
		int rc;

		if (cg->ended || cg->walk == l->walk)
			continue;
		rc = lifecycle_path_of(l, cg->id, path);
		if (rc == -ESTALE || (rc == -EPERM && (cg->walk || !l->sees_part)))
			cgroup_end(l->table, cg->id, clock_mono_ns());
		else if (!rc)
			cgroup_rename(l->table, cg->id, path);
	}
}

int lifecycle_walk(struct lifecycle *l, uint64_t born_ns)
{
	char dir[CGROUP_PATH_MAX] = "";
	int rc;

	if (!l->dents && !(l->dents = malloc(DENTS_SIZE)))
		return -ENOMEM;
	l->walk++;
	buf_reset(&l->todo);
	l->todo.limit = MAX_TODO_BYTES;
	rc = add_entry(l, l->mount_id, "/", 0);
	if (!rc)
		rc = read_dir(l, dir, born_ns);
	while (!rc && l->todo.len) {
		take_last(&l->todo, dir);
		rc = read_dir(l, dir, born_ns);
	}
	if (!rc)
		end_unseen(l);
	return rc == -E2BIG ? 0 : rc;
}

/* Id to path by file handle: a kernfs handle is its 64-bit id (FILEID_KERNFS, fs/kernfs/mount.c),
 * and readlink of the opened directory is its path. */

#define FILEID_KERNFS 0xfe /* include/linux/exportfs.h */

/* Path of an open directory as the kernel prints it; length or -errno. */
static int fd_path(const struct lifecycle *l, int fd, char ret_path[CGROUP_PATH_MAX])
{
	char name[16];
	ssize_t n;

	snprintf(name, sizeof(name), "%d", fd);
	n = readlinkat(l->self_fd, name, ret_path, CGROUP_PATH_MAX);
	if (n < 0)
		return -errno;
	if (n >= CGROUP_PATH_MAX || n == 0)
		return -ENAMETOOLONG;
	ret_path[n] = '\0';
	return (int)n;
}

/* A directory removed after it was opened is shown with this suffix. The suffix may also be part of a living
 * directory's name; then it can be opened by that name. */
static void cut_deleted(const struct lifecycle *l, char *path)
{
	static const char suffix[] = " (deleted)";
	size_t n = strlen(path), m = sizeof(suffix) - 1;
	int fd;

	if (n <= m || strcmp(path + n - m, suffix))
		return;
	fd = fsroot_openat(l->root, path, O_PATH);
	if (fd < 0)
		path[n - m] = '\0';
	else
		close(fd);
}

int lifecycle_path_of(const struct lifecycle *l, uint64_t id, char ret_path[CGROUP_PATH_MAX])
{
	union {
		struct file_handle h;
		unsigned char space[sizeof(struct file_handle) + sizeof(id)];
	} handle = { .h = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	size_t prefix = strlen(l->mount);
	char path[CGROUP_PATH_MAX];
	int fd, n;

	memcpy(handle.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(l->mount_fd, &handle.h, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	n = fd_path(l, fd, path);
	if (n >= 0)
		cut_deleted(l, path);
	close(fd);
	if (n < 0)
		return n;
	/* Outside the mounted subtree the kernel shows "/" alone (fs/d_path.c, prepend_path). */
	if (strncmp(path, l->mount, prefix) || (path[prefix] && path[prefix] != '/'))
		return -EXDEV;
	n = snprintf(ret_path, CGROUP_PATH_MAX, "%s", path[prefix] ? path + prefix : "/");
	return n < CGROUP_PATH_MAX ? 0 : -ENAMETOOLONG;
}

int lifecycle_handle_init(struct lifecycle *l)
{
	int n = fd_path(l, l->mount_fd, l->mount);

	if (n < 0)
		return n;
	if (!strcmp(l->mount, "/"))
		l->mount[0] = '\0';
	return 0;
}
