/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are not listed go to a thread of the agent before they are refused (seccomp_unotify(2)). It logs
 * their names, and with "log" lets them through. No process is killed. The answer is ENOSYS, not EPERM, so a
 * library that uses a new call falls back as it does on an older kernel. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/log.h"
#include "base/thread.h"
#include "seccomp.h"

#define STACK_BYTES (64 * 1024)
#define REFUSED SCMP_ACT_ERRNO(ENOSYS)
#define NUMBERS 1024 /* system calls; higher numbers share the last counter */

/* One filter per process; it cannot be removed. */
static struct guard {
	int fd;
	bool allow;
	pthread_t thread;
	uint64_t asked[NUMBERS];
	struct seccomp_notif *req;
	struct seccomp_notif_resp *resp;
} guard = { .fd = -1 };

/* Logs the first time and each doubling, so that a refused call in a loop does not fill a disk. */
static void say(const struct guard *g, const struct seccomp_notif *req, uint64_t times)
{
	char *name = seccomp_syscall_resolve_num_arch(req->data.arch, req->data.nr);

	if ((times & (times - 1)) == 0)
		log_warn(
			"seccomp: %s (system call %d) is not one that jouled needs; %s, %llu so far (seccomp: on|off|log)",
			name ? name : "unknown", req->data.nr, g->allow ? "let through" : "refused",
			(unsigned long long)times);
	free(name);
}

static void answer(struct guard *g)
{
	unsigned nr;

	memset(g->req, 0, sizeof(*g->req));
	if (seccomp_notify_receive(g->fd, g->req) != 0)
		return; /* interrupted, or the caller is gone */
	nr = (unsigned)g->req->data.nr;
	memset(g->resp, 0, sizeof(*g->resp));
	g->resp->id = g->req->id;
	g->resp->error = g->allow ? 0 : -ENOSYS;
	g->resp->flags = g->allow ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	seccomp_notify_respond(g->fd, g->resp);
	say(g, g->req, ++g->asked[nr < NUMBERS ? nr : NUMBERS - 1]);
}

static void *answer_all(void *arg)
{
	for (;;)
		answer(arg);
	return NULL;
}

/* Starts the thread. On failure it closes the listener: the kernel then answers ENOSYS itself, where calls
 * would wait for ever. */
static int start_thread(struct guard *g)
{
	int rc = g->fd < 0 ? -EMFILE : thread_start(&g->thread, "jouled-seccomp", STACK_BYTES, answer_all, g);

	if (!rc) {
		pthread_detach(g->thread);
	} else if (g->fd >= 0) {
		close(g->fd);
		g->fd = -1;
	}
	return rc;
}

/* Duplicates the listener and closes the library's descriptor, so that this one is the only one and can be
 * closed. */
static int take_listener(scmp_filter_ctx f)
{
	int own = seccomp_notify_fd(f), fd = fcntl(own, F_DUPFD_CLOEXEC, 0);

	close(own);
	return fd;
}

/* Allows the calls of a list. It skips names of other architectures, and of kernels newer than the library. */
static int allow(scmp_filter_ctx f, const struct filter_call *c)
{
	int rc = 0;

	for (; c->name && !rc; c++) {
		int nr = seccomp_syscall_resolve_name(c->name);

		if (nr == __NR_SCMP_ERROR && c->number)
			nr = c->number;
		if (nr >= 0)
			rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, nr, 0);
	}
	return rc;
}

/* Allows sockets of the families that outputs use, and new threads but no namespaces: a user namespace would
 * give back capabilities. clone3 has its flags in memory, where a filter cannot see them, so it is refused and
 * the C library uses clone. */
static int allow_by_argument(scmp_filter_ctx f, uint32_t others)
{
	static const unsigned families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_VSOCK };
	const unsigned long namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
					 CLONE_NEWPID | CLONE_NEWNET;
	int rc = 0;

	if (others != REFUSED) /* a rule equal to the default action is an error (seccomp_rule_add(3)) */
		rc = seccomp_rule_add(f, REFUSED, SCMP_SYS(clone3), 0);
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0));
	for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]) && !rc; i++)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, families[i]));
	return rc;
}

static int load(uint32_t others, bool programs, int *ret_fd)
{
	scmp_filter_ctx f = seccomp_init(others);
	int rc;

	if (!f)
		return -ENOMEM;
	rc = seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, REFUSED);
	if (!rc)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree: depth 9 instead of 300 comparisons */
	if (!rc)
		rc = allow(f, filter_calls);
	if (!rc && programs)
		rc = allow(f, filter_programs);
	if (!rc)
		rc = allow_by_argument(f, others);
	if (!rc)
		rc = seccomp_load(f);
	if (!rc && others == SCMP_ACT_NOTIFY)
		*ret_fd = take_listener(f);
	seccomp_release(f);
	return rc;
}

bool filter_available(const char **ret_reason)
{
	const uint32_t action = SECCOMP_RET_ERRNO;

	*ret_reason = "";
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		return true;
	*ret_reason = errno == EPERM ? "a filter of the container's or the service's refuses it" :
				       "not in this kernel; boot one with CONFIG_SECCOMP_FILTER";
	return false;
}

int filter_enter(enum filter_mode mode, bool programs, struct err *err)
{
	struct guard *g = &guard;
	const char *reason;
	int rc;

	if (mode == FILTER_OFF)
		return 0;
	if (!filter_available(&reason))
		return err_set(err, -ENOSYS, "seccomp: %s", reason);
	g->allow = mode == FILTER_LOG;
	if (seccomp_notify_alloc(&g->req, &g->resp) == 0) {
		rc = load(SCMP_ACT_NOTIFY, programs, &g->fd);
		if (!rc) {
			rc = start_thread(g);
			return rc ? err_set(err, rc,
					    "seccomp: no thread that names what is refused: %s; raise the limit of tasks",
					    strerror(-rc)) :
				    0;
		}
	}
	/* kernels before 5.5, or a container's filter already has a listener: only one can exist */
	rc = load(mode == FILTER_LOG ? SCMP_ACT_LOG : REFUSED, programs, NULL);
	if (rc)
		return err_set(err, rc, "seccomp: the filter is refused: %s", strerror(-rc));
	log_info(
		"seccomp: no listener can be had here: what is refused is not named; seccomp: log has it in the kernel's audit log");
	return 0;
}

/* The list goes by class of call, not by the calls of one run: the next C library or resolver uses another call of
 * the same class, which has the same effect. Not listed are calls that change the machine or other processes: mounts,
 * namespaces, modules, keys, clocks, swap, ptrace, io_uring, kexec, quotas, personality. */

#define C(name) \
	{ \
#name, 0 \
	}

const struct filter_call filter_calls[] = {
	/* files */
	C(read),
	C(write),
	C(readv),
	C(writev),
	C(pread64),
	C(pwrite64),
	C(preadv),
	C(pwritev),
	C(preadv2),
	C(pwritev2),
	C(open),
	C(openat),
	C(openat2),
	C(creat),
	C(close),
	C(close_range),
	C(lseek),
	C(_llseek),
	C(stat),
	C(lstat),
	C(fstat),
	C(newfstatat),
	C(statx),
	C(statfs),
	C(fstatfs),
	C(access),
	C(faccessat),
	C(faccessat2),
	C(readlink),
	C(readlinkat),
	C(getdents),
	C(getdents64),
	C(getcwd),
	C(chdir),
	C(fchdir),
	C(mkdir),
	C(mkdirat),
	C(rmdir),
	C(unlink),
	C(unlinkat),
	C(rename),
	C(renameat),
	C(renameat2),
	C(link),
	C(linkat),
	C(symlink),
	C(symlinkat),
	C(truncate),
	C(ftruncate),
	C(fallocate),
	C(fsync),
	C(fdatasync),
	C(syncfs),
	C(sync_file_range),
	C(chmod),
	C(fchmod),
	C(fchmodat),
	{ "fchmodat2", 452 },
	C(chown),
	C(fchown),
	C(lchown),
	C(fchownat),
	C(umask),
	C(utime),
	C(utimes),
	C(utimensat),
	C(futimesat),
	C(flock),
	C(fcntl),
	C(dup),
	C(dup2),
	C(dup3),
	C(pipe),
	C(pipe2),
	C(sendfile),
	C(copy_file_range),
	C(splice),
	C(tee),
	C(vmsplice),
	C(readahead),
	C(fadvise64),
	C(getxattr),
	C(lgetxattr),
	C(fgetxattr),
	C(listxattr),
	C(llistxattr),
	C(flistxattr),
	C(name_to_handle_at),
	C(open_by_handle_at),
	C(inotify_init),
	C(inotify_init1),
	C(inotify_add_watch),
	C(inotify_rm_watch),
	/* devices: GPUs, serial lines, IPMI, terminals; perf events */
	C(ioctl),
	C(perf_event_open),
	C(bpf),
	/* memory */
	C(mmap),
	C(munmap),
	C(mprotect),
	C(mremap),
	C(madvise),
	C(brk),
	C(mlock),
	C(mlock2),
	C(munlock),
	C(mincore),
	C(msync),
	C(membarrier),
	C(memfd_create),
	C(mbind),
	C(get_mempolicy),
	C(set_mempolicy),
	C(pkey_alloc),
	C(pkey_free),
	C(pkey_mprotect),
	{ "map_shadow_stack", 453 },
	{ "mseal", 462 },
	/* threads; clone3 and clone have rules of their own */
	C(futex),
	{ "futex_waitv", 449 },
	{ "futex_wake", 454 },
	{ "futex_wait", 455 },
	{ "futex_requeue", 456 },
	C(set_robust_list),
	C(get_robust_list),
	C(set_tid_address),
	C(rseq),
	C(arch_prctl),
	C(set_thread_area),
	C(exit),
	C(exit_group),
	C(sched_yield),
	C(sched_getaffinity),
	C(sched_setaffinity),
	C(sched_getparam),
	C(sched_setparam),
	C(sched_getscheduler),
	C(sched_setscheduler),
	C(sched_getattr),
	C(sched_setattr),
	C(sched_get_priority_min),
	C(sched_get_priority_max),
	C(sched_rr_get_interval),
	C(getpriority),
	C(setpriority),
	C(ioprio_get),
	C(ioprio_set),
	C(getcpu),
	C(getrlimit),
	C(setrlimit),
	C(prlimit64),
	C(getrusage),
	C(times),
	C(sysinfo),
	C(uname),
	C(prctl),
	/* identity of the process */
	C(getpid),
	C(getppid),
	C(gettid),
	C(getpgrp),
	C(getpgid),
	C(getsid),
	C(getuid),
	C(geteuid),
	C(getgid),
	C(getegid),
	C(getresuid),
	C(getresgid),
	C(getgroups),
	C(capget),
	C(capset),
	/* signals and other processes: end, wait */
	C(rt_sigaction),
	C(rt_sigprocmask),
	C(rt_sigreturn),
	C(rt_sigpending),
	C(rt_sigtimedwait),
	C(rt_sigqueueinfo),
	C(rt_tgsigqueueinfo),
	C(rt_sigsuspend),
	C(sigaltstack),
	C(signalfd),
	C(signalfd4),
	C(restart_syscall),
	C(pause),
	C(kill),
	C(tkill),
	C(tgkill),
	C(wait4),
	C(waitid),
	C(pidfd_open),
	C(pidfd_send_signal),
	/* waiting and time */
	C(poll),
	C(ppoll),
	C(select),
	C(_newselect),
	C(pselect6),
	C(epoll_create),
	C(epoll_create1),
	C(epoll_ctl),
	C(epoll_wait),
	C(epoll_pwait),
	C(epoll_pwait2),
	C(eventfd),
	C(eventfd2),
	C(timerfd_create),
	C(timerfd_settime),
	C(timerfd_gettime),
	C(timer_create),
	C(timer_settime),
	C(timer_gettime),
	C(timer_getoverrun),
	C(timer_delete),
	C(nanosleep),
	C(clock_nanosleep),
	C(clock_gettime),
	C(clock_getres),
	C(gettimeofday),
	C(time),
	C(alarm),
	C(getitimer),
	C(setitimer),
	C(getrandom),
	/* sockets; socket has a rule of its own */
	C(socketpair),
	C(bind),
	C(listen),
	C(accept),
	C(accept4),
	C(connect),
	C(getsockname),
	C(getpeername),
	C(getsockopt),
	C(setsockopt),
	C(shutdown),
	C(sendto),
	C(recvfrom),
	C(sendmsg),
	C(recvmsg),
	C(sendmmsg),
	C(recvmmsg),
	/* giving up more rights */
	C(seccomp),
	C(landlock_create_ruleset),
	C(landlock_add_rule),
	C(landlock_restrict_self),
#ifdef __SANITIZE_ADDRESS__
	/* LeakSanitizer stops all threads at the end (lib/sanitizer_common/sanitizer_stoptheworld_linux_libcdep.cpp) */
	C(ptrace),
	C(personality),
#endif
	{ 0 }
};

const struct filter_call filter_programs[] = { C(execve), C(execveat), C(fork), C(vfork), C(setsid), C(setpgid), { 0 } };
