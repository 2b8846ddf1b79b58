// SPDX-License-Identifier: Apache-2.0
#include "process_cgroup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "0::/path" of v2, "4:perf_event:/path" of v1. */
int process_cgroup_path(const struct fsroot *root, const struct hierarchy *h, uint32_t pid, char *ret_path, size_t size)
{
	size_t above = strlen(h->subdir);
	char text[8192], *line, *save = NULL;

	if (fsroot_readf(root, text, sizeof(text), "/proc/%u/cgroup", pid) < 0)
		return -ENOENT;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *below = strchr(line, '/');
		bool wanted = h->v2 ? strncmp(line, "0::", 3) == 0 : strstr(line, "perf_event") != NULL;

		if (!wanted || !below)
			continue;
		if (above > 1 && strncmp(below, h->subdir, above) == 0)
			below += above;
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
