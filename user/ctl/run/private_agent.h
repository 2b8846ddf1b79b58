/* SPDX-License-Identifier: Apache-2.0 */
/* A jouled of our own, for a measurement where none runs: socket and state in a new directory that
 * nobody else may enter, no output. It ends with private_agent_stop, and with this program, however that
 * ends; so does its directory. */
#ifndef JD_CTL_PRIVATE_AGENT_H
#define JD_CTL_PRIVATE_AGENT_H
#include <limits.h>
#include "../base/err.h"

struct private_agent;

struct private_agent_options {
	const char *idle; /* own, by-time, by-share; NULL = as configured */
	const char *const *more; /* further arguments of jouled, up to NULL; NULL = none */
};

/* The program is looked for beside this one, in ../sbin and in PATH. The machine's configuration is
 * read where it may be. Returns when the agent answers; with its own words in err when it does not. */
int private_agent_start(const struct private_agent_options *o, struct private_agent **ret, struct err *err);
/* Where jouled is; "jouled" when only PATH may know. */
void private_agent_program(char path[PATH_MAX]);
const char *private_agent_socket(const struct private_agent *p);
void private_agent_stop(struct private_agent *p); /* NULL accepted */

#endif
