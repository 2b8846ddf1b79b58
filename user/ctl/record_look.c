/* SPDX-License-Identifier: Apache-2.0 */
/* What is done while the command runs, or the machine rests: marks, readings, rows of devices, the progress line. */
#include <stdio.h>
#include <unistd.h>
#include "../base/clock.h"
#include "../base/log.h"
#include "record.h"

#define POLL_NS (500 * NS_PER_MS)

int record_fail(struct record_session *s, int code, const struct err *err)
{
	if (code && !s->failed.code)
		s->failed = *err;
	return code;
}

void record_event(struct record_session *s, int64_t real_ns, const char *name, int64_t data)
{
	for (unsigned i = 0; i < s->n_out; i++)
		recorder_event(s->out[i].rec, real_ns, name, data);
}

void record_take_mark(void *arg, const struct record_mark *mark)
{
	record_event(arg, mark->time_ns, mark->event, mark->data);
}

void record_clear_line(const struct record_session *s)
{
	if (s->terminal)
		dprintf(STDERR_FILENO, "\r\033[K");
}

void record_say_refused(void *arg, const char *why)
{
	record_clear_line(arg);
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
	dprintf(STDERR_FILENO, "\r\033[K%s %u of %u  %02u:%02u:%02u  %.1f W", run, s->number, s->of,
		(unsigned)(elapsed / 3600), (unsigned)(elapsed / 60 % 60), (unsigned)(elapsed % 60), watts(s));
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
	uint64_t now = clock_mono_ns(),
		 next = s->next_reading_ns < s->next_poll_ns ? s->next_reading_ns : s->next_poll_ns;

	return next > now ? (int)((next - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

/* What failed is told at once, and nothing is measured any more: the command is the user's, and goes on. */
static void give_up(struct record_session *s)
{
	record_clear_line(s);
	log_error("record: %s; the command goes on unrecorded", s->failed.text);
}

int record_look(void *arg)
{
	struct record_session *s = arg;
	struct err err = { 0 };
	int code = 0;

	record_marks_read(&s->marks, record_take_mark, record_say_refused, s);
	if (s->failed.code)
		return 1000;
	if (due(&s->next_reading_ns, s->o->reading_every_ns))
		code = record_measure_take(&s->measure, s->out, s->n_out, &err);
	if (!code && due(&s->next_poll_ns, POLL_NS))
		code = record_devices_take_new(s, &err);
	if (record_fail(s, code, &err))
		give_up(s);
	else if (due(&s->next_said_ns, NS_PER_S))
		progress(s);
	return until_next(s);
}

void record_look_begin(struct record_session *s)
{
	s->start_ns = clock_mono_ns();
	s->next_reading_ns = s->start_ns + s->o->reading_every_ns;
	s->next_poll_ns = s->start_ns + POLL_NS;
	s->next_said_ns = s->start_ns;
}
