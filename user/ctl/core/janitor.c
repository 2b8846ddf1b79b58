/* SPDX-License-Identifier: Apache-2.0 */
#include "janitor.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct janitor {
	int fd; /* write end of a pipe: a byte dismisses the janitor, end of file means that the program has ended */
	pid_t pid;
};

/* The janitor process. It has a session of its own, so that no terminal ends it. It closes all other descriptors, so
 * that it keeps no pipe open whose end somebody waits for. */
static void wait_and_clean(int fd, int keep_fd, void (*clean)(void *arg), void *arg)
{
	int low = keep_fd >= 0 && keep_fd < fd ? keep_fd : fd, high = keep_fd > fd ? keep_fd : fd;
	sigset_t all;
	ssize_t n;
	char byte;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (low > 0)
		close_range(0, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0u, 0);
	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		clean(arg);
	_exit(0);
}

int janitor_start(void (*clean)(void *arg), void *arg, int keep_fd, struct janitor **ret, struct err *err)
{
	struct janitor *j = calloc(1, sizeof(*j));
	int fds[2], rc;

	if (!j)
		return err_set(err, -ENOMEM, "janitor: out of memory; free some");
	if (pipe2(fds, O_CLOEXEC) != 0) {
		rc = -errno;
		free(j);
		return err_set(err, rc, "janitor: %s; raise the limit of open files", strerror(-rc));
	}
	j->fd = fds[1];
	j->pid = fork();
	if (j->pid == 0)
		wait_and_clean(fds[0], keep_fd, clean, arg);
	close(fds[0]);
	if (j->pid < 0) {
		rc = -errno;

		close(j->fd);
		free(j);
		return err_set(err, rc, "janitor: %s; raise the limit of processes", strerror(-rc));
	}
	*ret = j;
	return 0;
}

void janitor_dismiss(struct janitor *j)
{
	if (!j)
		return;
	/* A janitor that was killed before has cleaned nothing; it only has to be reaped. */
	if (write(j->fd, "", 1) == 1)
		while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
			;
	close(j->fd);
	free(j);
}
