/* SPDX-License-Identifier: Apache-2.0 */
/* By class, not by what one run was seen to use: a C library or a resolver of tomorrow takes another call of the
 * same class, and what that reaches is the same. Left out is what changes the machine or other processes: mounts,
 * namespaces, modules, keys, clocks, swap, ptrace, io_uring, kexec, quotas, personality. */
#include <stddef.h>
#include "seccomp.h"

#define C(name) { #name, 0 }

const struct filter_call filter_calls[] = {
	/* files */
	C(read), C(write), C(readv), C(writev), C(pread64), C(pwrite64), C(preadv), C(pwritev), C(preadv2), C(pwritev2),
	C(open), C(openat), C(openat2), C(creat), C(close), C(close_range), C(lseek), C(_llseek),
	C(stat), C(lstat), C(fstat), C(newfstatat), C(statx), C(statfs), C(fstatfs),
	C(access), C(faccessat), C(faccessat2), C(readlink), C(readlinkat), C(getdents), C(getdents64), C(getcwd), C(chdir),
	C(fchdir), C(mkdir), C(mkdirat), C(rmdir), C(unlink), C(unlinkat), C(rename), C(renameat), C(renameat2), C(link),
	C(linkat), C(symlink), C(symlinkat), C(truncate), C(ftruncate), C(fallocate), C(fsync), C(fdatasync), C(syncfs),
	C(sync_file_range), C(chmod), C(fchmod), C(fchmodat), { "fchmodat2", 452 }, C(chown), C(fchown), C(lchown),
	C(fchownat), C(umask), C(utime), C(utimes), C(utimensat), C(futimesat), C(flock), C(fcntl), C(dup), C(dup2), C(dup3),
	C(pipe), C(pipe2), C(sendfile), C(copy_file_range), C(splice), C(tee), C(vmsplice), C(readahead), C(fadvise64),
	C(getxattr), C(lgetxattr), C(fgetxattr), C(listxattr), C(llistxattr), C(flistxattr), C(name_to_handle_at),
	C(open_by_handle_at), C(inotify_init), C(inotify_init1), C(inotify_add_watch), C(inotify_rm_watch),
	/* devices: GPUs, serial lines, IPMI, terminals; perf events */
	C(ioctl), C(perf_event_open), C(bpf),
	/* memory */
	C(mmap), C(munmap), C(mprotect), C(mremap), C(madvise), C(brk), C(mlock), C(mlock2), C(munlock), C(mincore), C(msync),
	C(membarrier), C(memfd_create), C(mbind), C(get_mempolicy), C(set_mempolicy), C(pkey_alloc), C(pkey_free),
	C(pkey_mprotect), { "map_shadow_stack", 453 }, { "mseal", 462 },
	/* threads; clone3 and clone have rules of their own */
	C(futex), { "futex_waitv", 449 }, { "futex_wake", 454 }, { "futex_wait", 455 }, { "futex_requeue", 456 },
	C(set_robust_list), C(get_robust_list), C(set_tid_address), C(rseq), C(arch_prctl), C(set_thread_area), C(exit),
	C(exit_group), C(sched_yield), C(sched_getaffinity), C(sched_setaffinity), C(sched_getparam), C(sched_setparam),
	C(sched_getscheduler), C(sched_setscheduler), C(sched_getattr), C(sched_setattr), C(sched_get_priority_min),
	C(sched_get_priority_max), C(sched_rr_get_interval), C(getpriority), C(setpriority), C(ioprio_get), C(ioprio_set),
	C(getcpu), C(getrlimit), C(setrlimit), C(prlimit64), C(getrusage), C(times), C(sysinfo), C(uname), C(prctl),
	/* who we are */
	C(getpid), C(getppid), C(gettid), C(getpgrp), C(getpgid), C(getsid), C(getuid), C(geteuid), C(getgid), C(getegid),
	C(getresuid), C(getresgid), C(getgroups), C(capget), C(capset),
	/* signals and other processes: end, wait */
	C(rt_sigaction), C(rt_sigprocmask), C(rt_sigreturn), C(rt_sigpending), C(rt_sigtimedwait), C(rt_sigqueueinfo),
	C(rt_tgsigqueueinfo), C(rt_sigsuspend), C(sigaltstack), C(signalfd), C(signalfd4), C(restart_syscall), C(pause),
	C(kill), C(tkill), C(tgkill), C(wait4), C(waitid), C(pidfd_open), C(pidfd_send_signal),
	/* waiting and time */
	C(poll), C(ppoll), C(select), C(_newselect), C(pselect6), C(epoll_create), C(epoll_create1), C(epoll_ctl), C(epoll_wait),
	C(epoll_pwait), C(epoll_pwait2), C(eventfd), C(eventfd2), C(timerfd_create), C(timerfd_settime), C(timerfd_gettime),
	C(timer_create), C(timer_settime), C(timer_gettime), C(timer_getoverrun), C(timer_delete), C(nanosleep),
	C(clock_nanosleep), C(clock_gettime), C(clock_getres), C(gettimeofday), C(time), C(alarm), C(getitimer), C(setitimer),
	C(getrandom),
	/* sockets; socket has a rule of its own */
	C(socketpair), C(bind), C(listen), C(accept), C(accept4), C(connect), C(getsockname), C(getpeername), C(getsockopt),
	C(setsockopt), C(shutdown), C(sendto), C(recvfrom), C(sendmsg), C(recvmsg), C(sendmmsg), C(recvmmsg),
	/* fewer rights still */
	C(seccomp), C(landlock_create_ruleset), C(landlock_add_rule), C(landlock_restrict_self),
#ifdef __SANITIZE_ADDRESS__
	/* LeakSanitizer stops all threads at the end (lib/sanitizer_common/sanitizer_stoptheworld_linux_libcdep.cpp) */
	C(ptrace), C(personality),
#endif
	{ 0 }
};

const struct filter_call filter_programs[] = {
	C(execve), C(execveat), C(fork), C(vfork), C(setsid), C(setpgid), { 0 }
};
