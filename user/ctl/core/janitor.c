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
	int fd; /* of a pipe: a byte dismisses, its end is the program's */
	pid_t pid;
};

/* In a session of its own, so that no terminal ends it; without descriptors, so that nobody waits for
 * the end of a pipe that it holds. */
static void wait_and_clean(int fd, void (*clean)(void *arg), void *arg)
{
	sigset_t all;
	ssize_t n;
	char byte;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (fd > 0)
		close_range(0, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0u, 0);
	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		clean(arg);
	_exit(0);
}

int janitor_start(void (*clean)(void *arg), void *arg, struct janitor **ret, struct err *err)
{
	struct janitor *j = calloc(1, sizeof(*j));
	int fds[2];

	if (!j || pipe2(fds, O_CLOEXEC) != 0) {
		free(j);
		return err_set(err, -EMFILE, "janitor: no memory or no descriptor; raise the limits");
	}
	j->fd = fds[1];
	j->pid = fork();
	if (j->pid == 0)
		wait_and_clean(fds[0], clean, arg);
	close(fds[0]);
	if (j->pid < 0) {
		int code = -errno;

		close(j->fd);
		free(j);
		return err_set(err, code, "janitor: %s; raise the limit of processes", strerror(-code));
	}
	*ret = j;
	return 0;
}

void janitor_dismiss(struct janitor *j)
{
	if (!j)
		return;
	/* whoever was killed meanwhile has cleaned nothing: all that is left is to reap it */
	if (write(j->fd, "", 1) == 1)
		while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
			;
	close(j->fd);
	free(j);
}
