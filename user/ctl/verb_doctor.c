/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl doctor: runs jouled doctor, because jouled is the program that measures, and asks the agent that runs what it
 * has learned. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "ctl/core/ask.h"
#include "ctl/core/verb.h"
#include "ctl/run/private_agent.h"
#include "learned.h"

#define ARGUMENTS_MAX 64

static const struct verb_option options[] = {
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Says what this machine can measure and what not, with the capability, sysctl, module or mount that is missing. "
	"It runs jouled doctor: the one beside joulectl, else the one in PATH. All that follows is passed on to it, such as "
	"--rapl msr, and its exit status is kept.",
	"Where an agent answers (JOULED_SOCKET, or /run/jouled/jouled.sock), it says below that which terms its formula uses in "
	"each domain, and at what held-out error, as joulectl status does; not with --root, which is about another machine.",
	NULL,
};

/* A machine in a directory is not the one whose agent runs. */
static bool of_this_machine(const struct verb_call *call)
{
	for (int i = 0; i < call->n; i++)
		if (strcmp(call->args[i], "--root") == 0 || strncmp(call->args[i], "--root=", 7) == 0 ||
		    strcmp(call->args[i], "--help") == 0)
			return false;
	return true;
}

/* Which terms the formula uses, and why, is known to the agent alone: it learns while it runs. */
static void tell_learned(void)
{
	struct buf body = { 0 };
	struct err err = { 0 };
	json_t *doc = ask_agent(NULL, "/v1/status", &body, &err) ? NULL : ask_parse(&body, &err);

	printf("\nThe agent that runs\n");
	if (!doc)
		printf("None answers, so nothing that a formula has learned can be told: joulectl status says why, JOULED_SOCKET "
		       "names another socket.\n");
	else if (!learned_print(doc))
		printf("Its formula learns nothing: it is neither model nor auto.\n");
	json_decref(doc);
	buf_free(&body);
}

static int run(const struct verb_call *call)
{
	char program[PATH_MAX], name[] = "jouled", verb[] = "doctor", *argv[ARGUMENTS_MAX + 3] = { name, verb };
	int status, rc;
	pid_t pid;

	memcpy(argv + 2, call->args, (size_t)call->n * sizeof(*argv));
	private_agent_program(program);
	rc = posix_spawnp(&pid, program, NULL, NULL, argv, environ);
	if (rc) {
		log_error("doctor: %s: %s; install jouled beside joulectl, or put its directory into PATH", program,
			  strerrordesc_np(rc));
		return CTL_FAILED;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status)) {
		log_error("doctor: %s: ended by signal %d; run it again", program, WTERMSIG(status));
		return CTL_FAILED;
	}
	if (WEXITSTATUS(status) == CTL_OK && of_this_machine(call))
		tell_learned();
	return WEXITSTATUS(status);
}

const struct verb verb_doctor = {
	.name = "doctor",
	.synopsis = "[JOULED-OPTION]...",
	.help = "Says what this machine can measure, and what is missing",
	.about = about,
	.options = options,
	.max_args = ARGUMENTS_MAX,
	.passes_on = true,
	.run = run,
};
