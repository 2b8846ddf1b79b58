/* SPDX-License-Identifier: Apache-2.0 */
/* The command stays in our process group: Ctrl-C, Ctrl-Z and the terminal reach both, as with time(1),
 * and a pipeline that joulectl is part of stays one job. So what the kernel sends (a terminal) is not
 * passed on, what a process sends to us alone is. */
#include "run_child.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../base/clock.h"

static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };

void run_descriptors_note(struct run_descriptors *d)
{
	for (int fd = 0; fd < RUN_DESCRIPTORS; fd++)
		d->was_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* libcurl's wake-up socket and its connections are not closed by exec on their own. */
void run_descriptors_guard(const struct run_descriptors *d)
{
	for (int fd = STDERR_FILENO + 1; fd < RUN_DESCRIPTORS; fd++)
		if (!d->was_open[fd])
			fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int run_signals_take(struct run_signals *s, struct err *err)
{
	struct sigaction was;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	/* what is ignored (nohup, a job in the background of a script) stays so, for the command too */
	for (unsigned i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		if (sigaction(passed[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			sigaddset(&set, passed[i]);
	*s = (struct run_signals){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) };
	if (s->fd < 0)
		return err_set(err, -errno, "signals: %s; raise the limit of open files", strerror(errno));
	sigprocmask(SIG_BLOCK, &set, &s->before);
	return 0;
}

void run_signals_give_back(struct run_signals *s)
{
	sigprocmask(SIG_SETMASK, &s->before, NULL);
	close(s->fd);
}

/* Reported by a pipe that exec closes: nothing comes when it worked. */
static void execute(char **argv, const sigset_t *mask, int gate, int report)
{
	char go;
	int code;

	sigprocmask(SIG_SETMASK, mask, NULL);
	if (gate < 0 || read(gate, &go, 1) == 1) {
		execvp(argv[0], argv);
		code = errno;
		if (write(report, &code, sizeof(code)) < 0)
			_exit(126);
	}
	_exit(127);
}

/* clone3(2): in the cgroup from its first instruction. The pid, or negative errno. */
static pid_t clone_into(const struct run_cgroup *c)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)c->fd };
	long pid = c->place->v2 ? syscall(SYS_clone3, &args, sizeof(args)) : -1;

	return pid >= 0 ? (pid_t)pid : c->place->v2 ? -errno : -EOPNOTSUPP;
}

struct start {
	pid_t pid;
	uint64_t at_ns;
	int not_started;
};

/* Older kernels, v1 and some containers: the child waits at a gate until it was moved. */
static int start_behind_gate(char **argv, const struct run_cgroup *c, const sigset_t *mask, int report,
			     struct start *ret)
{
	int gate[2], code;

	if (pipe2(gate, O_CLOEXEC) != 0)
		return -errno;
	ret->pid = fork();
	if (ret->pid == 0) {
		close(gate[1]);
		execute(argv, mask, gate[0], report);
	}
	code = ret->pid < 0 ? -errno : run_cgroup_enter(c, ret->pid);
	ret->at_ns = clock_mono_ns();
	if (!code && write(gate[1], "", 1) != 1)
		code = -errno;
	close(gate[0]);
	close(gate[1]);
	if (code && ret->pid > 0)
		waitpid(ret->pid, NULL, 0);
	return code;
}

static int start(char **argv, const struct run_cgroup *c, const sigset_t *mask, struct start *ret)
{
	int report[2], code = 0;

	if (pipe2(report, O_CLOEXEC) != 0)
		return -errno;
	ret->at_ns = clock_mono_ns();
	ret->pid = clone_into(c);
	if (ret->pid == 0)
		execute(argv, mask, -1, report[1]);
	if (ret->pid == -EAGAIN || ret->pid == -ENOMEM)
		code = ret->pid;
	else if (ret->pid < 0)
		code = start_behind_gate(argv, c, mask, report[1], ret);
	close(report[1]);
	ret->not_started = 0;
	if (!code && read(report[0], &ret->not_started, sizeof(ret->not_started)) != sizeof(ret->not_started))
		ret->not_started = 0;
	close(report[0]);
	return code;
}

/* Stops as the default action would: not at all where nobody could let us go on (an orphaned group). */
static void stop_ourselves(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void take_signals(struct run_signals *s, pid_t child)
{
	struct signalfd_siginfo info;

	while (read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int sig = (int)info.ssi_signo;

		if (sig == SIGCHLD)
			continue;
		if (child && info.ssi_code != SI_KERNEL)
			kill(child, sig);
		if (sig == SIGTSTP)
			stop_ourselves();
		if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT)
			s->told = true;
	}
}

bool run_signals_look(struct run_signals *s)
{
	take_signals(s, 0);
	return s->told;
}

int run_child(char **argv, const struct run_cgroup *c, struct run_signals *s, const struct run_watch *w,
	      struct run_end *ret, struct err *err)
{
	struct pollfd fds[2] = { { .fd = s->fd, .events = POLLIN }, { .fd = w->fd, .events = POLLIN } };
	uint64_t due_ns = clock_mono_ns() + (uint64_t)w->first_ms * NS_PER_MS;
	struct run_end e = { 0 };
	struct start st = { 0 };
	int code = start(argv, c, &s->before, &st);

	if (code)
		return err_set(
			err, code, "%.250s: no process can be put there: %s; %s", c->dir, strerrordesc_np(-code),
			code == -EACCES ?
				"its ancestor that is also yours has to be delegated to you (systemd-run --user --scope)" :
				"look at the limits of processes and memory");
	e.not_started = st.not_started;
	while (wait4(st.pid, &e.status, WNOHANG, &e.usage) == 0) {
		uint64_t now = clock_mono_ns();
		int n = poll(fds, 2, now < due_ns ? (int)((due_ns - now + NS_PER_MS - 1) / NS_PER_MS) : 0);

		if ((n > 0 && fds[1].revents) || clock_mono_ns() >= due_ns)
			due_ns = clock_mono_ns() + (uint64_t)w->tick(w->arg) * NS_PER_MS;
		take_signals(s, st.pid);
	}
	e.wall_ns = clock_mono_ns() - st.at_ns;
	*ret = e;
	return 0;
}

int run_exit_status(const struct run_end *e)
{
	if (e->not_started)
		return e->not_started == ENOENT ? 127 : 126;
	return WIFSIGNALED(e->status) ? 128 + WTERMSIG(e->status) : WEXITSTATUS(e->status);
}
