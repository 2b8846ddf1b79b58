/* SPDX-License-Identifier: Apache-2.0 */
#include "freezer.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"

#define FREEZE_MS 100 /* within that a cgroup freezes */
#define LOOK_NS 200000

struct order {
	char what; /* 'f' freeze, 't' thaw */
	unsigned char cgroup;
};

struct done {
	int rc;
	uint64_t frozen_ns;
};

struct freezer {
	int fd;
	pid_t pid;
	unsigned n;
	int files[FREEZER_MAX]; /* cgroup.freeze */
	int events[FREEZER_MAX]; /* cgroup.events */
	uint64_t most_ns;
	bool ended;
};

static int set(int file, bool frozen)
{
	return pwrite(file, frozen ? "1" : "0", 1, 0) == 1 ? 0 : -errno;
}

static bool is_frozen(int events)
{
	char text[256];
	ssize_t n = pread(events, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return strstr(text, "frozen 1") != NULL;
}

static int freeze(const struct freezer *f, unsigned i)
{
	uint64_t until = clock_mono_ns() + FREEZE_MS * NS_PER_MS;
	int rc = set(f->files[i], true);

	while (!rc && !is_frozen(f->events[i])) {
		if (clock_mono_ns() > until)
			rc = -EBUSY;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	if (rc)
		set(f->files[i], false);
	return rc;
}

/* The second process. */

static bool answer(int fd, const struct done *d)
{
	return send(fd, d, sizeof(*d), MSG_NOSIGNAL) == (ssize_t)sizeof(*d);
}

/* True when an order or the end of the socket comes before the time is over. */
static bool comes(int fd, uint64_t until_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now;

	while ((now = clock_mono_ns()) < until_ns) {
		uint64_t left = until_ns - now;
		const struct timespec t = { .tv_sec = (time_t)(left / NS_PER_S), .tv_nsec = (long)(left % NS_PER_S) };

		if (ppoll(&p, 1, &t, NULL) > 0)
			return true;
	}
	return false;
}

/* Freezes, and thaws in any case. False: the socket has ended. */
static bool carry_out(const struct freezer *f, unsigned i)
{
	uint64_t begin = clock_mono_ns();
	struct done d = { .rc = freeze(f, i) };
	struct order o = { 0 };
	bool in_time, goes_on;

	if (d.rc)
		return answer(f->fd, &d);
	goes_on = answer(f->fd, &d);
	in_time = goes_on && comes(f->fd, begin + f->most_ns);
	set(f->files[i], false);
	d.frozen_ns = clock_mono_ns() - begin;
	d.rc = in_time ? 0 : -ETIMEDOUT;
	return goes_on && recv(f->fd, &o, sizeof(o), 0) == (ssize_t)sizeof(o) && answer(f->fd, &d);
}

/* Keeps the socket and the files, closes everything else: another process may wait for the end of a pipe. A session of
 * its own and blocked signals, so that Ctrl-C does not end it. */
static void settle_down(struct freezer *f)
{
	int high = f->fd;
	sigset_t all;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setpriority(PRIO_PROCESS, 0, -20); /* without the right to it nothing changes */
	for (unsigned i = 0; i < f->n; i++) {
		high = f->files[i] > high ? f->files[i] : high;
		high = f->events[i] > high ? f->events[i] : high;
	}
	/* above all of them, so that none is overwritten */
	for (unsigned i = 0; i < f->n; i++) {
		f->files[i] = dup3(f->files[i], ++high, O_CLOEXEC);
		f->events[i] = dup3(f->events[i], ++high, O_CLOEXEC);
	}
	f->fd = dup3(f->fd, ++high, O_CLOEXEC);
	close_range(0, (unsigned)high - 1 - 2 * f->n, 0);
	close_range((unsigned)high + 1, ~0u, 0);
}

static _Noreturn void second(struct freezer *f)
{
	struct order o;

	settle_down(f);
	while (recv(f->fd, &o, sizeof(o), 0) == (ssize_t)sizeof(o))
		if (o.what != 'f' || o.cgroup >= f->n || !carry_out(f, o.cgroup))
			break;
	_exit(0);
}

/* The first process. */

static int open_files(struct freezer *f, const int *dirs, struct err *err)
{
	for (unsigned i = 0; i < f->n; i++) {
		f->files[i] = openat(dirs[i], "cgroup.freeze", O_RDWR | O_CLOEXEC);
		f->events[i] = openat(dirs[i], "cgroup.events", O_RDONLY | O_CLOEXEC);
		if (f->files[i] < 0 || f->events[i] < 0)
			return err_set(err, -errno, "freezer: %s", strerrordesc_np(errno));
	}
	return 0;
}

/* After the end of the second process. */
static int thaw_all(struct freezer *f)
{
	for (unsigned i = 0; i < f->n && !f->ended; i++)
		set(f->files[i], false);
	f->ended = true;
	return -EPIPE;
}

static int ended(struct freezer *f, struct err *err)
{
	thaw_all(f);
	return err_set(err, -EPIPE,
		       "audit: its second process, which thaws, has ended; everything is thawed; try again");
}

int freezer_start(const int *dirs, unsigned n, uint64_t most_ns, struct freezer **ret, struct err *err)
{
	struct freezer *f = calloc(1, sizeof(*f));
	int fds[2] = { -1, -1 }, rc;

	if (!f)
		return err_set(err, -ENOMEM, "freezer: out of memory; free some");
	*f = (struct freezer){ .fd = -1, .n = n, .most_ns = most_ns };
	memset(f->files, -1, sizeof(f->files));
	memset(f->events, -1, sizeof(f->events));
	rc = open_files(f, dirs, err);
	if (!rc && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		rc = err_set(err, -errno, "freezer: %s; raise the limit of open files", strerrordesc_np(errno));
	f->pid = rc ? -1 : fork();
	if (f->pid == 0) {
		close(fds[0]);
		f->fd = fds[1];
		second(f);
	}
	if (!rc && f->pid < 0)
		rc = err_set(err, -errno, "freezer: %s; raise the limit of processes", strerrordesc_np(errno));
	f->fd = fds[0];
	if (fds[1] >= 0)
		close(fds[1]);
	if (rc)
		freezer_stop(f);
	else
		*ret = f;
	return rc;
}

static bool ask(struct freezer *f, struct order o, struct done *ret)
{
	ssize_t n;

	if (f->ended || send(f->fd, &o, sizeof(o), MSG_NOSIGNAL) != (ssize_t)sizeof(o))
		return false;
	do
		n = recv(f->fd, ret, sizeof(*ret), 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*ret);
}

int freezer_freeze(struct freezer *f, unsigned cgroup, struct err *err)
{
	struct done d;

	if (!ask(f, (struct order){ 'f', (unsigned char)cgroup }, &d))
		return ended(f, err);
	if (d.rc == -EBUSY)
		return err_set(err, d.rc, "it did not freeze within %d ms and was thawed", FREEZE_MS);
	return d.rc ? err_set(err, d.rc, "it cannot be frozen: %s", strerrordesc_np(-d.rc)) : 0;
}

int freezer_wait(struct freezer *f, uint64_t ns)
{
	return comes(f->fd, clock_mono_ns() + ns) ? thaw_all(f) : 0;
}

int freezer_thaw(struct freezer *f, uint64_t *ret_ns, struct err *err)
{
	struct done d;

	if (!ask(f, (struct order){ 't', 0 }, &d))
		return ended(f, err);
	*ret_ns = d.frozen_ns;
	return d.rc ? err_set(err, d.rc, "the reading took too long: thawed after %.0f ms", (double)d.frozen_ns / 1e6) :
		      0;
}

void freezer_stop(struct freezer *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	if (f->pid > 0)
		while (waitpid(f->pid, NULL, 0) < 0 && errno == EINTR)
			;
	for (unsigned i = 0; i < f->n; i++) {
		if (f->files[i] >= 0)
			close(f->files[i]);
		if (f->events[i] >= 0)
			close(f->events[i]);
	}
	free(f);
}
