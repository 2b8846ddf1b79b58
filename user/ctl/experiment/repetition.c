/* SPDX-License-Identifier: Apache-2.0 */
/* One repetition: recording begins before the command and ends after it. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "record.h"

#define READING_WAIT_NS (250 * NS_PER_MS)
#define POLL_NS (500 * NS_PER_MS)

/* Times of the next actions; CLOCK_MONOTONIC. */
struct pace {
	uint64_t start_ns, next_reading_ns, next_poll_ns, next_said_ns;
};

/* The repetition or baseline that is being recorded. */
struct state {
	const struct record_job *job;
	struct record_kit *kit;
	struct record_outs *outs;
	struct record_result *result;
	struct run_cgroup cgroup;
	struct record_measure measure;
	struct record_marks marks;
	struct record_snapshots *snapshots;
	struct pace pace;
};

/* Notes the first failure. */
static void note_failure(struct record_result *r, int rc, const struct err *err)
{
	if (rc && !r->failed.code)
		r->failed = *err;
}

static void clear_line(const struct record_kit *kit)
{
	if (kit->terminal)
		dprintf(STDERR_FILENO, "\r\033[K");
}

static void take_mark(void *arg, const struct record_mark *mark)
{
	record_outs_event(((const struct state *)arg)->outs, mark->time_ns, mark->event, mark->data);
}

static void say_refused(void *arg, const char *why)
{
	clear_line(((const struct state *)arg)->kit);
	log_warn("record: %s", why);
}

/* Returns the power of the recorded GPUs; without a GPU that of the machine. W. */
static double watts(const struct record_outs *outs, uint64_t machine_mw)
{
	int64_t mw = 0;
	bool gpu = false;

	for (unsigned i = 0; i < outs->n; i++)
		if (outs->out[i].gpu >= 0) {
			gpu = true;
			mw += outs->out[i].power_mw;
		}
	return (double)(gpu ? mw : (int64_t)machine_mw) / 1000;
}

static void progress(const struct record_job *job, uint64_t start_ns, double watts_now)
{
	uint64_t elapsed = (clock_mono_ns() - start_ns) / NS_PER_S;

	dprintf(STDERR_FILENO, "\r\033[K%s %u of %u  %02u:%02u:%02u  %.1f W", record_run_name(job), job->number,
		job->of, (unsigned)(elapsed / 3600), (unsigned)(elapsed / 60 % 60), (unsigned)(elapsed % 60),
		watts_now);
}

/* Is it time? The deadline then moves on by whole periods, so that a late action does not delay the next one. */
static bool due(uint64_t *next_ns, uint64_t every_ns)
{
	uint64_t now = clock_mono_ns();

	if (now < *next_ns)
		return false;
	*next_ns += (1 + (now - *next_ns) / every_ns) * every_ns;
	return true;
}

static int until_next(const struct pace *p)
{
	uint64_t now = clock_mono_ns(),
		 next = p->next_reading_ns < p->next_poll_ns ? p->next_reading_ns : p->next_poll_ns;

	return next > now ? (int)((next - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

static struct pace pace_from_now(uint64_t reading_every_ns)
{
	uint64_t now = clock_mono_ns();

	return (struct pace){ now, now + reading_every_ns, now + POLL_NS, now };
}

static int take_devices(struct state *s, struct err *err)
{
	return record_outs_take(s->outs, s->job->plan, s->kit->with.agent, err);
}

/* Takes readings and rows of devices and shows the progress line, each when it is due. It is called again and again
 * while the command runs or the machine rests. Returns the milliseconds until the next call. */
static int look(struct state *s)
{
	struct err err = { 0 };
	int rc = 0;

	if (due(&s->pace.next_reading_ns, s->job->plan->reading_every_ns))
		rc = record_measure_take(&s->measure, s->outs, &err);
	if (!rc && due(&s->pace.next_poll_ns, POLL_NS))
		rc = take_devices(s, &err);
	note_failure(s->result, rc, &err);
	if (!rc && due(&s->pace.next_said_ns, NS_PER_S) && s->kit->terminal)
		progress(s->job, s->pace.start_ns, watts(s->outs, s->measure.power_mw));
	return until_next(&s->pace);
}

/* tick of struct run_watch. After a failure the command goes on without measurement, because it is the user's. */
static int tick(void *arg)
{
	struct state *s = arg;
	int ms = 1000;

	record_marks_read(&s->marks, take_mark, say_refused, s);
	if (s->result->failed.code)
		return ms;
	ms = look(s);
	if (s->result->failed.code) {
		clear_line(s->kit);
		log_error("record: %s; the command goes on unrecorded", s->result->failed.text);
	}
	return ms;
}

/* Takes the first reading and waits for one period, at most READING_WAIT_NS because the wait cannot be interrupted.
 * path NULL = only the machine is measured. */
static int begin_measuring(struct state *s, const char *path, struct err *err)
{
	uint64_t every_ns = s->job->plan->reading_every_ns;
	int rc;

	record_measure_begin(&s->measure, s->kit->with.agent, &s->kit->with.facts, path, s->job->plan->samples_from);
	rc = record_measure_take(&s->measure, s->outs, err);
	if (!rc)
		nanosleep(&(struct timespec){ .tv_nsec = (long)(every_ns < READING_WAIT_NS ? every_ns :
											     READING_WAIT_NS) },
			  NULL);
	return rc;
}

/* Takes the reading from which energy counts, and the rows of devices up to it. */
static int count_from_here(struct state *s, struct err *err)
{
	int rc = record_measure_take(&s->measure, s->outs, err);

	return rc ? rc : take_devices(s, err);
}

static int prepare(struct state *s, struct err *err)
{
	const struct record_job *job = s->job;
	const struct run_agent *with = &s->kit->with;
	struct record_outs *outs = s->outs;
	int rc = record_outs_open(outs, job, with->agent, false, err);

	if (!rc)
		rc = run_cgroup_make(&s->kit->place, &s->cgroup, err);
	if (!rc)
		rc = record_marks_open(&s->marks, recorder_around(outs->out[0].rec), err);
	if (!rc && setenv(RECORD_MARK_VARIABLE, s->marks.path, 1) != 0)
		rc = err_set(err, -ENOMEM, "record: out of memory; free some");
	if (!rc)
		rc = begin_measuring(s, s->cgroup.path, err);
	for (unsigned i = 0; i < outs->n && !rc; i++)
		record_info_put(job, with, &outs->devices, &outs->out[i], NULL);
	if (!rc)
		rc = record_snapshots_start(with->own ? private_agent_socket(with->own) : job->plan->socket, outs,
					    &s->snapshots, err);
	return rc;
}

/* ready of struct run_watch: the command's process waits in the cgroup. The event is flushed together with the rows
 * before it, because --recover takes rows without that event for damage. */
static int begin(void *arg, struct err *err)
{
	struct state *s = arg;
	int rc = count_from_here(s, err);

	if (rc)
		return rc;
	s->pace = pace_from_now(s->job->plan->reading_every_ns);
	s->result->begin_ns = clock_real_ns();
	record_marks_begin(&s->marks, s->result->begin_ns);
	record_outs_event(s->outs, s->result->begin_ns, "experiment_begin", 0);
	return record_outs_flush(s->outs, err);
}

static void end(struct state *s)
{
	struct record_result *r = s->result;
	struct err err = { 0 };

	r->end_ns = record_marks_end(&s->marks, take_mark, say_refused, s);
	if (!r->failed.code)
		note_failure(r, record_measure_take(&s->measure, s->outs, &err), &err);
	record_outs_event(s->outs, r->end_ns, "experiment_end", 0);
	if (!r->failed.code)
		note_failure(r, record_outs_drain(s->outs, s->job->plan, s->kit->with.agent, r->end_ns, &err), &err);
	record_outs_complete(s->outs, s->job->plan);
	clear_line(s->kit);
	r->interrupted = s->kit->signals.told;
	r->figures = s->measure.figures;
	r->marks_refused = s->marks.refused;
	r->samples_missed = s->outs->devices.missed;
	r->epoch_closed = s->marks.closed;
}

static void name_left(const struct run_cgroup *c)
{
	struct run_left left;

	run_cgroup_list_left(c, &left);
	if (left.n)
		log_warn("record: %u processes still run (%d %.15s ...): not recorded any more", left.n,
			 (int)left.pid[0], left.comm[0]);
}

int record_repetition(const struct record_job *job, struct record_kit *kit, struct record_outs *outs,
		      struct record_result *ret, struct err *err)
{
	struct state s = { .job = job, .kit = kit, .outs = outs, .result = ret, .marks.fd = -1 };
	struct run_watch watch = { .ready = begin, .tick = tick, .arg = &s };
	const struct run_command what = { .argv = job->plan->command, .cgroup = &s.cgroup, .signals = &kit->signals };
	int rc;

	*ret = (struct record_result){ .epoch_closed = -1 };
	rc = prepare(&s, err);
	if (!rc) {
		run_descriptors_guard(&kit->descriptors);
		watch.fd = s.marks.fd;
		rc = run_child(&what, &watch, &ret->end, err);
	}
	if (!rc) {
		end(&s);
		name_left(&s.cgroup);
	}
	record_snapshots_stop(s.snapshots);
	record_marks_close(&s.marks);
	run_cgroup_remove(&s.cgroup);
	if (rc || ret->end.not_started)
		record_outs_discard(outs);
	record_measure_end(&s.measure);
	return rc;
}

/* Measures until the time is over, a signal asks for the end, or something fails. */
static int rest(struct state *s, struct err *err)
{
	uint64_t until = s->pace.start_ns + s->job->plan->baseline_ns;
	int64_t end_ns;

	while (!s->result->failed.code && !run_signals_look(&s->kit->signals) && clock_mono_ns() < until) {
		int ms = look(s);

		nanosleep(&(struct timespec){ .tv_nsec = (ms < 100 ? ms + 1 : 100) * (long)NS_PER_MS }, NULL);
	}
	end_ns = clock_real_ns();
	if (!s->result->failed.code)
		note_failure(s->result, record_outs_drain(s->outs, s->job->plan, s->kit->with.agent, end_ns, err), err);
	record_outs_complete(s->outs, s->job->plan);
	*err = s->result->failed;
	if (!err->code && s->kit->signals.told)
		err_set(err, -EINTR, "baseline: interrupted; nothing of it is kept");
	return err->code;
}

int record_baseline(const struct record_plan *plan, struct record_kit *kit, struct record_outs *outs, struct err *err)
{
	const struct record_job job = { .plan = plan, .setting = NULL, .number = 1, .of = 1 };
	struct record_result result = { 0 };
	struct state s = { .job = &job, .kit = kit, .outs = outs, .result = &result, .marks.fd = -1 };
	unsigned number;
	int rc = record_outs_open(outs, &job, kit->with.agent, true, err);

	if (!rc)
		rc = begin_measuring(&s, NULL, err);
	if (!rc)
		rc = count_from_here(&s, err);
	s.pace = pace_from_now(plan->reading_every_ns);
	if (!rc)
		rc = rest(&s, err);
	clear_line(kit);
	record_measure_end(&s.measure);
	for (unsigned i = 0; i < outs->n && !rc; i++) {
		rc = recorder_publish(outs->out[i].rec, &number, err);
		outs->out[i].rec = NULL;
	}
	record_outs_discard(outs);
	return rc;
}
