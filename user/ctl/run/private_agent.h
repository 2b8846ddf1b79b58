/* SPDX-License-Identifier: Apache-2.0 */
/* A private jouled for a measurement, where none runs. Its socket and state are in a new directory that no other user
 * may enter, and it has no output. It ends with private_agent_stop, or when this program ends for whatever reason. Its
 * directory is then removed. */
#ifndef JD_CTL_PRIVATE_AGENT_H
#define JD_CTL_PRIVATE_AGENT_H
#include <limits.h>
#include <stddef.h>
#include "base/err.h"

struct private_agent;

struct private_agent_options {
	const char *idle; /* own, by-time, by-share; NULL = as configured */
	/* Names of events, commas between them; the machine's configuration is then not read. NULL = as configured. */
	const char *events;
	const char *const *more; /* further arguments of jouled; ends with NULL; NULL = none */
};

/* Starts jouled, which is looked for beside this program, in ../sbin and in PATH. It reads the machine's configuration
 * where this user may. Returns 0 when the agent answers; or negative errno, with the agent's own words in err. */
int private_agent_start(const struct private_agent_options *o, struct private_agent **ret, struct err *err);
/* Writes the path of jouled; "jouled" where it has to be searched in PATH. */
void private_agent_program(char path[PATH_MAX]);
/* Returns the length of the first name of a list of events: up to a comma that is not between slashes. */
size_t private_agent_event(const char *events);
const char *private_agent_socket(const struct private_agent *p);
void private_agent_stop(struct private_agent *p); /* NULL accepted */

#endif
