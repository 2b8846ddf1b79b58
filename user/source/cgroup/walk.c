/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the mounted tree: openat and getdents64 per directory, no stat, since d_ino is the
 * cgroup's id. Races with the events are harmless: they are attached before the walk and taken
 * after it, so whatever changed while it ran is told again. */
#include "lifecycle_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/clock.h"

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
	int r;

	if (d->d_type != DT_DIR || !strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
		return 0;
	if (n + 1 + m >= sizeof(path))
		return 0;
	memcpy(path, dir, n);
	path[n] = '/';
	memcpy(path + n + 1, d->d_name, m + 1);
	r = add_entry(l, d->d_ino, path, born_ns);
	if (r)
		return r;
	buf_add(&l->todo, path, n + m + 2);
	return l->todo.failed ? -ENOMEM : 0;
}

/* dir: "" for the mount's root, else "/a/b". A directory that went away meanwhile is no error. */
static int read_dir(struct lifecycle *l, const char *dir, uint64_t born_ns)
{
	int fd = openat(l->mount_fd, *dir ? dir + 1 : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return errno == ENOENT || errno == ENODEV || errno == EACCES ? 0 : -errno;
	while (!r) {
		long n = syscall(SYS_getdents64, fd, l->dents, DENTS_SIZE);

		if (n <= 0) {
			r = n < 0 && errno != ENOENT && errno != ENODEV ? -errno : 0;
			break;
		}
		for (long at = 0; at < n && !r;) {
			const struct linux_dirent64 *d = (const void *)(l->dents + at);

			r = visit(l, dir, d, born_ns);
			at += d->d_reclen;
		}
	}
	close(fd);
	return r;
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

/* What the walk did not meet has gone, unless the kernel still knows it: it was renamed under the
 * walk's eyes, lies outside the mount, or deeper than a path can say. */
static void end_unseen(struct lifecycle *l)
{
	char path[CGROUP_PATH_MAX];
	struct cgroup *cg;
	unsigned pos = 0;

	while ((cg = cgroup_next(l->table, &pos))) {
		int r;

		if (cg->ended || cg->walk == l->walk)
			continue;
		r = lifecycle_path_of(l, cg->id, path);
		if (r == -ESTALE || r == -EPERM)
			cgroup_end(l->table, cg->id, clock_mono_ns());
		else if (!r)
			cgroup_rename(l->table, cg->id, path);
	}
}

int lifecycle_walk(struct lifecycle *l, uint64_t born_ns)
{
	char dir[CGROUP_PATH_MAX] = "";
	int r;

	if (!l->dents && !(l->dents = malloc(DENTS_SIZE)))
		return -ENOMEM;
	l->walk++;
	buf_reset(&l->todo);
	l->todo.limit = MAX_TODO_BYTES;
	r = add_entry(l, l->mount_id, "/", 0);
	if (!r)
		r = read_dir(l, dir, born_ns);
	while (!r && l->todo.len) {
		take_last(&l->todo, dir);
		r = read_dir(l, dir, born_ns);
	}
	if (!r)
		end_unseen(l);
	return r == -E2BIG ? 0 : r;
}
