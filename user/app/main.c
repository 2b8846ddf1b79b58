/* SPDX-License-Identifier: Apache-2.0 */
/* jouled: reads what it is told, and leaves the rest to the verbs. */
#include <malloc.h>
#include <stdio.h>
#include "../base/log.h"
#include "app.h"

static int check(const struct config *c)
{
	struct err err = { 0 };

	if (check_config(c, &err) != 0) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	if (!c->quiet)
		printf("%s: valid\n", c->config_path ? c->config_path : "configuration");
	return EXIT_OK;
}

static int run(int argc, char **argv, struct config *c)
{
	struct err err = { 0 };
	int status;

	if (!c->replay && check_config(c, &err) == 0)
		return agent_run(argc, argv, c);
	if (c->replay)
		status = replay_run(c);
	else
		status = EXIT_USAGE;
	if (status == EXIT_USAGE && *err.text)
		log_error("%s", err.text);
	config_free(c);
	return status;
}

int main(int argc, char **argv)
{
	enum config_action action = ACTION_RUN;
	struct config *c = NULL;
	struct err err = { 0 };
	int status = EXIT_OK;

	/* One heap: three threads that allocate rarely need no arenas of 64 MiB address space each. */
	mallopt(M_ARENA_MAX, 1);
	log_init("jouled", LOG_LVL_WARN);
	if (config_load(argc, argv, &c, &action, &err) != 0) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	log_init("jouled", c->quiet ? LOG_LVL_ERROR : c->verbose ? LOG_LVL_DEBUG : LOG_LVL_WARN);
	if (action == ACTION_RUN)
		return run(argc, argv, c);
	if (action == ACTION_CHECK)
		status = check(c);
	else if (action == ACTION_DOCTOR)
		status = doctor_run(c);
	else if (action == ACTION_HELP)
		config_print_help();
	else
		printf("jouled %s\n", JOULED_VERSION);
	config_free(c);
	return status;
}
