/* SPDX-License-Identifier: Apache-2.0 */
/* The running agent: opens everything, then waits for signals while the other threads work. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "app.h"
#include "landlock.h"
#include "notify.h"
#include "pipeline.h"
#include "privileges.h"
#include "reload.h"
#include "watchdog.h"

#define LOOK_MS 2000 /* between two looks at the outputs' figures */
#define FLUSH_NS (5 * NS_PER_S)

struct agent {
	int argc;
	char **argv;
	struct machine *machine;
	struct loop *loop;
	struct plan *plan; /* in force */
	struct pipeline *pipeline;
	struct serving *serving;
	struct tracing *tracing;
	struct watchdog watchdog;
	int signal_fd, done_fd;
};

static int open_signals(struct agent *a, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	/* before the first thread: all inherit it, and only the descriptor gets them */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	a->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	a->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->signal_fd < 0 || a->done_fd < 0)
		return err_set(err, -errno, "signals: %s; raise the limit of open files", strerror(errno));
	return 0;
}

/* Takes c in any case. */
static int agent_open(struct agent *a, struct config *c, struct err *err)
{
	int rc = open_signals(a, err);

	if (!rc)
		rc = machine_enter(c, &a->machine, err);
	if (!rc)
		rc = machine_look(a->machine, c, err);
	if (!rc)
		rc = machine_open(a->machine, c, err);
	if (!rc)
		rc = tracing_open(a->machine, c, &a->tracing, err);
	if (!rc)
		rc = serving_open(c, &a->serving, err);
	if (!rc)
		rc = privileges_drop(a->machine, c, err);
	if (!rc && (rc = loop_start(&a->loop)))
		err_set(err, rc, "I/O thread: %s; raise the limits of memory, files or tasks", strerror(-rc));
	if (!rc)
		rc = plan_new(c, &a->machine->schema, a->loop, NULL, &a->plan, err);
	if (rc) {
		config_free(c);
		return rc;
	}
	a->plan->serving = a->serving;
	a->plan->tracing = a->tracing;
	rc = serving_start(a->serving, a->machine, a->plan, a->loop, err);
	if (rc)
		return rc;
	serving_tell(a->serving, a->plan);
	machine_say(a->machine); /* before another thread may */
	return pipeline_start(a->machine, a->plan, a->done_fd, &a->pipeline, err);
}

static void agent_close(struct agent *a)
{
	if (a->pipeline)
		a->plan = pipeline_stop(a->pipeline);
	if (a->plan) {
		plan_drain(a->plan, FLUSH_NS);
		for (struct output *o = a->plan->outputs; o; o = o->next)
			output_say(o);
	}
	plan_free(a->plan); /* its pages are the server's */
	serving_stop(a->serving);
	loop_stop(a->loop);
	tracing_close(a->tracing);
	machine_close(a->machine);
	if (a->signal_fd >= 0)
		close(a->signal_fd);
	if (a->done_fd >= 0)
		close(a->done_fd);
}

/* The new configuration, checked and with its outputs open, or nothing and one line why. */
static struct plan *reload_plan(struct agent *a)
{
	enum config_action action;
	struct config *c = NULL;
	struct plan *p = NULL;
	struct err err = { 0 };
	const char *fixed;

	if (config_load(a->argc, a->argv, &c, &action, &err) != 0) {
		log_error("reload: %s", err.text);
		return NULL;
	}
	fixed = reload_refused(a->plan->config, c);
	if (fixed)
		log_error("reload: %s cannot change while jouled runs; restart it, everything stays as it was", fixed);
	else if (check_config(c, &err) != 0 || landlock_covers(c, &err) != 0 ||
		 plan_new(c, &a->machine->schema, a->loop, a->plan, &p, &err) != 0)
		log_error("reload: %s", err.text);
	if (!p)
		config_free(c);
	if (p && serving_pages(a->serving, p, &err) != 0) {
		log_error("reload: %s", err.text);
		plan_give_up(p);
		p = NULL;
	}
	return p;
}

static void reload(struct agent *a)
{
	struct plan *p, *old;

	notify_reloading();
	p = reload_plan(a);
	if (p) {
		old = pipeline_swap(a->pipeline, p);
		a->plan = p;
		plan_drain(old, FLUSH_NS);
		plan_free(old);
		log_info("configuration read again");
	}
	notify("READY=1");
}

/* true = go on. */
static bool handle_signal(struct agent *a)
{
	struct signalfd_siginfo info;

	if (read(a->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return true;
	if (info.ssi_signo != SIGHUP)
		return false;
	reload(a);
	return true;
}

static void agent_wait(struct agent *a)
{
	struct pollfd fds[3] = { { .fd = a->signal_fd, .events = POLLIN }, { .fd = a->done_fd, .events = POLLIN } };
	bool go_on = true;

	while (go_on) {
		int n;

		/* the reader of a pipe has left: told as an error, without asking for events */
		fds[2] = (struct pollfd){ .fd = plan_only_stdout(a->plan) ? STDOUT_FILENO : -1 };
		n = poll(fds, 3, watchdog_wait_ms(&a->watchdog, LOOK_MS));
		if (n > 0 && fds[0].revents)
			go_on = handle_signal(a);
		if (n > 0 && (fds[1].revents || fds[2].revents))
			go_on = false;
		for (struct output *o = a->plan->outputs; o; o = o->next)
			output_say(o);
		serving_tell(a->serving, a->plan);
		watchdog_run(&a->watchdog);
	}
}

int agent_run(int argc, char **argv, struct config *c)
{
	struct agent a = { .argc = argc, .argv = argv, .signal_fd = -1, .done_fd = -1 };
	struct err err = { 0 };
	int rc = agent_open(&a, c, &err);

	if (rc) {
		log_error("%s", err.text);
	} else {
		malloc_trim(0); /* BTF and event tables are not needed any more */
		watchdog_start(&a.watchdog, a.pipeline, a.loop);
		notify("READY=1");
		agent_wait(&a);
		notify("STOPPING=1");
	}
	agent_close(&a);
	return rc ? EXIT_FAILED : EXIT_OK;
}
