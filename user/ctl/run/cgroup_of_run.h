/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup of its own for a command, in the hierarchy that the agent accounts: v2, or v1 of perf_event. */
#ifndef JD_CTL_RUN_CGROUP_H
#define JD_CTL_RUN_CGROUP_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "../base/err.h"

#define RUN_PATH_MAX 4096
#define RUN_LEFT_MAX 16

struct run_place {
	bool v2;
	char mount[RUN_PATH_MAX]; /* of the hierarchy */
	char home[RUN_PATH_MAX]; /* the cgroup of this process: where what is left over goes */
	char dir[RUN_PATH_MAX]; /* where ours are made: the mount for root, else home */
	char prefix[40]; /* of their names: "jouled-run-PID-" */
	unsigned made;
};

struct run_cgroup {
	const struct run_place *place;
	char dir[RUN_PATH_MAX + 64];
	const char *path; /* of dir, below the mount: what the agent calls it */
	int fd;
};

/* Processes that still ran when the command had ended. */
struct run_left {
	unsigned n; /* all of them; the first ones by name */
	pid_t pid[RUN_LEFT_MAX];
	char comm[RUN_LEFT_MAX][16];
};

/* mount: as the agent says. 0, or what to do in err. */
int run_place_find(const char *mount, struct run_place *ret, struct err *err);
int run_cgroup_make(struct run_place *p, struct run_cgroup *ret, struct err *err);
/* Moves a process in. 0 or negative errno. */
int run_cgroup_enter(const struct run_cgroup *c, pid_t pid);
bool run_cgroup_has_children(const struct run_cgroup *c);
/* What the kernel says was the most memory, page cache included; false = it does not (v1, or no memory
 * controller here). */
bool run_cgroup_memory_peak(const struct run_cgroup *c, uint64_t *ret_bytes);
void run_cgroup_list_left(const struct run_cgroup *c, struct run_left *ret);
/* Moves what is left to home and removes it with all below. 0 or negative errno. Zeroed: nothing. */
int run_cgroup_remove(struct run_cgroup *c);
/* All of this process's: for a janitor. */
void run_place_sweep(void *place);

#endif
