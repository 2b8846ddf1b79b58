/* SPDX-License-Identifier: Apache-2.0 */
/* --replay: takes snapshots from a file instead of a machine, as fast as the readers take them. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/text.h"
#include "model/recording/recording.h"
#include "agent/doctor/check.h"
#include "app.h"
#include "agent/plan/plan.h"

#define WAITING_MAX 4 /* documents a sink may hold before the next one is made */
#define STUCK_NS (10 * NS_PER_S) /* a reader that takes nothing for this time loses documents */

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS / 4 }, NULL);
}

/* True after a signal, or when the only reader has gone. */
static bool asked_to_stop(const struct plan *p, const sigset_t *signals)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return sigtimedwait(signals, NULL, &(struct timespec){ 0 }) > 0 ||
	       (plan_only_stdout(p) && poll(&out, 1, 0) > 0);
}

static void say_waiting(struct output *o)
{
	char state[160];

	output_state(o, state, sizeof(state));
	log_warn("output %.*s: waits up to %g s for its reader: %s", TEXT_SUBJECT(o->config.to),
		 (double)o->config.wait_ns / 1e9, state);
}

/* Waits for the readers: a recording is read in a moment, and its reports do not come again. False: asked to
 * stop. */
static bool wait_for_readers(struct plan *p, const sigset_t *signals)
{
	uint64_t start = clock_mono_ns();
	bool away = true, said = false;

	while (away) {
		away = false;
		for (struct output *o = p->outputs; o; o = o->next) {
			bool met = output_met(o), over = clock_mono_ns() - start >= o->config.wait_ns;

			o->stuck = !met && over;
			away |= !met && !over;
			if (!met && !over && !said && clock_mono_ns() - start > NS_PER_S / 4)
				say_waiting(o);
		}
		said |= clock_mono_ns() - start > NS_PER_S / 4;
		if (away && asked_to_stop(p, signals))
			return false;
		if (away)
			nap();
	}
	return true;
}

static bool is_full(struct output *o)
{
	bool full = output_waiting(o, true) >= WAITING_MAX;

	o->stuck = o->stuck && full;
	return full && !o->stuck;
}

/* Waits for the slowest output, because a file is read much faster than a peer takes it. False: asked to stop. */
static bool wait_for_room(struct plan *p, const sigset_t *signals)
{
	uint64_t start = clock_mono_ns();
	bool full = true;

	while (full) {
		bool over = clock_mono_ns() - start >= STUCK_NS;

		full = false;
		for (struct output *o = p->outputs; o; o = o->next) {
			if (!is_full(o))
				continue;
			o->stuck = over;
			full |= !over;
		}
		if (full && asked_to_stop(p, signals))
			return false;
		if (full)
			nap();
	}
	return true;
}

/* Waits until the readers have everything, as long as they keep taking documents. */
static void wait_for_end(struct plan *p, const sigset_t *signals)
{
	uint64_t begun = clock_mono_ns(), seen = 0, waited = 0;

	while (waited < STUCK_NS && !plan_drained(p, waited) && !asked_to_stop(p, signals)) {
		uint64_t taken = 0;

		nap();
		for (struct output *o = p->outputs; o; o = o->next)
			taken += output_progress(o);
		if (taken != seen)
			begun = clock_mono_ns();
		seen = taken;
		waited = clock_mono_ns() - begun;
	}
}

/* Applies the selection. Rows that the recording left out stay out. */
static void select_rows(const struct cgroups_config *c, struct snapshot *s)
{
	const struct selection_rules rules = config_rules(c);

	for (uint32_t i = 0; i < s->n_rows; i++)
		if (s->rows[i].kind == ROW_CGROUP && s->rows[i].selected)
			s->rows[i].selected = selection_admits(&rules, s->rows[i].path);
}

/* Reads the first snapshot when an output writes a set of files: its time decides which set can be continued. */
static int read_first(struct recording *rec, struct config *c, struct snapshot **ret, struct err *err)
{
	bool wanted = false;
	int rc;

	for (unsigned i = 0; i < c->outputs.n; i++)
		wanted |= output_in_directory(&c->outputs.v[i]);
	*ret = NULL;
	rc = wanted ? recording_next(rec, ret, err) : 0;
	if (rc > 0)
		c->first_real_ns = (*ret)->end_real_ns;
	return rc < 0 ? rc : 0;
}

struct replay {
	struct recording *rec;
	struct plan *plan;
	struct tap tap; /* the formula */
	struct snapshot *first; /* already read; NULL = none */
	sigset_t signals;
};

static int replay_all(struct replay *r, struct err *err)
{
	struct plan *p = r->plan;
	struct snapshot *s;
	uint64_t done = 0;
	int rc = 1;

	if (!wait_for_readers(p, &r->signals))
		return 0;
	while ((!p->config->count || done < p->config->count) && !asked_to_stop(p, &r->signals)) {
		s = r->first;
		rc = s ? 1 : recording_next(r->rec, &s, err);
		r->first = NULL;
		if (rc <= 0)
			break;
		select_rows(&p->config->machine.cgroups, s);
		tap_split(&r->tap, s);
		if (!wait_for_room(p, &r->signals))
			break;
		for (struct output *o = p->outputs; o; o = o->next)
			output_send(o, s);
		done++;
	}
	return rc < 0 ? rc : 0;
}

static int replay_into(struct recording *rec, struct config *c, struct loop *loop, uint64_t *ret_lost, struct err *err)
{
	const struct plan_options o = { .config = c, .schema = recording_schema(rec), .loop = loop };
	struct replay r = { .rec = rec };
	int rc;

	if (c->machine.sensor_given)
		recording_set_sensor(rec, c->machine.sensor);
	rc = read_first(rec, c, &r.first, err);
	if (!rc)
		rc = plan_new(&o, &r.plan, err);
	if (rc)
		return rc;
	sigemptyset(&r.signals);
	sigaddset(&r.signals, SIGINT);
	sigaddset(&r.signals, SIGTERM);
	rc = tap_use(&r.tap, &r.plan->formula) ? err_set(err, -ENOMEM, "replay: out of memory; free some") :
						 replay_all(&r, err);
	wait_for_end(r.plan, &r.signals);
	for (struct output *out = r.plan->outputs; out; out = out->next)
		output_say(out);
	tap_end(&r.tap);
	r.plan->config = NULL; /* the caller owns it */
	*ret_lost = plan_free(r.plan);
	return rc;
}

int replay_run(struct config *c)
{
	struct recording *rec = NULL;
	struct loop *loop = NULL;
	struct err err = { 0 };
	uint64_t lost = 0;
	sigset_t signals;
	int rc;

	if (check_outputs(c, &err) != 0) {
		log_error("%s", err.text);
		return EXIT_USAGE;
	}
	/* blocked before the loop's thread starts; sigtimedwait takes them */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the write tells of the limit, and to which output it belongs */
	rc = recording_open(c->program.replay, &rec, &err);
	if (!rc) {
		rc = loop_start(&loop);
		if (rc)
			err_set(&err, rc, "I/O thread: cannot be started; raise the limits of memory or tasks");
	}
	if (!rc)
		rc = replay_into(rec, c, loop, &lost, &err);
	if (rc)
		log_error("%s", err.text);
	loop_stop(loop);
	recording_close(rec);
	return rc ? EXIT_FAILED : lost ? EXIT_LOST : EXIT_OK;
}
