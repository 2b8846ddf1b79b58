/* SPDX-License-Identifier: Apache-2.0 */
/* The running agent: it opens everything, then waits for signals while the other threads work. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/loop.h"
#include "app.h"
#include "agent/doctor/check.h"
#include "agent/profiling/profiler.h"
#include "agent/sandbox/landlock.h"
#include "notify.h"
#include "pipeline.h"
#include "agent/sandbox/privileges.h"
#include "reload.h"
#include "watchdog.h"

#define LOOK_MS 2000 /* between two checks of the outputs' figures */
#define FLUSH_NS (5 * NS_PER_S)

struct agent {
	int argc;
	char **argv;
	struct machine *machine;
	struct loop *loop;
	struct plan *plan; /* the plan in force */
	struct pipeline *pipeline;
	struct serving *serving;
	struct tracing *tracing;
	struct profiler *profiler;
	struct watchdog watchdog;
	uint64_t lost; /* documents, points of the history */
	int signal_fd, done_fd;
};

static int open_signals(struct agent *a, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	/* before the first thread: all threads inherit the mask, so only the descriptor gets signals */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the write tells of the limit, and to which output it belongs */
	a->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	a->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->signal_fd < 0 || a->done_fd < 0)
		return err_set(err, -errno, "signals: %s; raise the limit of open files", strerror(errno));
	return 0;
}

static bool uses_interface(const struct schema *s, enum energy_interface interface)
{
	for (unsigned i = 0; i < s->n_domains; i++)
		if (s->domains[i].interface == interface)
			return true;
	return false;
}

static bool starts_programs(const struct meters_config *c)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->v[i].type && strcmp(c->v[i].type, "command") == 0)
			return true;
	return false;
}

/* Gives up the rights that the open sources do not need. */
static int drop_privileges(struct machine *m, const struct config *c, struct err *err)
{
	const struct rights r = {
		.runs_bpf = m->counters || m->lifecycle || m->network || m->block || m->spans,
		.opens_events = c->machine.profile.frequency_hz || m->counters || m->spans ||
				uses_interface(&m->schema, ENERGY_PERF),
		.events_by_admin = privileges_paranoid(m->root),
		.reads_msr = uses_interface(&m->schema, ENERGY_MSR),
		.reads_code = c->machine.profile.frequency_hz,
		.looks_into_processes = c->machine.profile.frequency_hz || m->spans ||
					gpus_look_into_processes(m->gpus),
		.reads_descriptors = gpus_look_into_processes(m->gpus),
		.starts_programs = starts_programs(&c->machine.meters),
	};
	struct err note = { 0 };
	int rc = privileges_drop(&r, c, &note, err);

	if (note.text[0])
		machine_note(m, "%s", note.text);
	return rc;
}

/* Makes the plan of c, beside the one in force if there is one. Takes c over on success. */
static int new_plan(struct agent *a, struct config *c, struct plan **ret, struct err *err)
{
	const struct plan_options o = { c, &a->machine->schema, a->loop, a->plan };

	return plan_new(&o, ret, err);
}

/* Takes c over, also on failure. */
static int agent_open(struct agent *a, struct config *c, struct err *err)
{
	int rc = open_signals(a, err);

	if (!rc)
		rc = machine_enter(c->machine.root, &a->machine, err);
	if (!rc)
		rc = machine_look(a->machine, c, err);
	if (!rc)
		rc = machine_open(a->machine, &c->machine, err);
	if (!rc)
		rc = tracing_open(a->machine, &c->machine.spans, &a->tracing, err);
	if (!rc)
		rc = profiler_open(c, &a->machine->schema, &a->profiler, err);
	if (!rc)
		rc = serving_open(&c->serving, &c->outputs, &a->serving, err);
	if (!rc)
		rc = drop_privileges(a->machine, c, err);
	if (!rc && (rc = loop_start(&a->loop)))
		err_set(err, rc, "I/O thread: %s; raise the limit of %s", strerror(-rc),
			rc == -EMFILE || rc == -ENFILE ? "open files" : "memory or tasks");
	if (!rc)
		rc = new_plan(a, c, &a->plan, err);
	if (rc) {
		config_free(c);
		return rc;
	}
	rc = serving_start(a->serving, a->machine, a->plan, a->loop, profiler_serves(a->profiler), err);
	if (!rc)
		rc = profiler_start(a->profiler, err);
	if (rc)
		return rc;
	profiler_use(a->profiler, a->plan);
	serving_tell(a->serving, a->plan);
	machine_say_summary(a->machine);
	machine_say(a->machine); /* before any other thread can log */
	const struct pipeline_options o = { a->machine, a->plan, a->serving, a->tracing, a->profiler, a->done_fd };

	return pipeline_start(&o, &a->pipeline, err);
}

static void agent_close(struct agent *a)
{
	if (a->pipeline)
		a->plan = pipeline_stop(a->pipeline);
	profiler_stop(a->profiler);
	if (a->plan) {
		plan_drain(a->plan, FLUSH_NS);
		for (struct output *o = a->plan->outputs; o; o = o->next)
			output_say(o);
	}
	a->lost += plan_free(a->plan); /* before the server, because it owns the plan's pages */
	a->lost += serving_stop(a->serving);
	profiler_close(a->profiler);
	loop_stop(a->loop);
	tracing_close(a->tracing);
	machine_close(a->machine);
	if (a->signal_fd >= 0)
		close(a->signal_fd);
	if (a->done_fd >= 0)
		close(a->done_fd);
}

/* Makes a plan of the new configuration, checked and with its outputs open. NULL: not possible; one line says
 * why. */
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
	reload_inherit(a->plan->config, c);
	fixed = reload_refused(a->plan->config, c);
	if (fixed)
		log_error("reload: %s cannot change while jouled runs; restart it, everything stays as it was", fixed);
	else if (check_config(c, &err) != 0 || landlock_covers(c, &err) != 0 || new_plan(a, c, &p, &err) != 0)
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
		profiler_use(a->profiler, NULL);
		old = pipeline_swap(a->pipeline, p);
		a->plan = p;
		profiler_use(a->profiler, p);
		plan_drain(old, FLUSH_NS);
		a->lost += plan_free(old);
		log_info("configuration read again");
	}
	notify("READY=1");
}

/* Handles a signal. True = go on. */
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

		/* poll reports without any requested event that the reader of a pipe has left */
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
		heap_after_start(); /* BTF and event tables are no longer needed */
		watchdog_start(&a.watchdog, a.pipeline, a.loop);
		notify("READY=1");
		agent_wait(&a);
		notify("STOPPING=1");
	}
	agent_close(&a);
	return rc ? EXIT_FAILED : a.lost ? EXIT_LOST : EXIT_OK;
}
