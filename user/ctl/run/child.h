/* SPDX-License-Identifier: Apache-2.0 */
/* The command itself: started inside a cgroup, waited for, signals passed on. */
#ifndef JD_CTL_RUN_CHILD_H
#define JD_CTL_RUN_CHILD_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include "run_cgroup.h"

#define RUN_DESCRIPTORS 1024

/* Descriptors that were open at the start: the command gets those and no others, whatever libraries open. */
struct run_descriptors {
	bool was_open[RUN_DESCRIPTORS];
};

void run_descriptors_note(struct run_descriptors *d);
void run_descriptors_guard(const struct run_descriptors *d);

struct run_signals {
	sigset_t before; /* what the command starts with */
	int fd;
	bool told; /* one came that asks for the end: no further run */
};

/* From here on signals are passed on instead of acted upon. 0 or negative errno. */
int run_signals_take(struct run_signals *s, struct err *err);
void run_signals_give_back(struct run_signals *s);
bool run_signals_look(struct run_signals *s); /* while no command runs: told */

struct run_end {
	int status; /* of waitpid(2) */
	int not_started; /* errno of execvp(3); nothing else is set then */
	struct rusage usage; /* of the command and what it waited for */
	uint64_t wall_ns;
};

/* What is to be done while it runs. */
struct run_watch {
	int (*tick)(void *arg); /* when it is time, and when fd is readable; ms until it is time again */
	void *arg;
	int first_ms; /* until it is time */
	int fd; /* -1 = none */
};

/* Runs argv to its end; its process group and terminal are the caller's. 0, or negative errno when it could not
 * be put into the cgroup. */
int run_child(char **argv, const struct run_cgroup *c, struct run_signals *s, const struct run_watch *w,
	      struct run_end *ret, struct err *err);

/* What a shell says: the exit status, 128 + signal, 127 not found, 126 not executable. */
int run_exit_status(const struct run_end *e);

#endif
