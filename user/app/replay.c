/* SPDX-License-Identifier: Apache-2.0 */
/* --replay: snapshots come from a file instead of a machine, as fast as the readers take them. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../base/text.h"
#include "../model/recording.h"
#include "app.h"
#include "pipeline.h"

#define WAITING_MAX 4 /* documents a sink may hold before the next is made */
#define STUCK_NS (10 * NS_PER_S) /* a reader that takes nothing for so long loses documents */

/* By a signal, or by the only reader's going away. */
static bool asked_to_stop(const struct plan *p, const sigset_t *signals)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return sigtimedwait(signals, NULL, &(struct timespec){ 0 }) > 0 ||
	       (plan_only_stdout(p) && poll(&out, 1, 0) > 0);
}

/* A file can be read much faster than a peer takes it: pace by the slowest one. */
static bool wait_for_room(struct plan *p, const sigset_t *signals)
{
	uint64_t start = clock_mono_ns();
	bool full = true;

	while (full && clock_mono_ns() - start < STUCK_NS) {
		full = false;
		for (struct output *o = p->outputs; o; o = o->next)
			full |= output_waiting(o, true) >= WAITING_MAX;
		if (full && asked_to_stop(p, signals))
			return false;
		if (full)
			nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS / 4 }, NULL);
	}
	return true;
}

/* What the recording left out stays out; everything is in it, so that more can be. */
static void select_rows(const struct config *c, struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_rows; i++) {
		struct snap_row *row = &s->rows[i];
		bool in = !c->cgroups_include.n, out = false;

		if (row->kind != ROW_CGROUP || !row->selected)
			continue;
		for (unsigned k = 0; k < c->cgroups_include.n && !in; k++)
			in = text_glob(c->cgroups_include.v[k], row->path);
		for (unsigned k = 0; k < c->cgroups_exclude.n && !out; k++)
			out = text_glob(c->cgroups_exclude.v[k], row->path);
		row->selected = in && !out;
	}
}

static int replay_all(struct recording *rec, struct plan *p, struct formula *f, struct err *err)
{
	struct snapshot *s;
	uint64_t done = 0;
	sigset_t signals;
	int rc = 1;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	while ((!p->config->count || done < p->config->count) && !asked_to_stop(p, &signals)) {
		rc = recording_next(rec, &s, err);
		if (rc <= 0)
			break;
		select_rows(p->config, s);
		if (p->formula->apply(f, s) != 0)
			formula_all_residual(s);
		if (!wait_for_room(p, &signals))
			break;
		for (struct output *o = p->outputs; o; o = o->next)
			output_send(o, s);
		done++;
	}
	return rc < 0 ? rc : 0;
}

static int replay_into(struct recording *rec, struct config *c, struct loop *loop, struct err *err)
{
	struct formula *f;
	struct plan *p;
	int rc = plan_new(c, recording_schema(rec), loop, NULL, &p, err);

	if (rc)
		return rc;
	f = plan_formula(p);
	rc = f ? replay_all(rec, p, f, err) : err_set(err, -ENOMEM, "replay: out of memory");
	plan_drain(p, STUCK_NS);
	for (struct output *o = p->outputs; o; o = o->next)
		output_say(o);
	if (f)
		p->formula->destroy(f);
	p->config = NULL; /* the caller's */
	plan_free(p);
	return rc;
}

int replay_run(struct config *c)
{
	struct recording *rec = NULL;
	struct loop *loop = NULL;
	struct err err = { 0 };
	sigset_t signals;
	int rc;

	/* blocked before the loop's thread begins, taken by sigtimedwait */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	rc = recording_open(c->replay, &rec, &err);
	if (!rc) {
		rc = loop_start(&loop);
		if (rc)
			err_set(&err, rc, "I/O thread: cannot be started; raise the limits of memory or tasks");
	}
	if (!rc)
		rc = replay_into(rec, c, loop, &err);
	if (rc)
		log_error("%s", err.text);
	loop_stop(loop);
	recording_close(rec);
	return rc ? EXIT_FAILED : EXIT_OK;
}
