/* SPDX-License-Identifier: Apache-2.0 */
#include "consent.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fsroot.h"
#include "base/text.h"

#define LEVELS_MAX 64

/* Last parts of paths: what the machine lives by, and the services of container runtimes. */
static const char *const names[] = {
	"system.slice",      "init.scope",   "user.slice",     "user-*.slice",    "user@*.service",
	"machine.slice",     "kubepods",     "kubepods.slice", "kubelet*",        "kubelet.slice",
	"runtime.slice",     "podruntime",   "containerd*",    "docker",          "docker.service",
	"docker.socket",     "dockerd*",     "crio.service",   "cri-o*",          "podman*.service",
	"buildkit*.service", "k3s*.service", "lxcfs*",         "lxc.monitor*",    "systemd-*.service",
	"dbus*.service",     "ssh.service",  "sshd*.service",  "libpod-conmon-*", "crio-conmon-*",
};

/* Programs that the machine, the containers or the caller hang on. */
static const char *const programs[] = {
	"systemd",      "systemd-*", "init",   "(sd-pam)", "containerd", "containerd-shi*", "dockerd",
	"docker-proxy", "crio",      "conmon", "kubelet",  "k3s*",       "buildkitd",       "podman",
	"lxcfs",        "sshd*",     "dbus-*", "jouled*",  "joulectl",   "slurmd",          "slurmstepd*",
};

static bool matches(const char *const *patterns, unsigned n, const char *text)
{
	for (unsigned i = 0; i < n; i++)
		if (fnmatch(patterns[i], text, 0) == 0)
			return true;
	return false;
}

static bool is_in(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Returns the length of a path up to the end of its part session-N.scope; 0 = it has none. */
static size_t session_of(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/session-")); at++) {
		size_t n = strcspn(at + 1, "/");

		if (n > 6 && strncmp(at + 1 + n - 6, ".scope", 6) == 0)
			return (size_t)(at + 1 + n - path);
	}
	return 0;
}

static bool has_dots(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/.")); at++) {
		size_t n = strcspn(at + 1, "/");

		if (n == 1 || (n == 2 && at[2] == '.'))
			return true;
	}
	return strstr(path, "//") != NULL;
}

bool audit_refuses_program(const char *comm)
{
	return matches(programs, sizeof(programs) / sizeof(programs[0]), comm);
}

const char *audit_refuses_path(const char *path, const char *own)
{
	const char *leaf = strrchr(path, '/');
	size_t session = session_of(own);

	if (path[0] != '/' || has_dots(path))
		return "not a path of a cgroup; write it as joulectl list shows it, with a leading slash";
	if (!path[1])
		return "the root is never frozen; name cgroups of your own";
	if (matches(names, sizeof(names) / sizeof(names[0]), leaf + 1))
		return "the machine, its containers or its users hang on it; name a cgroup inside";
	if (is_in(own, path))
		return "this joulectl runs in it; start it from elsewhere";
	if (session && strncmp(path, own, session) == 0 && (!path[session] || path[session] == '/'))
		return "it is your own session; start joulectl from another one";
	return NULL;
}

struct look {
	unsigned depth, processes;
	char found[64]; /* a program that forbids it; "" = none */
};

static void look_at(struct look *l, int pid)
{
	struct fsroot *root = NULL;
	char file[40], comm[32] = "";

	l->processes++;
	snprintf(file, sizeof(file), "/proc/%d/comm", pid);
	if (fsroot_open("/", &root) == 0)
		fsroot_read(root, file, comm, sizeof(comm));
	fsroot_close(root);
	comm[strcspn(comm, "\n")] = '\0';
	if (pid == getppid() || audit_refuses_program(comm))
		text_escape(l->found, sizeof(l->found), comm);
}

/* Looks at all processes of a cgroup and of those below it. dir is closed. 0 or negative errno. */
static int look_through(struct look *l, int dir)
{
	int procs = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid, rc = 0;
	FILE *f = procs < 0 ? NULL : fdopen(procs, "re");
	DIR *d = fdopendir(dir);
	struct dirent *e;

	if (!f || !d)
		rc = -errno;
	while (f && fscanf(f, "%d", &pid) == 1)
		look_at(l, pid);
	while (d && !rc && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (++l->depth > LEVELS_MAX)
			rc = -ELOOP;
		else if ((dir = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0)
			rc = look_through(l, dir);
		l->depth--;
	}
	if (f)
		fclose(f);
	if (d)
		closedir(d);
	return rc;
}

static bool reads(int dir, const char *file, const char *word)
{
	char text[256] = "";
	int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && strstr(text, word);
}

/* The part of the rule that needs the directory. 0 or negative errno. */
static int check_directory(int dir, const char *shown, struct err *err)
{
	struct look l = { 0 };
	struct stat st;
	int rc;

	if (fstat(dir, &st) != 0 || (geteuid() != 0 && st.st_uid != geteuid()))
		return err_set(err, -EPERM,
			       "%s: it is not yours; become root, or name cgroups that were delegated to you", shown);
	if (faccessat(dir, "cgroup.freeze", F_OK, 0) != 0)
		return err_set(
			err, -ENOTSUP,
			"%s: it has no cgroup.freeze; freezing needs cgroup v2 and Linux 5.2; audit without --cgroup",
			shown);
	if (faccessat(dir, "cgroup.freeze", W_OK, AT_EACCESS) != 0)
		return err_set(err, -EACCES, "%s: its cgroup.freeze is not writable: %s; become root", shown,
			       strerrordesc_np(errno));
	if (reads(dir, "cgroup.freeze", "1") || reads(dir, "cgroup.events", "frozen 1"))
		return err_set(err, -EBUSY, "%s: it is frozen already; thaw it first", shown);
	rc = look_through(&l, dup(dir));
	if (rc)
		return err_set(err, rc, "%s: %s; become root", shown, strerrordesc_np(-rc));
	if (l.found[0])
		return err_set(err, -EPERM, "%s: %s runs in it, which is never frozen; name a cgroup without it", shown,
			       l.found);
	if (!l.processes)
		return err_set(err, -ESRCH, "%s: nothing runs in it; name one that works", shown);
	return 0;
}

int audit_consent(const struct run_place *place, char *path, struct err *err)
{
	char own[RUN_PATH_MAX] = "", dir[RUN_PATH_MAX * 2], shown[300];
	const char *why;
	size_t n = strlen(path);
	int fd, rc;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	text_escape(shown, sizeof(shown), path);
	if (!place->v2)
		return err_set(err, -ENOTSUP,
			       "%s: this machine accounts cgroup v1, whose freezer is another; audit without --cgroup",
			       shown);
	run_cgroup_of_process("/proc/self/cgroup", true, own);
	why = audit_refuses_path(path, own);
	if (why)
		return err_set(err, -EPERM, "%s: %s", shown, why);
	snprintf(dir, sizeof(dir), "%s%s", strcmp(place->mount, "/") ? place->mount : "", path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s; joulectl list shows those there are", shown,
			       strerrordesc_np(errno));
	rc = check_directory(fd, shown, err);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}
