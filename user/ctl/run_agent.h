/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a measurement asks: the running agent if it does what is asked for, else a private one. */
#ifndef JD_CTL_RUN_AGENT_H
#define JD_CTL_RUN_AGENT_H
#include "private_agent.h"
#include "run_reading.h"

struct run_agent_wish {
	const char *socket; /* NULL: as agent_open finds it */
	const char *idle; /* policy; NULL = as the agent does */
	bool use_private; /* although one is running */
};

struct run_agent {
	struct private_agent *own; /* NULL = it was running */
	struct agent *agent;
	struct run_facts facts;
};

/* Says on stderr when it starts one. ret_mount: RUN_PATH_MAX bytes. ret is to be closed either way. */
int run_agent_find(struct run_agent *ret, const struct run_agent_wish *w, char *ret_mount, struct err *err);
void run_agent_close(struct run_agent *a); /* zeroed accepted */

#endif
