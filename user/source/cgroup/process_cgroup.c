// SPDX-License-Identifier: Apache-2.0
#include "process_cgroup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True when the line, "4:cpu,perf_event:/path", is of the hierarchy with that controller. */
static bool has_controller(const char *line, const char *name)
{
	const char *at = strchr(line, ':'), *end = at ? strchr(at + 1, ':') : NULL;
	const size_t len = strlen(name);

	while (end && at < end) {
		const size_t n = strcspn(++at, ",:");

		if (n == len && strncmp(at, name, n) == 0)
			return true;
		at += n;
	}
	return false;
}

/* What of a cgroup's path lies below the mounted part of its hierarchy; all of it where it is not in that part. */
static const char *below_mount(const char *path, const char *subdir)
{
	const size_t above = strlen(subdir);
	const bool inside = above > 1 && strncmp(path, subdir, above) == 0 && (!path[above] || path[above] == '/');

	return !inside ? path : path[above] ? path + above : "/";
}

/* "0::/path" of v2, "4:perf_event:/path" of v1. */
int process_cgroup_path(const struct fsroot *root, const struct hierarchy *h, uint32_t pid, char *ret_path, size_t size)
{
	char text[8192], *line, *save = NULL;

	if (fsroot_readf(root, text, sizeof(text), "/proc/%u/cgroup", pid) < 0)
		return -ENOENT;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *below = strchr(line, '/');
		bool wanted = h->v2 ? strncmp(line, "0::", 3) == 0 : has_controller(line, "perf_event");

		if (!wanted || !below)
			continue;
		below = below_mount(below, h->subdir);
		if (strlen(below) >= size)
			return -ENOENT;
		memcpy(ret_path, below, strlen(below) + 1);
		return 0;
	}
	return -ENOENT;
}

/* A cgroup's id is the inode of its directory. */
static int id_of(const struct fsroot *root, const struct hierarchy *h, const char *below, uint64_t *ret_id)
{
	char dir[2 * sizeof(h->mount)];
	struct stat st;
	int fd, rc;

	snprintf(dir, sizeof(dir), "%s%s", h->mount, below);
	fd = fsroot_openat(root, dir, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return -ENOENT;
	rc = fstat(fd, &st);
	close(fd);
	if (rc)
		return -ENOENT;
	*ret_id = st.st_ino;
	return 0;
}

int process_cgroup(const struct fsroot *root, const struct hierarchy *h, uint32_t pid, uint64_t *ret_id)
{
	char below[sizeof(h->mount)];
	int rc = process_cgroup_path(root, h, pid, below, sizeof(below));

	return rc ? rc : id_of(root, h, below, ret_id);
}
