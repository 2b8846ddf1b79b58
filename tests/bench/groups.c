// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "bench.h"

#define PREFIX "jouled-bench."

static char mount[256], dir[320];
static pid_t owner; /* of dir */
static unsigned made;

static void remove_below(const char *top)
{
	DIR *d = opendir(top);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)) != NULL)
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	closedir(d);
	rmdir(top);
}

/* Removes the groups of a killed run: the pid in their name is gone. */
static void remove_leftovers(void)
{
	DIR *d = opendir(mount);
	struct dirent *e;
	char path[640];

	if (!d)
		return;
	while ((e = readdir(d)) != NULL) {
		long pid;

		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)))
			continue;
		pid = strtol(e->d_name + strlen(PREFIX), NULL, 10);
		if (pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH) {
			snprintf(path, sizeof(path), "%s/%s", mount, e->d_name);
			remove_below(path);
		}
	}
	closedir(d);
}

int groups_begin(const char **ret_reason)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;

	owner = getpid();
	while (f && (m = getmntent(f)) != NULL)
		if (!strcmp(m->mnt_type, "cgroup2")) {
			snprintf(mount, sizeof(mount), "%s", m->mnt_dir);
			break;
		}
	if (f)
		endmntent(f);
	if (!mount[0]) {
		*ret_reason = "no cgroup2 mount";
		return -ENOENT;
	}
	remove_leftovers();
	snprintf(dir, sizeof(dir), "%s/" PREFIX "%d", mount, (int)getpid());
	if (mkdir(dir, 0755)) {
		*ret_reason = "cannot make a cgroup (root is needed)";
		return -errno;
	}
	made = 0;
	return 0;
}

const char *groups_mount(void)
{
	return mount;
}

const char *groups_dir(void)
{
	return dir;
}

const char *groups_name(unsigned i)
{
	static char name[4][352];
	static unsigned turn;
	char *at = name[turn++ & 3];

	snprintf(at, sizeof(name[0]), "%s/%u", dir + strlen(mount) + 1, i);
	return at;
}

void groups_make(unsigned n)
{
	char path[352];

	for (; made < n; made++) {
		snprintf(path, sizeof(path), "%s/%u", dir, made);
		if (mkdir(path, 0755) && errno != EEXIST)
			bench_die(path, errno);
	}
}

int groups_join(unsigned i)
{
	char path[384];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%u/cgroup.procs", dir, i);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, "0", 1);
	close(fd);
	return n == 1 ? 0 : -EIO;
}

void groups_leave(void)
{
	char path[384];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", mount);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		bench_die(path, errno);
	close(fd);
}

/* Directories stay busy for a moment after their last process: retried, never waited for blindly. */
/* A child that a signal ends leaves the folder to its parent. */
void groups_end(void)
{
	if (getpid() != owner)
		return;
	for (unsigned i = 0; i < 1000 && !access(dir, F_OK); i++) {
		remove_below(dir);
		if (!access(dir, F_OK))
			usleep(1000);
	}
}
