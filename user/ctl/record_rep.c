/* SPDX-License-Identifier: Apache-2.0 */
/* One repetition: recording begins before the command and ends behind it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "record.h"

#define POLL_NS (500 * NS_PER_MS)

static int fail(struct record_session *s, int code, const struct err *err)
{
	if (code && !s->failed.code)
		s->failed = *err;
	return code;
}

static int open_one(struct record_session *s, struct record_out *out, bool baseline, struct err *err)
{
	struct recorder_place place = { .root = s->o->root, .experiment = s->o->experiment, .benchmark = out->benchmark };
	int code;

	place.run = baseline ? NULL : s->setting ? s->setting->name : s->o->run;
	code = recorder_open(&place, &out->rec, err);
	if (code)
		return code;
	out->limit_mw = -1;
	memset(out->polled, 0, sizeof(out->polled));
	memset(out->last_sample_us, 0, sizeof(out->last_sample_us));
	out->last_row_ns = 0;
	if (out->gpu >= 0)
		recorder_gpu(out->rec, &s->devices.gpu[out->gpu]);
	if (s->devices.n_channels)
		recorder_meters(out->rec, s->devices.channel, s->devices.n_channels, s->o->external_uw);
	return 0;
}

/* Sampling from now on: nothing of the rings' past, and rows before the experiment begins. */
static int open_all(struct record_session *s, bool baseline, struct err *err)
{
	int code = record_devices_ask(s->with.agent, s->o->gpu_every_ns, &s->devices, err);

	s->last_meter_ns = 0;
	for (unsigned i = 0; i < s->n_out && !code; i++)
		code = open_one(s, &s->out[i], baseline, err);
	return code;
}

static void each(struct record_session *s, void (*fn)(struct recorder *r))
{
	for (unsigned i = 0; i < s->n_out; i++) {
		fn(s->out[i].rec);
		s->out[i].rec = NULL;
	}
}

static void wait_for_reading(const struct record_session *s)
{
	uint64_t ns = s->o->reading_every_ns;

	nanosleep(&(struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) }, NULL);
}

static void event(struct record_session *s, int64_t real_ns, const char *name, int64_t data)
{
	for (unsigned i = 0; i < s->n_out; i++)
		recorder_event(s->out[i].rec, real_ns, name, data);
}

static void take_mark(void *arg, const struct record_mark *mark)
{
	event(arg, mark->time_ns, mark->event, mark->data);
}

static void clear_line(const struct record_session *s)
{
	if (s->terminal)
		dprintf(STDERR_FILENO, "\r\033[K");
}

static void say_refused(void *arg, const char *why)
{
	clear_line(arg);
	log_warn("record: %s", why);
}

/* Of the GPUs where there are any, else of the machine. */
static double watts(const struct record_session *s)
{
	int64_t mw = 0;
	bool gpu = false;

	for (unsigned i = 0; i < s->n_out; i++)
		if (s->out[i].gpu >= 0) {
			gpu = true;
			mw += s->out[i].power_mw;
		}
	return (double)(gpu ? mw : (int64_t)s->measure.power_mw) / 1000;
}

static void progress(struct record_session *s)
{
	uint64_t elapsed = (clock_mono_ns() - s->start_ns) / NS_PER_S;
	const char *run = s->setting ? s->setting->name : s->o->run;

	if (!s->terminal)
		return;
	dprintf(STDERR_FILENO, "\r\033[K%s %u of %u  %02u:%02u:%02u  %.1f W", run, s->number, s->of, (unsigned)(elapsed / 3600),
		(unsigned)(elapsed / 60 % 60), (unsigned)(elapsed % 60), watts(s));
}

/* On absolute deadlines: what comes late does not make the next one late. */
static bool due(uint64_t *next_ns, uint64_t every_ns)
{
	uint64_t now = clock_mono_ns();

	if (now < *next_ns)
		return false;
	*next_ns += (1 + (now - *next_ns) / every_ns) * every_ns;
	return true;
}

static int until_next(const struct record_session *s)
{
	uint64_t now = clock_mono_ns(), next = s->next_reading_ns < s->next_poll_ns ? s->next_reading_ns : s->next_poll_ns;

	return next > now ? (int)((next - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

/* What failed is told at once, and nothing is measured any more: the command is the user's, and goes on. */
static void give_up(struct record_session *s)
{
	clear_line(s);
	log_error("record: %s; the command goes on unrecorded", s->failed.text);
}

static int look(void *arg)
{
	struct record_session *s = arg;
	struct err err = { 0 };
	int code = 0;

	record_marks_read(&s->marks, take_mark, say_refused, s);
	if (s->failed.code)
		return 1000;
	if (due(&s->next_reading_ns, s->o->reading_every_ns))
		code = record_measure_take(&s->measure, s->out, s->n_out, &err);
	if (!code && due(&s->next_poll_ns, POLL_NS))
		code = record_devices_take_new(s, &err);
	if (fail(s, code, &err))
		give_up(s);
	else if (due(&s->next_said_ns, NS_PER_S))
		progress(s);
	return until_next(s);
}

static void set_deadlines(struct record_session *s)
{
	s->start_ns = clock_mono_ns();
	s->next_reading_ns = s->start_ns + s->o->reading_every_ns;
	s->next_poll_ns = s->start_ns + POLL_NS;
	s->next_said_ns = s->start_ns;
}

/* Two readings: energy counts from the second. */
static int begin_measuring(struct record_session *s, const char *path, struct err *err)
{
	int code;

	record_measure_begin(&s->measure, s->with.agent, &s->with.facts, path, s->o->samples_from);
	code = record_measure_take(&s->measure, s->out, s->n_out, err);
	if (!code) {
		wait_for_reading(s);
		code = record_measure_take(&s->measure, s->out, s->n_out, err);
	}
	if (!code)
		code = record_devices_take_new(s, err);
	return code;
}

static int prepare(struct record_session *s, struct err *err)
{
	int code = open_all(s, false, err);

	if (!code)
		code = run_cgroup_make(&s->place, &s->cgroup, err);
	if (!code)
		code = record_marks_open(&s->marks, recorder_around(s->out[0].rec), err);
	if (!code && setenv(RECORD_MARK_VARIABLE, s->marks.path, 1) != 0)
		code = err_set(err, -ENOMEM, "record: out of memory; free some");
	if (!code)
		code = begin_measuring(s, s->cgroup.path, err);
	for (unsigned i = 0; i < s->n_out && !code; i++)
		record_info_put(s, &s->out[i], RECORD_GOING_ON);
	if (!code)
		code = record_snapshots_start(s, &s->snapshots, err);
	for (unsigned i = 0; i < s->n_out && !code; i++)
		code = recorder_flush(s->out[i].rec, err);
	return code;
}

static void end_measuring(struct record_session *s)
{
	struct err err = { 0 };

	s->end_ns = clock_real_ns();
	record_marks_read(&s->marks, take_mark, say_refused, s);
	if (!s->failed.code)
		fail(s, record_measure_take(&s->measure, s->out, s->n_out, &err), &err);
	event(s, s->end_ns, "experiment_end", 0);
	record_devices_drain(s);
	clear_line(s);
}

static void name_left(struct record_session *s)
{
	struct run_left left;

	run_cgroup_list_left(&s->cgroup, &left);
	if (left.n)
		log_warn("record: %u processes still run (%d %.15s ...): not recorded any more", left.n, (int)left.pid[0], left.comm[0]);
}

int record_repetition(struct record_session *s, struct err *err)
{
	const struct run_watch watch = { .tick = look, .arg = s, .fd = -1 };
	struct run_watch with_marks = watch;
	int code;

	s->failed = (struct err){ 0 };
	s->end = (struct run_end){ 0 };
	s->snapshots = NULL;
	s->cgroup = (struct run_cgroup){ 0 };
	s->marks.fd = -1;
	code = prepare(s, err);
	if (!code) {
		set_deadlines(s);
		s->begin_ns = clock_real_ns();
		record_marks_begin(&s->marks, s->begin_ns);
		event(s, s->begin_ns, "experiment_begin", 0);
		run_descriptors_guard(&s->descriptors);
		with_marks.fd = s->marks.fd;
		code = run_child(s->o->command, &s->cgroup, &s->signals, &with_marks, &s->end, err);
	}
	if (!code) {
		end_measuring(s);
		name_left(s);
	}
	record_snapshots_stop(s->snapshots);
	record_marks_close(&s->marks);
	run_cgroup_remove(&s->cgroup);
	if (code || s->end.not_started)
		each(s, recorder_discard);
	record_measure_end(&s->measure);
	return code;
}

/* Why it is not published; "" = it is. */
static void judge(const struct record_session *s, char *why, size_t size)
{
	int status = run_exit_status(&s->end);

	*why = '\0';
	if (s->failed.code)
		snprintf(why, size, "%s", s->failed.text);
	else if (s->signals.told)
		snprintf(why, size, "interrupted");
	else if (status)
		snprintf(why, size, "the command failed with status %d", status);
}

static int publish_one(struct record_session *s, struct record_out *out, struct err *err)
{
	char path[RECORDER_PATH_MAX];
	unsigned number;
	int code;

	snprintf(path, sizeof(path), "%s", recorder_around(out->rec));
	record_info_put(s, out, RECORD_DONE);
	code = recorder_publish(out->rec, &number, err);
	out->rec = NULL;
	if (code) {
		log_error("record: %s; what was recorded is kept in %s", err->text, path);
		return code;
	}
	s->published++;
	dprintf(STDERR_FILENO, "joulectl: recorded %s/%s/%s/%s/%u\n", s->o->root, s->o->experiment, out->benchmark, s->setting ? s->setting->name : s->o->run, number);
	return 0;
}

int record_finish(struct record_session *s, struct err *err)
{
	char why[600];
	int code = 0;

	judge(s, why, sizeof(why));
	for (unsigned i = 0; i < s->n_out; i++) {
		if (!*why) {
			int one = publish_one(s, &s->out[i], err);

			if (one)
				code = one;
			continue;
		}
		log_error("record: %s; not published, kept in %s; joulectl record --root %s --recover publishes it as it is", why,
			  recorder_around(s->out[i].rec), s->o->root);
		record_info_put(s, &s->out[i], RECORD_DONE);
		recorder_keep(s->out[i].rec);
		s->out[i].rec = NULL;
		code = -ECANCELED;
	}
	return code;
}

/* Nothing runs that is ours: what the machine uses at rest. */
int record_baseline(struct record_session *s, struct err *err)
{
	uint64_t until;
	unsigned number;
	int code;

	s->failed = (struct err){ 0 };
	s->marks.fd = -1;
	s->number = s->of = 1;
	code = open_all(s, true, err);
	if (!code)
		code = begin_measuring(s, NULL, err);
	set_deadlines(s);
	until = s->start_ns + s->o->baseline_ns;
	while (!code && !s->failed.code && !run_signals_look(&s->signals) && clock_mono_ns() < until) {
		int ms = look(s);

		nanosleep(&(struct timespec){ .tv_nsec = (ms < 100 ? ms + 1 : 100) * (long)NS_PER_MS }, NULL);
	}
	s->end_ns = clock_real_ns();
	if (!code)
		record_devices_drain(s);
	clear_line(s);
	record_measure_end(&s->measure);
	if (!code && s->failed.code) {
		code = s->failed.code;
		*err = s->failed;
	}
	if (!code && s->signals.told)
		code = err_set(err, -EINTR, "baseline: interrupted; nothing of it is kept");
	for (unsigned i = 0; i < s->n_out; i++) {
		if (code)
			recorder_discard(s->out[i].rec);
		else
			code = recorder_publish(s->out[i].rec, &number, err);
		s->out[i].rec = NULL;
	}
	return code;
}
