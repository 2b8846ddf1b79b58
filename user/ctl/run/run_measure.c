/* SPDX-License-Identifier: Apache-2.0 */
#include "run_measure.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include "base/clock.h"
#include "ctl/core/janitor.h"

#define LOOK_MS 20000

int run_measure_open(struct run_measure *m, const struct run_agent_wish *wish, struct err *err)
{
	char mount[RUN_PATH_MAX];
	int rc = run_agent_find(&m->with, wish, mount, err);

	if (!rc)
		rc = run_place_find(mount, &m->place, err);
	if (!rc)
		rc = janitor_start(run_place_sweep, &m->place, -1, &m->janitor, err);
	if (!rc)
		rc = run_signals_take(&m->signals, err);
	return rc;
}

void run_measure_close(struct run_measure *m)
{
	run_agent_close(&m->with);
	janitor_dismiss(m->janitor);
}

/* Reads while the command runs, because the agent keeps the values of ended cgroups for a while only. */
static int look_meanwhile(void *arg)
{
	struct run_measure *m = arg;
	struct run_machine now;

	if (run_cgroup_has_children(&m->cgroup))
		run_reading_ask(m->with.agent, m->cgroup.path,
				&(struct run_reading){ .facts = &m->with.facts, .machine = &now, .rows = &m->rows },
				NULL);
	return LOOK_MS;
}

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_usec * 1000;
}

static void take_end(struct run_measure *m, const struct run_end *e, char **argv, struct run_result *r)
{
	r->exit_status = run_exit_status(e);
	if (e->not_started) {
		snprintf(r->error, sizeof(r->error), "%.200s: %s", argv[0], strerrordesc_np(e->not_started));
		return;
	}
	r->started = true;
	r->signal = WIFSIGNALED(e->status) ? WTERMSIG(e->status) : 0;
	r->wall_ns = e->wall_ns;
	r->user_ns = timeval_ns(e->usage.ru_utime);
	r->system_ns = timeval_ns(e->usage.ru_stime);
	r->memory_of_cgroup = run_cgroup_memory_peak(&m->cgroup, &r->memory_peak);
	if (!r->memory_of_cgroup)
		r->memory_peak = (uint64_t)e->usage.ru_maxrss * 1024;
	run_cgroup_list_left(&m->cgroup, &r->left);
}

/* Reads the rows of the command, and with tells_others all others too. */
static int read_now(struct run_measure *m, struct run_machine *ret, struct run_beside *beside, struct err *err)
{
	const struct run_reading reading = { .facts = &m->with.facts,
					     .machine = ret,
					     .rows = &m->rows,
					     .beside = m->tells_others ? beside : NULL,
					     .below = m->cgroup.path };

	return run_reading_ask(m->with.agent, m->tells_others ? NULL : m->cgroup.path, &reading, err);
}

static void tell_others(struct run_measure *m, const struct run_beside *after, struct run_result *r)
{
	r->others_known = m->tells_others;
	if (r->others_known)
		r->n_others = run_beside_most(&m->beside, after, r->other);
}

static void measure_end(struct run_measure *m, struct run_result *r)
{
	struct run_beside beside = { 0 };
	struct run_machine after;
	struct err err = { 0 };

	if (read_now(m, &after, &beside, &err) != 0) {
		snprintf(r->error, sizeof(r->error), "%s", err.text);
	} else if (!m->rows.n) {
		snprintf(r->error, sizeof(r->error),
			 "it does not report %s; look at its cgroups.include, exclude and max, or use --private",
			 m->cgroup.path);
	} else {
		run_result_fill(r, &m->with.facts, &m->rows, &m->before, &after);
		tell_others(m, &beside, r);
	}
	run_beside_free(&beside);
}

/* ready of struct run_watch: the command's process waits in the cgroup. The fork and the move are not counted. */
static int count_from_here(void *arg, struct err *err)
{
	struct run_measure *m = arg;
	int rc = read_now(m, &m->before, &m->beside, err);

	run_rows_start(&m->rows);
	return rc;
}

int run_measure_once(struct run_measure *m, char **argv, int input, struct run_result *ret, struct err *err)
{
	const struct run_watch watch = {
		.ready = count_from_here, .tick = look_meanwhile, .arg = m, .first_ms = LOOK_MS, .fd = -1
	};
	const struct run_command what = { .argv = argv, .cgroup = &m->cgroup, .signals = &m->signals, .input = input };
	struct run_end end = { 0 };
	int rc = run_cgroup_make(&m->place, &m->cgroup, err);

	run_descriptors_guard(&m->descriptors);
	if (!rc)
		rc = run_child(&what, &watch, &end, err);
	if (!rc) {
		take_end(m, &end, argv, ret);
		if (ret->started)
			measure_end(m, ret);
	}
	run_cgroup_remove(&m->cgroup);
	run_rows_free(&m->rows);
	run_beside_free(&m->beside);
	return rc;
}
