/* SPDX-License-Identifier: Apache-2.0 */
/* One repetition: recording begins before the command and ends behind it. */
#include <errno.h>
#include <stdlib.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "record.h"

static void each(struct record_session *s, void (*fn)(struct recorder *r))
{
	for (unsigned i = 0; i < s->n_out; i++) {
		fn(s->out[i].rec);
		s->out[i].rec = NULL;
	}
}

static int prepare(struct record_session *s, struct err *err)
{
	int code = record_open(s, false, err);

	if (!code)
		code = run_cgroup_make(&s->place, &s->cgroup, err);
	if (!code)
		code = record_marks_open(&s->marks, recorder_around(s->out[0].rec), err);
	if (!code && setenv(RECORD_MARK_VARIABLE, s->marks.path, 1) != 0)
		code = err_set(err, -ENOMEM, "record: out of memory; free some");
	if (!code)
		code = record_begin_measuring(s, s->cgroup.path, err);
	for (unsigned i = 0; i < s->n_out && !code; i++)
		record_info_put(s, &s->out[i], RECORD_GOING_ON);
	if (!code)
		code = record_snapshots_start(s, &s->snapshots, err);
	return code;
}

static void end_measuring(struct record_session *s)
{
	struct err err = { 0 };

	s->end_ns = record_marks_end(&s->marks, record_take_mark, record_say_refused, s);
	if (!s->failed.code)
		record_fail(s, record_measure_take(&s->measure, s->out, s->n_out, &err), &err);
	record_event(s, s->end_ns, "experiment_end", 0);
	record_devices_drain(s);
	record_clear_line(s);
}

static void name_left(struct record_session *s)
{
	struct run_left left;

	run_cgroup_list_left(&s->cgroup, &left);
	if (left.n)
		log_warn("record: %u processes still run (%d %.15s ...): not recorded any more", left.n,
			 (int)left.pid[0], left.comm[0]);
}

int record_repetition(struct record_session *s, struct err *err)
{
	const struct run_watch watch = { .tick = record_look, .arg = s, .fd = -1 };
	struct run_watch with_marks = watch;
	int code;

	s->failed = (struct err){ 0 };
	s->end = (struct run_end){ 0 };
	s->snapshots = NULL;
	s->cgroup = (struct run_cgroup){ 0 };
	s->marks.fd = -1;
	code = prepare(s, err);
	if (!code) {
		record_look_begin(s);
		s->begin_ns = clock_real_ns();
		record_marks_begin(&s->marks, s->begin_ns);
		record_event(s, s->begin_ns, "experiment_begin", 0);
		/* together with the rows from before: recovery takes rows without it for a damage */
		for (unsigned i = 0; i < s->n_out && !code; i++)
			code = recorder_flush(s->out[i].rec, err);
	}
	if (!code) {
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
