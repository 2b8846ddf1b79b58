/* SPDX-License-Identifier: Apache-2.0 */
/* jouled: reads what it is told, and leaves the rest to the verbs. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include "../base/log.h"
#include "app.h"

static int fail(int rc, const struct err *err)
{
	log_error("%s", err->text);
	return rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

static int check(const struct config *c)
{
	struct err err = { 0 };
	int rc = check_config(c, &err);

	if (rc)
		return fail(rc, &err);
	if (!c->quiet)
		printf("%s: valid\n", c->config_path ? c->config_path : "configuration");
	return EXIT_OK;
}

/* Takes c. */
static int run(int argc, char **argv, struct config *c)
{
	struct err err = { 0 };
	int rc = c->replay ? 0 : check_config(c, &err), status;

	if (!rc && !c->replay)
		return agent_run(argc, argv, c);
	status = rc ? fail(rc, &err) : replay_run(c);
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
