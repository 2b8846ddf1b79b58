/* SPDX-License-Identifier: Apache-2.0 */
/* One run of joulectl profile: samples of the kernel and readings of the agent, side by side. */
#ifndef JD_PROFILE_SESSION_H
#define JD_PROFILE_SESSION_H
#include "ctl/run/child.h"
#include "ctl/run/run_reading.h"
#include "profile/profile_data.h"

struct profile_session {
	struct profile p;
	struct frame_wish names; /* debug_dirs is of the question */
	struct run_agent with;
	char mount[RUN_PATH_MAX], path[RUN_PATH_MAX]; /* path: the command's cgroup */
	/* private */
	uint64_t due_ns;
	bool begun;
	struct err failed; /* the first failure while it ran */
};

int profile_open(struct profile_session *s, const struct run_agent_wish *wish, struct err *err);
/* Samples for a time, or until a signal asks for the end. */
int profile_for(struct profile_session *s, uint64_t duration_ns, struct run_signals *signals, struct err *err);
/* Samples while the command runs, in a cgroup of its own, which becomes p.cgroup. */
int profile_command(struct profile_session *s, char **argv, struct run_signals *signals, struct run_end *ret,
		    struct err *err);
void profile_close(struct profile_session *s);

#endif
