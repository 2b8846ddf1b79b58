/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup_of_run.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fsroot.h"

#define LEVELS_MAX 64
#define ROUNDS_MAX 200 /* attempts to remove a cgroup whose processes fork meanwhile, 5 ms apart */
#define NAP_NS (5 * (long)NS_PER_MS)

/* The line of the hierarchy is "0::/path" or "4:perf_event:/path". */
bool run_cgroup_of_process(const char *file, bool v2, char ret[RUN_PATH_MAX])
{
	char *text = malloc(65536), *save = NULL;
	struct fsroot *root = NULL;
	bool found = false;

	if (text && fsroot_open("/", &root) == 0 && fsroot_read(root, file, text, 65536) > 0)
		for (char *line = strtok_r(text, "\n", &save); line && !found; line = strtok_r(NULL, "\n", &save)) {
			char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;

			if (!path || path[1] != '/')
				continue;
			*path++ = '\0';
			found = v2 ? strcmp(line, "0:") == 0 : strstr(names, "perf_event") != NULL;
			if (found)
				snprintf(ret, RUN_PATH_MAX, "%s", strcmp(path, "/") ? path : "");
		}
	fsroot_close(root);
	free(text);
	return found;
}

int run_place_find(const char *mount, struct run_place *ret, struct err *err)
{
	struct run_place p = { 0 };
	char own[RUN_PATH_MAX] = "";
	struct statfs fs;
	struct stat st;

	if (!*mount || statfs(mount, &fs) != 0 || (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC))
		return err_set(err, -ENOENT,
			       "cgroups: the agent accounts those at %.200s, which is no such mount here; "
			       "run joulectl where the agent runs, or with --private",
			       *mount ? mount : "no mount");
	p.v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
	snprintf(p.mount, sizeof(p.mount), "%s", mount);
	snprintf(p.prefix, sizeof(p.prefix), "jouled-run-%d-", (int)getpid());
	/* in a namespace the path may lead out of the mount */
	if (!run_cgroup_of_process("/proc/self/cgroup", p.v2, own) ||
	    snprintf(p.home, sizeof(p.home), "%s%s", mount, own) >= (int)sizeof(p.home) || stat(p.home, &st) != 0)
		snprintf(p.home, sizeof(p.home), "%s", mount);
	memcpy(p.dir, geteuid() == 0 ? p.mount : p.home, sizeof(p.dir));
	*ret = p;
	return 0;
}

static int not_allowed(const struct run_place *p, int rc, struct err *err)
{
	if ((rc == -EACCES || rc == -EPERM) && geteuid() != 0)
		return err_set(
			err, rc,
			"%.250s: this cgroup is not delegated to you; use systemd-run --user --scope -p Delegate=yes "
			"joulectl run ..., or become root",
			p->dir);
	return err_set(err, rc, "%.250s: no cgroup can be made: %s; %s", p->dir, strerrordesc_np(-rc),
		       rc == -EROFS ? "mount it read-write" : "look at its limits (cgroup.max.*)");
}

int run_cgroup_make(struct run_place *p, struct run_cgroup *ret, struct err *err)
{
	struct run_cgroup c = { .place = p, .fd = -1 };
	int rc = -EEXIST;

	/* The name may be in use: by a process with the same number in another namespace. */
	for (unsigned i = 0; i < 100 && rc == -EEXIST; i++) {
		snprintf(c.dir, sizeof(c.dir), "%s/%s%u", p->dir, p->prefix, ++p->made);
		rc = mkdir(c.dir, 0755) == 0 ? 0 : -errno;
	}
	if (rc)
		return not_allowed(p, rc, err);
	c.fd = open(c.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c.fd < 0) {
		rc = -errno;
		rmdir(c.dir);
		return err_set(err, rc, "%.250s: %s; raise the limit of open files", c.dir, strerrordesc_np(-rc));
	}
	*ret = c;
	ret->path = ret->dir + (strcmp(p->mount, "/") ? strlen(p->mount) : 0);
	return 0;
}

static int write_pid(int procs, pid_t pid)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", (int)pid);

	return write(procs, text, (size_t)n) == n ? 0 : -errno;
}

int run_cgroup_enter(const struct run_cgroup *c, pid_t pid)
{
	int procs = openat(c->fd, "cgroup.procs", O_WRONLY | O_CLOEXEC), rc;

	if (procs < 0)
		return -errno;
	rc = write_pid(procs, pid);
	close(procs);
	return rc;
}

/* Calls fn(arg, dir, name) for each directory in dir, until fn returns false. */
static void each_directory(int dir, bool (*fn)(void *arg, int dir, const char *name), void *arg)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool go_on = true;

	if (!d && fd >= 0)
		close(fd);
	while (d && go_on && (e = readdir(d)))
		if (e->d_type == DT_DIR && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			go_on = fn(arg, dir, e->d_name);
	if (d)
		closedir(d);
}

static bool note_child(void *arg, int dir, const char *name)
{
	*(bool *)arg = true;
	return false;
}

bool run_cgroup_has_children(const struct run_cgroup *c)
{
	bool any = false;

	each_directory(c->fd, note_child, &any);
	return any;
}

bool run_cgroup_memory_peak(const struct run_cgroup *c, uint64_t *ret_bytes)
{
	int fd = openat(c->fd, "memory.peak", O_RDONLY | O_CLOEXEC);
	char text[32] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	*ret_bytes = strtoull(text, NULL, 10);
	return true;
}

struct walk {
	struct run_left *left; /* NULL, or: processes are listed here */
	int home; /* cgroup.procs to which processes are moved; -1 where they are listed */
	unsigned depth, moved;
};

static void take_process(struct walk *w, pid_t pid)
{
	char path[40], comm[32] = "";
	struct fsroot *root = NULL;
	struct run_left *l = w->left;

	if (!l) {
		w->moved += write_pid(w->home, pid) == 0;
		return;
	}
	if (l->n < RUN_LEFT_MAX) {
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
		if (fsroot_open("/", &root) == 0)
			fsroot_read(root, path, comm, sizeof(comm));
		fsroot_close(root);
		l->pid[l->n] = pid;
		snprintf(l->comm[l->n], sizeof(l->comm[0]), "%.15s", comm);
	}
	l->n++;
}

static bool walk(void *arg, int dir, const char *name)
{
	struct walk *w = arg;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int procs = fd < 0 ? -1 : openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *f = procs < 0 ? NULL : fdopen(procs, "re");
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		take_process(w, pid);
	if (f)
		fclose(f);
	else if (procs >= 0)
		close(procs);
	if (fd >= 0 && w->depth < LEVELS_MAX) {
		w->depth++;
		each_directory(fd, walk, w);
		w->depth--;
	}
	if (fd >= 0)
		close(fd);
	return true;
}

void run_cgroup_list_left(const struct run_cgroup *c, struct run_left *ret)
{
	struct walk w = { .left = ret, .home = -1 };

	*ret = (struct run_left){ 0 };
	walk(&w, c->fd, ".");
}

static bool remove_below(void *arg, int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return true;
	if (++*(unsigned *)arg < LEVELS_MAX)
		each_directory(fd, remove_below, arg);
	--*(unsigned *)arg;
	close(fd);
	unlinkat(dir, name, AT_REMOVEDIR);
	return true;
}

/* Removes a cgroup with all below. It tries again, because a task that has just ended counts for a moment, and
 * processes fork while they are moved. */
static int remove_tree(const struct run_place *p, const char *dir)
{
	char home[RUN_PATH_MAX + 16];
	struct walk w = { .home = -1 };
	unsigned depth = 0;
	int rc = 0;

	snprintf(home, sizeof(home), "%s/cgroup.procs", p->home);
	w.home = open(home, O_WRONLY | O_CLOEXEC);
	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		remove_below(&depth, AT_FDCWD, dir);
		rc = rmdir(dir) == 0 || errno == ENOENT ? 0 : -errno;
		if (rc != -EBUSY)
			break;
		walk(&w, AT_FDCWD, dir);
		nanosleep(&(struct timespec){ .tv_nsec = i ? NAP_NS : NAP_NS / 50 }, NULL);
	}
	if (w.home >= 0)
		close(w.home);
	return rc;
}

int run_cgroup_remove(struct run_cgroup *c)
{
	int rc;

	if (!c->place)
		return 0;
	rc = remove_tree(c->place, c->dir);
	close(c->fd);
	*c = (struct run_cgroup){ .fd = -1 };
	return rc;
}

struct sweep {
	const struct run_place *place;
};

static bool sweep_one(void *arg, int dir, const char *name)
{
	const struct run_place *p = ((struct sweep *)arg)->place;
	char path[RUN_PATH_MAX + 300];

	if (strncmp(name, p->prefix, strlen(p->prefix)) == 0) {
		snprintf(path, sizeof(path), "%s/%s", p->dir, name);
		remove_tree(p, path);
	}
	return true;
}

void run_place_sweep(void *place)
{
	struct sweep s = { .place = place };
	int fd = open(s.place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	each_directory(fd, sweep_one, &s);
	close(fd);
}
