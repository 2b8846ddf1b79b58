/* SPDX-License-Identifier: Apache-2.0 */
#include "code_reader.h"
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define SECONDS 20 /* of CPU */
#define LONGEST_S 120 /* by the clock: a file system that does not answer uses no CPU */
#ifdef __SANITIZE_ADDRESS__
#define BYTES RLIM_INFINITY /* the sanitizer has terabytes of addresses */
#else
#define BYTES ((rlim_t)2 << 30)
#endif

/* An agent that has given up most rights may not change its user. Then it is the lack of capabilities and of system calls
 * that binds the reader: none of those below asks who the user is. */
static bool may_change_user(void)
{
	return capng_get_caps_process() == 0 && capng_have_capability(CAPNG_EFFECTIVE, CAP_SETUID) &&
	       capng_have_capability(CAPNG_EFFECTIVE, CAP_SETGID);
}

/* Gives up every right: user, capabilities, system calls, time, memory. False: it could not. */
static bool confine(void)
{
	static const int calls[] = { SCMP_SYS(read),         SCMP_SYS(pread64),        SCMP_SYS(lseek),
				     SCMP_SYS(write),        SCMP_SYS(fstat),          SCMP_SYS(newfstatat),
				     SCMP_SYS(mmap),         SCMP_SYS(mremap),         SCMP_SYS(munmap),
				     SCMP_SYS(brk),          SCMP_SYS(madvise),        SCMP_SYS(exit_group),
				     SCMP_SYS(rt_sigreturn), SCMP_SYS(futex),          SCMP_SYS(close),
				     SCMP_SYS(fcntl),        SCMP_SYS(rt_sigprocmask), SCMP_SYS(sysinfo),
				     SCMP_SYS(sigaltstack) };
	const struct rlimit cpu = { SECONDS, SECONDS }, bytes = { BYTES, BYTES };
	const struct rlimit none = { 0, 0 };
	scmp_filter_ctx filter;
	bool fine = true;

	if (geteuid() == 0 && may_change_user() &&
	    (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		return false;
	capng_clear(CAPNG_SELECT_CAPS);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return false;
	if (setrlimit(RLIMIT_CPU, &cpu) || setrlimit(RLIMIT_AS, &bytes) || setrlimit(RLIMIT_CORE, &none) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return false;
	filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!filter)
		return false;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		fine &= seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0) == 0;
	fine = fine && seccomp_load(filter) == 0;
	seccomp_release(filter);
	return fine;
}

void reader_tell(const void *p, size_t n)
{
	while (n) {
		const ssize_t done = write(READER_ANSWERS, p, n);

		if (done <= 0)
			_exit(1);
		p = (const char *)p + done;
		n -= (size_t)done;
	}
}

#define OWN 4 /* READER_FILE to READER_ALT */
#define ASIDE 10 /* numbers that the reader's descriptors do not have */
#define HIGH 20 /* and numbers beyond both */

/* Puts own[i] to READER_FILE + i, and closes everything else. */
static bool arrange(const int own[OWN])
{
	bool fine = true;

	for (int i = 0; i < OWN; i++)
		fine &= own[i] < 0 || dup2(own[i], ASIDE + i) == ASIDE + i;
	for (int i = 0; i < OWN && fine; i++) {
		if (own[i] < 0)
			close(READER_FILE + i);
		else
			fine = dup2(ASIDE + i, READER_FILE + i) == READER_FILE + i;
	}
	return fine && close_range(READER_FILE + OWN, ~0u, 0) == 0;
}

/* The kernel ends it then, also in a read that waits. */
static void end_after(unsigned seconds)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL); /* threads of the agent block all signals */
	alarm(seconds ? seconds : LONGEST_S);
}

static _Noreturn void be_reader(const int own[OWN], unsigned longest_s, void (*work)(void *arg), void *arg)
{
	end_after(longest_s);
	if (!arrange(own) || !confine())
		_exit(1);
	work(arg);
	_exit(0);
}

int reader_start(struct reader *r, const struct reader_files *files, void (*work)(void *arg), void *arg)
{
	int ends[2], own[OWN];
	bool fine = true;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	for (int i = 0; i < OWN; i++) {
		const int from[OWN] = { files->file, ends[1], files->debug, files->alt };

		own[i] = from[i] >= 0 ? fcntl(from[i], F_DUPFD_CLOEXEC, HIGH) : -1;
		fine &= own[i] >= 0 || (i > READER_ANSWERS - READER_FILE && from[i] < 0);
	}
	close(ends[1]);
	r->child = fine ? fork() : -1;
	if (r->child == 0)
		be_reader(own, files->longest_s, work, arg);
	for (int i = 0; i < OWN; i++)
		if (own[i] >= 0)
			close(own[i]);
	if (r->child < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	r->answers = ends[0];
	return 0;
}

bool reader_end(struct reader *r)
{
	int status = -1;

	return waitpid(r->child, &status, 0) == r->child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
