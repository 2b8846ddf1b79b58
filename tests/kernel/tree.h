/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of cgroups of our own on the running kernel and a lifecycle source that watches it.
 * Everything is made below one cgroup, jouled-test-PID-treeN, and removed again (leftovers.h). */
#ifndef JD_TEST_TREE_H
#define JD_TEST_TREE_H
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "base/fsroot.h"
#include "source/bpf_load.h"
#include "source/cgroup/lifecycle.h"
#include "leftovers.h"

struct tree {
	struct hierarchy h;
	char top[64]; /* "/jouled-test-PID-treeN", below the mount */
	int top_fd;
	struct cgroup_table *table;
	struct lifecycle *l;
	struct lifecycle_hooks hooks;
	unsigned moved[1024]; /* by CPU */
};

static inline void tree_moved(void *ctx, unsigned cpu)
{
	struct tree *x = ctx;

	if (cpu < 1024)
		x->moved[cpu]++;
}

/* Makes the top below a hierarchy that is detected already. */
static inline void tree_make_top(struct tree *x)
{
	char path[CGROUP_PATH_MAX + 64];
	static int made;

	remove_leftovers(x->h.mount);
	snprintf(x->top, sizeof(x->top), "/jouled-test-%d-tree%d", getpid(), made++);
	snprintf(path, sizeof(path), "%s%s", x->h.mount, x->top);
	if (mkdir(path, 0755))
		fail_msg("%s: %s", path, strerror(errno));
	x->top_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(x->top_fd >= 0);
}

static inline void tree_watch(struct tree *x, bool bpf)
{
	struct lifecycle_options o;
	struct err err = { 0 };

	bpf_log_begin();
	x->table = cgroup_table_new();
	x->hooks = (struct lifecycle_hooks){ tree_moved, x };
	o = (struct lifecycle_options){ .hierarchy = &x->h, .table = x->table, .bpf = bpf, .hooks = x->hooks };
	if (lifecycle_open(&o, &x->l, &err))
		fail_msg("%s", err.text);
}

static inline void tree_open(struct tree *x, bool bpf)
{
	struct err err = { 0 };
	struct fsroot *root;

	memset(x, 0, sizeof(*x));
	assert_int_equal(fsroot_open("/", &root), 0);
	if (hierarchy_detect(root, HIERARCHY_AUTO, &x->h, &err))
		fail_msg("%s", err.text);
	fsroot_close(root);
	tree_make_top(x);
	tree_watch(x, bpf);
}

static inline uint64_t tree_id(const struct tree *x, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(x->top_fd, name, &st, 0), 0);
	return st.st_ino;
}

/* name is relative to the top. */
static inline uint64_t tree_mkdir(const struct tree *x, const char *name)
{
	if (mkdirat(x->top_fd, name, 0755))
		fail_msg("mkdir %s: %s", name, strerror(errno));
	return tree_id(x, name);
}

/* A cgroup whose last task is just exiting is busy for a moment. */
static inline void tree_rmdir(const struct tree *x, const char *name)
{
	for (int i = 0; i < 4000 && unlinkat(x->top_fd, name, AT_REMOVEDIR) && errno == EBUSY; i++)
		usleep(5000);
}

/* pid 0 = the caller. */
static inline void tree_join(const struct tree *x, const char *name, pid_t pid)
{
	char path[600], text[16];
	int n = snprintf(text, sizeof(text), "%d", pid), fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	fd = openat(x->top_fd, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)n) != n) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		abort();
	}
	close(fd);
}

static inline void tree_close(struct tree *x)
{
	char path[CGROUP_PATH_MAX + 64];

	lifecycle_close(x->l);
	cgroup_table_free(x->table);
	remove_below(x->top_fd);
	close(x->top_fd);
	snprintf(path, sizeof(path), "%s%s", x->h.mount, x->top);
	if (rmdir(path))
		fail_msg("%s is still there: %s", path, strerror(errno));
}

static inline void tree_poll(struct tree *x)
{
	int r = lifecycle_poll(x->l);

	if (r < 0)
		fail_msg("poll: %s", strerror(-r));
}

/* The table knows id as top/name. */
static inline struct cgroup *tree_expect(const struct tree *x, uint64_t id, const char *name)
{
	struct cgroup *cg = cgroup_find(x->table, id);
	char path[2 * CGROUP_PATH_MAX + 80];

	if (!cg)
		fail_msg("%s (%llu) is unknown", name, (unsigned long long)id);
	snprintf(path, sizeof(path), "%s/%s", x->top, name);
	assert_string_equal(cg->path, path);
	assert_true(cg->resolved);
	return cg;
}

/* Ids of the BPF programs and links this process holds, from its descriptors' fdinfo. */
static inline unsigned own_bpf_ids(const char *key, __u32 *ids, unsigned max)
{
	DIR *d = opendir("/proc/self/fdinfo");
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		char path[300], text[2048], *at;
		ssize_t len;
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[len > 0 ? len : 0] = '\0';
		at = strstr(text, key);
		if (at && n < max)
			ids[n++] = (__u32)strtoul(at + strlen(key), NULL, 10);
	}
	closedir(d);
	return n;
}

static inline bool all_gone(const __u32 *progs, unsigned n_progs, const __u32 *links, unsigned n_links)
{
	for (unsigned i = 0; i < n_progs; i++) {
		int fd = bpf_prog_get_fd_by_id(progs[i]);

		if (fd >= 0) {
			close(fd);
			return false;
		}
	}
	for (unsigned i = 0; i < n_links; i++) {
		int fd = bpf_link_get_fd_by_id(links[i]);

		if (fd >= 0) {
			close(fd);
			return false;
		}
	}
	return true;
}

/* The kernel frees programs a moment after their last user has gone. */
static inline void assert_all_gone(const __u32 *progs, unsigned n_progs, const __u32 *links, unsigned n_links)
{
	for (int i = 0; i < 12000; i++) {
		if (all_gone(progs, n_progs, links, n_links))
			return;
		usleep(5000);
	}
	fail_msg("a program or link is still loaded");
}

#endif
