/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup for a command alone, in the hierarchy that the agent accounts: v2, or v1 of perf_event. */
#ifndef JD_CTL_RUN_CGROUP_H
#define JD_CTL_RUN_CGROUP_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"

#define RUN_PATH_MAX 4096
#define RUN_LEFT_MAX 16

struct run_place {
	bool v2;
	char mount[RUN_PATH_MAX]; /* of the hierarchy */
	char home[RUN_PATH_MAX]; /* the cgroup of this process; processes that are left over are moved there */
	char dir[RUN_PATH_MAX]; /* directory for the cgroups of runs: the mount for root, else home */
	char prefix[40]; /* prefix of their names: "jouled-run-PID-" */
	unsigned made;
};

struct run_cgroup {
	const struct run_place *place;
	char dir[RUN_PATH_MAX + 64];
	const char *path; /* path of dir below the mount, which is its name in the agent */
	int fd;
};

/* Processes that still ran when the command had ended. */
struct run_left {
	unsigned n; /* number of all; the arrays have the first ones */
	pid_t pid[RUN_LEFT_MAX];
	char comm[RUN_LEFT_MAX][16];
};

/* Finds the place for cgroups. mount: the mount point that the agent says. 0, or negative errno with the remedy in
 * err. */
int run_place_find(const char *mount, struct run_place *ret, struct err *err);
/* Reads the cgroup of a process, below the mount, from file: /proc/PID/cgroup (cgroups(7)). "" is the root. */
bool run_cgroup_of_process(const char *file, bool v2, char ret[RUN_PATH_MAX]);
int run_cgroup_make(struct run_place *p, struct run_cgroup *ret, struct err *err);
/* Moves a process into the cgroup. 0 or negative errno. */
int run_cgroup_enter(const struct run_cgroup *c, pid_t pid);
bool run_cgroup_has_children(const struct run_cgroup *c);
/* Returns the peak of memory as the kernel counts it, page cache included. false = it does not count it (v1, or no
 * memory controller). */
bool run_cgroup_memory_peak(const struct run_cgroup *c, uint64_t *ret_bytes);
void run_cgroup_list_left(const struct run_cgroup *c, struct run_left *ret);
/* Moves processes that are left to home, and removes the cgroup with all below. 0 or negative errno.
 * Zeroed accepted. */
int run_cgroup_remove(struct run_cgroup *c);
/* Removes all cgroups of this process's runs; for a janitor. */
void run_place_sweep(void *place);

#endif
