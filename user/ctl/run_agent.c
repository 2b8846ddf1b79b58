/* SPDX-License-Identifier: Apache-2.0 */
#include "run_agent.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../base/clock.h"

#define LEARN_NS (2 * NS_PER_S) /* a private agent may take to learn idle power */

/* Idle power that is learned is not known at once. */
static bool learns(const struct run_facts *f)
{
	for (unsigned d = 0; d < f->n_domains && f->split; d++)
		if (!f->domain[d].idle_power_uw && run_domain_adds_up(&f->domain[d]))
			return true;
	return false;
}

static int use_private(struct run_agent *a, const struct run_agent_wish *w, const char *why, char *mount,
		       struct err *err)
{
	const struct private_agent_options o = { .idle = w->idle };
	uint64_t until;
	int code;

	dprintf(STDERR_FILENO, "joulectl: %s; starting a private agent\n", why);
	code = private_agent_start(&o, &a->own, err);
	if (!code)
		code = agent_open(private_agent_socket(a->own), &a->agent, err);
	if (!code)
		code = run_facts_ask(a->agent, &a->facts, mount, err);
	until = clock_mono_ns() + LEARN_NS;
	while (!code && learns(&a->facts) && clock_mono_ns() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 250 * (long)NS_PER_MS }, NULL);
		code = run_facts_ask(a->agent, &a->facts, mount, err);
	}
	a->facts.private_agent = true;
	return code;
}

int run_agent_find(struct run_agent *ret, const struct run_agent_wish *w, char *ret_mount, struct err *err)
{
	const char *environment = getenv("JOULED_SOCKET");
	bool named = w->socket || (environment && *environment);
	char why[100];
	int code;

	if (w->use_private)
		return use_private(ret, w, "as asked for", ret_mount, err);
	code = agent_open(w->socket, &ret->agent, err);
	if ((code == -ENOENT || code == -ECONNREFUSED) && !named)
		return use_private(ret, w, "no agent is running", ret_mount, err);
	if (!code)
		code = run_facts_ask(ret->agent, &ret->facts, ret_mount, err);
	if (code || !w->idle || strcmp(w->idle, ret->facts.idle) == 0)
		return code;
	agent_close(ret->agent);
	ret->agent = NULL;
	snprintf(why, sizeof(why), "the running agent has idle %s, not %s", ret->facts.idle, w->idle);
	return use_private(ret, w, why, ret_mount, err);
}

void run_agent_close(struct run_agent *a)
{
	agent_close(a->agent);
	private_agent_stop(a->own);
	*a = (struct run_agent){ 0 };
}
