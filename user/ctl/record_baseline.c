/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>
#include "../base/clock.h"
#include "record.h"

/* Nothing runs that is ours: what the machine uses at rest. */
int record_baseline(struct record_session *s, struct err *err)
{
	uint64_t until;
	unsigned number;
	int code;

	s->failed = (struct err){ 0 };
	s->marks.fd = -1;
	s->number = s->of = 1;
	code = record_open(s, true, err);
	if (!code)
		code = record_begin_measuring(s, NULL, err);
	record_look_begin(s);
	until = s->start_ns + s->o->baseline_ns;
	while (!code && !s->failed.code && !run_signals_look(&s->signals) && clock_mono_ns() < until) {
		int ms = record_look(s);

		nanosleep(&(struct timespec){ .tv_nsec = (ms < 100 ? ms + 1 : 100) * (long)NS_PER_MS }, NULL);
	}
	s->end_ns = clock_real_ns();
	if (!code)
		record_devices_drain(s);
	record_clear_line(s);
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
