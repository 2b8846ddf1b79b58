/* SPDX-License-Identifier: Apache-2.0 */
/* Measures commands one after the other: each in a cgroup of its own, between two readings of the agent. */
#ifndef JD_CTL_RUN_MEASURE_H
#define JD_CTL_RUN_MEASURE_H
#include "child.h"
#include "run_beside.h"
#include "run_reading.h"

struct janitor;

struct run_measure {
	struct run_agent with;
	struct janitor *janitor;
	struct run_place place;
	struct run_descriptors descriptors; /* noted by the caller at the start of the program */
	struct run_signals signals;
	bool tells_others; /* asks what else ran; set by the caller */
	/* The fields below are of the current run. */
	struct run_cgroup cgroup;
	struct run_rows rows;
	struct run_machine before; /* the reading at which counting begins */
	struct run_beside beside; /* its other rows */
};

/* Finds the agent and the place for cgroups, and takes the signals. Call run_measure_close in any case. */
int run_measure_open(struct run_measure *m, const struct run_agent_wish *wish, struct err *err);
/* Runs the command once. input: as in struct run_command. 0 = it ran, or its exec failed (ret->started is false);
 * negative errno: no command was started. */
int run_measure_once(struct run_measure *m, char **argv, int input, struct run_result *ret, struct err *err);
void run_measure_close(struct run_measure *m);

#endif
