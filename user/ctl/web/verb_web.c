/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl web: the agent's page, for a browser on this machine. */
#include <stdio.h>
#include <stdlib.h>
#include "base/log.h"
#include "base/parse.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/verb.h"
#include "bridge.h"

#define DEFAULT_SOCKET "/run/jouled/jouled.sock"

enum { OPTION_PORT, OPTION_SOCKET };

static const struct verb_option options[] = {
	[OPTION_PORT] = { "port", 'p', "PORT", "of 127.0.0.1; any free one unless given" },
	[OPTION_SOCKET] = { "socket", 0, "PATH", "the agent's; JOULED_SOCKET or /run/jouled/jouled.sock unless given" },
	{ NULL, 0, NULL, NULL },
};

static const char *const about[] = {
	"Prints a URL and serves the agent's page there until it is interrupted: live power of every cgroup, with a table, "
	"search and domains. It shows what you may see on the agent's socket, to you alone: the URL works once, then "
	"the browser that opened it has a cookie; everybody else on the machine gets 403.",
	"From another machine: ssh -L 8480:127.0.0.1:8480 HOST joulectl web --port 8480.",
	NULL,
};

static const char *socket_path(const struct verb_call *call)
{
	const char *path = call->option[OPTION_SOCKET];

	path = path ? path : getenv("JOULED_SOCKET");
	return path && *path ? path : DEFAULT_SOCKET;
}

static int run(const struct verb_call *call)
{
	struct web_bridge *b;
	struct agent *a;
	struct err err = { 0 };
	uint64_t port = 0;

	if (call->option[OPTION_PORT] && (parse_u64(call->option[OPTION_PORT], &port) != 0 || port > 65535)) {
		log_error("web: --port %.20s: no port; write a number up to 65535", call->option[OPTION_PORT]);
		return CTL_USAGE;
	}
	/* an agent that does not answer is reported now rather than in the browser */
	if (agent_open(socket_path(call), &a, &err) != 0) {
		log_error("%s", err.text);
		return CTL_FAILED;
	}
	agent_close(a);
	if (web_bridge_open((unsigned)port, socket_path(call), &b, &err) != 0) {
		log_error("%s", err.text);
		return CTL_FAILED;
	}
	printf("http://127.0.0.1:%u/?token=%s\n", web_bridge_port(b), web_bridge_guard(b)->token);
	fflush(stdout);
	web_bridge_run(b);
	web_bridge_close(b);
	return CTL_OK;
}

const struct verb verb_web = {
	.name = "web",
	.synopsis = "",
	.help = "Serves a page of live watts to your browser, from the agent's socket",
	.about = about,
	.options = options,
	.max_args = 0,
	.run = run,
};
