/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups of tests that were killed: jouled-test-PID-* of a process that is gone. The next test
 * that starts removes them. */
#ifndef JD_TEST_LEFTOVERS_H
#define JD_TEST_LEFTOVERS_H
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline void remove_below(int fd)
{
	DIR *d = fdopendir(dup(fd));
	struct dirent *e;

	rewinddir(d); /* a duplicate shares the position */
	while (d && (e = readdir(d))) {
		int sub;

		if (e->d_type != DT_DIR || !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		sub = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub >= 0) {
			remove_below(sub);
			close(sub);
		}
		for (int i = 0; i < 4000 && unlinkat(fd, e->d_name, AT_REMOVEDIR) && errno == EBUSY; i++)
			usleep(5000);
	}
	closedir(d);
}

/* One that still has processes stays for the next time. */
static inline void remove_leftovers(const char *mount)
{
	DIR *d = opendir(mount);
	struct dirent *e;
	int pid, fd;

	while (d && (e = readdir(d))) {
		if (sscanf(e->d_name, "jouled-test-%d-", &pid) != 1 || !kill(pid, 0) || errno != ESRCH)
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		remove_below(fd);
		close(fd);
		unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

#endif
