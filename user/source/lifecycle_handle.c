/* SPDX-License-Identifier: Apache-2.0 */
/* Id to path by file handle: a kernfs handle is its 64-bit id (FILEID_KERNFS, fs/kernfs/mount.c),
 * and readlink of the opened directory is its path. */
#include "lifecycle_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* A directory removed after it was opened is shown with this suffix, which may also be part of a
 * living one's name: then it can be opened by it. */
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
