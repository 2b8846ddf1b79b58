/* SPDX-License-Identifier: Apache-2.0 */
/* The command stays in the process group of joulectl. Ctrl-C, Ctrl-Z and the terminal reach both, as with time(1), and
 * a pipeline with joulectl stays one job. A signal of the kernel (from the terminal) is therefore not passed on; a
 * signal that a process sent to joulectl alone is. */
#include "child.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"

static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };

void run_descriptors_note(struct run_descriptors *d)
{
	for (int fd = 0; fd < RUN_DESCRIPTORS; fd++)
		d->was_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* Marks the descriptors that were opened since as close-on-exec: libcurl does not mark its wake-up socket and its
 * connections. */
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

	/* Where a caller ignores it, the kernel keeps no exit status of a child. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	/* A signal that is ignored (nohup, a background job of a script) stays ignored, for the command too. */
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

/* A launcher makes the command's process. The launcher is forked and stays outside the cgroup. The process shares the
 * launcher's memory until its exec, so that no memory is copied or freed at the cost of the command. It is a child of
 * joulectl, not of the launcher (CLONE_PARENT). It waits at the gate until joulectl knows its use so far. */
struct launch {
	char *const *argv;
	char file[4096]; /* path of argv[0]; "" = execvp(3) looks for it */
	const sigset_t *mask;
	int input; /* 0 = ours */
	int gate[2], report[2], hold[2];
	char *stack;
	size_t stack_size;
	struct rusage *own; /* use up to the exec; memory shared with joulectl */
};

/* Searches PATH before the command is measured, so that a long PATH is not counted as the command's. Where it finds no
 * executable file, execvp(3) searches again and gives the error. */
static void find_file(struct launch *l)
{
	const char *name = l->argv[0], *at = getenv("PATH");
	struct stat st;

	for (; at && !strchr(name, '/'); at = at[strcspn(at, ":")] ? at + strcspn(at, ":") + 1 : NULL) {
		int len = (int)strcspn(at, ":"),
		    n = snprintf(l->file, sizeof(l->file), "%.*s%s%s", len, at, len ? "/" : "", name);

		if (n < (int)sizeof(l->file) && stat(l->file, &st) == 0 && S_ISREG(st.st_mode) &&
		    faccessat(AT_FDCWD, l->file, X_OK, AT_EACCESS) == 0)
			return;
	}
	l->file[0] = '\0';
}

/* The command's process. It reports an error of exec in a pipe; a successful exec closes the pipe without a byte. */
static int execute(void *arg)
{
	struct launch *l = arg;
	char go;
	int rc;

	sigprocmask(SIG_SETMASK, l->mask, NULL);
	getrusage(RUSAGE_SELF, l->own); /* the first call is dearer: its cost falls before the measurement */
	if (read(l->gate[0], &go, 1) == 1) {
		if (l->input && dup2(l->input, STDIN_FILENO) < 0)
			return 127;
		getrusage(RUSAGE_SELF, l->own);
		if (l->file[0])
			execv(l->file, l->argv);
		execvp(l->argv[0], l->argv);
		rc = errno;
		if (write(l->report[1], &rc, sizeof(rc)) < 0)
			return 126;
	}
	return 127;
}

/* The launcher. It writes the pid of the command's process, or a negative errno, to the pipe. It ends when that
 * process no longer needs its memory. */
static _Noreturn void be_launcher(struct launch *l)
{
	int pid;
	char end;

	close(l->gate[1]);
	close(l->hold[1]);
	memset(l->stack, 0, l->stack_size);
	pid = clone(execute, l->stack + l->stack_size, CLONE_VM | CLONE_PARENT | SIGCHLD, l);
	if (pid < 0)
		pid = -errno;
	if (write(l->report[1], &pid, sizeof(pid)) == (ssize_t)sizeof(pid)) {
		close(l->report[1]);
		while (read(l->hold[0], &end, 1) < 0 && errno == EINTR)
			;
	}
	_exit(0);
}

/* Prepares a launch. The stack has room for the arguments, because execvp(3) copies them there for a script. */
static int prepare(struct launch *l)
{
	size_t n = 0;

	while (l->argv[n])
		n++;
	l->stack_size = (65536 + (n + 4) * sizeof(char *)) / 4096 * 4096;
	l->stack = mmap(NULL, l->stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	l->own = mmap(NULL, sizeof(*l->own), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (l->stack == MAP_FAILED || l->own == MAP_FAILED || pipe2(l->gate, O_CLOEXEC) != 0 ||
	    pipe2(l->report, O_CLOEXEC) != 0 || pipe2(l->hold, O_CLOEXEC) != 0)
		return -errno;
	find_file(l);
	return 0;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void clean_up(struct launch *l)
{
	for (unsigned i = 0; i < 2; i++) {
		close_one(&l->gate[i]);
		close_one(&l->report[i]);
		close_one(&l->hold[i]);
	}
	if (l->stack != MAP_FAILED)
		munmap(l->stack, l->stack_size);
	if (l->own != MAP_FAILED)
		munmap(l->own, sizeof(*l->own));
}

static bool read_int(int fd, int *ret)
{
	ssize_t n;

	do
		n = read(fd, ret, sizeof(*ret));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*ret);
}

struct start {
	pid_t launcher, pid; /* 0 = none */
	uint64_t at_ns;
	int not_started;
	struct rusage own;
};

static int launch(struct launch *l, const struct run_cgroup *c, struct start *ret)
{
	int pid, launcher = fork();

	if (launcher == 0)
		be_launcher(l);
	if (launcher < 0)
		return -errno;
	ret->launcher = launcher;
	close_one(&l->report[1]);
	if (!read_int(l->report[0], &pid))
		return -ECHILD;
	if (pid < 0)
		return pid;
	ret->pid = pid;
	return run_cgroup_enter(c, pid);
}

static int open_gate(struct launch *l, struct start *ret)
{
	ret->at_ns = clock_mono_ns();
	if (write(l->gate[1], "", 1) != 1)
		return -errno;
	if (!read_int(l->report[0], &ret->not_started))
		ret->not_started = 0;
	ret->own = *l->own;
	return 0;
}

/* Starts the command. 0 or negative errno; only w->ready sets err. */
static int start(const struct run_command *what, const struct run_watch *w, struct start *ret, struct err *err)
{
	struct launch l = { .argv = what->argv,
			    .mask = &what->signals->before,
			    .input = what->input,
			    .gate = { -1, -1 },
			    .report = { -1, -1 },
			    .hold = { -1, -1 },
			    .stack = MAP_FAILED,
			    .own = MAP_FAILED };
	int rc = prepare(&l);

	if (!rc)
		rc = launch(&l, what->cgroup, ret);
	if (!rc && w->ready)
		rc = w->ready(w->arg, err);
	if (!rc)
		rc = open_gate(&l, ret);
	clean_up(&l);
	if (ret->launcher)
		waitpid(ret->launcher, NULL, 0);
	if (rc && ret->pid)
		waitpid(ret->pid, NULL, 0);
	return rc;
}

/* Stops joulectl as the default action of SIGTSTP does. In an orphaned process group that is no stop, because no shell
 * could continue it. */
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

static void take_off(struct timeval *t, const struct timeval *own)
{
	int64_t us = (int64_t)(t->tv_sec - own->tv_sec) * 1000000 + (t->tv_usec - own->tv_usec);

	us = us > 0 ? us : 0;
	*t = (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
}

/* True = it has ended, and status and usage are set. False: *ret_rc is 0 while it runs, else a negative errno. */
static bool has_ended(pid_t pid, int *status, struct rusage *usage, int *ret_rc)
{
	pid_t ended = wait4(pid, status, WNOHANG, usage);

	*ret_rc = ended < 0 && errno != EINTR ? -errno : 0;
	return ended == pid;
}

int run_child(const struct run_command *what, const struct run_watch *w, struct run_end *ret, struct err *err)
{
	struct run_signals *s = what->signals;
	struct pollfd fds[2] = { { .fd = s->fd, .events = POLLIN }, { .fd = w->fd, .events = POLLIN } };
	uint64_t due_ns;
	struct run_end e = { 0 };
	struct start st = { 0 };
	int rc = start(what, w, &st, err);

	if (rc && err->code)
		return rc;
	if (rc)
		return err_set(
			err, rc, "%.250s: no process can be put there: %s; %s", what->cgroup->dir, strerrordesc_np(-rc),
			rc == -EACCES ?
				"its ancestor that is also yours has to be delegated to you (systemd-run --user --scope)" :
				"look at the limits of processes and memory");
	e.not_started = st.not_started;
	due_ns = clock_mono_ns() + (uint64_t)w->first_ms * NS_PER_MS;
	while (!has_ended(st.pid, &e.status, &e.usage, &rc) && !rc) {
		uint64_t now = clock_mono_ns();
		int n = poll(fds, 2, now < due_ns ? (int)((due_ns - now + NS_PER_MS - 1) / NS_PER_MS) : 0);

		if ((n > 0 && fds[1].revents) || clock_mono_ns() >= due_ns)
			due_ns = clock_mono_ns() + (uint64_t)w->tick(w->arg) * NS_PER_MS;
		take_signals(s, st.pid);
	}
	if (rc)
		return err_set(err, rc, "%.200s: its exit status cannot be read: %s; run it again", what->argv[0],
			       strerrordesc_np(-rc));
	e.wall_ns = clock_mono_ns() - st.at_ns;
	take_off(&e.usage.ru_utime, &st.own.ru_utime);
	take_off(&e.usage.ru_stime, &st.own.ru_stime);
	*ret = e;
	return 0;
}

static _Noreturn void become_shell(const char *text, const char *side, const struct run_signals *s)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);

	sigprocmask(SIG_SETMASK, &s->before, NULL);
	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(126);
	if (side)
		setenv("JOULED_SIDE", side, 1);
	execl("/bin/sh", "sh", "-c", text, (char *)NULL);
	_exit(127);
}

int run_shell(const char *name, const char *text, const char *side, struct run_signals *s, struct err *err)
{
	struct pollfd look = { .fd = s->fd, .events = POLLIN };
	pid_t pid = fork();
	struct rusage usage;
	int status, rc;

	if (pid == 0)
		become_shell(text, side, s);
	if (pid < 0)
		return err_set(err, -errno, "%s: %s; raise the limit of processes", name, strerror(errno));
	while (!has_ended(pid, &status, &usage, &rc) && !rc) {
		poll(&look, 1, 1000);
		take_signals(s, pid);
	}
	if (rc)
		return err_set(err, rc, "%s: %.200s: its exit status cannot be read: %s; run it again", name, text,
			       strerrordesc_np(-rc));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return err_set(err, -ECHILD, "%s: %.200s: ended by signal %d; mend it or leave it out", name, text,
			       WTERMSIG(status));
	return err_set(err, -ECHILD, "%s: %.200s: exit status %d; mend it or leave it out", name, text,
		       WEXITSTATUS(status));
}

int run_exit_status(const struct run_end *e)
{
	if (e->not_started)
		return e->not_started == ENOENT ? 127 : 126;
	return WIFSIGNALED(e->status) ? 128 + WTERMSIG(e->status) : WEXITSTATUS(e->status);
}
