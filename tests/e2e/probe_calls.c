/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into the agent: tries, from a thread that starts once everything is open (it calls setpriority), what a
 * hole in the agent would be used for, and prints "probe NAME ERRNO" each. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void told(const char *name, long r)
{
	dprintf(STDERR_FILENO, "probe %s %d\n", name, r < 0 ? errno : 0);
}

static void try_file(const char *name, const char *path, int flags)
{
	int fd = path ? open(path, flags | O_CLOEXEC, 0600) : -1;

	told(name, path ? fd : 0);
	if (fd >= 0)
		close(fd);
}

/* Where it is let through, the child has its own memory and ends at once: the agent is not to notice. */
static void try_clone(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER, 0, 0, 0, 0);

	if (!pid)
		syscall(SYS_exit_group, 0);
	told("clone-newuser", pid);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, __WALL);
}

static void try_all(void)
{
	char *const none[] = { "/bin/true", NULL };

	told("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
	told("ptrace", ptrace(PTRACE_ATTACH, 1, NULL, NULL));
	told("mount", mount("none", "/mnt", "tmpfs", 0, NULL));
	told("setns", setns(0, 0));
	told("unshare", unshare(CLONE_NEWUSER));
	try_clone();
	told("keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
	told("init_module", syscall(SYS_init_module, NULL, 0, ""));
	told("personality", syscall(SYS_personality, 0xffffffff));
	told("packet-socket", socket(AF_PACKET, SOCK_RAW, 0));
	told("tcp-socket", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	told("execve", execve("/nonexistent", none, none));
	try_file("write-elsewhere", getenv("PROBE_ELSEWHERE"), O_WRONLY | O_CREAT);
	try_file("write-inside", getenv("PROBE_INSIDE"), O_WRONLY | O_CREAT);
	try_file("read-elsewhere", "/etc/passwd", O_RDONLY);
}

int setpriority(__priority_which_t which, id_t who, int value)
{
	int r = (int)syscall(SYS_setpriority, which, who, value);

	try_all();
	return r;
}
