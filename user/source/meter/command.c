// SPDX-License-Identifier: Apache-2.0
/* A program or a FIFO that prints lines dNcM=WATTS (line.c) at its own pace. A program is started without a
 * shell, in a process group of its own, and started anew when it ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "meter_ops.h"

#define LINE_MAX_BYTES 1024
#define READ_BYTES 16384 /* of one look */
#define FLOOD_BYTES 4096 /* of a longer look only the last bytes, the newest lines, are parsed */
#define LOOK_MS 200
#define END_MS 500 /* until a program that was asked to end is killed */

extern char **environ;

struct stream {
	int fd;
	pid_t child; /* 0 = a FIFO */
	bool skipping; /* in a line that is too long */
	size_t len;
	char line[LINE_MAX_BYTES];
};

static struct stream *of(const struct meter *m)
{
	return m->state;
}

/* The agent blocks the signals it waits for; its children must not. */
static int spawn(struct meter *m, int out_fd, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, ignored;
	char **argv = calloc(m->command.n + 1, sizeof(*argv));
	int rc;

	if (!argv)
		return -ENOMEM;
	memcpy(argv, m->command.v, m->command.n * sizeof(*argv));
	sigemptyset(&none);
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGPIPE);
	sigaddset(&ignored, SIGXFSZ);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &ignored);
	rc = posix_spawnp(ret, argv[0], &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	free(argv);
	return -rc;
}

static int command_open(struct meter *m, struct err *err)
{
	struct stream *s = calloc(1, sizeof(*s));
	int fds[2], rc;

	if (!s)
		return err_set(err, -ENOMEM, "%s: out of memory; free some", m->command.v[0]);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
		rc = -errno;
		free(s);
		return err_set(err, rc, "%s: %s; raise the limit of open files", m->command.v[0], strerrordesc_np(-rc));
	}
	fcntl(fds[1], F_SETFL, 0);
	rc = spawn(m, fds[1], &s->child);
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		free(s);
		return err_set(err, rc, "%s: %s; name a program that can be run", m->command.v[0], strerror(-rc));
	}
	s->fd = fds[0];
	m->state = s;
	return 0;
}

static int fifo_open(struct meter *m, struct err *err)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct stat st;
	/* not for writing: the agent may have given that right away */
	int fd = s ? fsroot_openat(m->all->root, m->device, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -ENOMEM;

	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))) {
		close(fd);
		fd = -EINVAL;
	}
	if (fd < 0) {
		free(s);
		return err_set(err, fd, "%s: %s; make a FIFO there (mkfifo)", m->device,
			       fd == -EINVAL ? "it is no FIFO" : strerror(-fd));
	}
	s->fd = fd;
	m->state = s;
	return 0;
}

/* Values of one look are of one instant: the last of each channel is the newest. */
struct newest {
	unsigned n;
	struct meter_value v[METER_CHANNELS];
};

static void take_line(struct stream *s, struct newest *ret)
{
	struct meter_value v[METER_CHANNELS];
	unsigned n;

	s->line[s->len] = '\0';
	n = meter_parse_line(s->line, v, METER_CHANNELS);
	for (unsigned i = 0; i < n; i++) {
		unsigned k = 0;

		while (k < ret->n && (ret->v[k].device != v[i].device || ret->v[k].channel != v[i].channel))
			k++;
		if (k == METER_CHANNELS)
			continue;
		ret->n += k == ret->n;
		ret->v[k] = v[i];
	}
}

/* Whole lines; one that is too long is left out to its end. Returns values taken. */
static unsigned take(struct meter *m, struct stream *s, const char *text, size_t n)
{
	struct newest newest = { 0 };
	unsigned good = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\n') {
			if (!s->skipping)
				take_line(s, &newest);
			s->len = 0;
			s->skipping = false;
		} else if (s->len == sizeof(s->line) - 1) {
			s->skipping = true;
		} else {
			s->line[s->len++] = text[i] ? text[i] : ' ';
		}
	}
	for (unsigned i = 0; i < newest.n; i++)
		good += meter_put(m, newest.v[i].device, newest.v[i].channel, newest.v[i].power_uw) == 0;
	return good;
}

static const char *name_of(const struct meter *m)
{
	return m->command.n ? m->command.v[0] : m->device;
}

/* 1: there was more than a meter should print. */
static int take_look(struct meter *m, struct stream *s, char *text, size_t n, struct err *err)
{
	bool flood = n > FLOOD_BYTES;

	if (flood) {
		s->skipping = true; /* to the end of the line in the midst of which it begins */
		text += n - FLOOD_BYTES;
		n = FLOOD_BYTES;
	}
	if (!take(m, s, text, n) && memchr(text, '\n', n) && !m->n_channels)
		return err_set(err, -EBADMSG, "%s: its lines are none of the form d0c0=WATTS; make it print such lines",
			       name_of(m));
	return flood;
}

/* Silence is no failure: values grow old by themselves. */
static int stream_look(struct meter *m, struct err *err)
{
	struct stream *s = of(m);
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	char text[READ_BYTES];
	ssize_t n;

	if (poll(&p, 1, LOOK_MS) <= 0)
		return 0;
	n = read(s->fd, text, sizeof(text));
	if (n > 0)
		return take_look(m, s, text, (size_t)n, err);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (!n && !s->child) {
		poll(NULL, 0, LOOK_MS / 2); /* the writer has gone and may come again: until then poll does not wait */
		return 0;
	}
	m->failures = m->failures < 5 ? 5 : m->failures; /* it ended: open it anew, not too often */
	return err_set(err, -EPIPE, "%s: it ended; it is started again", name_of(m));
}

/* The process group keeps its number until the child is waited for, so the others in the group are ended before
 * that. */
static void end(pid_t child)
{
	uint64_t until = clock_mono_ns() + END_MS * NS_PER_MS;
	siginfo_t gone = { 0 };

	kill(-child, SIGTERM);
	while (waitid(P_PID, (id_t)child, &gone, WEXITED | WNOHANG | WNOWAIT) == 0 && !gone.si_pid &&
	       clock_mono_ns() < until)
		poll(NULL, 0, 10);
	kill(-child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void stream_close(struct meter *m)
{
	struct stream *s = of(m);

	close(s->fd);
	if (s->child)
		end(s->child);
	free(s);
	m->state = NULL;
}

const struct meter_ops meter_command = { "command", NS_PER_S, true, command_open, stream_look, stream_close };
const struct meter_ops meter_fifo = { "fifo", NS_PER_S, true, fifo_open, stream_look, stream_close };
