/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl doctor: runs jouled doctor, because jouled is the program that measures. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "ctl/run/private_agent.h"
#include "ctl/core/verb.h"

#define ARGUMENTS_MAX 64

static const struct verb_option options[] = {
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Says what this machine can measure and what not, with the capability, sysctl, module or mount that is missing. "
	"It runs jouled doctor: the one beside joulectl, else the one in PATH. All that follows is passed on to it, such as "
	"--rapl msr, and its exit status is kept.",
	NULL,
};

static int run(const struct verb_call *call)
{
	char program[PATH_MAX], name[] = "jouled", verb[] = "doctor", *argv[ARGUMENTS_MAX + 3] = { name, verb };

	memcpy(argv + 2, call->args, (size_t)call->n * sizeof(*argv));
	private_agent_program(program);
	execvp(program, argv);
	log_error("doctor: %s: %s; install jouled beside joulectl, or put its directory into PATH", program,
		  strerrordesc_np(errno));
	return CTL_FAILED;
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
