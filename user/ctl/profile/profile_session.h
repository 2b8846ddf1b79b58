/* SPDX-License-Identifier: Apache-2.0 */
/* One run of joulectl profile: samples of the kernel and readings of the agent, side by side. */
#ifndef JD_PROFILE_SESSION_H
#define JD_PROFILE_SESSION_H
#include "ctl/run/child.h"
#include "ctl/run/run_reading.h"
#include "profile/code.h"
#include "profile/frame_names.h"
#include "profile/row_shares.h"
#include "profile/sampler.h"
#include "profile/stacks.h"

#define PROFILE_NAME_MAX 4096

struct profile_session {
	/* the question */
	const char *cgroup; /* only it and those below; NULL = all */
	int pid; /* only this process; 0 = all */
	unsigned rate_hz;
	/* what was found */
	struct run_agent with;
	struct code code;
	struct stacks stacks;
	struct row_shares shares;
	struct frame_names names;
	struct sampler *sampler;
	uint64_t began_ns, ended_ns; /* the readings */
	char mount[RUN_PATH_MAX];
	/* private */
	uint64_t due_ns;
	bool begun;
	struct err failed; /* the first failure while it ran */
};

int profile_open(struct profile_session *s, const struct run_agent_wish *wish, struct err *err);
/* Samples for a time, or until a signal asks for the end. */
int profile_for(struct profile_session *s, uint64_t duration_ns, struct run_signals *signals, struct err *err);
/* Samples while the command runs, in a cgroup of its own, which becomes s->cgroup. */
int profile_command(struct profile_session *s, char **argv, struct run_signals *signals, struct run_end *ret,
		    struct err *err);
void profile_close(struct profile_session *s);

/* Is the row, or the stack, asked for? */
bool profile_wants_row(const struct profile_session *s, const struct share_row *row);
bool profile_wants_stack(const struct profile_session *s, uint32_t stack);

#endif
