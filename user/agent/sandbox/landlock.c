/* SPDX-License-Identifier: Apache-2.0 */
/* Reading is not restricted: names come from the files of container runtimes, wherever these are, and
 * libraries, resolvers and certificate authorities from wherever the system has them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "landlock.h"
#include "writes.h"

/* include/uapi/linux/landlock.h of 6.2: ABI 3. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#define OF_FILES (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define MAKE \
	(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
	 LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define WRITE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define USUAL \
	(WRITE | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE)

static struct writes in_force; /* kept until the process ends: a Landlock domain cannot be widened */

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

static uint64_t handled(int abi, bool programs)
{
	uint64_t access = OF_FILES | MAKE | LANDLOCK_ACCESS_FS_REFER;

	if (abi < 2)
		access &= ~(uint64_t)LANDLOCK_ACCESS_FS_REFER;
	if (abi < 3)
		access &= ~(uint64_t)LANDLOCK_ACCESS_FS_TRUNCATE;
	if (programs)
		access &= ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE;
	return access;
}

static int add(int ruleset, int fd, uint64_t access)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };

	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 ? 0 : -errno;
}

/* Allows access below path. A missing path needs no rule: it cannot be written. */
static int add_path(int ruleset, const char *path, uint64_t access, int *ret_fd)
{
	int fd = open(path, O_PATH | O_CLOEXEC), rc;

	if (fd < 0)
		return 0;
	rc = add(ruleset, fd, access);
	if (ret_fd)
		*ret_fd = fd;
	else
		close(fd);
	return rc;
}

static int fill(int ruleset, uint64_t access)
{
	/* Names of threads are written there. The descriptor stays open: a rule applies to an inode, and the
	 * kernel makes new inodes in /proc once it has dropped the old ones. */
	static int tasks = -1;
	int rc = add_path(ruleset, "/proc/self/task", access & WRITE, &tasks);

	if (!rc)
		rc = add_path(ruleset, "/dev", access & WRITE, NULL); /* GPUs, serial lines, null, terminals */
	if (!rc)
		rc = add_path(ruleset, "/dev/shm", access & USUAL, NULL);
	for (unsigned i = 0; i < in_force.n && !rc; i++)
		rc = add_path(ruleset, in_force.tree[i], access & USUAL, NULL);
	return rc;
}

int landlock_enter(const struct config *c, bool programs, struct err *err)
{
	struct landlock_ruleset_attr attr = { 0 };
	int abi = landlock_abi(), ruleset, rc;

	if (!abi)
		return err_set(err, -ENOSYS, "landlock: %s",
			       errno == EOPNOTSUPP ? "not enabled in this kernel; boot with lsm=landlock,..." :
						     "not in this kernel or kept from this container");
	attr.handled_access_fs = handled(abi, programs);
	rc = writes_list(c, &in_force, err);
	if (rc)
		return rc;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	rc = ruleset < 0 ? -errno : fill(ruleset, attr.handled_access_fs);
	if (!rc && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
		rc = -errno;
	if (ruleset >= 0)
		close(ruleset);
	if (!rc)
		return 0;
	writes_free(&in_force);
	return err_set(err, rc, "landlock: refused: %s", strerror(-rc));
}

static bool below(const char *path, const char *tree)
{
	size_t n = strlen(tree);

	return strncmp(path, tree, n) == 0 && (path[n] == '/' || !path[n] || strcmp(tree, "/") == 0);
}

int landlock_covers(const struct config *c, struct err *err)
{
	struct writes w = { 0 };
	int rc = in_force.n ? writes_list(c, &w, err) : 0;

	for (unsigned i = 0; i < w.n && !rc; i++) {
		bool found = false;

		for (unsigned j = 0; j < in_force.n && !found; j++)
			found = below(w.tree[i], in_force.tree[j]);
		if (!found)
			rc = err_set(err, -EACCES,
				     "%s lies outside of what jouled may write to since its start; restart it, "
				     "or start it with landlock: off",
				     w.tree[i]);
	}
	writes_free(&w);
	return rc;
}
