/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl run --pid and --cgroup: measures what already runs, between two readings of the agent. */
#ifndef JD_CTL_RUN_ATTACHED_H
#define JD_CTL_RUN_ATTACHED_H
#include "ctl/core/verb.h"
#include "run_reading.h"

struct run_attached_plan {
	const char *cgroup; /* NULL = a process */
	pid_t pid;
	uint64_t duration_ns; /* 0 = until a signal, or until its end */
};

/* Does the command line ask for something that already runs? */
bool run_attached_asked(const struct verb_call *call);
/* 0, or -EINVAL with err. */
int run_attached_read(const struct verb_call *call, struct run_attached_plan *ret, struct err *err);

struct run_attached_end {
	struct run_facts facts;
	struct run_result result;
	struct run_attached what;
};

/* Measures until the duration, a signal or the end of it. 0 or negative errno with err. */
int run_attached_measure(const struct run_attached_plan *p, const struct run_agent_wish *wish,
			 struct run_attached_end *ret, struct err *err);

#endif
