/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a command inside a cgroup, waits for it and passes signals on. */
#ifndef JD_CTL_RUN_CHILD_H
#define JD_CTL_RUN_CHILD_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include "cgroup_of_run.h"

#define RUN_DESCRIPTORS 1024

/* Descriptors that were open at the start. The command gets these and no others, whatever libraries open. */
struct run_descriptors {
	bool was_open[RUN_DESCRIPTORS];
};

void run_descriptors_note(struct run_descriptors *d);
void run_descriptors_guard(const struct run_descriptors *d);

struct run_signals {
	sigset_t before; /* signal mask of the command */
	int fd;
	bool told; /* a signal asked for the end: no further run begins */
};

/* From now on signals are read and passed on, and have no default action. SIGCHLD is ignored no more, by the command neither.
 * 0 or negative errno. */
int run_signals_take(struct run_signals *s, struct err *err);
void run_signals_give_back(struct run_signals *s);
bool run_signals_look(struct run_signals *s); /* reads signals while no command runs; returns told */

struct run_end {
	int status; /* of waitpid(2) */
	int not_started; /* errno of execvp(3), 0 = started; no other field is set then */
	struct rusage usage; /* of the command and the children that it waited for, from its exec on */
	uint64_t wall_ns;
};

/* Callbacks while the command runs. */
struct run_watch {
	/* NULL, or called when the command's process waits in the cgroup before its exec: use up to then is not the
	 * command's. 0; or negative errno with err: the command is not started. */
	int (*ready)(void *arg, struct err *err);
	int (*tick)(void *arg); /* called when it is time and when fd is readable; returns the ms until the next call */
	void *arg;
	int first_ms; /* ms until the first call */
	int fd; /* -1 = none */
};

struct run_command {
	char **argv;
	const struct run_cgroup *cgroup; /* the command is started in it */
	struct run_signals *signals; /* run_signals_take was called; passed on to the command */
	int input; /* descriptor that becomes its standard input; 0 = ours */
};

/* Runs a command to its end, in the process group and with the terminal of the caller. 0; or negative errno with err:
 * it could not be put into the cgroup, w->ready failed, or its exit status cannot be read. */
int run_child(const struct run_command *what, const struct run_watch *w, struct run_end *ret, struct err *err);

/* Runs text with /bin/sh, unmeasured: standard input is empty, standard output goes to stderr. A signal is passed on.
 * side: the value of JOULED_SIDE in its environment, NULL = none. 0; -ECHILD or the errno of fork(2) or wait4(2) with err, which
 * begins with name. */
int run_shell(const char *name, const char *text, const char *side, struct run_signals *s, struct err *err);

/* Returns the status as a shell does: the exit status, 128 + signal, 127 not found, 126 not executable. */
int run_exit_status(const struct run_end *e);

#endif
